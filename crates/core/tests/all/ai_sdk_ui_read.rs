//! AI SDK: reading UI messages, and a text in the place of an output.

use crate::support::ai_sdk::*;
use context_compactor_core::message::{Exchanges, MediaKind, Pairing, Part, Role};
use context_compactor_core::wire::{Format, Unbound, parse};
use serde_json::{Value, json};

fn message(parts: &[Value]) -> Value {
    json!({ "id": "m", "role": "assistant", "parts": parts })
}

fn tool(id: &str, state: &str, more: Value) -> Value {
    let mut part =
        json!({ "type": "tool-read-file", "toolCallId": id, "state": state, "input": { "path": "a" } });
    part.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    part
}

fn signed() -> Value {
    json!({ "type": "reasoning", "text": "hm", "state": "done", "providerMetadata": { "anthropic": { "signature": "s" } } })
}

#[test]
fn parts_of_every_kind() {
    let image = json!({ "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA", "filename": "a.png" });
    let parts = [
        json!({ "type": "step-start" }),
        json!({ "type": "text", "text": "안녕", "state": "done" }),
        json!({ "type": "text", "text": "" }),
        signed(),
        json!({ "type": "reasoning", "text": "x" }),
        image.clone(),
        json!({ "type": "file", "mediaType": "application/pdf", "url": "https://example.com/a.pdf" }),
        json!({ "type": "reasoning-file", "mediaType": "image/png", "url": "data:image/png;base64,AAAAAAAA" }),
        json!({ "type": "steering-message", "id": "s", "parts": [{ "type": "text", "text": "no, the other" }, image] }),
        json!({ "type": "text", "text": "so far", "providerMetadata": { "anthropic": { "type": "compaction" } } }),
    ];
    reads_as(
        &message(&parts),
        Role::Assistant,
        &[
            Part::Opaque { kind: "step-start".into(), chars: 0, tie: Pairing::None },
            text("안녕"),
            Part::Reasoning { text: "hm".into(), signed: true },
            Part::Reasoning { text: "x".into(), signed: false },
            Part::Media(media(MediaKind::Image, 3)),
            Part::Media(media(MediaKind::Document, 0)),
            Part::Media(media(MediaKind::Image, 6)),
            text("no, the other"),
            Part::Media(media(MediaKind::Image, 3)),
            Part::Compaction { chars: 6 },
        ],
    );
    for (role, read_as) in [("user", Role::User), ("system", Role::System)] {
        reads_as(&json!({ "role": role, "parts": [{ "type": "text", "text": "x" }] }), read_as, &[text("x")]);
    }
}

#[test]
fn what_is_for_the_screen_counts_nothing_and_news_are_opaque() {
    let big = "x".repeat(1_000);
    let parts = [
        json!({ "type": "source-url", "sourceId": "s", "url": "https://example.com" }),
        json!({ "type": "source-document", "sourceId": "s", "mediaType": "text/plain", "title": big }),
        json!({ "type": "data-chart", "data": { "points": big } }),
        json!({ "type": "hologram", "data": big }),
        json!({ "type": "custom", "kind": "xai.search" }),
        json!({ "type": "dynamic-tool", "toolName": "web_search", "toolCallId": "s", "state": "output-available", "providerExecuted": true, "input": {}, "output": [] }),
    ];
    read(&message(&parts), |message| {
        let kinds: Vec<_> =
            ties(&message).into_iter().map(|(kind, tie)| (kind.to_owned(), tie == Pairing::None)).collect();
        let named = ["source-url", "source-document", "data-chart", "hologram", "xai.search", "dynamic-tool"];
        assert_eq!(kinds, named.map(|kind| (kind.to_owned(), true)));
        let counts = |part: &Part<'_>| matches!(part, Part::Opaque { chars, .. } if *chars > 0);
        let counted: Vec<_> = message.parts.iter().map(counts).collect();
        assert_eq!(counted, [false, false, false, true, true, true]);
    });
}

#[test]
fn ai6_calls_and_results_by_state() {
    let approval = |more: Value| {
        let mut approval = json!({ "approval": { "id": "p" } });
        approval["approval"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        approval
    };
    let asked = || call("a", "read-file", r#"{"path":"a"}"#);
    for (part, parts) in [
        (tool("a", "input-available", json!({})), vec![asked()]),
        (tool("a", "approval-requested", approval(json!({}))), vec![asked()]),
        (tool("a", "approval-responded", approval(json!({ "approved": true }))), vec![asked()]),
        (
            tool("a", "output-available", json!({ "output": "fine" })),
            vec![asked(), result("a", "fine", false, &[])],
        ),
        (
            tool("a", "output-available", json!({ "output": "so far", "preliminary": true })),
            vec![asked(), result("a", "so far", false, &[])],
        ),
        (
            tool("a", "output-available", json!({ "output": { "lines": [1] } })),
            vec![asked(), result("a", r#"{"lines":[1]}"#, false, &[])],
        ),
        (tool("a", "output-available", json!({})), vec![asked(), result("a", "", false, &[])]),
        (
            tool("a", "output-error", json!({ "errorText": "broken" })),
            vec![asked(), result("a", "broken", true, &[])],
        ),
        (
            tool("a", "output-denied", approval(json!({ "approved": false, "reason": "no" }))),
            vec![asked(), result("a", "no", true, &[])],
        ),
        (
            tool("a", "output-denied", approval(json!({ "approved": false }))),
            vec![asked(), result("a", "Tool call execution denied.", true, &[])],
        ),
    ] {
        reads_as(&message(std::slice::from_ref(&part)), Role::Assistant, &parts);
    }
    let streaming = json!({ "type": "dynamic-tool", "toolName": "f", "toolCallId": "a", "state": "input-streaming", "rawInput": "{\"pa" });
    reads_as(&message(&[streaming]), Role::Assistant, &[call("a", "f", r#""{\"pa""#)]);
    let by_code = tool(
        "a",
        "output-available",
        json!({ "output": 1, "callProviderMetadata": { "anthropic": { "caller": { "type": "code_execution_20250825", "toolId": "srv" } } } }),
    );
    read(&message(&[by_code]), |message| {
        assert_eq!(message.calls().next().unwrap().caller.as_deref(), Some("srv"));
    });
}

#[test]
fn ids_that_come_again_in_one_message_are_pairs_of_their_own() {
    let message = message(&[
        tool("a", "output-available", json!({ "output": "first" })),
        json!({ "type": "step-start" }),
        tool("a", "output-available", json!({ "output": "second" })),
        tool("b", "input-available", json!({})),
    ]);
    read(&message, |message| {
        let exchanges = Exchanges::of([&message]);
        assert_eq!((exchanges.pairs(), exchanges.unanswered.as_slice()), (&[(0, 0), (0, 0)][..], &[0][..]));
    });
}

#[test]
fn what_cannot_be_read_is_named() {
    for (message, field) in [
        (json!({ "role": "tool", "parts": [] }), "role"),
        (json!({ "role": "user", "parts": "x" }), "parts"),
        (json!({ "role": "user", "parts": ["x"] }), "parts[0]"),
        (json!({ "role": "user", "parts": [{ "text": "x" }] }), "parts[0].type"),
        (json!({ "role": "user", "parts": [{ "type": "text" }] }), "parts[0].text"),
        (
            json!({ "role": "assistant", "parts": [{ "type": "tool-f", "state": "input-available" }] }),
            "parts[0].toolCallId",
        ),
        (
            json!({ "role": "assistant", "parts": [{ "type": "tool-f", "toolCallId": "a" }] }),
            "parts[0].state",
        ),
        (
            json!({ "role": "assistant", "parts": [{ "type": "dynamic-tool", "toolCallId": "a", "state": "input-available" }] }),
            "parts[0].toolName",
        ),
    ] {
        assert_eq!(refused(&message), field, "{message}");
    }
}

#[test]
fn ai6_a_text_takes_the_place_of_an_output_in_its_shape() {
    let long = "x".repeat(90);
    let own = json!({ "type": "tool-search", "toolCallId": "s", "state": "output-available", "providerExecuted": true, "input": {}, "output": [] });
    for (given, edited) in [
        (
            tool("a", "output-available", json!({ "output": "x" })),
            tool("a", "output-available", json!({ "output": "T" })),
        ),
        (
            tool(
                "a",
                "output-available",
                json!({ "output": { "stdout": long, "code": 0, "rows": [{ "s": long }, { "s": "b" }] } }),
            ),
            tool(
                "a",
                "output-available",
                json!({ "output": { "stdout": "", "code": 0, "rows": [{ "s": "T" }] } }),
            ),
        ),
        (
            tool("a", "output-error", json!({ "errorText": "x" })),
            tool("a", "output-error", json!({ "errorText": "T" })),
        ),
        (
            tool("a", "output-denied", json!({ "approval": { "id": "p", "approved": false } })),
            tool(
                "a",
                "output-denied",
                json!({ "approval": { "id": "p", "approved": false, "reason": "T" } }),
            ),
        ),
        // What the text stands for must not be lost where the denial came without an approval.
        (
            tool("a", "output-denied", json!({})),
            tool("a", "output-denied", json!({ "approval": { "reason": "T" } })),
        ),
        (
            tool("a", "output-denied", json!({ "approval": "no" })),
            tool("a", "output-denied", json!({ "approval": { "reason": "T" } })),
        ),
        (
            tool("a", "output-denied", json!({ "approval": { "$cc": "undefined" } })),
            tool("a", "output-denied", json!({ "approval": { "reason": "T" } })),
        ),
    ] {
        let around = |part: &Value| {
            message(&[
                json!({ "type": "step-start" }),
                own.clone(),
                tool("b", "output-available", json!({ "output": "first" })),
                tool("c", "input-available", json!({})),
                part.clone(),
            ])
        };
        assert_eq!(with_text(&around(&given), 1, "T").unwrap(), around(&edited), "{given}");
    }
    assert_eq!(with_text(&message(&[own, tool("c", "input-available", json!({}))]), 0, "T"), None);
}

#[test]
fn or4_the_ids_of_the_call_stay_and_those_of_its_old_result_go() {
    let metadata = |result: Value| json!({ "output": "x", "callProviderMetadata": { "openai": { "itemId": "fc_1" } }, "resultProviderMetadata": { "openai": result } });
    let before = message(&[tool("a", "output-available", metadata(json!({ "itemId": "fco_1", "x": 1 })))]);
    let mut after = message(&[tool("a", "output-available", metadata(json!({ "x": 1 })))]);
    after["parts"][0]["output"] = json!("T");
    assert_eq!(with_text(&before, 0, "T").unwrap(), after);
}

#[test]
fn an8_reasoning_of_later_steps_goes_with_an_edited_output() {
    let step = json!({ "type": "step-start" });
    let google = json!({ "type": "reasoning", "text": "hm", "providerMetadata": { "google": { "thoughtSignature": "s" } } });
    let answered = |id: &str, output: &str| tool(id, "output-available", json!({ "output": output }));
    let before = message(&[
        step.clone(),
        signed(),
        answered("a", "x"),
        signed(),
        answered("b", "y"),
        step.clone(),
        signed(),
        google.clone(),
        answered("c", "z"),
        step.clone(),
        signed(),
        json!({ "type": "text", "text": "done" }),
    ]);
    let after = message(&[
        step.clone(),
        signed(),
        answered("a", "T"),
        signed(),
        answered("b", "y"),
        step.clone(),
        google,
        answered("c", "z"),
        step.clone(),
        json!({ "type": "text", "text": "done" }),
    ]);
    assert_eq!(with_text(&before, 0, "T").unwrap(), after);
    // The last one takes nothing with it but what is behind it.
    let mut last = before.clone();
    last["parts"][8]["output"] = json!("T");
    last["parts"].as_array_mut().unwrap().remove(10);
    assert_eq!(with_text(&before, 2, "T").unwrap(), last);
}

#[test]
fn an8_bound_reasoning_can_be_taken_off_a_message() {
    let without = |message: &Value| {
        let json = message.to_string();
        Format::AiSdk.rules().without_bound_reasoning(&parse(0, &json).unwrap())
    };
    let step = json!({ "type": "step-start" });
    let text = json!({ "type": "text", "text": "x" });
    let Unbound::Changed(json) = without(&message(&[step.clone(), signed(), text.clone()])) else { panic!() };
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), message(&[step.clone(), text.clone()]));
    assert_eq!(without(&message(&[step.clone(), signed()])), Unbound::Nothing);
    assert_eq!(without(&message(&[step, text])), Unbound::Same);
}

#[test]
fn f39_the_first_call_of_a_message_is_its_first_part_that_calls() {
    let part = tool("c", "output-available", json!({ "output": "x" }));
    let message =
        message(&[json!({ "type": "step-start" }), json!({ "type": "text", "text": "I look." }), part]);
    let body = message.to_string();
    let edited =
        Format::AiSdk.rules().with_call_arguments(&parse(0, &body).unwrap(), 0, r#"{"path":"b"}"#).unwrap();
    let edited: Value = serde_json::from_str(&edited).unwrap();
    assert_eq!(edited["parts"][2]["input"], json!({ "path": "b" }));
    assert_eq!(edited["parts"][1], message["parts"][1]);
}
