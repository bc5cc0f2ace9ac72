//! Every rule of the two formats: a history that keeps it, one that breaks it, and its repair.

use context_compactor_core::wire::{Format, Problem, Repaired, Unbound, parse};
use serde_json::{Value, json};

fn with<T>(history: &Value, run: impl FnOnce(&[serde_json_borrow::Value<'_>]) -> T) -> T {
    let texts: Vec<String> = history.as_array().unwrap().iter().map(Value::to_string).collect();
    let messages: Vec<_> = texts.iter().enumerate().map(|(i, text)| parse(i, text).unwrap()).collect();
    run(&messages)
}

fn problems(format: Format, history: &Value, strict: bool) -> Vec<Problem> {
    with(history, |messages| format.rules().validate(messages, strict))
}

/// The rules broken, with the index of the message.
fn broken(format: Format, history: &Value) -> Vec<(&'static str, usize)> {
    problems(format, history, false).into_iter().map(|problem| (problem.rule, problem.index)).collect()
}

fn broken_strictly(format: Format, history: &Value) -> Vec<(&'static str, usize)> {
    problems(format, history, true).into_iter().map(|problem| (problem.rule, problem.index)).collect()
}

/// The repaired history, after asserting that it is valid and that repairing it again changes nothing.
fn repaired(format: Format, history: &Value) -> Value {
    let once = |history: &Value| {
        with(history, |messages| {
            let (repaired, changes) = format.rules().repair(messages);
            let messages: Vec<Value> = repaired
                .into_iter()
                .map(|message| match message {
                    Repaired::Keep(index) => history[index].clone(),
                    Repaired::Replace { json, .. } => serde_json::from_str(&json).unwrap(),
                })
                .collect();
            (Value::from(messages), changes)
        })
    };
    let (result, _) = once(history);
    assert_eq!(problems(format, &result, false), [], "repaired: {result}");
    let (again, changes) = once(&result);
    assert_eq!((again, changes), (result.clone(), vec![]), "a repaired history is left alone");
    result
}

mod openai_chat {
    use super::*;
    const FORMAT: Format = Format::OpenaiChat;

    fn user(text: &str) -> Value {
        json!({ "role": "user", "content": text })
    }
    fn assistant(text: &str) -> Value {
        json!({ "role": "assistant", "content": text })
    }
    fn call(id: &str) -> Value {
        json!({ "id": id, "type": "function", "function": { "name": "read", "arguments": "{\"path\":\"a\"}" } })
    }
    fn calls(ids: &[&str]) -> Value {
        let calls: Vec<Value> = ids.iter().map(|id| call(id)).collect();
        json!({ "role": "assistant", "content": null, "tool_calls": calls })
    }
    fn tool(id: &str) -> Value {
        json!({ "role": "tool", "tool_call_id": id, "content": "done" })
    }
    fn legacy() -> [Value; 2] {
        [
            json!({ "role": "assistant", "content": null, "function_call": { "name": "read", "arguments": "{}" } }),
            json!({ "role": "function", "name": "read", "content": "done" }),
        ]
    }

    #[test]
    fn a_valid_history_breaks_nothing() {
        let [legacy_call, legacy_result] = legacy();
        let history = json!([
            { "role": "system", "content": "Be brief." },
            user("go"),
            calls(&["a", "b"]),
            tool("b"),
            tool("a"),
            calls(&["a"]),
            tool("a"),
            legacy_call,
            legacy_result,
            { "role": "assistant", "content": null, "refusal": "No." },
            assistant(""),
            user("thanks"),
        ]);
        assert_eq!(broken(FORMAT, &history), []);
        assert_eq!(repaired(FORMAT, &history), history);
    }

    #[test]
    fn oc1_results_follow_their_own_calls() {
        let history = json!([user("go"), tool("a"), assistant("hm")]);
        assert_eq!(broken(FORMAT, &history), [("OC1", 1)]);
        assert_eq!(repaired(FORMAT, &history), json!([user("go"), assistant("hm")]));

        let history = json!([user("go"), calls(&["a"]), tool("a"), tool("x")]);
        assert_eq!(broken(FORMAT, &history), [("OC1", 3)]);
        assert_eq!(repaired(FORMAT, &history), json!([user("go"), calls(&["a"]), tool("a")]));
    }

    // lesson: orphaned tool pairs
    #[test]
    fn oc2_every_call_has_one_result_at_once() {
        let history = json!([user("go"), calls(&["a", "b"]), tool("a"), user("wait"), tool("b")]);
        assert_eq!(broken(FORMAT, &history), [("OC2", 1), ("OC1", 4)]);
        assert_eq!(repaired(FORMAT, &history), json!([user("go"), calls(&["a"]), tool("a"), user("wait")]));

        let twice = json!([user("go"), calls(&["a"]), tool("a"), tool("a")]);
        assert_eq!(broken(FORMAT, &twice), [("OC2", 3)]);
        let same_id = json!([user("go"), calls(&["a", "a"]), tool("a")]);
        assert_eq!(broken(FORMAT, &same_id), [("OC2", 1)]);
        assert_eq!(repaired(FORMAT, &same_id), json!([user("go"), calls(&["a"]), tool("a")]));
    }

    #[test]
    fn oc2_a_call_that_is_cut_off_goes_with_its_empty_message() {
        let history = json!([user("go"), calls(&["a"])]);
        assert_eq!(broken(FORMAT, &history), [("OC2", 1)]);
        assert_eq!(repaired(FORMAT, &history), json!([user("go")]));
        let speaking =
            json!([user("go"), { "role": "assistant", "content": "I look.", "tool_calls": [call("a")] }]);
        assert_eq!(repaired(FORMAT, &speaking), json!([user("go"), assistant("I look.")]));
    }

    #[test]
    fn f26_oc3_no_arguments_at_all_are_a_problem_of_strict_servers() {
        let mut empty = calls(&["a"]);
        empty["tool_calls"][0]["function"]["arguments"] = json!("");
        let history = json!([user("go"), empty, tool("a")]);
        assert_eq!(broken(FORMAT, &history), []);
        let strict = problems(FORMAT, &history, true);
        assert_eq!(strict.iter().map(|it| (it.rule, it.index)).collect::<Vec<_>>(), [("OC3", 1)]);
    }

    #[test]
    fn oc3_s1_15_arguments_are_a_json_object() {
        for arguments in ["{\"path\":", "[1]", "null", "{} {}"] {
            let mut bad = calls(&["a", "b"]);
            bad["tool_calls"][0]["function"]["arguments"] = json!(arguments);
            let history = json!([user("go"), bad, tool("a"), tool("b")]);
            assert_eq!(broken(FORMAT, &history), [("OC3", 1)], "{arguments}");
            assert_eq!(repaired(FORMAT, &history), json!([user("go"), calls(&["b"]), tool("b")]));
        }
        let custom = json!([user("go"), { "role": "assistant", "content": null, "tool_calls": [
            { "id": "a", "type": "custom", "custom": { "name": "patch", "input": "free text" } }] }, tool("a")]);
        assert_eq!(broken(FORMAT, &custom), []);
    }

    #[test]
    fn oc4_no_empty_list_of_calls_for_strict_servers() {
        let history =
            json!([user("go"), { "role": "assistant", "content": "hi", "tool_calls": [] }, user("go")]);
        assert_eq!(broken(FORMAT, &history), []);
        assert_eq!(broken_strictly(FORMAT, &history), [("OC4", 1)]);
    }

    #[test]
    fn oc5_only_a_message_with_calls_may_be_without_content() {
        let history =
            json!([user("go"), { "role": "assistant", "content": null }, { "role": "user", "content": [] }]);
        assert_eq!(broken(FORMAT, &history), [("OC5", 1), ("OC5", 2)]);
        assert_eq!(repaired(FORMAT, &history), json!([user("go")]));

        let history =
            json!([user("go"), calls(&["a"]), { "role": "tool", "tool_call_id": "a", "content": null }]);
        assert_eq!(broken(FORMAT, &history), [("OC5", 2)]);
        assert_eq!(repaired(FORMAT, &history)[2]["content"], "");

        let history =
            json!([user("go"), { "role": "assistant", "content": [], "tool_calls": [call("a")] }, tool("a")]);
        assert_eq!(broken(FORMAT, &history), []);
        assert_eq!(broken_strictly(FORMAT, &history), [("OC5", 1)]);
    }

    #[test]
    fn oc5_legacy_calls_and_results_are_pairs_too() {
        let [call, result] = legacy();
        assert_eq!(broken(FORMAT, &json!([user("go"), call.clone()])), [("OC2", 1)]);
        assert_eq!(repaired(FORMAT, &json!([user("go"), call])), json!([user("go")]));
        assert_eq!(broken(FORMAT, &json!([user("go"), result])), [("OC1", 1)]);
        // A function's name is no call's id.
        let [_, result] = legacy();
        assert_eq!(broken(FORMAT, &json!([user("go"), calls(&["read"]), result])), [("OC2", 1), ("OC1", 2)]);
    }

    #[test]
    fn oc6_order_of_roles_for_strict_servers() {
        let system = json!({ "role": "system", "content": "Be brief." });
        let history = json!([user("a"), user("b"), system, assistant("c")]);
        assert_eq!(broken(FORMAT, &history), []);
        assert_eq!(broken_strictly(FORMAT, &history), [("OC6", 1), ("OC6", 2), ("OC6", 3)]);
        let valid = json!([system, user("a"), calls(&["x"]), tool("x"), calls(&["y"]), tool("y")]);
        assert_eq!(broken_strictly(FORMAT, &valid), []);
    }

    // lesson: Unicode cuts
    #[test]
    fn oc7_no_lone_surrogates() {
        // "a", a lone high surrogate, "b" in UTF-16LE.
        let ill = json!({ "$cc": "utf16", "v": "YQAA2GIA" });
        let history =
            json!([user("go"), { "role": "user", "content": [{ "type": "text", "text": ill }], "x": 1 }]);
        assert_eq!(broken(FORMAT, &history), [("OC7", 1)]);
        assert_eq!(repaired(FORMAT, &history)[1]["content"][0]["text"], "a\u{FFFD}b");
        assert_eq!(repaired(FORMAT, &history)[1]["x"], 1);
        // Ids are replaced alike on both sides.
        let mut call = calls(&["a"]);
        call["tool_calls"][0]["id"] = ill.clone();
        let result = json!({ "role": "tool", "tool_call_id": ill, "content": "done" });
        assert_eq!(repaired(FORMAT, &json!([user("go"), call, result])).as_array().unwrap().len(), 3);
    }

    #[test]
    fn unreadable_messages_are_named_and_taken_out() {
        let history = json!([user("go"), calls(&["a"]), { "role": "robot" }, tool("a")]);
        assert_eq!(broken(FORMAT, &history), [("OC0", 2)]);
        assert_eq!(repaired(FORMAT, &history), json!([user("go"), calls(&["a"]), tool("a")]));
    }
}

mod anthropic {
    use super::*;
    const FORMAT: Format = Format::Anthropic;

    fn user(text: &str) -> Value {
        json!({ "role": "user", "content": text })
    }
    fn says(blocks: Value) -> Value {
        json!({ "role": "assistant", "content": blocks })
    }
    fn gets(blocks: Value) -> Value {
        json!({ "role": "user", "content": blocks })
    }
    fn text(text: &str) -> Value {
        json!({ "type": "text", "text": text })
    }
    fn call(id: &str) -> Value {
        json!({ "type": "tool_use", "id": id, "name": "read", "input": { "path": "a" } })
    }
    fn result(id: &str) -> Value {
        json!({ "type": "tool_result", "tool_use_id": id, "content": "done" })
    }
    fn thinking(signature: &str) -> Value {
        json!({ "type": "thinking", "thinking": "hm", "signature": signature })
    }
    fn server_call(id: &str) -> Value {
        json!({ "type": "server_tool_use", "id": id, "name": "web_search", "input": {} })
    }
    fn server_result(id: &str) -> Value {
        json!({ "type": "web_search_tool_result", "tool_use_id": id, "content": [] })
    }

    #[test]
    fn a_valid_history_breaks_nothing() {
        let history = json!([
            user("go"),
            says(json!([thinking("s1"), text("I look."), call("a"), call("b")])),
            gets(json!([result("b"), result("a"), text("and hurry")])),
            says(json!([thinking("s2"), server_call("w"), server_result("w"), call("a")])),
            gets(json!([result("a")])),
            { "role": "system", "content": [text("From now on, be brief.")] },
            says(json!([{ "type": "compaction", "content": "so far" }, text("Done.")])),
            user("thanks"),
        ]);
        assert_eq!(broken(FORMAT, &history), []);
        assert_eq!(repaired(FORMAT, &history), history);
    }

    #[test]
    fn an0_unreadable_and_ill_formed_messages() {
        let ill = json!({ "$cc": "utf16", "v": "YQAA2GIA" });
        let history = json!([user("go"), { "role": "robot", "content": "x" }, gets(ill)]);
        assert_eq!(broken(FORMAT, &history), [("AN0", 1), ("AN0", 2)]);
        assert_eq!(repaired(FORMAT, &history), json!([user("go"), user("a\u{FFFD}b")]));
    }

    #[test]
    fn an1_the_user_begins() {
        let history = json!([says(json!("Hello!")), user("go")]);
        assert_eq!(broken(FORMAT, &history), [("AN1", 0)]);
        let mended = repaired(FORMAT, &history);
        assert_eq!(mended.as_array().unwrap().len(), 3, "nothing is lost");
        assert_eq!(mended[0]["role"], "user");
        let nothing = json!([says(json!([thinking("s")])), user("go")]);
        assert_eq!(repaired(FORMAT, &nothing), json!([user("go")]), "what goes needs no opening");
        let history = json!([{ "role": "system", "content": "Be brief." }, user("go")]);
        assert_eq!(broken(FORMAT, &history), [("AN1", 0)]);
        assert_eq!(repaired(FORMAT, &history), json!([user("Be brief."), user("go")]));
    }

    // lesson: role order
    #[test]
    fn an1_neighbours_of_one_role_are_one_turn() {
        let history = json!([
            user("a"),
            user("b"),
            says(json!([call("x")])),
            says(json!([call("y")])),
            gets(json!([result("y")])),
            gets(json!([result("x")]))
        ]);
        assert_eq!(broken(FORMAT, &history), []);
        assert_eq!(broken_strictly(FORMAT, &history), [("AN1", 1), ("AN1", 3), ("AN1", 5)]);
    }

    // lesson: orphaned tool pairs
    #[test]
    fn an2_every_call_has_one_result_in_the_next_message() {
        let history = json!([
            user("go"),
            says(json!([text("I look."), call("a"), call("b")])),
            gets(json!([result("b"), result("b"), result("x"), text("hm")])),
            says(json!("Oh."))
        ]);
        assert_eq!(broken(FORMAT, &history), [("AN2", 1), ("AN2", 2), ("AN2", 2)]);
        assert_eq!(
            repaired(FORMAT, &history),
            json!([
                user("go"),
                says(json!([text("I look."), call("b")])),
                gets(json!([result("b"), text("hm")])),
                says(json!("Oh."))
            ])
        );
        let cut_off = json!([user("go"), says(json!([call("a")]))]);
        assert_eq!(broken(FORMAT, &cut_off), [("AN2", 1)]);
        assert_eq!(repaired(FORMAT, &cut_off), json!([user("go")]));
        let displaced =
            json!([user("go"), says(json!([call("a"), call("a")])), gets(json!([result("a"), call("b")]))]);
        assert_eq!(broken(FORMAT, &displaced), [("AN2", 1), ("AN2", 2)]);
    }

    #[test]
    fn an2_results_stand_before_text() {
        let history = json!([
            user("go"),
            says(json!([call("a"), call("b")])),
            gets(json!([text("first"), result("a")])),
            gets(json!([result("b"), text("last")]))
        ]);
        assert_eq!(broken(FORMAT, &history), [("AN2", 2)]);
        assert_eq!(
            repaired(FORMAT, &history),
            json!([
                user("go"),
                says(json!([call("a"), call("b")])),
                gets(json!([result("a"), result("b"), text("first")])),
                gets(json!([text("last")]))
            ])
        );
        let plain = json!([user("go"), says(json!([call("a")])), user("wait"), gets(json!([result("a")]))]);
        assert_eq!(
            repaired(FORMAT, &plain),
            json!([user("go"), says(json!([call("a")])), gets(json!([result("a"), text("wait")]))])
        );
    }

    // lesson: server tools / new block types
    #[test]
    fn an3_server_tools_answer_in_their_message() {
        let history = json!([user("go"), says(json!([server_call("w"), text("hm")])), user("and?")]);
        assert_eq!(broken(FORMAT, &history), [("AN3", 1)]);
        assert_eq!(repaired(FORMAT, &history), json!([user("go"), says(json!([text("hm")])), user("and?")]));
        let orphan = json!([user("go"), says(json!([server_result("w"), text("hm")]))]);
        assert_eq!(broken(FORMAT, &orphan), [("AN3", 1)]);
        // Paused for the app's tool; the result opens the next turn.
        let paused = json!([
            user("go"),
            says(json!([server_call("w"), call("a")])),
            gets(json!([result("a")])),
            says(json!([server_result("w"), text("Found.")])),
            user("thanks")
        ]);
        assert_eq!(broken(FORMAT, &paused), []);
        let paused = json!([user("go"), says(json!([text("I search."), server_call("w")]))]);
        assert_eq!(broken_strictly(FORMAT, &paused), []);
        let unknown = json!([user("go"), says(json!([{ "type": "hologram", "data": "?" }])), user("nice")]);
        assert_eq!(broken(FORMAT, &unknown), []);
        let call = json!({ "type": "hologram_tool_use", "id": "h", "name": "hologram", "input": {} });
        let result = json!({ "type": "hologram_tool_result", "tool_use_id": "h", "content": [] });
        let unknown = json!([user("go"), says(json!([call, result, text("Seen.")])), user("nice")]);
        assert_eq!(broken(FORMAT, &unknown), []);
    }

    // lesson: reasoning and call coupling
    #[test]
    fn an4_thinking_is_signed_and_the_assistants() {
        let unsigned = json!({ "type": "thinking", "thinking": "hm" });
        let history =
            json!([gets(json!([text("go"), thinking("s")])), says(json!([unsigned, text("Yes.")]))]);
        assert_eq!(broken(FORMAT, &history), [("AN4", 0), ("AN4", 1)]);
        assert_eq!(
            repaired(FORMAT, &history),
            json!([gets(json!([text("go")])), says(json!([text("Yes.")]))])
        );
        let late = json!([
            user("go"),
            says(json!([text("Yes."), thinking("s"), call("a")])),
            gets(json!([result("a")]))
        ]);
        assert_eq!(broken(FORMAT, &late), []);
        assert_eq!(broken_strictly(FORMAT, &late), [("AN4", 1)]);
    }

    #[test]
    fn an5_nothing_is_empty() {
        let history = json!([
            user("go"),
            says(json!([text(" \n"), text("Yes.")])),
            user(" "),
            says(json!([])),
            gets(json!([text("and?")])),
            says(json!([thinking("s")]))
        ]);
        assert_eq!(broken(FORMAT, &history), [("AN5", 1), ("AN5", 2), ("AN5", 3), ("AN5", 5)]);
        assert_eq!(
            repaired(FORMAT, &history),
            json!([user("go"), says(json!([text("Yes.")])), gets(json!([text("and?")]))])
        );
        let mut hollow = result("a");
        hollow["content"] = json!([text("")]);
        let history = json!([user("go"), says(json!([call("a")])), gets(json!([hollow]))]);
        assert_eq!(broken(FORMAT, &history), [("AN5", 2)]);
        assert_eq!(repaired(FORMAT, &history)[2]["content"][0]["content"], "");
    }

    #[test]
    fn an5_the_final_message_of_the_assistant() {
        for content in [json!("Well, \n"), json!([text("Well, \n")])] {
            let history = json!([user("go"), says(content)]);
            assert_eq!(broken(FORMAT, &history), [("AN5", 1)]);
            let mended = repaired(FORMAT, &history)[1]["content"].clone();
            assert!(mended == json!("Well,") || mended == json!([text("Well,")]), "{mended}");
            assert_eq!(broken_strictly(FORMAT, &json!([user("go"), says(json!("Well,"))])), [("AN5", 1)]);
        }
    }

    #[test]
    fn an6_four_cache_breakpoints_and_none_on_thinking() {
        let marked =
            |text: &str| json!({ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } });
        let mut thought = thinking("s");
        thought["cache_control"] = json!({ "type": "ephemeral" });
        let five = json!([
            gets(json!([marked("1"), marked("2"), marked("3")])),
            says(json!([thinking("s"), text("Yes.")])),
            gets(json!([marked("4"), marked("5")]))
        ]);
        assert_eq!(broken(FORMAT, &five), [("AN6", 0)]);
        let mended = repaired(FORMAT, &five);
        assert!(mended[0]["content"][0]["cache_control"].is_null());
        assert_eq!(mended[1], five[1], "a breakpoint is no content: thinking after it stays");
        let history = json!([user("go"), says(json!([thought, text("Yes.")])), user("ok")]);
        assert_eq!(broken(FORMAT, &history), [("AN6", 1)]);
    }

    #[test]
    fn an7_compaction_is_the_assistants() {
        let block = json!({ "type": "compaction", "content": "so far" });
        let history = json!([gets(json!([block, text("go")]))]);
        assert_eq!(broken(FORMAT, &history), [("AN7", 0)]);
        assert_eq!(repaired(FORMAT, &history), json!([gets(json!([text("go")]))]));
    }

    // lesson: reasoning and call coupling
    #[test]
    fn an8_thinking_after_an_edit_is_taken_out() {
        let history = json!([
            user("go"),
            says(json!([thinking("s1"), text("One.")])),
            user("next"),
            says(json!([thinking("s2"), text(""), thinking("s3"), text("Two.")])),
            user("next"),
            says(json!([thinking("s4"), text("Three.")])),
            user("ok"),
        ]);
        let mended = repaired(FORMAT, &history);
        assert_eq!(mended[1], history[1], "thinking before the edit is bound to what it was");
        assert_eq!(mended[3], says(json!([thinking("s2"), text("Two.")])));
        assert_eq!(mended[5], says(json!([text("Three.")])));
    }

    #[test]
    fn an8_bound_reasoning_can_be_taken_off_a_message() {
        let off = |message: Value| {
            with(&json!([message]), |messages| FORMAT.rules().without_bound_reasoning(&messages[0]))
        };
        assert_eq!(off(user("go")), Unbound::Same);
        assert_eq!(off(says(json!([text("One.")]))), Unbound::Same);
        assert_eq!(off(says(json!([thinking("s")]))), Unbound::Nothing);
        let Unbound::Changed(json) = off(says(json!([thinking("s"), text("One."), call("a")]))) else {
            panic!()
        };
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), says(json!([text("One."), call("a")])));
    }
}
