//! Secrets: no way leads one into a request for a summary or into what is written in the place of
//! messages; what is stored and what is kept stays as it was.

use crate::support::*;
use context_compactor_core::standalone;
use context_compactor_core::step::{Event, Purpose};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, assistant, body, results, user};
use context_compactor_store_tests::host::{summary, thrown};
use serde_json::{Value, json};
use std::rc::Rc;

const API_KEY: &str = "sk-q7Zk2Wd9Xb4Mv8Rt3Ny6Hp5Jc1Lf0Gs7Tq2";
const AWS: &str = "AKIAQ7ZK2WD9XB4MV8RT";
const GITHUB: &str = "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8";
const PASSWORD: &str = "hunter2hunter2";

fn pem() -> String {
    let line = "MIIEowIBAAKCAQEAq7Zk2Wd9Xb4Mv8Rt3Ny6Hp5Jc1Lf0Gs7Tq2ZaBq7Zk2Wd9Xb\n";
    format!("-----BEGIN RSA PRIVATE KEY-----\n{}-----END RSA PRIVATE KEY-----", line.repeat(12))
}

/// A call whose arguments hold a secret, and its result.
fn called(format: Format, id: &str, arguments: &Value, result: &str) -> Vec<Body> {
    let call = match format {
        Format::OpenaiChat => {
            let function = json!({ "name": "run", "arguments": arguments.to_string() });
            let call = json!({ "id": id, "type": "function", "function": function });
            json!({ "role": "assistant", "content": null, "tool_calls": [call] })
        }
        _ => {
            let call = json!({ "type": "tool_use", "id": id, "name": "run", "input": arguments });
            json!({ "role": "assistant", "content": [call] })
        }
    };
    [vec![body(&call)], results(format, &[(id, result)])].concat()
}

/// A history with a secret in everything that a message is made of.
fn leaky(format: Format) -> Vec<Body> {
    let mut messages =
        vec![user(&format!("Never print the key {API_KEY} in any output.")), assistant("I will not.")];
    let arguments =
        json!({ "command": format!("export A=1\nAWS={AWS} psql postgres://app:{PASSWORD}@db/x") });
    messages.extend(called(format, "a", &arguments, &format!("{}\n{}", pem(), long("output", 200))));
    messages.push(assistant("Done."));
    messages.extend(talk(4, 60));
    messages
}

fn secrets() -> Vec<String> {
    let key_line = pem().lines().nth(3).unwrap().to_string();
    [API_KEY, AWS, GITHUB, PASSWORD].into_iter().map(str::to_string).chain([key_line]).collect()
}

fn leaks(text: &str) -> Vec<String> {
    secrets().into_iter().filter(|secret| text.contains(secret.as_str())).collect()
}

/// All that was asked of a summariser.
fn asked(harness: &Harness) -> Vec<String> {
    harness.host.seen.requests.iter().map(|(request, _)| serde_json::to_string(&**request).unwrap()).collect()
}

#[test]
fn lesson_secrets_reach_no_request_and_nothing_that_takes_the_place_of_messages() {
    for format in FORMATS {
        let mut harness = Harness::new(json!({ "summarize": { "attempts": 2 } }));
        harness.append(&leaky(format));
        // A summariser that knows them from elsewhere.
        harness.host.summarise =
            Box::new(|_, _| summary(&format!("{SUMMARY} The key is {API_KEY} and {AWS}.")));
        let instructions = format!("Keep what was done with {GITHUB}.");
        let result = harness.host.run(harness.session.compact(Some(instructions))).unwrap().result;
        assert!(result.success, "{:?}", result.error);
        let asked = asked(&harness);
        assert_eq!(asked.iter().flat_map(|text| leaks(text)).collect::<Vec<_>>(), [""; 0], "{format:?}");
        for placeholder in ["api-key 1", "aws-access-key 1", "password 1", "private-key 1", "github-token 1"]
        {
            assert!(asked[0].contains(&format!("[redacted: {placeholder}]")), "{placeholder}: {}", asked[0]);
        }
        let request = &harness.host.seen.requests[0].0;
        let constraint = "Never print the key [redacted: api-key 1] in any output.";
        assert!(request.facts.iter().any(|fact| fact.text == constraint), "asked for as it is shown");
        let context = serde_json::to_string(&harness.context()).unwrap();
        assert_eq!(leaks(&context), [""; 0]);
        assert!(context.contains("The key is [redacted: api-key 1] and [redacted: aws-access-key 1]."));
        let stored = harness.stored().messages.join("\n").replace("\\n", "\n");
        assert_eq!(leaks(&stored).len(), 4, "the log is what was said");
    }
}

#[test]
fn lesson_secrets_the_built_in_summary_has_none_and_kept_messages_keep_theirs() {
    for format in FORMATS {
        let mut harness = Harness::new(json!({ "summarize": { "call": null } }));
        harness.append(&leaky(format));
        harness.append(&[user(&format!("again: {API_KEY}"))]);
        let text = harness.compact().summary.unwrap();
        assert!(leaks(&text).is_empty() && text.contains("[redacted: api-key 1]"), "{text}");
        let sent = harness.sent();
        assert_eq!(sent.last().unwrap()["content"], format!("again: {API_KEY}"));
    }
}

#[test]
fn lesson_secrets_placeholders_hold_for_a_whole_session() {
    let mut harness = Harness::new(json!({}));
    harness.append(&leaky(Format::OpenaiChat));
    assert!(harness.compact().success);
    let other = API_KEY.replace("q7Zk", "x1Yz");
    let more = |harness: &mut Harness| {
        harness.append(&[user(&format!("first {other}, then {API_KEY}")), assistant("yes")]);
        harness.append(&talk(5, 60));
        assert!(harness.compact().success);
        asked(harness).last().unwrap().clone()
    };
    let mut again = Harness::over(harness.memory.clone(), "b", json!({}));
    assert!(more(&mut again).contains("first [redacted: api-key 2], then [redacted: api-key 1]"));
    // An append of another tab, in between, takes nothing of it away.
    harness.append(&talk(1, 10));
    assert!(more(&mut harness).contains("first [redacted: api-key 2], then [redacted: api-key 1]"));
    let (fork, _) = harness.host.run(harness.session.fork(Some("f".into()))).unwrap();
    harness.host.run(fork.append(vec![user(&format!("in the fork {other}")), assistant("yes")])).unwrap();
    harness.host.run(fork.append(talk(5, 60))).unwrap();
    assert!(harness.host.run(fork.compact(None)).unwrap().result.success);
    assert!(asked(&harness).last().unwrap().contains("in the fork [redacted: api-key 2]"));
    let rows = harness.memory.rows();
    let of_rows = rows.iter().filter(|(key, _)| key.to_string().starts_with("sessions/"));
    for (key, row) in of_rows {
        assert_eq!(leaks(&String::from_utf8_lossy(row)), [""; 0], "{key} tells marks of them only");
    }
}

#[test]
fn lesson_secrets_are_looked_for_before_a_text_is_cut() {
    for offset in 0..48 {
        let mut harness = Harness::new(json!({
            "preset": "react", "contextWindow": 200_000, "summarize": { "attempts": 1 },
            "presetOptions": { "singleResultThreshold": 500, "chunkSize": 400 },
        }));
        harness.host.summarise = Box::new(|request, _| match request.system.contains("(part 2 ") {
            true => thrown("busy", None),
            false => summary("short"),
        });
        let text =
            format!("{}{API_KEY} {}", "字 ".repeat(200 - 24 + offset / 2), "x ".repeat(200 + offset % 2));
        harness.append(&called(Format::OpenaiChat, "a", &json!({ "token": GITHUB }), &text));
        harness.append(&[assistant("I see.")]);
        harness.prepare();
        assert!(harness.host.seen.purposes.contains(&Purpose::Chunk));
        let all =
            [asked(&harness), vec![serde_json::to_string(&harness.context()).unwrap()]].concat().join("\n");
        // The call itself is the app's and stays.
        assert!(!asked(&harness).join("\n").contains(&GITHUB[4..16]), "{offset}");
        for at in 3..API_KEY.len() - 8 {
            assert!(!all.contains(&API_KEY[at..at + 8]), "{offset}: {}", &API_KEY[at..at + 8]);
        }
        let reference =
            harness.session.explain().unwrap().into_iter().find_map(|entry| entry.reference).unwrap();
        assert_eq!(harness.read(&reference), text, "the original is there");
    }
}

#[test]
fn lesson_secrets_files_that_are_put_back_have_none() {
    let mut harness = Harness::new(
        json!({ "preset": "layered", "restoreFiles": { "read": true }, "compactAt": { "tokens": 100 } }),
    );
    harness.host.read_file = Box::new(|_| Event::Text(format!("key = {API_KEY}\n{}", pem())));
    harness.append(&turn(Format::OpenaiChat, 0, 300));
    harness.append(&talk(8, 60));
    assert!(harness.compact().success);
    let context = serde_json::to_string(&harness.context()).unwrap();
    assert!(context.contains("key = [redacted: api-key 1]"), "{context}");
    assert_eq!(leaks(&context), [""; 0]);
}

#[test]
fn lesson_secrets_of_old_checkpoints_go_no_further() {
    // A checkpoint that was written while nothing was redacted.
    let options = |on: bool| {
        checkpoints::options(json!({
            "summarize": { "detail": 3 }, "redact": { "secrets": on },
            "presetOptions": { "ageModerate": 1, "ageCompact": 2 },
        }))
    };
    let mut harness = Harness::new(options(false));
    harness.append(&checkpoints::chat(6, 200));
    harness.host.summarise = Box::new(|_, _| checkpoints::part(&format!("the key {API_KEY}"), 80));
    assert!(harness.compact().success);
    let mut again = Harness::over(harness.memory.clone(), "b", options(true));
    again.append(&checkpoints::chat(6, 200));
    again.host.summarise = Box::new(|request, _| match request.system.starts_with("You keep") {
        true => checkpoints::part(&format!("shorter {API_KEY}"), 30),
        false => checkpoints::part("next", 80),
    });
    assert!(again.compact().success);
    assert!(again.host.seen.purposes.contains(&Purpose::Age));
    assert_eq!(leaks(&asked(&again).join("\n")), [""; 0]);
    assert!(checkpoints::checkpoints(&again)[0].contains("shorter [redacted: api-key 1]"));
}

#[test]
fn lesson_secrets_the_apps_own_redaction_comes_after_and_the_default_can_be_off() {
    for on in [true, false] {
        let mut harness = Harness::new(json!({ "redact": { "secrets": on, "text": true } }));
        let seen: Rc<std::cell::RefCell<Vec<String>>> = Rc::default();
        let texts = Rc::clone(&seen);
        harness.host.redact = Box::new(move |text| {
            texts.borrow_mut().push(text.clone());
            Event::Text(text)
        });
        harness.append(&leaky(Format::OpenaiChat));
        assert!(harness.compact().success);
        let seen = seen.borrow().join("\n");
        assert_eq!((seen.contains(API_KEY), asked(&harness)[0].contains(API_KEY)), (!on, !on));
        assert_eq!(seen.contains("[redacted: api-key 1]"), on);
    }
    let refused = context_compactor_core::policy::Settings::read(
        &serde_json::from_str(r#"{ "redact": { "secrets": "no" } }"#).unwrap(),
    );
    assert_eq!(refused.unwrap_err().field.as_deref(), Some("redact.secrets"));
}

#[test]
fn lesson_secrets_prompts_and_summaries_without_a_session_have_none() {
    let messages = leaky(Format::OpenaiChat);
    for (on, options) in [(true, json!({})), (false, json!({ "redact": { "secrets": false } }))] {
        let mut options = options;
        options["previousSummary"] = json!(format!("before: {AWS}"));
        options["instructions"] = json!(format!("about {GITHUB}"));
        let text = options.to_string();
        let options = serde_json::from_str(&text).unwrap();
        let request = standalone::summary_prompt(&messages, &options).unwrap();
        let request = serde_json::to_string(&request).unwrap();
        assert_eq!(leaks(&request).is_empty(), on, "{request}");
        let summary = standalone::extractive(&messages, &options).unwrap();
        assert_eq!(leaks(&summary).is_empty(), on, "{summary}");
    }
}

#[test]
fn lesson_secrets_errors_and_log_lines_repeat_no_message() {
    let secret = format!("{API_KEY} as a role, which is longer than any");
    for format in Format::ALL {
        let message = json!({ "role": secret, "content": [{ "type": "text", "text": secret }], "parts": [{ "text": secret }] });
        let message = message.to_string();
        let error = format.wire().read(0, &serde_json::from_str(&message).unwrap()).err();
        assert!(error.is_none_or(|error| !error.to_string().contains(API_KEY)), "{format:?}");
    }
    // A record that another value stands in.
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(2, 10));
    let rows = harness.memory.rows();
    let (key, row) = rows.iter().find(|(key, _)| key.to_string().starts_with("sessions/")).unwrap();
    let torn = String::from_utf8(row.clone())
        .unwrap()
        .replace("\"messages\":4", &format!("\"messages\":\"{API_KEY}\""));
    let store: context_compactor_store_tests::MemoryStore = Default::default();
    let puts = rows.iter().map(|(at, value)| match at == key {
        true => (at.clone(), torn.clone().into_bytes()),
        false => (at.clone(), value.clone()),
    });
    use context_compactor_core::keys::batch::{Batch, Durability};
    use context_compactor_store_tests::Store;
    let batch =
        Batch { expect: vec![], puts: puts.collect(), deletes: vec![], durability: Durability::Strict };
    store.commit(&batch).unwrap();
    let mut host = context_compactor_store_tests::Host::new(Rc::new(store) as _, "x");
    let open = context_compactor_core::session::Session::open(settings(json!({})), Some("s".into()), 10_000);
    host.run(open).unwrap();
    let told = format!("{:?} {:?}", host.seen.notices, host.seen.logs);
    assert!(told.contains("DataLoss") && !told.contains(API_KEY), "{told}");
    // What a file is called stands in a message.
    let mut harness = Harness::new(
        json!({ "preset": "layered", "restoreFiles": { "read": true }, "compactAt": { "tokens": 100 } }),
    );
    harness.host.read_file = Box::new(|_| thrown("gone", None));
    harness.append(&turn(Format::OpenaiChat, 0, 300));
    harness.append(&talk(8, 60));
    harness.compact();
    assert!(harness.host.seen.logs.iter().any(|(_, line)| line.contains("readFile failed")));
    assert!(harness.host.seen.logs.iter().all(|(_, line)| !line.contains("src/lib.rs")));
}
