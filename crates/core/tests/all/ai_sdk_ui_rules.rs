//! AI SDK: every rule of the format (AI1 to AI7) broken once in UI messages, and its repair.

use crate::support::ai_sdk::*;
use serde_json::{Value, json};

fn user(text: &str) -> Value {
    json!({ "id": "u", "role": "user", "parts": [said(text)] })
}
fn assistant(parts: &[Value]) -> Value {
    json!({ "id": "a", "role": "assistant", "parts": parts, "metadata": { "x": 1 } })
}
fn step() -> Value {
    json!({ "type": "step-start" })
}
fn tool(id: &str, state: &str, more: Value) -> Value {
    and(json!({ "type": "tool-f", "toolCallId": id, "state": state, "input": { "path": "a" } }), more)
}
fn answered(id: &str) -> Value {
    tool(id, "output-available", json!({ "output": { "ok": true } }))
}
fn signed() -> Value {
    json!({ "type": "reasoning", "text": "hm", "providerMetadata": { "anthropic": { "signature": "s" } } })
}
fn approval(more: Value) -> Value {
    json!({ "approval": and(json!({ "id": "p" }), more) })
}

#[test]
fn a_valid_history_breaks_nothing() {
    let server = and(answered("s"), json!({ "providerExecuted": true }));
    for history in [
        json!([
            user("go"),
            assistant(&[
                step(),
                signed(),
                answered("a"),
                answered("b"),
                step(),
                answered("a"),
                step(),
                said("done")
            ]),
            user("on")
        ]),
        json!([
            user("go"),
            assistant(&[
                step(),
                server,
                json!({ "type": "hologram" }),
                json!({ "type": "data-x", "data": 1 })
            ])
        ]),
        json!([
            user("go"),
            assistant(&[
                tool("a", "output-error", json!({ "errorText": "x" })),
                tool("b", "output-denied", approval(json!({ "approved": false })))
            ]),
            user("on")
        ]),
        json!([
            user("go"),
            assistant(&[
                json!({ "type": "tool-f", "toolCallId": "a", "state": "output-error", "errorText": "x" })
            ]),
            user("on")
        ]),
        json!([user("go"), assistant(&[json!({ "type": "data-x", "data": 1 })]), user("on")]),
        // The user said no to what the provider wanted to run: there is no result.
        json!([
            user("go"),
            assistant(&[
                and(
                    tool("s", "approval-responded", approval(json!({ "approved": false }))),
                    json!({ "providerExecuted": true })
                ),
                step(),
                said("x")
            ]),
            user("on")
        ]),
        // Still at work.
        json!([
            user("go"),
            assistant(&[
                step(),
                answered("a"),
                step(),
                tool("b", "input-available", json!({})),
                json!({ "type": "tool-f", "toolCallId": "c", "state": "input-streaming" })
            ])
        ]),
        json!([
            user("go"),
            assistant(&[
                tool("a", "approval-requested", approval(json!({}))),
                tool("b", "approval-responded", approval(json!({ "approved": true })))
            ])
        ]),
    ] {
        assert_eq!(broken(&history), [], "{history}");
        assert_eq!(repair(&history), (history.clone(), vec![]));
    }
}

#[test]
fn ai0_unreadable_and_ill_formed_messages() {
    let go = user("go");
    mends(&json!([go, { "role": "tool", "parts": [] }]), &[("AI0", 1)], &json!([go]));
    let lone = json!({ "$cc": "utf16", "v": "PdhhAA==" });
    let said = |text: Value| json!([go, assistant(&[json!({ "type": "text", "text": text })])]);
    mends(&said(lone), &[("AI0", 1)], &said(json!("\u{fffd}a")));
}

#[test]
fn ai1_an_id_stands_on_one_call_of_a_step() {
    let history = json!([user("go"), assistant(&[answered("a"), answered("a"), step(), answered("a")])]);
    mends(&history, &[("AI1", 1)], &json!([user("go"), assistant(&[answered("a"), step(), answered("a")])]));
}

#[test]
fn ai2_a_decided_call_names_its_approval() {
    for state in ["approval-requested", "approval-responded", "output-denied"] {
        let history = json!([user("go"), assistant(&[said("x"), tool("a", state, json!({}))])]);
        mends(&history, &[("AI2", 1)], &json!([user("go"), assistant(&[said("x")])]));
    }
}

#[test]
fn ai3_a_caller_stands_before_the_call_that_it_made() {
    let by = |caller: Value| json!({ "callProviderMetadata": { "anthropic": { "caller": caller } } });
    let code = json!({ "type": "code_execution_20250825", "toolId": "s" });
    let server = and(answered("s"), json!({ "providerExecuted": true }));
    let called = and(answered("a"), by(code));
    assert_eq!(broken(&json!([user("go"), assistant(&[server, called.clone()])])), []);
    let direct = and(answered("a"), by(json!({ "type": "direct" })));
    mends(
        &json!([user("go"), assistant(&[called])]),
        &[("AI3", 1)],
        &json!([user("go"), assistant(&[direct])]),
    );
}

#[test]
fn ai4_nothing_is_empty_or_reasoning_only() {
    for empty in [
        assistant(&[]),
        assistant(&[said("")]),
        assistant(&[step(), said("")]),
        assistant(&[step(), signed()]),
        assistant(&[step(), signed(), step(), json!({ "type": "reasoning", "text": "hm" })]),
    ] {
        mends(&json!([user("go"), empty]), &[("AI4", 1)], &json!([user("go")]));
    }
}

#[test]
fn ai5_a_call_has_an_input() {
    let bare = json!({ "type": "tool-f", "toolCallId": "a", "state": "output-available", "output": 1 });
    mends(
        &json!([user("go"), assistant(&[said("x"), bare])]),
        &[("AI5", 1)],
        &json!([user("go"), assistant(&[said("x")])]),
    );
}

#[test]
fn ai6_a_call_that_nobody_finished_is_taken_out_once_the_conversation_went_on() {
    for state in ["input-streaming", "input-available", "approval-requested", "approval-responded", "news"] {
        let part = tool("a", state, approval(json!({})));
        mends(
            &json!([user("go"), assistant(&[step(), said("x"), part.clone()]), user("on")]),
            &[("AI6", 1)],
            &json!([user("go"), assistant(&[step(), said("x")]), user("on")]),
        );
        // Also when the same message went on.
        mends(
            &json!([user("go"), assistant(&[step(), part.clone(), step(), said("x")])]),
            &[("AI6", 1)],
            &json!([user("go"), assistant(&[step(), step(), said("x")])]),
        );
        // With the reasoning that led to it, and the message when nothing is left.
        let unsigned = json!({ "type": "reasoning", "text": "hm" });
        mends(
            &json!([user("go"), assistant(&[unsigned, part]), user("on")]),
            &[("AI6", 1)],
            &json!([user("go"), user("on")]),
        );
    }
}

#[test]
fn ai7_version_7_takes_no_system_messages() {
    let history = json!([{ "id": "s", "role": "system", "parts": [said("x")] }, user("go")]);
    assert_eq!(broken(&history), []);
    assert_eq!(broken_strictly(&history), [("AI7", 0)]);
}

#[test]
fn an8_reasoning_behind_an_edit_is_taken_out() {
    let history = json!([
        user("go"),
        assistant(&[step(), signed(), tool("a", "input-available", json!({})), step(), signed(), said("x")]),
        user("on"),
        assistant(&[step(), signed(), answered("a"), step(), signed(), said("y")]),
    ]);
    let expected = json!([
        user("go"),
        assistant(&[step(), step(), said("x")]),
        user("on"),
        assistant(&[step(), answered("a"), step(), said("y")]),
    ]);
    assert_eq!(repaired(&history), expected);
}
