//! AI SDK: every rule of `wire.md` (AI1 to AI7), broken once in each shape of message, and its repair.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use context_compactor_core::wire::{Change, Format, Problem, Repaired, detect, parse};
use context_compactor_store_tests::histories;
use serde_json::{Value, json};

fn with<T>(history: &Value, run: impl FnOnce(&[serde_json_borrow::Value<'_>]) -> T) -> T {
    let texts: Vec<String> = history.as_array().unwrap().iter().map(Value::to_string).collect();
    let messages: Vec<_> = texts.iter().enumerate().map(|(i, text)| parse(i, text).unwrap()).collect();
    run(&messages)
}

fn problems(history: &Value, strict: bool) -> Vec<Problem> {
    with(history, |messages| Format::AiSdk.wire().validate(messages, strict))
}

/// The rules broken, with the index of the message.
fn broken(history: &Value) -> Vec<(&'static str, usize)> {
    problems(history, false).into_iter().map(|problem| (problem.rule, problem.index)).collect()
}

fn broken_strictly(history: &Value) -> Vec<(&'static str, usize)> {
    problems(history, true).into_iter().map(|problem| (problem.rule, problem.index)).collect()
}

fn repair(history: &Value) -> (Value, Vec<Change>) {
    with(history, |messages| {
        let (repaired, changes) = Format::AiSdk.wire().repair(messages);
        let message = |message| match message {
            Repaired::Keep(index) => history[index].clone(),
            Repaired::Replace { json, .. } => serde_json::from_str(&json).unwrap(),
        };
        (repaired.into_iter().map(message).collect(), changes)
    })
}

/// The repaired history, after asserting that it is valid and that repairing it again changes nothing.
fn repaired(history: &Value) -> Value {
    let (result, _) = repair(history);
    assert_eq!(problems(&result, false), [], "repaired: {result}");
    let (again, changes) = repair(&result);
    assert_eq!((again, changes), (result.clone(), vec![]), "a repaired history is left alone");
    result
}

/// Broken as it says, and mended to this.
fn mends(history: &Value, rules: &[(&'static str, usize)], expected: &Value) {
    assert_eq!(broken(history), rules, "{history}");
    assert_eq!(repaired(history), *expected, "{history}");
}

/// The object with more fields.
fn and(mut value: Value, more: Value) -> Value {
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    value
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

mod model {
    use super::*;

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
                assistant(&[text("done")])
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
            json!([user("go"), assistant(&[server_call("s"), result("s"), text("done")])]),
            json!([
                user("go"),
                assistant(&[server_call("s"), call("a")]),
                tool(&[result("a")]),
                assistant(&[result("s"), text("done")])
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
                tool(&[
                    response("p", false),
                    output("a", json!({ "type": "execution-denied", "reason": "no" }))
                ]),
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
                    and(text(""), json!({ "providerOptions": { "google": { "thoughtSignature": "s" } } }))
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
        let other = json!({ "id": "1", "role": "user", "parts": [text("x")] });
        mends(&json!([ok, { "role": "tool", "content": "x" }]), &[("AI0", 1)], &json!([ok]));
        mends(&json!([ok, other]), &[("AI0", 1)], &json!([ok]));
        mends(&json!([other, ok]), &[("AI0", 1)], &json!([other]));
        let lone = json!({ "$cc": "utf16", "v": "PdhhAA==" });
        let history = json!([
            ok,
            assistant(&[call("a")]),
            tool(&[output("a", json!({ "type": "text", "value": lone }))])
        ]);
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
            &json!([go, assistant(&[text("x"), call("a")]), user("on")]),
            &[("AI1", 1)],
            &json!([go, assistant(&[text("x")]), user("on")]),
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
            &json!([json!({ "role": "user", "content": [text("go"), call("a"), result("a")] })]),
            &[("AI1", 0), ("AI1", 0)],
            &json!([json!({ "role": "user", "content": [text("go")] })]),
        );
    }

    #[test]
    fn ai1_the_providers_calls_and_results() {
        let (go, on) = (user("go"), user("on"));
        mends(
            &json!([go, assistant(&[result("s"), text("x")])]),
            &[("AI1", 1)],
            &json!([go, assistant(&[text("x")])]),
        );
        mends(
            &json!([go, assistant(&[server_call("s"), text("x")]), on]),
            &[("AI1", 1)],
            &json!([go, assistant(&[text("x")]), on]),
        );
        // The app's call is not answered by the assistant, nor the provider's by a tool.
        mends(
            &json!([go, assistant(&[call("a"), result("a"), text("x")]), on]),
            &[("AI1", 1), ("AI1", 1)],
            &json!([go, assistant(&[text("x")]), on]),
        );
        mends(
            &json!([go, assistant(&[server_call("s"), text("x")]), tool(&[result("s")]), on]),
            &[("AI1", 1), ("AI1", 2)],
            &json!([go, assistant(&[text("x")]), on]),
        );
    }

    #[test]
    fn ai1_nothing_stands_between_calls_and_results_for_strict_providers() {
        let history =
            json!([user("go"), assistant(&[call("a")]), assistant(&[text("wait")]), tool(&[result("a")])]);
        assert_eq!(broken(&history), []);
        assert_eq!(broken_strictly(&history), [("AI1", 2)]);
        let history = json!([
            user("go"),
            assistant(&[call("a"), call("b")]),
            tool(&[result("b")]),
            assistant(&[text("wait")]),
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
            &json!([go, assistant(&[text("x"), request("p", "a")]), on]),
            &[("AI2", 1)],
            &json!([go, assistant(&[text("x")]), on]),
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
            &json!([
                go,
                assistant(&[text("x"), call("a"), request("p", "a")]),
                tool(&[response("p", true)]),
                on
            ]),
            &[("AI1", 1)],
            &json!([go, assistant(&[text("x")]), on]),
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
            &json!([
                json!({ "role": "user", "content": [text("go"), request("p", "a"), response("p", true)] })
            ]),
            &[("AI2", 0), ("AI2", 0)],
            &json!([json!({ "role": "user", "content": [text("go")] })]),
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
        let direct =
            json!({ "providerOptions": { "anthropic": { "caller": { "type": "direct" }, "x": 1 } } });
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
            json!({ "role": "user", "content": [text("")] }),
            assistant(&[]),
            assistant(&[text("")]),
            tool(&[]),
            assistant(&[signed()]),
            assistant(&[
                reasoning(json!({ "openai": { "itemId": "rs_1" } })),
                json!({ "type": "reasoning-file", "data": "AAAA", "mediaType": "image/png" }),
            ]),
        ] {
            mends(&json!([go, empty]), &[("AI4", 1)], &json!([go]));
        }
        let history = json!([{ "role": "user", "content": [text("go"), signed()] }]);
        mends(&history, &[("AI4", 0)], &json!([{ "role": "user", "content": [text("go")] }]));
    }

    #[test]
    fn ai4_reasoning_goes_with_its_call() {
        let item = |kind: &str| reasoning(json!({ "openai": { "itemId": kind } }));
        let (go, on) = (user("go"), user("on"));
        // What it led to is gone.
        mends(
            &json!([go, assistant(&[text("x"), item("rs_1"), call("a")]), on]),
            &[("AI1", 1)],
            &json!([go, assistant(&[text("x")]), on]),
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
            assistant(&[signed(), text("x"), call("gone")]),
            user("on"),
            assistant(&[signed(), text("y")]),
            assistant(&[signed()]),
            user("more"),
            assistant(&[reasoning(json!({ "google": { "thoughtSignature": "s" } })), text("z")]),
        ]);
        let expected = json!([
            go,
            assistant(&[signed(), text("x")]),
            user("on"),
            assistant(&[text("y")]),
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
            let history = |output: &Value| {
                json!([go, assistant(&[call("a")]), tool(&[super::model::output("a", output.clone())]), done])
            };
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
        for output in [
            json!({ "type": "json", "value": null }),
            json!({ "type": "error-json", "value": [1] }),
            json!({ "type": "execution-denied" }),
            json!({ "type": "content", "value": [{ "type": "file-id", "fileId": "x" }, { "type": "news" }] }),
        ] {
            assert_eq!(
                broken(&json!([
                    go,
                    assistant(&[call("a")]),
                    tool(&[super::model::output("a", output)]),
                    done
                ])),
                []
            );
        }
    }

    #[test]
    fn ai7_version_7_takes_no_system_messages() {
        let history = json!([{ "role": "system", "content": "x" }, user("go")]);
        assert_eq!(broken(&history), []);
        assert_eq!(broken_strictly(&history), [("AI7", 0)]);
    }
}

mod ui {
    use super::*;

    fn user(text: &str) -> Value {
        json!({ "id": "u", "role": "user", "parts": [super::text(text)] })
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
                    text("done")
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
                    text("x")
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
        mends(
            &history,
            &[("AI1", 1)],
            &json!([user("go"), assistant(&[answered("a"), step(), answered("a")])]),
        );
    }

    #[test]
    fn ai2_a_decided_call_names_its_approval() {
        for state in ["approval-requested", "approval-responded", "output-denied"] {
            let history = json!([user("go"), assistant(&[text("x"), tool("a", state, json!({}))])]);
            mends(&history, &[("AI2", 1)], &json!([user("go"), assistant(&[text("x")])]));
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
            assistant(&[text("")]),
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
            &json!([user("go"), assistant(&[text("x"), bare])]),
            &[("AI5", 1)],
            &json!([user("go"), assistant(&[text("x")])]),
        );
    }

    #[test]
    fn ai6_a_call_that_nobody_finished_is_taken_out_once_the_conversation_went_on() {
        for state in
            ["input-streaming", "input-available", "approval-requested", "approval-responded", "news"]
        {
            let part = tool("a", state, approval(json!({})));
            mends(
                &json!([user("go"), assistant(&[step(), text("x"), part.clone()]), user("on")]),
                &[("AI6", 1)],
                &json!([user("go"), assistant(&[step(), text("x")]), user("on")]),
            );
            // Also when the same message went on.
            mends(
                &json!([user("go"), assistant(&[step(), part.clone(), step(), text("x")])]),
                &[("AI6", 1)],
                &json!([user("go"), assistant(&[step(), step(), text("x")])]),
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
        let history = json!([{ "id": "s", "role": "system", "parts": [text("x")] }, user("go")]);
        assert_eq!(broken(&history), []);
        assert_eq!(broken_strictly(&history), [("AI7", 0)]);
    }

    #[test]
    fn an8_reasoning_behind_an_edit_is_taken_out() {
        let history = json!([
            user("go"),
            assistant(&[
                step(),
                signed(),
                tool("a", "input-available", json!({})),
                step(),
                signed(),
                text("x")
            ]),
            user("on"),
            assistant(&[step(), signed(), answered("a"), step(), signed(), text("y")]),
        ]);
        let expected = json!([
            user("go"),
            assistant(&[step(), step(), text("x")]),
            user("on"),
            assistant(&[step(), answered("a"), step(), text("y")]),
        ]);
        assert_eq!(repaired(&history), expected);
    }
}

/// Lesson "quadratic CPU": what is broken 50,000 times is mended in linear time.
#[test]
fn a_long_broken_history_takes_linear_time() {
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    let model = |nth: usize| match nth % 5 {
        0 => json!({ "role": "user", "content": text("go") }),
        1 => json!({ "role": "assistant", "content": [
            { "type": "reasoning", "text": "hm", "providerOptions": { "anthropic": { "signature": "s" } } },
            { "type": "tool-call", "toolCallId": "a", "toolName": "f", "input": {} },
            { "type": "tool-approval-request", "approvalId": "p", "toolCallId": "b" } ] }),
        2 => {
            json!({ "role": "tool", "content": [{ "type": "tool-result", "toolCallId": "b", "toolName": "f", "output": "x" }] })
        }
        3 => {
            json!({ "role": "tool", "content": [{ "type": "tool-approval-response", "approvalId": "p", "approved": true }] })
        }
        _ => json!({ "role": "assistant", "content": "" }),
    };
    let ui = |nth: usize| match nth % 2 {
        0 => json!({ "id": "u", "role": "user", "parts": text("go") }),
        _ => {
            json!({ "id": "a", "role": "assistant", "parts": [{ "type": "tool-f", "toolCallId": "a", "state": "input-available" }, { "type": "text", "text": "x" }] })
        }
    };
    let time = |make: &dyn Fn(usize) -> Value, length: usize| {
        let history: Value = (0..length).map(make).collect();
        let texts: Vec<String> = history.as_array().unwrap().iter().map(Value::to_string).collect();
        let messages: Vec<_> = texts.iter().map(|text| parse(0, text).unwrap()).collect();
        let begun = std::time::Instant::now();
        let (left, changes) = Format::AiSdk.wire().repair(&messages);
        assert!(!left.is_empty() && changes.len() > length / 3);
        begun.elapsed()
    };
    for make in [&model as &dyn Fn(usize) -> Value, &ui] {
        let (short, long) = (time(make, 5_000), time(make, 50_000));
        assert!(
            long < short * 40 + std::time::Duration::from_millis(200),
            "{short:?} for 5,000, {long:?} for 50,000"
        );
    }
}

/// The histories that property tests are made of are valid, show their format, and lose nothing to a repair.
#[test]
fn generated_histories_are_valid() {
    for seed in 0..500 {
        let history = Value::from(histories::valid(Format::AiSdk, &mut fastrand::Rng::with_seed(seed)));
        assert_eq!(problems(&history, false), [], "seed {seed}: {history}");
        assert_eq!(repair(&history), (history.clone(), vec![]), "seed {seed}");
        with(&history, |messages| assert_eq!(detect(messages).unwrap(), Format::AiSdk, "seed {seed}"));
    }
}

/// Whatever is taken out of a history or moved in it, a repair makes it valid, once and for all.
#[test]
fn broken_histories_are_repaired_once_and_for_all() {
    let mut repairs = 0;
    for seed in 0..1_000 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut history = histories::valid(Format::AiSdk, &mut rng);
        for _ in 0..rng.usize(1..5) {
            let (one, other) = (rng.usize(..history.len()), rng.usize(..history.len()));
            let parts = ["content", "parts"].into_iter().find(|key| history[one][key].is_array());
            match (rng.usize(..4), parts) {
                (0, _) if history.len() > 1 => drop(history.remove(one)),
                (1, _) => history.swap(one, other),
                (2, Some(key)) if history[one][key][0].is_object() => {
                    let first = history[one][key][0].clone();
                    history[other][key]
                        .as_array_mut()
                        .into_iter()
                        .for_each(|parts| parts.push(first.clone()));
                }
                (_, Some(key)) => {
                    let parts = history[one][key].as_array_mut().unwrap();
                    if !parts.is_empty() {
                        parts.remove(rng.usize(..parts.len()));
                    }
                }
                _ => {}
            }
        }
        let history = Value::from(history);
        repairs += usize::from(repaired(&history) != history);
    }
    assert!(repairs > 400, "{repairs}");
}

/// Any text takes the place of any result, and the history stays valid.
#[test]
fn generated_histories_stay_valid_with_every_result_replaced() {
    let wire = Format::AiSdk.wire();
    for seed in 0..500 {
        let history = histories::valid(Format::AiSdk, &mut fastrand::Rng::with_seed(seed));
        let mut edited = Vec::new();
        for (index, message) in history.iter().enumerate() {
            let mut json = message.to_string();
            let results = wire.read(index, &parse(index, &json).unwrap()).unwrap().results().count();
            for nth in 0..results {
                let text = format!("Tool result is at: {index}/{nth}");
                json = wire.with_result_text(&parse(index, &json).unwrap(), nth, &text).unwrap();
                let value = parse(index, &json).unwrap();
                let read = wire.read(index, &value).unwrap();
                let result = read.results().nth(nth).unwrap();
                assert!(result.text.contains(&text), "seed {seed}: {text} is not in {}", result.text);
                assert_eq!(read.results().count(), results);
            }
            edited.push(serde_json::from_str(&json).unwrap());
        }
        assert_eq!(problems(&Value::Array(edited), false), [], "seed {seed}");
    }
}
