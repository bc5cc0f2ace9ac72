//! The table of kinds of secret (`F20`), and what is none.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use super::{BEGIN, Kind, secrets, secrets_outside};

/// Letters and digits as a generator makes them, the same every time.
fn random(length: usize) -> String {
    from(b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789", length)
}

fn hex(length: usize) -> String {
    from(b"0123456789abcdef", length)
}

fn from(letters: &[u8], length: usize) -> String {
    let mut state = 0x2545_F491_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(letters[(state % letters.len() as u64) as usize])
    };
    (0..length).map(|_| next()).collect()
}

/// Texts with the secret in them that must go.
fn table() -> Vec<(&'static str, String, String)> {
    let mut rows = Vec::new();
    let mut row = |kind, text: String, secret: &str| rows.push((kind, text, secret.to_string()));
    let (r16, r20, r24, r32, r36, r40, r48, r88) =
        (random(16), random(20), random(24), random(32), random(36), random(40), random(48), random(88));
    let (h32, h64) = (hex(32), hex(64));
    let pem = format!("{}\n", random(64)).repeat(6);
    // What is known of old.
    row(
        "rsa key",
        format!("-----BEGIN RSA PRIVATE KEY-----\n{pem}-----END RSA PRIVATE KEY-----"),
        &random(64),
    );
    row(
        "openssh key",
        format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{pem}-----END OPENSSH PRIVATE KEY-----"),
        &random(64),
    );
    row(
        "pgp key",
        format!("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{pem}-----END PGP PRIVATE KEY BLOCK-----"),
        &random(64),
    );
    row("aws key", "AKIAQ7ZK2WD9XB4MV8RT".into(), "AKIAQ7ZK2WD9XB4MV8RT");
    row("aws temporary key", "ASIAQ7ZK2WD9XB4MV8RT".into(), "ASIAQ7ZK2WD9XB4MV8RT");
    row("aws secret", format!("AWS_SECRET_ACCESS_KEY={r40}"), &r40);
    for prefix in ["ghp_", "gho_", "ghs_", "github_pat_"] {
        row("github", format!("{prefix}{r40}"), &r40);
    }
    row("slack bot", format!("xoxb-123456789012-{r24}"), &r24);
    row("slack app", format!("xapp-1-A0123-{r24}"), &r24);
    row("jwt", format!("eyJ{r20}.eyJ{r32}.{r40}"), &r40);
    row("bearer", format!("Authorization: Bearer {r32}"), &r32);
    row("url", "postgres://app:hunter2hunter2@db/x".into(), "hunter2hunter2");
    row("anthropic", format!("sk-ant-api03-{r48}"), &r48);
    row("openai", format!("sk-proj-{r48}"), &r48);
    row("stripe live", format!("sk_live_{r24}"), &r24);
    row("google api", format!("AIza{}", random(35)), &random(35));
    row("npm", format!("npm_{r36}"), &r36);
    // What was missed.
    row("gitlab", format!("glpat-{r20}"), &r20);
    row("slack webhook", format!("https://hooks.slack.com/services/T01234567/B01234567/{r24}"), &r24);
    row("stripe test", format!("sk_test_{r24}"), &r24);
    row("stripe webhook", format!("whsec_{r32}"), &r32);
    row("google oauth", format!("ya29.a0{r48}"), &r48);
    row("basic", "Authorization: Basic YWRtaW46aHVudGVyMmh1bnRlcjI=".into(), "YWRtaW46aHVudGVyMmh1bnRlcjI");
    row("cookie", format!("Cookie: theme=dark; session={r32}"), &r32);
    row("mssql", "Server=db;Database=x;User Id=sa;Password=Hunter2!x;Encrypt=true".into(), "Hunter2!x");
    row("azure storage", format!("AccountName=x;AccountKey={}==;EndpointSuffix=y", random(86)), &random(86));
    row("azure client", format!("client secret: {}8Q~{}", &r16[..3], random(34)), &random(34));
    row("env password", "DB_PASSWORD=hunter2hunter2".into(), "hunter2hunter2");
    row("env secret key", "SECRET_KEY=django-insecure-4x9q7zk2".into(), "django-insecure-4x9q7zk2");
    row("env api key", format!("API_KEY={r32}"), &r32);
    row("json password", "{\"user\": \"a\", \"password\": \"hunter2hunter2\"}".into(), "hunter2hunter2");
    row("pypi", format!("pypi-AgEIcHlwaS5vcmc{r48}"), &r48);
    row("hugging face", format!("hf_{}", random(34)), &random(34));
    row("sendgrid", format!("SG.{}.{}", random(22), random(43)), &random(43));
    row("twilio", format!("SK{h32}"), &h32);
    row("telegram", format!("123456789:AA{}", random(33)), &random(33));
    row("discord", format!("M{}.{}.{r36}", random(24), random(6)), &r36);
    row("digitalocean", format!("dop_v1_{h64}"), &h64);
    row("groq", format!("gsk_{}", random(52)), &random(52));
    row("xai", format!("xai-{}", random(80)), &random(80));
    row("replicate", format!("r8_{}", random(37)), &random(37));
    row("databricks", format!("dapi{h32}"), &h32);
    row("shopify", format!("shpat_{h32}"), &h32);
    row("linear", format!("lin_api_{r40}"), &r40);
    row("cloudflare", format!("CLOUDFLARE_API_TOKEN={r40}"), &r40);
    row("netrc", "machine h.example login me password hunter2hunter2".into(), "hunter2hunter2");
    row("mysql", "mysql -u root -phunter2hunter2 shop".into(), "hunter2hunter2");
    let age = from(b"QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58);
    row("age", format!("AGE-SECRET-KEY-1{age}"), &age);
    row("vault", format!("hvs.{r24}"), &r24);
    row(
        "docker",
        "{\"auths\": {\"x\": {\"auth\": \"YWRtaW46aHVudGVyMmh1bnRlcjI=\"}}}".into(),
        "YWRtaW46aHVudGVyMmh1bnRlcjI",
    );
    row("aws session", format!("aws_session_token = IQoJb3JpZ2luX2VjE{r88}/+=="), &r88);
    rows
}

/// `text` with everything that is found taken out.
fn without(text: &str) -> String {
    let (mut out, mut done) = (String::new(), 0);
    secrets(text, &mut |_, range| {
        out.push_str(&text[done..range.start]);
        out.push_str("[redacted: x 1]");
        done = range.end;
    });
    out + &text[done..]
}

#[test]
fn f20_the_table_of_secrets_in_three_places() {
    let rows = table();
    assert_eq!(rows.len(), 54);
    type Place = (&'static str, fn(&str) -> String);
    let places: [Place; 3] = [
        ("a result", |text| format!("$ cat it\n{text}\nexit code 0\n")),
        ("what the user said", |text| format!("Please use this here: {text} and tell me.")),
        ("arguments", |text| {
            let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            format!("{{\"command\":\"run\",\"content\":\"{escaped}\"}}")
        }),
    ];
    for (place, put) in places {
        let missed: Vec<&str> = rows
            .iter()
            .filter(|(_, text, secret)| without(&put(text)).contains(secret.as_str()))
            .map(|(kind, _, _)| *kind)
            .collect();
        assert!(missed.is_empty(), "{place}: {missed:?}");
        for (kind, text, _) in &rows {
            let once = without(&put(text));
            assert_eq!(without(&once), once, "{place}, {kind}: found again in what is left");
        }
    }
}

#[test]
fn f20_what_is_no_secret_stays() {
    let (h40, h64, r88) = (hex(40), hex(64), random(88));
    let mut texts: Vec<String> = vec![
        format!("commit {h40}"),
        format!("sha256:{h64}"),
        format!("\"integrity\": \"sha512-{r88}==\""),
        "550e8400-e29b-41d4-a716-446655440000".into(),
        format!("call_{}", random(24)),
        format!("toolu_01{}", random(22)),
        format!("chatcmpl-{}", random(29)),
        format!("msg_{}", random(24)),
        format!("resp_{h40}"),
        format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----",
            format!("{}\n", random(64)).repeat(4)
        ),
        format!("ssh-rsa AAAAB3NzaC1yc2E{r88} me@host"),
        format!("checksum = \"{h64}\""),
        format!("etag: W/\"{h40}\""),
        format!("index {}..{} 100644", &h40[..7], &h64[..7]),
        format!("/nix/store/{}-hello-2.12", random(32).to_lowercase()),
        "https://example.org/a/b?token_type=bearer&page=2".into(),
        "Basic authentication is used".into(),
        "basic: the first chapter".into(),
        "2024-05-01T12:00:00.123456789Z".into(),
        "127.0.0.1:8080 192.168.100.200:65535".into(),
        "#a1b2c3d4e5f6 color".into(),
        "data:image/png;base64,iVBORw0KGgo=".into(),
        "x-request-id: 8c1f2a4e6b7d9e0f".into(),
        "0x7ffd8c1f2a4e6b7d9e0f".into(),
        "1234567890:1234567890".into(),
        "pnpm-lock.yaml 9.0.0".into(),
        "org.example.Main$Inner.method(Main.java:123)".into(),
        "mysqldump -p --all-databases".into(),
        "login me, then change the password soon".into(),
    ];
    assert_eq!(texts.len(), 29);
    let names = [
        "max_tokens",
        "tokenCount",
        "primary_key",
        "foreign_key",
        "sort_key",
        "cache_key",
        "public_key",
        "token_type",
        "token_limit",
        "tokens",
        "keyboard",
        "monkey",
        "key",
        "keys",
        "password_length",
        "passwordHint",
        "secretName",
        "secret_name",
        "tokenizer",
        "next_page_token",
        "pageToken",
        "keyCode",
        "partition_key",
        "hotkey",
        "turnkey",
    ];
    let values = [
        "4096",
        "true",
        "o200k_base",
        "user_id",
        "item-2024-11",
        "\"Ctrl+Shift+K9\"",
        "12.5",
        "a1b2c3d4e5",
        "section-12",
    ];
    for name in names {
        for value in values {
            texts.push(format!("{name}={value}"));
        }
    }
    for text in [
        "password: string",
        "password: String,",
        "password: str = None",
        "password = getPassword()",
        "PASSWORD=$DB_PASSWORD",
        "PASSWORD=${DB_PASSWORD1}",
        "token: process.env.TOKEN1",
        "token = response.data.token",
        "apiKey: config.apiKey1",
        "API_KEY=your-api-key-1",
        "API_KEY=<your key 1>",
        "API_KEY=",
        "SECRET=changeme1",
        "token: undefined",
        "password: \"Passwort eingeben\"",
        "\"password\": \"Kennwort\"",
        "\"secret\": null",
        "token: &str",
        "secret: kubernetes-secret-1",
        "let token = tokens[12];",
        "token == other12345",
        "Password::new1(x)",
        "password=/run/secrets/db1",
        "PASSWORD_FILE=/run/secrets/db1",
        "the password: it is not known to me",
        "token: string1 | null",
        "\"token\": \"{{TOKEN_1}}\"",
        "api_key=os.environ['KEY1']",
        "pass: 12",
        "12 pass, 3 fail",
    ] {
        texts.push(text.into());
    }
    assert!(texts.len() >= 229, "{}", texts.len());
    let touched: Vec<&String> = texts.iter().filter(|text| without(text) != **text).collect();
    assert!(touched.is_empty(), "{touched:#?}");
}

#[test]
fn p7_what_was_searched_line_by_line_is_not_searched_again() {
    let mut pieces: Vec<String> = table().into_iter().map(|(_, text, _)| text).collect();
    let marks = [
        "\n",
        "\n",
        "\n",
        " ",
        "\t",
        "\r",
        "=",
        ": ",
        "\"",
        "'",
        "\\n",
        "\\u003d",
        "%3D",
        "://",
        "://user:",
        "@host",
        "-",
        "--",
        "-----",
        ".",
        "Bearer ",
        "Basic ",
        "mysql ",
        "-p",
        "login x ",
        "password",
        "password = ",
        "PASSWORD=",
        "API_KEY=",
        "token: ",
        "aws_secret_access_key",
        "Set-Cookie: a=",
        "hooks.slack.com/services/",
        "sk-",
        "ghp_",
        "eyJ",
        "AKIA",
        "é",
        "密",
        "-----END PRIVATE KEY-----",
        "[redacted: secret 1]",
        "<message index=\"1\" role=\"tool\">",
    ];
    pieces.extend(marks.map(str::to_string));
    pieces.retain(|piece| !piece.contains(BEGIN));
    pieces.push(random(24));
    pieces.push(hex(40));
    let mut seed = 5_u32;
    let mut below = |most: usize| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as usize % most
    };
    let (mut any, mut saved) = (0, 0);
    for _ in 0..20_000 {
        // Texts without secrets, and what stands around them.
        let mut text = String::new();
        let mut searched = Vec::new();
        for _ in 0..=below(4) {
            let part: String = (0..below(7)).map(|_| pieces[below(pieces.len())].as_str()).collect();
            if below(2) == 0 && without(&part) == part {
                text += "\n";
                searched.push(text.len()..text.len() + part.len());
                text += &part;
                text += "\n";
            } else {
                text += &part;
            }
        }
        let mut whole = Vec::new();
        secrets(&text, &mut |kind, range| whole.push((kind, range)));
        let mut outside = Vec::new();
        let looked = secrets_outside(&text, &searched, &mut |kind, range| outside.push((kind, range)));
        assert_eq!(outside, whole, "{text:?} {searched:?}");
        any += usize::from(!whole.is_empty());
        saved += text.len() - looked;
    }
    assert!(any > 2_000 && saved > 100_000, "{any} {saved}");
}

#[test]
fn p7_where_a_private_key_begins_all_is_searched() {
    let key = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", random(64));
    let text = format!("a\n{key}\nb");
    let line = 30..94;
    let mut found = Vec::new();
    secrets_outside(&text, std::slice::from_ref(&line), &mut |kind, range| found.push((kind, range)));
    assert_eq!(found, [(Kind::PrivateKey, 2..2 + key.len())]);
}
