//! AI SDK: every rule of the format (AI1 to AI7) broken once in model messages, and its repair.

use crate::support::ai_sdk::*;
use serde_json::{Value, json};

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}
fn assistant(parts: &[Value]) -> Value {
    json!({ "role": "assistant", "content": parts })
}
fn tool(parts: &[Value]) -> Value {
    json!({ "role": "tool", "content": parts })
}
fn call(id: &str) -> Value {
    json!({ "type": "tool-call", "toolCallId": id, "toolName": "f", "input": { "path": "a" } })
}
fn server_call(id: &str) -> Value {
    and(call(id), json!({ "providerExecuted": true }))
}
fn output(id: &str, output: Value) -> Value {
    json!({ "type": "tool-result", "toolCallId": id, "toolName": "f", "output": output })
}
fn result(id: &str) -> Value {
    output(id, json!({ "type": "text", "value": "ok" }))
}
fn request(approval: &str, id: &str) -> Value {
    json!({ "type": "tool-approval-request", "approvalId": approval, "toolCallId": id })
}
fn response(approval: &str, approved: bool) -> Value {
    json!({ "type": "tool-approval-response", "approvalId": approval, "approved": approved })
}
fn reasoning(options: Value) -> Value {
    json!({ "type": "reasoning", "text": "hm", "providerOptions": options })
}
fn signed() -> Value {
    reasoning(json!({ "anthropic": { "signature": "s" } }))
}

#[test]
fn a_valid_history_breaks_nothing() {
    for history in [
        json!([]),
        json!([user("go")]),
        json!([user("go"), user("and"), { "role": "assistant", "content": "done" }]),
        json!([
            user("go"),
            assistant(&[signed(), call("a"), call("b")]),
            tool(&[result("b"), result("a")]),
            assistant(&[said("done")])
        ]),
        // Results in two messages; an id that comes again.
        json!([
            user("go"),
            assistant(&[call("a"), call("b")]),
            tool(&[result("a")]),
            tool(&[result("b")]),
            assistant(&[call("a")]),
            tool(&[result("a")])
        ]),
        // The provider's own tools, at once, later, and not yet.
        json!([user("go"), assistant(&[server_call("s"), result("s"), said("done")])]),
        json!([
            user("go"),
            assistant(&[server_call("s"), call("a")]),
            tool(&[result("a")]),
            assistant(&[result("s"), said("done")])
        ]),
        json!([user("go"), assistant(&[server_call("s")])]),
        // Approved and run, denied, approved and still to be run, denied by the app before the provider ran it.
        json!([
            user("go"),
            assistant(&[call("a"), request("p", "a")]),
            tool(&[response("p", true), result("a")])
        ]),
        json!([
            user("go"),
            assistant(&[call("a"), request("p", "a")]),
            tool(&[response("p", true)]),
            tool(&[result("a")])
        ]),
        json!([
            user("go"),
            assistant(&[call("a"), request("p", "a")]),
            tool(&[response("p", false), output("a", json!({ "type": "execution-denied", "reason": "no" }))]),
            user("why")
        ]),
        json!([user("go"), assistant(&[call("a"), request("p", "a")]), tool(&[response("p", true)])]),
        json!([
            user("go"),
            assistant(&[server_call("s"), request("p", "s")]),
            tool(&[response("p", false), output("s", json!({ "type": "execution-denied" }))]),
            user("why")
        ]),
        json!([
            user("go"),
            assistant(&[server_call("s"), request("p", "s")]),
            tool(&[response("p", false)]),
            user("why")
        ]),
        // Blocks to come, and a signature on an empty text.
        json!([
            user("go"),
            assistant(&[
                json!({ "type": "weather", "of": "tomorrow" }),
                and(said(""), json!({ "providerOptions": { "google": { "thoughtSignature": "s" } } }))
            ])
        ]),
    ] {
        assert_eq!(broken(&history), [], "{history}");
        assert_eq!(repair(&history), (history.clone(), vec![]));
    }
}

#[test]
fn ai0_unreadable_ill_formed_and_mixed_messages() {
    let ok = user("go");
    let other = json!({ "id": "1", "role": "user", "parts": [said("x")] });
    mends(&json!([ok, { "role": "tool", "content": "x" }]), &[("AI0", 1)], &json!([ok]));
    mends(&json!([ok, other]), &[("AI0", 1)], &json!([ok]));
    mends(&json!([other, ok]), &[("AI0", 1)], &json!([other]));
    let lone = json!({ "$cc": "utf16", "v": "PdhhAA==" });
    let history =
        json!([ok, assistant(&[call("a")]), tool(&[output("a", json!({ "type": "text", "value": lone }))])]);
    let expected = json!([
        ok,
        assistant(&[call("a")]),
        tool(&[output("a", json!({ "type": "text", "value": "\u{fffd}a" }))])
    ]);
    mends(&history, &[("AI0", 2)], &expected);
}

#[test]
fn ai1_every_call_has_its_result_behind_it() {
    let (go, done) = (user("go"), json!({ "role": "assistant", "content": "done" }));
    mends(
        &json!([go, assistant(&[said("x"), call("a")]), user("on")]),
        &[("AI1", 1)],
        &json!([go, assistant(&[said("x")]), user("on")]),
    );
    mends(&json!([go, assistant(&[call("a")])]), &[("AI1", 1)], &json!([go]));
    // Orphaned results.
    mends(&json!([go, tool(&[result("a")]), done]), &[("AI1", 1)], &json!([go, done]));
    mends(
        &json!([go, assistant(&[call("a")]), tool(&[result("a"), result("b"), result("a")]), done]),
        &[("AI1", 2), ("AI1", 2)],
        &json!([go, assistant(&[call("a")]), tool(&[result("a")]), done]),
    );
    // Too late: the exchange goes whole.
    mends(
        &json!([go, assistant(&[call("a")]), user("on"), tool(&[result("a")]), done]),
        &[("AI1", 1), ("AI1", 3)],
        &json!([go, user("on"), done]),
    );
    // Parallel calls: the others stay.
    mends(
        &json!([go, assistant(&[call("a"), call("b")]), tool(&[result("b")]), done]),
        &[("AI1", 1)],
        &json!([go, assistant(&[call("b")]), tool(&[result("b")]), done]),
    );
    mends(
        &json!([go, assistant(&[call("a"), call("a")]), tool(&[result("a")]), done]),
        &[("AI1", 1)],
        &json!([go, assistant(&[call("a")]), tool(&[result("a")]), done]),
    );
    // Where they have no place.
    mends(
        &json!([json!({ "role": "user", "content": [said("go"), call("a"), result("a")] })]),
        &[("AI1", 0), ("AI1", 0)],
        &json!([json!({ "role": "user", "content": [said("go")] })]),
    );
}

#[test]
fn ai1_the_providers_calls_and_results() {
    let (go, on) = (user("go"), user("on"));
    mends(
        &json!([go, assistant(&[result("s"), said("x")])]),
        &[("AI1", 1)],
        &json!([go, assistant(&[said("x")])]),
    );
    mends(
        &json!([go, assistant(&[server_call("s"), said("x")]), on]),
        &[("AI1", 1)],
        &json!([go, assistant(&[said("x")]), on]),
    );
    // The app's call is not answered by the assistant, nor the provider's by a tool.
    mends(
        &json!([go, assistant(&[call("a"), result("a"), said("x")]), on]),
        &[("AI1", 1), ("AI1", 1)],
        &json!([go, assistant(&[said("x")]), on]),
    );
    mends(
        &json!([go, assistant(&[server_call("s"), said("x")]), tool(&[result("s")]), on]),
        &[("AI1", 1), ("AI1", 2)],
        &json!([go, assistant(&[said("x")]), on]),
    );
}

#[test]
fn ai1_nothing_stands_between_calls_and_results_for_strict_providers() {
    let history =
        json!([user("go"), assistant(&[call("a")]), assistant(&[said("wait")]), tool(&[result("a")])]);
    assert_eq!(broken(&history), []);
    assert_eq!(broken_strictly(&history), [("AI1", 2)]);
    let history = json!([
        user("go"),
        assistant(&[call("a"), call("b")]),
        tool(&[result("b")]),
        assistant(&[said("wait")]),
        tool(&[result("a")])
    ]);
    assert_eq!(broken(&history), []);
    assert_eq!(broken_strictly(&history), [("AI1", 3)]);
    let unanswered = json!([user("go"), assistant(&[call("a")]), user("on")]);
    assert_eq!(broken_strictly(&unanswered), [("AI1", 1)]);
}

#[test]
fn ai2_approvals_are_of_calls_and_answered_once() {
    let (go, on) = (user("go"), user("on"));
    mends(
        &json!([go, assistant(&[said("x"), request("p", "a")]), on]),
        &[("AI2", 1)],
        &json!([go, assistant(&[said("x")]), on]),
    );
    mends(
        &json!([go, assistant(&[call("a")]), tool(&[response("p", true), result("a")]), on]),
        &[("AI2", 2)],
        &json!([go, assistant(&[call("a")]), tool(&[result("a")]), on]),
    );
    mends(
        &json!([
            go,
            assistant(&[call("a"), request("p", "a")]),
            tool(&[response("p", true), response("p", false), result("a")]),
            on
        ]),
        &[("AI2", 2)],
        &json!([
            go,
            assistant(&[call("a"), request("p", "a")]),
            tool(&[response("p", true), result("a")]),
            on
        ]),
    );
    mends(
        &json!([go, assistant(&[call("a"), request("p", "a")]), tool(&[result("a")]), on]),
        &[("AI2", 1)],
        &json!([go, assistant(&[call("a")]), tool(&[result("a")]), on]),
    );
    // A call that waits for its approval has no result: it goes with request and answer.
    mends(&json!([go, assistant(&[call("a"), request("p", "a")])]), &[("AI1", 1)], &json!([go]));
    mends(
        &json!([go, assistant(&[said("x"), call("a"), request("p", "a")]), tool(&[response("p", true)]), on]),
        &[("AI1", 1)],
        &json!([go, assistant(&[said("x")]), on]),
    );
    // The SDK looks at the last message only.
    mends(
        &json!([
            go,
            assistant(&[call("a"), request("p", "a"), call("b")]),
            tool(&[response("p", true)]),
            tool(&[result("b")])
        ]),
        &[("AI1", 1)],
        &json!([go, assistant(&[call("b")]), tool(&[result("b")])]),
    );
    mends(
        &json!([json!({ "role": "user", "content": [said("go"), request("p", "a"), response("p", true)] })]),
        &[("AI2", 0), ("AI2", 0)],
        &json!([json!({ "role": "user", "content": [said("go")] })]),
    );
}

#[test]
fn ai3_a_caller_stands_before_the_call_that_it_made() {
    let by = |id: &str| json!({ "providerOptions": { "anthropic": { "caller": { "type": "code_execution_20250825", "toolId": id }, "x": 1 } } });
    let go = user("go");
    let history = json!([
        go,
        assistant(&[server_call("s"), and(call("a"), by("s"))]),
        tool(&[result("a")]),
        assistant(&[result("s")])
    ]);
    assert_eq!(broken(&history), []);
    let direct = json!({ "providerOptions": { "anthropic": { "caller": { "type": "direct" }, "x": 1 } } });
    mends(
        &json!([go, assistant(&[and(call("a"), by("s"))]), tool(&[result("a")])]),
        &[("AI3", 1)],
        &json!([go, assistant(&[and(call("a"), direct)]), tool(&[result("a")])]),
    );
}

#[test]
fn ai4_nothing_is_empty_or_reasoning_only() {
    let go = user("go");
    for empty in [
        user(""),
        json!({ "role": "user", "content": [] }),
        json!({ "role": "user", "content": [said("")] }),
        assistant(&[]),
        assistant(&[said("")]),
        tool(&[]),
        assistant(&[signed()]),
        assistant(&[
            reasoning(json!({ "openai": { "itemId": "rs_1" } })),
            json!({ "type": "reasoning-file", "data": "AAAA", "mediaType": "image/png" }),
        ]),
    ] {
        mends(&json!([go, empty]), &[("AI4", 1)], &json!([go]));
    }
    let history = json!([{ "role": "user", "content": [said("go"), signed()] }]);
    mends(&history, &[("AI4", 0)], &json!([{ "role": "user", "content": [said("go")] }]));
}

#[test]
fn ai4_reasoning_goes_with_its_call() {
    let item = |kind: &str| reasoning(json!({ "openai": { "itemId": kind } }));
    let (go, on) = (user("go"), user("on"));
    // What it led to is gone.
    mends(
        &json!([go, assistant(&[said("x"), item("rs_1"), call("a")]), on]),
        &[("AI1", 1)],
        &json!([go, assistant(&[said("x")]), on]),
    );
    mends(
        &json!([
            go,
            assistant(&[item("rs_1"), item("rs_1"), call("a"), item("rs_2"), call("b")]),
            tool(&[result("b")])
        ]),
        &[("AI1", 1)],
        &json!([go, assistant(&[item("rs_2"), call("b")]), tool(&[result("b")])]),
    );
    // It led to something else too.
    mends(
        &json!([go, assistant(&[item("rs_1"), call("a"), call("b")]), tool(&[result("b")])]),
        &[("AI1", 1)],
        &json!([go, assistant(&[item("rs_1"), call("b")]), tool(&[result("b")])]),
    );
}

#[test]
fn an8_reasoning_behind_an_edit_is_taken_out() {
    let go = user("go");
    let history = json!([
        go,
        assistant(&[signed(), said("x"), call("gone")]),
        user("on"),
        assistant(&[signed(), said("y")]),
        assistant(&[signed()]),
        user("more"),
        assistant(&[reasoning(json!({ "google": { "thoughtSignature": "s" } })), said("z")]),
    ]);
    let expected = json!([
        go,
        assistant(&[signed(), said("x")]),
        user("on"),
        assistant(&[said("y")]),
        user("more"),
        history[6],
    ]);
    assert_eq!(repaired(&history), expected);
    let (_, changes) = repair(&history);
    let rules: Vec<_> = changes.iter().map(|change| (change.rule, change.index)).collect();
    assert_eq!(rules, [("AI1", 1), ("AI4", 3), ("AI4", 4)]);
}

#[test]
fn ai5_a_call_has_an_input_and_an_output_its_tag() {
    let (go, done) = (user("go"), json!({ "role": "assistant", "content": "done" }));
    let bare = json!({ "type": "tool-call", "toolCallId": "a", "toolName": "f" });
    let undefined = and(bare.clone(), json!({ "input": { "$cc": "undefined" } }));
    for call in [bare, undefined] {
        mends(
            &json!([go, assistant(&[call]), tool(&[result("a")]), done]),
            &[("AI5", 1)],
            &json!([go, done]),
        );
    }
    for (given, mended) in [
        (json!("x"), json!({ "type": "text", "value": "x" })),
        (json!({ "rows": 1 }), json!({ "type": "json", "value": { "rows": 1 } })),
        (json!([1]), json!({ "type": "json", "value": [1] })),
        (
            json!({ "type": "table", "rows": 1 }),
            json!({ "type": "json", "value": { "type": "table", "rows": 1 } }),
        ),
        (json!({ "type": "text", "value": 5 }), json!({ "type": "json", "value": 5 })),
        (
            json!({ "type": "error-text", "value": { "a": 1 } }),
            json!({ "type": "error-json", "value": { "a": 1 } }),
        ),
        (json!({ "type": "content", "value": "x" }), json!({ "type": "text", "value": "x" })),
        (json!({ "type": "content", "value": ["x"] }), json!({ "type": "json", "value": ["x"] })),
    ] {
        let history =
            |tagged: &Value| json!([go, assistant(&[call("a")]), tool(&[output("a", tagged.clone())]), done]);
        mends(&history(&given), &[("AI5", 2)], &history(&mended));
    }
    for none in [json!({}), json!({ "output": null })] {
        let result = and(json!({ "type": "tool-result", "toolCallId": "a", "toolName": "f" }), none);
        mends(
            &json!([go, assistant(&[call("a")]), tool(&[result]), done]),
            &[("AI5", 2)],
            &json!([go, done]),
        );
    }
    for tagged in [
        json!({ "type": "json", "value": null }),
        json!({ "type": "error-json", "value": [1] }),
        json!({ "type": "execution-denied" }),
        json!({ "type": "content", "value": [{ "type": "file-id", "fileId": "x" }, { "type": "news" }] }),
    ] {
        assert_eq!(broken(&json!([go, assistant(&[call("a")]), tool(&[output("a", tagged)]), done])), []);
    }
}

#[test]
fn ai7_version_7_takes_no_system_messages() {
    let history = json!([{ "role": "system", "content": "x" }, user("go")]);
    assert_eq!(broken(&history), []);
    assert_eq!(broken_strictly(&history), [("AI7", 0)]);
}
