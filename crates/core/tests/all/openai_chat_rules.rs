//! Format `openai-chat`: what every rule tells, media by rule, reasoning of other providers behind the server, and what
//! sessions do with it.

use crate::support::rules::*;
use context_compactor_core::message::{Media, MediaKind, Part};
use context_compactor_core::wire::{Format, Unbound, detect};
use context_compactor_store_tests::histories;
use fastrand::Rng;
use serde_json::{Value, json};

const FORMAT: Format = Format::OpenaiChat;

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}
fn assistant(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}
fn calls(ids: &[&str]) -> Value {
    let function = json!({ "name": "read", "arguments": "{}" });
    let calls: Vec<Value> =
        ids.iter().map(|id| json!({ "id": id, "type": "function", "function": function })).collect();
    json!({ "role": "assistant", "content": null, "tool_calls": calls })
}
fn tool(id: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "content": "done" })
}
/// An entry of OpenRouter's `reasoning_details`.
fn detail(format: Value, text: &str) -> Value {
    json!({ "type": "reasoning.text", "text": text, "signature": "c2ln", "format": format, "index": 0 })
}

#[test]
fn every_problem_names_its_rule_its_message_and_what_to_do() {
    let ill_formed = json!({ "$cc": "utf16", "v": "ANg=" });
    let mut bad_arguments = calls(&["a"]);
    bad_arguments["tool_calls"][0]["function"]["arguments"] = json!("{");
    let system = json!({ "role": "system", "content": "x" });
    let cases: Vec<(&str, Vec<Value>, usize)> = vec![
        ("OC0", vec![user("go"), json!({ "role": "robot" })], 1),
        ("OC1", vec![user("go"), tool("a")], 1),
        ("OC1", vec![user("go"), calls(&["a"]), tool("a"), tool("x"), user("ok")], 3),
        ("OC2", vec![user("go"), calls(&["a"]), user("ok")], 1),
        ("OC2", vec![user("go"), calls(&["a", "a"]), tool("a"), user("ok")], 1),
        ("OC2", vec![user("go"), calls(&["a"]), tool("a"), tool("a"), user("ok")], 3),
        ("OC3", vec![user("go"), bad_arguments, tool("a"), user("ok")], 1),
        (
            "OC4",
            vec![user("go"), json!({ "role": "assistant", "content": "x", "tool_calls": [] }), user("ok")],
            1,
        ),
        ("OC5", vec![user("go"), json!({ "role": "assistant", "content": null }), user("ok")], 1),
        (
            "OC5",
            vec![user("go"), calls(&["a"]), json!({ "role": "tool", "tool_call_id": "a" }), user("ok")],
            2,
        ),
        ("OC5", vec![json!({ "role": "user", "content": [] })], 0),
        ("OC6", vec![user("go"), system, user("ok")], 1),
        ("OC6", vec![user("go"), user("ok")], 1),
        ("OC6", vec![user("go"), assistant("hm")], 1),
        ("OC7", vec![json!({ "role": "user", "content": ill_formed })], 0),
    ];
    for (rule, history, index) in cases {
        let found = problems(FORMAT, &history, true);
        let problem =
            found.iter().find(|problem| problem.rule == rule).unwrap_or_else(|| panic!("{rule}: {found:?}"));
        assert_eq!(problem.index, index, "{rule}");
        let says = [
            "correct", "remove", "leave", "join", "move", "replace", "add", "will do", "keep", "make", "must",
        ];
        assert!(says.iter().any(|word| problem.message.contains(word)), "{}", problem.message);
    }
}

// lesson: base64 in summary prompt
#[test]
fn oc5_media_is_counted_by_rule_wherever_it_stands() {
    let content = json!([
        { "type": "image_url", "image_url": { "url": "data:image/png;base64,iVBORw0KGgo=" } },
        { "type": "input_audio", "input_audio": { "data": "UklGRg==", "format": "wav" } },
        { "type": "file", "file": { "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg==" } },
        { "type": "file", "file": { "file_id": "file_1" } },
        { "type": "document_url", "document_url": "https://example.com/a.pdf" },
        { "type": "video_url", "video_url": { "url": "https://example.com/a.mp4" } },
        { "type": "image_url", "image_url": { "url": { "$cc": "bytes", "v": "AAEC" } } },
    ]);
    let media = |message: &Value| {
        read(FORMAT, message, |message| {
            let found = message.parts.iter().map(|part| match part {
                Part::Media(media) => *media,
                other => panic!("{other:?}"),
            });
            found.collect::<Vec<_>>()
        })
    };
    let of = |kind, bytes| Media { kind, bytes, pixels: None };
    assert_eq!(
        media(&json!({ "role": "user", "content": content })),
        [
            of(MediaKind::Image, 8),
            of(MediaKind::Audio, 4),
            of(MediaKind::Document, 4),
            of(MediaKind::Document, 0),
            of(MediaKind::Document, 0),
            of(MediaKind::Video, 0),
            of(MediaKind::Image, 3),
        ]
    );
    let spoken = json!({ "role": "assistant", "content": null, "audio": { "id": "audio_1" } });
    assert_eq!(media(&spoken), [of(MediaKind::Audio, 0)]);
    assert_eq!(broken(FORMAT, &[user("go"), spoken, user("ok")]), []);
}

#[test]
fn reasoning_of_every_dialect_is_read() {
    let cases = [
        (json!({ "reasoning_content": "hm" }), ("hm", false)),
        (
            json!({ "reasoning": "hm", "reasoning_details": [detail(json!("anthropic-claude-v1"), "hm")] }),
            ("hm", true),
        ),
        (json!({ "reasoning_details": [{ "type": "reasoning.encrypted", "data": "x" }] }), ("", true)),
        (
            json!({ "thinking_blocks": [{ "type": "thinking", "thinking": "hm", "signature": "s" }] }),
            ("hm", true),
        ),
        (
            json!({ "thinking_blocks": [{ "type": "redacted_thinking", "data": "x" }], "reasoning_content": "hm" }),
            ("hm", true),
        ),
    ];
    for (fields, (text, signed)) in cases {
        let mut message = assistant("Yes.");
        message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        read(FORMAT, &message, |message| {
            assert_eq!(message.parts[0], Part::Reasoning { text: text.into(), signed }, "{fields}");
        });
    }
}

fn unbound(message: &Value) -> Option<Value> {
    with(std::slice::from_ref(message), |messages| {
        match FORMAT.rules().without_bound_reasoning(&messages[0]) {
            Unbound::Changed(json) => Some(serde_json::from_str(&json).unwrap()),
            Unbound::Same => Some(message.clone()),
            Unbound::Nothing => None,
        }
    })
}

// lesson: reasoning and call coupling
#[test]
fn an8_only_reasoning_that_anthropic_signed_is_taken_out() {
    let with_details = |details: Value| {
        let mut message = calls(&["a"]);
        message["reasoning_details"] = details;
        message["x"] = json!({ "$cc": "bytes", "v": "AAEC" });
        message
    };
    let gemini = detail(json!("google-gemini-v1"), "g");
    let sealed = json!({ "type": "reasoning.encrypted", "data": "ZW5j", "format": "openai-responses-v1" });
    let others = with_details(json!([gemini, sealed, { "type": "reasoning.summary", "summary": "s" }]));
    assert_eq!(unbound(&others).unwrap(), others);
    // Anthropic's by its format, redacted too; by its signature where no format is named.
    let bound = [
        detail(json!("anthropic-claude-v1"), "a"),
        json!({ "type": "reasoning.encrypted", "data": "ZW5j", "format": "anthropic-claude-v1" }),
        detail(json!("unknown"), "b"),
        detail(Value::Null, "c"),
    ];
    let mut without = calls(&["a"]);
    without["x"] = json!({ "$cc": "bytes", "v": "AAEC" });
    for entry in &bound {
        assert_eq!(unbound(&with_details(json!([entry]))).unwrap(), without, "{entry}");
        assert_eq!(unbound(&with_details(json!([gemini, entry]))).unwrap(), with_details(json!([gemini])));
    }
    // The text of the entries, once more.
    let mut repeated = with_details(json!(bound));
    repeated["reasoning"] = json!("abc");
    assert_eq!(unbound(&repeated).unwrap(), without);
    repeated["reasoning"] = json!("of its own");
    without["reasoning"] = json!("of its own");
    assert_eq!(unbound(&repeated).unwrap(), without);
    // LiteLLM's blocks are Anthropic's own.
    let mut lite = assistant("Yes.");
    lite["thinking_blocks"] = json!([{ "type": "thinking", "thinking": "hm", "signature": "s" }]);
    lite["reasoning_content"] = json!("hm");
    let mut expected = assistant("Yes.");
    expected["reasoning_content"] = json!("hm");
    assert_eq!(unbound(&lite).unwrap(), expected);
    // DeepSeek's and Mistral's are bound to nothing.
    for message in [
        json!({ "role": "assistant", "content": "Yes.", "reasoning_content": "hm" }),
        json!({ "role": "assistant", "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": "hm" }] }] }),
    ] {
        assert_eq!(unbound(&message).unwrap(), message);
    }
    let alone = json!({ "role": "assistant", "content": null, "reasoning_details": [bound[0]] });
    assert_eq!(unbound(&alone), None, "nothing else is in it");
}

#[test]
fn an8_a_repair_takes_bound_reasoning_behind_it_out() {
    let mut before = assistant("One.");
    before["reasoning_details"] = json!([detail(json!("anthropic-claude-v1"), "a")]);
    let history = [
        user("go"),
        before.clone(),
        user("and?"),
        calls(&["gone"]),
        user("well?"),
        before.clone(),
        user("ok"),
    ];
    assert_eq!(broken(FORMAT, &history), [("OC2", 3)]);
    let expected = [user("go"), before, user("and?"), user("well?"), assistant("One."), user("ok")];
    assert_eq!(repaired(FORMAT, &history), expected);
}

#[test]
fn what_is_damaged_is_mended_for_good() {
    mends_what_is_damaged(FORMAT);
}

#[test]
fn generated_histories_are_valid_and_say_what_they_are() {
    let mut fields = std::collections::BTreeSet::new();
    for seed in 0..500 {
        let history = histories::valid(FORMAT, &mut Rng::with_seed(seed));
        assert!((2..=30).contains(&history.len()), "seed {seed}: {}", history.len());
        assert_eq!(problems(FORMAT, &history, false), [], "seed {seed}");
        assert_eq!(with(&history, detect).unwrap(), FORMAT, "seed {seed}");
        fields.extend(
            history
                .iter()
                .flat_map(|message| message.as_object().unwrap().keys().cloned().collect::<Vec<_>>()),
        );
    }
    assert!(fields.len() > 14, "{fields:?}");
}

/// Sessions over chat messages.
mod sessions {
    use super::*;
    use crate::support::*;
    use context_compactor_core::context::Fate;
    use context_compactor_store_tests::conversation::{Body, body};

    fn marks(message: &Value) -> usize {
        message.to_string().matches("\"cache_control\":{").count()
    }

    // lesson: cache destroyed
    #[test]
    fn no_edit_of_ours_multiplies_cache_control() {
        let mut changed = 0;
        for seed in 0..200 {
            let mut rng = Rng::with_seed(seed);
            let history = histories::valid(FORMAT, &mut rng);
            let options = json!({
                "format": "openai-chat", "compactAt": { "tokens": rng.usize(50..2_000) },
                "keep": { "messages": rng.usize(1..6) },
                "presetOptions": { "scanRatio": 1.0, "compactTriggerThreshold": rng.usize(1..4_000) },
            });
            let mut harness = Harness::new(options);
            harness.append(&history.iter().map(body).collect::<Vec<Body>>());
            harness.prepare();
            harness.compact();
            let sent = harness.sent();
            assert_valid(FORMAT, &sent);
            let ledger = harness.session.explain().unwrap();
            let stays = |fate| !matches!(fate, Fate::Summarised | Fate::Dropped);
            let kept: usize = ledger
                .iter()
                .filter(|entry| stays(entry.fate))
                .map(|entry| marks(&history[entry.index]))
                .sum();
            changed += usize::from(ledger.iter().any(|entry| entry.fate != Fate::Verbatim));
            let marked: usize = sent.iter().map(marks).sum();
            assert_eq!(marked, kept, "seed {seed}: {ledger:?}");
        }
        assert!(changed > 100, "{changed}");
    }

    #[test]
    fn an8_signed_details_behind_a_summary_go_unless_the_server_drops_them() {
        for (behavior, stays) in [("error", false), ("drop_block", true)] {
            let mut harness = Harness::new(json!({ "advanced": { "prefixMismatchBehavior": behavior } }));
            harness.append(&talk(6, 60));
            let mut last = assistant("Done.");
            last["reasoning_details"] =
                json!([detail(json!("anthropic-claude-v1"), "hm"), detail(json!("google-gemini-v1"), "g")]);
            harness.append(&[body(&user("and?")), body(&last)]);
            assert!(harness.compact().success);
            let sent = harness.sent();
            let details = sent.last().unwrap()["reasoning_details"].as_array().unwrap().clone();
            assert_eq!(details.len(), if stays { 2 } else { 1 }, "{behavior}");
            assert_eq!(details.last(), Some(&detail(json!("google-gemini-v1"), "g")));
        }
    }
}
