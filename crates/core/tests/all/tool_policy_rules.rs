//! What the app says of single tools (`X4`).

use crate::superseded_rules::{result_of, step};
use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::policy::Settings;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, assistant, body, exchange, user};
use serde_json::{Value, json};

fn policies(policies: Value, over: Value) -> Harness {
    let mut options = json!({
        "preset": "balanced", "contextWindow": 40_000, "maxOutputTokens": 2_000, "compactAt": { "tokens": 12_000 },
        "recall": true, "summarize": { "call": true }, "clear": { "keepRecent": 8, "minTokens": 100 },
        "toolPolicies": policies,
    });
    merge(&mut options, &over);
    Harness::new(options)
}

fn run(id: &str, tool: &str, nth: usize, tokens: usize) -> Vec<Body> {
    step(id, tool, &json!({ "nth": nth }), &long(&format!("{tool} {nth}"), tokens))
}

#[test]
fn x4_what_is_always_kept_is_pinned_as_it_is_appended() {
    for format in FORMATS {
        let mut harness = policies(
            json!({ "READ_FILE": { "keep": "always" } }),
            json!({ "preset": "offload" , "clear": null, "compactAt": { "tokens": 600 } }),
        );
        let text = long("kept", 300);
        harness.append(&[user("read")]);
        harness.append(&exchange(format, "a", &text));
        harness.append(&talk(4, 300));
        harness.prepare();
        let shown = harness.sent();
        let is_whole = |sent: &[Value]| sent.iter().any(|message| message.to_string().contains(&text));
        assert!(is_whole(&shown), "{format:?}: {shown:?}");
        assert!(harness.compact().success);
        assert!(is_whole(&harness.context()), "{format:?}: quoted after the summary");
    }
}

#[test]
fn x4_of_a_tool_with_newest_the_older_results_leave_first() {
    let mut harness = policies(json!({ "Snapshot": { "keep": "newest" } }), json!({}));
    harness.append(&[user("go")]);
    harness.append(&run("other", "Search", 0, 2_000));
    for nth in 0..5 {
        harness.append(&run(&format!("snap{nth}"), "Snapshot", nth, 2_500));
    }
    harness.append(&run("end", "Search", 1, 50));
    harness.append(&[assistant("So it is.")]);
    let sent = harness.sent();
    assert!(result_of(&sent, "other").starts_with("Search 0"));
    assert!(result_of(&sent, "snap4").starts_with("Snapshot 4"));
    for nth in 0..3 {
        let stub = result_of(&sent, &format!("snap{nth}"));
        assert!(stub.contains("; the tool has a newer result; "), "{stub}");
    }
    assert_valid(Format::OpenaiChat, &sent);
}

#[test]
fn x4_what_is_disposable_leaves_first() {
    let mut harness = policies(json!({ "screenshot": { "keep": "disposable" } }), json!({}));
    harness.append(&[user("go")]);
    harness.append(&run("other", "Search", 0, 2_500));
    harness.append(&run("shot", "Screenshot", 0, 2_500));
    harness.append(&[assistant("I see.")]);
    for nth in 1..4 {
        harness.append(&run(&format!("end{nth}"), "Search", nth, 2_500));
    }
    harness.append(&[assistant("So it is.")]);
    let sent = harness.sent();
    assert!(result_of(&sent, "other").starts_with("Search 0"));
    assert!(result_of(&sent, "shot").contains("; no longer needed; "));
}

#[test]
fn x4_a_tool_has_its_own_limit_and_its_own_digest() {
    let mut harness = policies(json!({ "search": { "maxTokens": 300 } }), json!({}));
    harness.append(&[user("go")]);
    harness.append(&run("a", "Search", 0, 500));
    harness.append(&run("b", "Read", 0, 500));
    let sent = harness.sent();
    assert!(result_of(&sent, "a").starts_with("Output too large."), "{sent:?}");
    assert!(result_of(&sent, "b").starts_with("Read 0"));
    let rows =
        json!((0..200).map(|row| json!({ "id": row, "name": format!("row {row}") })).collect::<Vec<_>>());
    let options = json!({ "preset": "factor3", "clear": null, "recall": null, "compactAt": null });
    let mut harness =
        policies(json!({ "list": { "digest": "query" }, "fetch": { "digest": false } }), options);
    harness.append(&[user("go")]);
    harness.append(&step("a", "List", &json!({}), &rows.to_string()));
    harness.append(&step("b", "Fetch", &json!({}), &rows.to_string()));
    let sent = harness.sent();
    let (shown, whole) = (result_of(&sent, "a"), result_of(&sent, "b"));
    assert!(shown.starts_with("[sample of the rows"), "{shown}");
    assert_eq!(whole, rows.to_string());
}

#[test]
fn x4_what_has_no_effect_is_refused_and_says_what_to_switch_on() {
    for (policy, preset, field) in [
        (json!({ "keep": "newest" }), "offload", "toolPolicies.a.keep"),
        (json!({ "maxTokens": 5 }), "offload", "toolPolicies.a.maxTokens"),
        (json!({ "digest": "file" }), "balanced", "toolPolicies.a.digest"),
        (json!({ "keep": "ever" }), "balanced", "toolPolicies.a.keep"),
        (json!({ "kept": "ever" }), "balanced", "toolPolicies.a.kept"),
    ] {
        let options = json!({ "preset": preset, "toolPolicies": { "a": policy } }).to_string();
        let options: serde_json_borrow::Value<'_> = serde_json::from_str(&options).unwrap();
        let error = Settings::read(&options).unwrap_err();
        assert_eq!(error.field.as_deref(), Some(field), "{error}");
    }
}

/// A call and its result with a mark of the app, in the formats that keep notes for others.
fn marked(format: &str, id: &str, text: &str, keep: &str) -> Vec<Body> {
    let notes = json!({ "contextCompactor": { "keep": keep } });
    let [call, result] = match format {
        "gemini" => [
            json!({ "role": "model", "parts": [{ "functionCall": { "name": id, "args": { "nth": id } } }] }),
            json!({ "role": "user", "parts": [
                { "functionResponse": { "name": id, "response": { "output": text } }, "partMetadata": notes },
            ] }),
        ],
        _ => [
            json!({ "role": "assistant", "content": [
                { "type": "tool-call", "toolCallId": id, "toolName": "look", "input": { "nth": id } },
            ] }),
            json!({ "role": "tool", "content": [
                { "type": "tool-result", "toolCallId": id, "toolName": "look",
                    "output": { "type": "text", "value": text }, "providerOptions": notes },
            ] }),
        ],
    };
    vec![body(&call), body(&result)]
}

fn said(format: &str, role: &str, text: &str) -> Body {
    match format {
        "gemini" => body(&json!({ "role": role, "parts": [{ "text": text }] })),
        _ => body(&json!({ "role": role, "content": text })),
    }
}

#[test]
fn x4_a_result_may_say_itself_how_long_it_stays() {
    for (format, model) in [("ai-sdk", "assistant"), ("gemini", "model")] {
        let options = json!({ "format": format, "clear": { "keepRecent": 4 } });
        let mut harness = policies(json!({}), options);
        let (kept, shot) = (long("kept", 2_000), long("shot", 2_000));
        harness.append(&[said(format, "user", "go")]);
        harness.append(&marked(format, "a", &kept, "always"));
        harness.append(&marked(format, "b", &shot, "disposable"));
        for id in ["c", "d", "e", "f"] {
            let text = long(id, 2_500);
            let unmarked = marked(format, id, &text, "always").into_iter().map(|given| {
                let mut message: Value = serde_json::from_str(&given).unwrap();
                let part = if format == "gemini" { "parts" } else { "content" };
                let part = message[part][0].as_object_mut().unwrap();
                part.retain(|key, _| !["partMetadata", "providerOptions"].contains(&key.as_str()));
                body(&message)
            });
            harness.append(&unmarked.collect::<Vec<_>>());
        }
        harness.append(&[said(format, model, "So it is.")]);
        let sent = json!(harness.sent()).to_string();
        assert!(sent.contains(&kept), "{format}: {sent}");
        assert!(!sent.contains(&shot) && sent.contains("; no longer needed; "), "{format}: {sent}");
        let wrong = harness.host.run(harness.session.append(marked(format, "g", "x", "ever"))).unwrap_err();
        assert_eq!(
            (wrong.code, wrong.field.as_deref()),
            (Code::InvalidMessage, Some("contextCompactor.keep"))
        );
    }
}
