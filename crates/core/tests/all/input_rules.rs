//! Inputs of calls that leave the context (clearing results alone leaves a third of the text).

use crate::support::*;
use context_compactor_core::context::Fate;
use context_compactor_core::step::Notice;
use context_compactor_core::wire::{self, Format};
use context_compactor_store_tests::conversation::{Body, assistant, body, user};
use serde_json::{Value, json};

/// What an agent writes to a file: about 600 tokens, in several scripts.
fn source(nth: usize) -> String {
    (0..60).map(|line| format!("let v{nth}_{line} = \"数据 שלום 😀 {line}\";\n")).collect()
}

fn input(nth: usize) -> Value {
    json!({ "path": format!("src/f{nth}.rs"), "edits": [{ "line": 3, "content": source(nth) }], "dry": false })
}

/// A turn whose call has a long input and whose result is short.
fn write(format: Format, nth: usize) -> Vec<Body> {
    let id = format!("call_{nth}");
    let (call, result) = match format {
        Format::OpenaiChat => (
            json!({ "role": "assistant", "content": null, "tool_calls": [
                { "id": id, "type": "function", "function": { "name": "Write", "arguments": input(nth).to_string() } }
            ] }),
            json!({ "role": "tool", "tool_call_id": id, "content": "ok" }),
        ),
        _ => (
            json!({ "role": "assistant", "content": [
                { "type": "text", "text": "I write it." },
                { "type": "tool_use", "id": id, "name": "Write", "input": input(nth) }
            ] }),
            json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id, "content": "ok" }] }),
        ),
    };
    vec![user(&format!("Write file {nth}.")), body(&call), body(&result), assistant("Done.")]
}

fn arguments(format: Format, message: &Value) -> Option<Value> {
    match format {
        Format::OpenaiChat => {
            let text = message["tool_calls"][0]["function"]["arguments"].as_str()?;
            Some(serde_json::from_str(text).unwrap())
        }
        _ => message["content"]
            .as_array()?
            .iter()
            .find(|block| block["type"] == "tool_use")
            .map(|it| it["input"].clone()),
    }
}

/// A session that clears every turn all but the newest result, and its input.
fn harness(over: Value) -> Harness {
    let mut clear = json!({ "when": "every-turn", "keepRecent": 1, "minTokens": 300, "inputs": true });
    merge(&mut clear, &over);
    Harness::new(
        json!({ "preset": "balanced", "contextWindow": 200_000, "recall": true, "keep": { "messages": 4 }, "clear": clear }),
    )
}

#[test]
fn old_inputs_leave_the_context_and_can_be_read_and_explained() {
    for format in [Format::OpenaiChat, Format::Anthropic] {
        let mut harness = harness(json!({}));
        for nth in 0..3 {
            harness.append(&write(format, nth));
        }
        let before = harness.host.run(harness.session.plan()).unwrap();
        let prepared = harness.prepare();
        assert_eq!(prepared.edits.iter().map(|edit| edit.kind).collect::<Vec<_>>(), ["clear"]);
        assert_eq!(before.edits[0].freed_tokens, prepared.edits[0].freed_tokens, "as the plan said");
        let sent = bodies(&harness.session, &prepared);
        assert_valid(format, &sent);
        let found: Vec<Value> = sent.iter().filter_map(|message| arguments(format, message)).collect();
        assert_eq!(found.len(), 3);
        assert_eq!(found[2], input(2), "the newest stays");
        for (nth, now) in found[..2].iter().enumerate() {
            let text = now["edits"][0]["content"].as_str().unwrap();
            let (reference, rest) = text.strip_prefix("Tool input is at: ").unwrap().split_once(' ').unwrap();
            let chars = source(nth).chars().count();
            assert_eq!(
                rest,
                format!("({chars} characters)\nIt begins: {}", source(nth).lines().next().unwrap())
            );
            let mut short = now.clone();
            short["edits"][0]["content"] = source(nth).into();
            assert_eq!(short, input(nth), "all else stands there still");
            let read: Value = serde_json::from_str(&harness.read(reference)).unwrap();
            assert_eq!(read, input(nth));
            let ledger = harness.session.explain().unwrap();
            let entry = &ledger[nth * 4 + 1];
            assert_eq!((entry.fate, entry.reference.as_deref()), (Fate::Offloaded, Some(reference)));
        }
        let told = harness.host.seen.notices.iter().find_map(|notice| match notice {
            Notice::Offload { count, freed_tokens } => Some((*count, *freed_tokens)),
            _ => None,
        });
        let freed = prepared.edits[0].freed_tokens;
        assert!(told.is_some_and(|(count, tokens)| count >= 2 && tokens == freed), "{told:?}: it is told");
        assert!(harness.prepare().edits.is_empty(), "and done once");
        let verified = harness.host.run(harness.session.verify()).unwrap();
        assert!(verified.ok, "{:?}", verified.problems);
        // What was said in it is found, though its message is in the context.
        let hits = harness.host.run(harness.session.search("v0_41".into(), 3)).unwrap();
        assert!(!hits.is_empty());
    }
}

#[test]
fn a_fork_and_a_summary_have_the_inputs_again() {
    let mut harness = harness(json!({}));
    for nth in 0..6 {
        harness.append(&write(Format::OpenaiChat, nth));
    }
    harness.prepare();
    let (fork, _) = harness.host.run(harness.session.fork(None)).unwrap();
    let reference = harness.session.explain().unwrap()[1].reference.clone().unwrap();
    let read = harness.host.run(fork.read(reference, 0, None)).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&read).unwrap(), input(0));
    harness.compact();
    let asked = harness.host.seen.requests.last().unwrap().0.messages[0].content.clone();
    assert!(asked.contains("let v0_0"), "the summariser sees what was written: {asked}");
    assert!(!asked.contains("Tool input is at"));
    let verified = harness.host.run(harness.session.verify()).unwrap();
    assert!(verified.ok, "{:?}", verified.problems);
}

#[test]
fn inputs_stay_where_nobody_asks_for_it_and_where_they_are_short() {
    for (clear, options) in [
        (json!({ "inputs": false }), json!({})),
        (json!({ "minTokens": 5_000 }), json!({})),
        (json!({ "tools": ["Read"] }), json!({})),
        (json!({}), json!({ "preset": "layered" })),
    ] {
        let mut all = json!({ "preset": "balanced", "contextWindow": 200_000, "clear": {
            "when": "every-turn", "keepRecent": 1, "minTokens": 300
        } });
        for (key, value) in clear.as_object().unwrap() {
            all["clear"][key] = value.clone();
        }
        for (key, value) in options.as_object().unwrap() {
            all[key] = value.clone();
        }
        let mut harness = Harness::new(all.clone());
        for nth in 0..3 {
            harness.append(&write(Format::OpenaiChat, nth));
        }
        assert!(harness.prepare().edits.is_empty(), "{all}");
    }
}

fn with_input(format: Format, message: &Value, nth: usize) -> Option<Value> {
    let text = message.to_string();
    let value = wire::parse(0, &text).unwrap();
    let json = format.rules().with_call_arguments(&value, nth, "{\"path\":\"p\"}")?;
    Some(serde_json::from_str(&json).unwrap())
}

#[test]
fn every_format_replaces_the_input_alone_and_none_that_is_held_to_something() {
    let long = json!({ "path": "p", "content": "c" });
    let text = long.to_string();
    let short = json!({ "path": "p" });
    let chat = json!({ "role": "assistant", "content": "x", "new_field": 1, "tool_calls": [
        { "id": "a", "type": "function", "function": { "name": "f", "arguments": text, "strict": true } },
        { "id": "b", "type": "custom", "custom": { "name": "g", "input": "plain" } },
        { "id": "c", "type": "function", "function": { "name": "f", "arguments": text },
          "extra_content": { "google": { "thought_signature": "s" } } }
    ] });
    let mut now = chat.clone();
    now["tool_calls"][0]["function"]["arguments"] = json!("{\"path\":\"p\"}");
    assert_eq!(with_input(Format::OpenaiChat, &chat, 0), Some(now));
    for held in [1, 2, 3] {
        assert_eq!(with_input(Format::OpenaiChat, &chat, held), None);
    }

    let item = json!({ "type": "function_call", "call_id": "a", "name": "f", "arguments": text, "status": "completed" });
    let mut now = item.clone();
    now["arguments"] = json!("{\"path\":\"p\"}");
    assert_eq!(with_input(Format::OpenaiResponses, &item, 0), Some(now));
    let mut known = item.clone();
    known["id"] = json!("fc_1");
    let output = json!({ "type": "function_call_output", "call_id": "a", "output": "o" });
    for held in [known, output] {
        assert_eq!(with_input(Format::OpenaiResponses, &held, 0), None);
    }

    let block = |id: &str| json!({ "type": "tool_use", "id": id, "name": "f", "input": long, "new": [1] });
    let thinking = json!({ "type": "thinking", "thinking": "t", "signature": "s" });
    let message = json!({ "role": "assistant", "content": [block("a"), thinking, block("b")] });
    let mut now = message.clone();
    now["content"][2]["input"] = short.clone();
    assert_eq!(with_input(Format::Anthropic, &message, 1), Some(now));
    assert_eq!(with_input(Format::Anthropic, &message, 0), None, "what was thought after it is bound to it");

    let part = json!({ "functionCall": { "name": "f", "args": long }, "other": true });
    let mut signed = part.clone();
    signed["thoughtSignature"] = json!("c2ln");
    let content = json!({ "role": "model", "parts": [{ "text": "t" }, part, signed] });
    let mut now = content.clone();
    now["parts"][1]["functionCall"]["args"] = short.clone();
    assert_eq!(with_input(Format::Gemini, &content, 0), Some(now));
    assert_eq!(with_input(Format::Gemini, &content, 1), None);

    let call = json!({ "type": "tool-call", "toolCallId": "a", "toolName": "f", "input": long });
    let mut noted = call.clone();
    noted["providerOptions"] = json!({ "openai": { "itemId": "fc_1" } });
    let message = json!({ "role": "assistant", "content": [call, noted] });
    let mut now = message.clone();
    now["content"][0]["input"] = short.clone();
    assert_eq!(with_input(Format::AiSdk, &message, 0), Some(now));
    assert_eq!(with_input(Format::AiSdk, &message, 1), None);

    let part = |state: &str| json!({ "type": "tool-f", "toolCallId": "a", "state": state, "input": long, "output": { "n": 1 } });
    let ui = json!({ "id": "m", "role": "assistant", "parts": [part("output-available"), part("input-available")] });
    let mut now = ui.clone();
    now["parts"][0]["input"] = short;
    assert_eq!(with_input(Format::AiSdk, &ui, 0), Some(now));
    assert_eq!(with_input(Format::AiSdk, &ui, 1), None, "it is not answered yet");

    let turn = json!({ "thought": "t", "action": { "tool": "f", "content": "c" }, "result": "r" });
    assert_eq!(with_input(Format::React, &turn, 0), None, "RT1");
}

#[test]
fn a_text_that_looks_like_a_reference_is_a_text() {
    let mut harness = harness(json!({}));
    let posing = format!("Tool input is at: off_{} (9 characters)", "a".repeat(26));
    let call = json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": "a", "type": "function",
        "function": { "name": "Write", "arguments": json!({ "path": posing, "content": source(0) }).to_string() } }] });
    let result = json!({ "role": "tool", "tool_call_id": "a", "content": "ok" });
    harness.append(&[user("Write."), body(&call), body(&result), assistant("Done.")]);
    for nth in 1..3 {
        harness.append(&write(Format::OpenaiChat, nth));
    }
    let prepared = harness.prepare();
    let sent = bodies(&harness.session, &prepared);
    let now = arguments(Format::OpenaiChat, &sent[1]).unwrap();
    assert_eq!(now["path"], Value::from(posing));
    let reference = harness.session.explain().unwrap()[1].reference.clone().unwrap();
    let read: Value = serde_json::from_str(&harness.read(&reference)).unwrap();
    assert_eq!(read["content"], Value::from(source(0)));
}
