//! What is a secret and what is not, and what holds for every text.

use super::{SearchedTexts, Secrets};
use crate::message::{Message, Part, Role};
use crate::wire::work::{self, WorkDone};
use context_compactor_scan::secrets::secrets;
use proptest::prelude::*;
use std::borrow::Cow;
use std::time::{Duration, Instant};

fn redact(text: &str) -> Cow<'_, str> {
    Secrets::new("test").redact(text)
}

/// Characters that no rule knows, of a kind that every rule takes for generated.
fn random(count: usize) -> String {
    "q7Zk2Wd9Xb4Mv8Rt3Ny6Hp5Jc1Lf0Gs".chars().cycle().take(count).collect()
}

fn pem(label: &str) -> String {
    let lines: Vec<String> = (0..12).map(|_| random(64)).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----", lines.join("\n"))
}

/// One secret of each kind, with its placeholder.
fn kinds() -> Vec<(String, &'static str)> {
    let jwt = format!("eyJhbGciOiJIUzI1NiJ9.eyJ{}.{}", random(24), random(43));
    vec![
        (pem("RSA PRIVATE KEY"), "private-key"),
        (pem("PRIVATE KEY"), "private-key"),
        (pem("OPENSSH PRIVATE KEY"), "private-key"),
        (pem("PGP PRIVATE KEY BLOCK"), "private-key"),
        ("AKIAQ7ZK2WD9XB4MV8RT".into(), "aws-access-key"),
        ("ASIAQ7ZK2WD9XB4MV8RT".into(), "aws-access-key"),
        (format!("ghp_{}", random(36)), "github-token"),
        (format!("ghs_{}", random(36)), "github-token"),
        (format!("github_pat_{}_{}", random(22), random(59)), "github-token"),
        (format!("xoxb-123456789012-1234567890123-{}", random(24)), "slack-token"),
        (format!("xapp-1-A0123456789-1234567890123-{}", random(64)), "slack-token"),
        (jwt, "jwt"),
        (format!("sk-{}", random(48)), "api-key"),
        (format!("sk-proj-{}-{}", random(60), random(40)), "openai-key"),
        (format!("sk-ant-api03-{}-{}AA", random(60), random(30)), "anthropic-key"),
        (format!("sk_live_{}", random(24)), "stripe-key"),
        (format!("rk_live_{}", random(24)), "stripe-key"),
        (format!("AIza{}", random(35)), "google-api-key"),
        (format!("npm_{}", random(36)), "npm-token"),
    ]
}

#[test]
fn lesson_secrets_each_kind_is_found_wherever_it_stands() {
    for (secret, kind) in kinds() {
        let placeholder = format!("[redacted: {kind} 1]");
        for (before, after) in [
            ("", ""),
            ("the key is ", ", keep it"),
            ("KEY=", "\n"),
            ("密钥", "是我的"),
            ("비밀키는 ", "입니다"),
            ("המפתח: ", " סוף"),
            ("🔑", "👩‍👩‍👧"),
            ("{\"key\":\"", "\"}"),
            ("`", "`"),
            ("line\\n", "\\nnext"),
            ("?key%3D", "&x=1"),
        ] {
            let text = format!("{before}{secret}{after}");
            assert_eq!(redact(&text), format!("{before}{placeholder}{after}"), "{text}");
        }
    }
}

#[test]
fn lesson_secrets_what_a_label_or_a_url_makes_a_secret() {
    let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    for label in [
        "AWS_SECRET_ACCESS_KEY=",
        "aws_secret_access_key = ",
        "\"SecretAccessKey\": \"",
        "export AWS_SECRET_ACCESS_KEY=\"",
        "--secret-access-key ",
        "Secret access key: ",
        "\\\"secretAccessKey\\\":\\\"",
    ] {
        assert_eq!(redact(&format!("{label}{secret}")), format!("{label}[redacted: aws-secret-key 1]"));
    }
    assert_eq!(redact(secret), secret, "without a label it may be anything");
    let token = random(32);
    for (text, expected) in [
        (format!("Authorization: Bearer {token}"), "Authorization: Bearer [redacted: bearer-token 1]"),
        (
            format!("-H 'authorization: bearer  {token}.'"),
            "-H 'authorization: bearer  [redacted: bearer-token 1].'",
        ),
        (format!("Bearer ghp_{}", random(36)), "Bearer [redacted: github-token 1]"),
        (format!("Bearer ghp_{}/more", random(36)), "Bearer [redacted: bearer-token 1]"),
        ("postgres://app:hunter2@db:5432/x".into(), "postgres://app:[redacted: password 1]@db:5432/x"),
        ("redis://:p@ss,w0rd@h/0".into(), "redis://:[redacted: password 1]@h/0"),
        (
            format!("https://x:ghp_{}@github.com/a", random(36)),
            "https://x:[redacted: github-token 1]@github.com/a",
        ),
        (
            format!("https://ghp_{}:pw1@h", random(36)),
            "https://[redacted: github-token 1]:[redacted: password 1]@h",
        ),
    ] {
        assert_eq!(redact(&text), expected, "{text}");
    }
}

#[test]
fn lesson_secrets_of_a_key_that_was_cut_nothing_is_left() {
    let line = random(64);
    let cut = format!("-----BEGIN RSA PRIVATE KEY-----\n{line}\n{line}\n{}\n[truncated]", random(30));
    assert_eq!(redact(&cut), "[redacted: private-key 1]\n[truncated]");
    let escaped = format!("\"-----BEGIN PRIVATE KEY-----\\n{line}\\n{line}");
    assert_eq!(redact(&escaped), "\"[redacted: private-key 1]");
    let two = format!("{cut} and {}", pem("PRIVATE KEY"));
    assert_eq!(redact(&two), "[redacted: private-key 1]\n[truncated] and [redacted: private-key 2]");
    let hidden = format!("sk-{}-----BEGIN PRIVATE KEY-----\n{line}\n-----END PRIVATE KEY-----", random(40));
    assert_eq!(redact(&hidden), "[redacted: api-key 1][redacted: private-key 1]");
}

#[test]
fn lesson_secrets_precision_comes_before_recall() {
    for text in [
        "task-list, risk-averse, disk-usage, sk-learn, sk-folding-cube-wrapper-2, sk-SK",
        "a Bearer of bad news, bearer authentication-mechanism, Bearer <token>, Bearer $TOKEN, Bearer",
        "https://example.com:8080/a@b, postgres://${USER}:${PASSWORD}@host/db, git@github.com:a/b.git",
        "https://user:<password>@host, https://user:***@host, mailto:someone@mail.example, http://[::1]:80/@x",
        "it begins with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----, as always",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJRTESMBAG\n-----END CERTIFICATE-----",
        "AKIA, AKIAIOSFODNN7EXAMPLE2, xAKIAQ7ZK2WD9XB4MV8RT, eyJhbGciOiJIUzI1NiJ9, AIzaShort, npm_config_cache",
        "4e313bb0c9f1d2a7e6b5c4d3e2f1a0b9c8d7e6f5 550e8400-e29b-41d4-a716-446655440000 ghp_short xoxb-no",
        "secret_access_key: ${{ secrets.AWS }}, aws secret key rotation, the secret access key is missing",
        "[redacted: api-key 1] [redacted: aws-secret-key 1]",
    ] {
        assert!(matches!(redact(text), Cow::Borrowed(same) if same == text), "{text}\n{}", redact(text));
    }
}

#[test]
fn lesson_secrets_placeholders_are_stable_and_tell_secrets_apart() {
    let mut of = Secrets::new("a");
    let (one, two) = (format!("sk-{}", random(40)), format!("sk-{}", random(41)));
    assert_eq!(
        of.redact(&format!("{one} {two} {one}")),
        "[redacted: api-key 1] [redacted: api-key 2] [redacted: api-key 1]"
    );
    let stored = crate::wire::record::to_text(&of);
    assert!(!stored.contains(&one) && !stored.contains("q7Zk"), "{stored}");
    let mut again: Secrets = crate::wire::record::from_str(&stored).unwrap();
    assert_eq!(again.redact(&two), "[redacted: api-key 2]");
    assert!(again.continues(&of));
    assert_eq!(again.redact("AKIAQ7ZK2WD9XB4MV8RT"), "[redacted: aws-access-key 1]");
    assert!(again.continues(&of) && !of.continues(&again));
}

#[test]
fn lesson_secrets_a_row_holds_so_many_numbers_and_no_more() {
    let mut of = Secrets::new("a");
    let secret = |nth: usize| format!("sk-{nth:04}{}", random(40));
    for nth in 0..100 {
        assert_eq!(of.redact(&secret(nth)), format!("[redacted: api-key {}]", nth + 1));
    }
    assert_eq!(of.redact(&secret(100)), "[redacted: api-key]");
    assert_eq!(of.redact(&secret(7)), "[redacted: api-key 8]");
}

/// A megabyte of every beginning takes about as long as a megabyte of prose.
#[test]
fn lesson_secrets_time_is_linear_whatever_the_text_is() {
    let size = 1_000_000;
    let of = |text: &str| text.repeat(size / text.len());
    let mut texts: Vec<String> = [
        "sk-",
        "-sk-a1",
        "sk_live_",
        "-sk_live_",
        "AKIA",
        "-AKIA",
        "eyJ",
        "-eyJ",
        "eyJaaaaaaaaa.",
        "eyJaaaaaaaaaa.eyJaaaaaaaaaa.",
        "ghp_",
        "-ghp_",
        "github_pat_",
        "xoxb-",
        "xapp-",
        "AIza",
        "-AIza",
        "npm_",
        "-npm_",
        "Bearer ",
        "bearer-",
        "-----",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nab",
        "-----END PRIVATE KEY-----",
        "://",
        "a://",
        "a://:",
        "a://a:a",
        "a://b:c@",
        "secretaccesskey",
        "aws_secret_key/",
        "awssecretkey=",
        "awssecretkey=a/",
        "secret access key ",
        "\\n",
        "%3D",
        "a",
        "-",
        "_",
        " ",
        "密钥sk-",
    ]
    .into_iter()
    .map(of)
    .collect();
    texts.push(format!("{}.eyJ{}", of("eyJ-"), of("a")));
    texts.push(format!("a://{}", of("b:c@")));
    texts.push(format!("Bearer {}", of("a.")));
    texts.push(format!("-----BEGIN PRIVATE KEY-----{}", of("a b ")));
    for text in texts {
        let began = Instant::now();
        secrets(&text, &mut |_, _| {});
        let head: String = text.chars().take(40).collect();
        assert!(began.elapsed() < Duration::from_secs(3), "{:?} for {head}", began.elapsed());
    }
}

/// Beginnings, ends and middles of secrets, and what may be between them.
fn pieces() -> impl Strategy<Value = String> {
    let whole: Vec<String> = kinds().into_iter().map(|(secret, _)| secret).collect();
    let scraps = [
        "sk-",
        "sk_live_",
        "AKIA",
        "ASIA",
        "eyJ",
        "ghp_",
        "github_pat_",
        "xoxb-",
        "xapp-",
        "AIza",
        "npm_",
        "Bearer ",
        "bearer\t",
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----END RSA PRIVATE KEY-----",
        "-----BEGIN CERTIFICATE-----",
        "-----",
        "-",
        "_",
        ".",
        "@",
        ":",
        "://",
        "https://",
        "u:p@h",
        "/",
        "+",
        "=",
        "%3D",
        "\\n",
        "\\u003d",
        "\\",
        "\"",
        "'",
        " ",
        "\n",
        "aws_secret_access_key",
        "secret",
        "access",
        "key",
        "aws",
        "[redacted: api-key 1]",
        "[redacted: private-key 1]",
        "[",
        "]",
        "密",
        "é",
        "👩‍👩‍👧",
        "\u{202e}",
        "\0",
    ];
    let scraps: Vec<String> = scraps.into_iter().map(str::to_string).collect();
    prop_oneof![
        4 => prop::sample::select(scraps),
        2 => prop::sample::select(whole),
        2 => "[A-Za-z0-9]{1,44}",
        1 => "[A-Z0-9]{16}",
        1 => "[A-Za-z0-9+/]{36,42}",
        1 => any::<char>().prop_map(String::from),
    ]
}

#[test]
fn lesson_secrets_what_another_secret_hides_is_found_when_that_is_gone() {
    let text = format!("mysql -u ghp_{} -phunter2hunter2 shop", random(36));
    let redacted = redact(&text).into_owned();
    assert!(!redacted.contains("hunter2") && !redacted.contains("ghp_"), "{redacted}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lesson_secrets_a_redacted_text_has_none(pieces in prop::collection::vec(pieces(), 1..14)) {
        let text = pieces.concat();
        let mut of = Secrets::new("a");
        let once = of.redact(&text).into_owned();
        let twice = of.redact(&once);
        prop_assert_eq!(&twice, &once, "{}", text);
    }

    #[test]
    fn lesson_secrets_what_is_none_stays(text in any::<String>()) {
        let mut count = 0;
        secrets(&text, &mut |_, _| count += 1);
        prop_assert_eq!(matches!(redact(&text), Cow::Borrowed(_)), count == 0);
        // Without a letter of a marker nothing is one.
        let plain: String = text.chars().filter(|c| !c.is_ascii_alphanumeric()).collect();
        prop_assert!(matches!(redact(&plain), Cow::Borrowed(same) if same == plain));
    }

    #[test]
    fn lesson_secrets_only_what_was_found_is_replaced(pieces in prop::collection::vec(pieces(), 1..14)) {
        let text = pieces.concat();
        let (mut rest, mut behind) = (String::new(), 0);
        secrets(&text, &mut |_, range| {
            assert!(behind <= range.start && range.start < range.end, "in order, and apart");
            rest.push_str(&text[behind..range.start]);
            behind = range.end;
        });
        rest.push_str(&text[behind..]);
        let redacted = redact(&text).into_owned();
        let marks = redacted.matches("[redacted: ").count() - rest.matches("[redacted: ").count();
        prop_assert!(marks > 0 || rest == text);
    }
}

/// Texts with and without secrets, tags of ours and bytes: what a request shows as it is, and what it changes.
fn some_text(below: &mut impl FnMut(usize) -> usize) -> String {
    let secrets = kinds();
    let line = |below: &mut dyn FnMut(usize) -> usize| match below(12) {
        0 => secrets[below(secrets.len())].0.clone(),
        1 => format!("password={}x1!", "hunter".repeat(below(3))),
        2 => "</message> and <conversation>".into(),
        3 => "mysql -u root -phunter2hunter2 shop".into(),
        4 => format!("data: {}", random(600)),
        5 => "API_KEY=<message>sk-1234".into(),
        6 => "Set-Cookie:".into(),
        7 => "-----END PRIVATE KEY-----".into(),
        _ => format!("line {} of src/file_{}.rs says nothing ", below(100), below(9)).repeat(1 + below(20)),
    };
    (0..below(6)).map(|_| line(below) + ["\n", " ", "\n\n"][below(3)]).collect()
}

#[test]
fn p7_a_request_is_searched_only_where_it_is_no_text_that_was_and_nothing_is_left_in_it() {
    use crate::message::{ToolCall, ToolResult};
    use crate::summary::{BALANCED, NamedFacts, OFFLOAD, PromptOptions, ShownMessages};
    let mut seed = 3_u32;
    let mut below = |most: usize| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as usize % most
    };
    let (mut all, mut left, mut found, mut cut) = (0, 0, 0, 0);
    for round in 0..400 {
        let mut messages = Vec::new();
        for nth in 0..=below(7) {
            let text = some_text(&mut below);
            let parts = match nth % 3 {
                0 => vec![Part::Text(text.into()), Part::Text(some_text(&mut below).into())],
                1 => vec![Part::ToolCall(ToolCall {
                    id: "1".into(),
                    name: ["bash", "sk-ant-api03-abcdefghij0123456789abcdefghij0123456789"][below(2)].into(),
                    arguments: serde_json::to_string(&text).unwrap().into(),
                    caller: None,
                })],
                _ => vec![Part::ToolResult(ToolResult {
                    call_id: "1".into(),
                    text: text.into(),
                    is_error: false,
                    media: Vec::new(),
                    mark: None,
                })],
            };
            messages.push(Message { role: Role::User, parts });
        }
        let (mut secrets, mut searched) = (Secrets::new("a"), SearchedTexts::new("key"));
        let clean = |message: &mut Message<'_>| {
            !secrets.redact_messages(std::slice::from_mut(message), &mut searched)
        };
        let clean: Vec<bool> = messages.iter_mut().map(clean).collect();
        let limit = Some([1_500, 3_000, 100_000][round % 3]);
        let options = PromptOptions { max_input_tokens: limit, ..PromptOptions::default() };
        let of = below(messages.len())..messages.len();
        let named = NamedFacts::of(messages.len());
        let shown = ShownMessages { messages: &messages, of: of.clone(), named: &named, clean: &clean };
        for request in [BALANCED.shown(&shown, &options), OFFLOAD.part(&shown, &options)] {
            let Ok(request) = request else { continue };
            let asked = &request.messages[0];
            let whole = secrets.clone().redact(&asked.content).into_owned();
            assert_eq!(secrets.clone().redact_outside(&asked.content, &asked.searched), whole);
            let lines = asked.searched.iter().map(|range| range.len()).sum::<usize>();
            all += asked.content.len();
            left += lines;
            found += usize::from(whole != asked.content);
            cut += usize::from(request.truncated && lines > 0);
        }
    }
    assert!(left > 100_000 && found > 100 && cut > 20, "{left} of {all}, {found}, {cut}");
}

#[test]
fn p7_a_text_without_a_secret_is_searched_once() {
    let clean = "Nothing in these lines is a secret, and there are enough of them to be known again.";
    let secret = format!("{clean} sk-{}", random(40));
    let (mut secrets, mut searched) = (Secrets::new("a"), SearchedTexts::new("key"));
    let mut search = |text: &str| {
        let part = Part::Text(Cow::Owned(text.to_string()));
        let found =
            secrets.redact_messages(&mut [Message { role: Role::User, parts: vec![part] }], &mut searched);
        (found, work::take(WorkDone::Searched) as usize)
    };
    assert_eq!(search(clean), (false, clean.len()));
    assert_eq!(search(clean), (false, 0));
    let both = secret.len() + format!("{clean} [redacted: api-key 1]").len();
    for _ in 0..2 {
        assert_eq!(
            search(&secret),
            (true, both),
            "what holds one is searched each time, and what is left of it too"
        );
    }
    // What was not asked for in a long time is forgotten: it takes no more room than so much.
    (0..10_000).for_each(|nth| _ = search(&format!("{clean} {nth}")));
    assert_eq!(search(clean), (false, clean.len()));
}
