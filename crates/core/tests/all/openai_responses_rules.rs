//! OpenAI Responses: every rule of the format kept, broken and mended.

use context_compactor_core::message::Exchanges;
use context_compactor_core::wire::{Change, Format, Problem, Repaired, detect, parse};
use context_compactor_store_tests::histories::valid;
use fastrand::Rng;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const FORMAT: Format = Format::OpenaiResponses;

fn with<T>(history: &[Value], run: impl FnOnce(&[serde_json_borrow::Value<'_>]) -> T) -> T {
    let texts: Vec<String> = history.iter().map(Value::to_string).collect();
    let messages: Vec<_> = texts.iter().enumerate().map(|(i, text)| parse(i, text).unwrap()).collect();
    run(&messages)
}

fn problems(history: &[Value], strict: bool) -> Vec<Problem> {
    with(history, |messages| FORMAT.rules().validate(messages, strict))
}

fn places(problems: Vec<Problem>) -> Vec<(&'static str, usize)> {
    problems.into_iter().map(|problem| (problem.rule, problem.index)).collect()
}

fn broken(history: &[Value]) -> Vec<(&'static str, usize)> {
    places(problems(history, false))
}

fn mended(history: &[Value]) -> (Vec<Value>, Vec<Change>) {
    with(history, |messages| {
        let (repaired, changes) = FORMAT.rules().repair(messages);
        let item = |item| match item {
            Repaired::Keep(index) => history[index].clone(),
            Repaired::Replace { json, .. } => serde_json::from_str(&json).unwrap(),
        };
        (repaired.into_iter().map(item).collect(), changes)
    })
}

/// The repaired history, after asserting that it is valid and that repairing it again changes nothing.
#[track_caller]
fn repaired(history: &[Value]) -> Vec<Value> {
    let (result, _) = mended(history);
    assert_eq!(problems(&result, false), [], "repaired: {result:?}");
    assert_eq!(mended(&result), (result.clone(), vec![]), "a repaired history is left alone");
    result
}

fn user() -> Value {
    json!({ "role": "user", "content": "go" })
}
fn said() -> Value {
    json!({ "type": "message", "role": "assistant", "content": "So." })
}
fn reasoning() -> Value {
    json!({ "type": "reasoning", "summary": [], "encrypted_content": "gAAA" })
}
fn call(id: &str) -> Value {
    json!({ "type": "function_call", "call_id": id, "name": "read", "arguments": "{}" })
}
fn output(id: &str) -> Value {
    json!({ "type": "function_call_output", "call_id": id, "output": "done" })
}
fn named(id: &str, mut item: Value) -> Value {
    item["id"] = id.into();
    item
}

/// A call and its output in every family that the API pairs.
fn families() -> Vec<[Value; 2]> {
    let family = |call: Value, output: Value| {
        let (mut call, mut output) = (call, output);
        for item in [&mut call, &mut output] {
            item["call_id"] = "a".into();
        }
        [call, output]
    };
    vec![
        [call("a"), output("a")],
        family(
            json!({ "type": "custom_tool_call", "name": "f", "input": "x" }),
            json!({ "type": "custom_tool_call_output", "output": "x" }),
        ),
        family(
            json!({ "type": "local_shell_call", "action": {} }),
            json!({ "type": "local_shell_call_output", "output": "x" }),
        ),
        family(
            json!({ "type": "shell_call", "action": {} }),
            json!({ "type": "shell_call_output", "output": [] }),
        ),
        family(
            json!({ "type": "apply_patch_call", "operation": {} }),
            json!({ "type": "apply_patch_call_output", "status": "completed" }),
        ),
        family(
            json!({ "type": "computer_call", "action": {} }),
            json!({ "type": "computer_call_output", "output": { "type": "computer_screenshot" } }),
        ),
        family(
            json!({ "type": "tool_search_call", "execution": "client" }),
            json!({ "type": "tool_search_output", "execution": "client", "tools": [] }),
        ),
        [
            json!({ "type": "mcp_approval_request", "id": "a", "name": "f" }),
            json!({ "type": "mcp_approval_response", "approval_request_id": "a", "approve": true }),
        ],
    ]
}

#[test]
fn a_valid_history_breaks_nothing() {
    let mut history = vec![json!({ "role": "developer", "content": "Be brief." }), user()];
    history.extend(families().into_iter().flatten());
    history.extend([
        call("a"),
        call("b"),
        user(),
        output("b"),
        output("a"),
        reasoning(),
        reasoning(),
        said(),
    ]);
    history.extend([json!({ "role": "system", "content": "New rules." }), user()]);
    assert_eq!(broken(&history), []);
    assert_eq!(mended(&history), (history.clone(), vec![]));
    assert_eq!(broken(&[]), []);
}

#[test]
fn or0_what_cannot_be_read_is_taken_out() {
    let robot = json!({ "role": "robot", "content": "x" });
    assert_eq!(broken(&[user(), robot.clone()]), [("OR0", 1)]);
    assert_eq!(repaired(&[user(), robot]), [user()]);
    // With the exchange that it was part of.
    let nameless = json!({ "type": "function_call", "call_id": "a", "arguments": "{}" });
    let history = [user(), reasoning(), nameless, output("a"), said()];
    assert_eq!(broken(&history), [("OR2", 1), ("OR0", 2), ("OR1", 3)]);
    assert_eq!(repaired(&history), [user(), said()]);
}

/// lesson: unicode cuts
#[test]
fn or0_lone_surrogates() {
    let lone = json!({ "$cc": "utf16", "v": "ANg=" });
    let mut said = named("msg_1", said());
    said["content"] = lone.clone();
    assert_eq!(broken(&[user(), said.clone()]), [("OR0", 1)]);
    let mended = json!({ "type": "message", "role": "assistant", "content": "\u{fffd}" });
    assert_eq!(
        repaired(&[user(), said.clone()]),
        [user(), mended.clone()],
        "OR4: the server's id goes with the edit"
    );
    // The reasoning of an item that is not the server's any more.
    assert_eq!(repaired(&[user(), named("rs_1", reasoning()), said]), [user(), mended]);
    let mut thought = reasoning();
    thought["summary"] = json!([{ "type": "summary_text", "text": lone }]);
    assert_eq!(
        repaired(&[user(), thought, named("msg_1", self::said())]),
        [user(), self::said()],
        "reasoning is never edited"
    );
}

/// lesson: orphaned tool pairs
#[test]
fn or1_calls_and_outputs_of_every_family_are_paired() {
    for [call, output] in families() {
        let whole = [user(), call.clone(), output.clone(), user()];
        assert_eq!(broken(&whole), [], "{call}");
        for history in [[user(), call.clone(), user()], [user(), output.clone(), user()]] {
            assert_eq!(broken(&history), [("OR1", 1)], "{history:?}");
            assert_eq!(repaired(&history), [user(), user()]);
        }
        let twice = [user(), call.clone(), output.clone(), output.clone()];
        assert_eq!(broken(&twice), [("OR1", 3)], "{output}");
        assert_eq!(repaired(&twice), [user(), call.clone(), output.clone()]);
        let reversed = [user(), output.clone(), call.clone()];
        assert_eq!(broken(&reversed), [("OR1", 1), ("OR1", 2)]);
        assert_eq!(repaired(&reversed), [user()]);
    }
}

#[test]
fn or1_an_output_of_another_kind_is_no_answer() {
    let custom = json!({ "type": "custom_tool_call_output", "call_id": "a", "output": "x" });
    let history = [user(), call("a"), custom];
    assert_eq!(broken(&history), [("OR1", 1), ("OR1", 2)]);
    assert_eq!(repaired(&history), [user()]);
}

#[test]
fn or1_ids_are_unique_among_the_calls_that_wait() {
    let history = [user(), call("a"), output("a"), user(), call("a"), output("a")];
    assert_eq!(broken(&history), []);
    let history = [user(), call("a"), call("a"), output("a"), user()];
    assert_eq!(broken(&history), [("OR1", 1)]);
    assert_eq!(repaired(&history), [user(), call("a"), output("a"), user()]);
}

#[test]
fn f26_what_only_the_server_can_have_and_empty_arguments_are_problems_of_strict_servers() {
    let history = [output("a"), output("b"), user()];
    assert_eq!(broken(&history), []);
    assert_eq!(places(problems(&history, true)), [("OR1", 0), ("OR1", 1)]);
    assert_eq!(repaired(&history), history);
    let mut empty = call("a");
    empty["arguments"] = "".into();
    let history = [user(), empty, output("a")];
    assert_eq!(broken(&history), []);
    assert_eq!(places(problems(&history, true)), [("OR1", 1)]);
}

#[test]
fn or1_s1_15_arguments_are_a_json_object() {
    for arguments in ["{\"path\":", "[1]", "null", "{} {}"] {
        let mut bad = call("a");
        bad["arguments"] = arguments.into();
        let history = [user(), reasoning(), bad, call("b"), output("a"), output("b")];
        assert_eq!(broken(&history), [("OR1", 2)], "{arguments}");
        assert_eq!(repaired(&history), [user(), call("b"), output("b")]);
    }
}

#[test]
fn or1_the_servers_own_calls_may_wait() {
    let program = json!({ "type": "program", "call_id": "p", "code": "x" });
    let mut called = call("a");
    called["caller"] = json!({ "type": "program", "caller_id": "p" });
    let done = json!({ "type": "program_output", "call_id": "p", "result": "x" });
    assert_eq!(broken(&[user(), program.clone(), called.clone(), output("a")]), []);
    assert_eq!(broken(&[user(), program, called.clone(), output("a"), done.clone()]), []);
    let orphans = [user(), called, output("a"), done];
    assert_eq!(broken(&orphans), [("OR1", 1), ("OR1", 3)]);
    assert_eq!(repaired(&orphans), [user()]);

    let search =
        |kind: &str, call_id: Value| json!({ "type": kind, "call_id": call_id, "execution": "server" });
    let (lone, searched) =
        (search("tool_search_call", "tsc_1".into()), search("tool_search_call", Value::Null));
    let found = search("tool_search_output", Value::Null);
    assert_eq!(broken(&[user(), lone, searched.clone(), found, searched]), []);
}

/// lesson: server tools and new block types
#[test]
fn or1_pairs_of_kinds_that_are_news_are_checked_strictly_only() {
    let news = |kind: &str| json!({ "type": kind, "call_id": "q" });
    let pair = [user(), news("quantum_call"), news("quantum_result")];
    assert_eq!(places(problems(&pair, true)), []);
    for kind in ["quantum_call", "quantum_output"] {
        let history = [user(), news(kind)];
        assert_eq!(broken(&history), []);
        assert_eq!(places(problems(&history, true)), [("OR1", 1)]);
    }
}

#[test]
fn or1_or4_a_reference_may_be_what_is_answered() {
    let refer = |id: &str| json!({ "type": "item_reference", "id": id });
    let approval = json!({ "type": "mcp_approval_response", "approval_request_id": "r", "approve": true });
    let history = [user(), refer("rs_1"), refer("fc_1"), output("a"), refer("r"), approval];
    assert_eq!(broken(&history), []);
    assert_eq!(places(problems(&history, true)), [("OR4", 1), ("OR4", 2), ("OR4", 4)]);
    assert_eq!(broken(&[user(), output("a"), refer("fc_1")]), [("OR1", 1)]);
}

/// lesson: reasoning ↔ call coupling
#[test]
fn or2_reasoning_has_an_item_of_the_model_behind_it() {
    for history in [vec![user(), reasoning()], vec![user(), reasoning(), reasoning(), user()]] {
        let alone: Vec<_> = (1..history.len()).filter(|&at| history[at] == reasoning()).collect();
        assert_eq!(broken(&history), alone.iter().map(|&at| ("OR2", at)).collect::<Vec<_>>());
        assert!(!repaired(&history).contains(&reasoning()));
    }
    for next in [
        said(),
        json!({ "type": "web_search_call", "id": "ws_1" }),
        json!({ "type": "agent_message", "content": [] }),
        json!({ "type": "item_reference", "id": "fc_1" }),
    ] {
        assert_eq!(broken(&[user(), reasoning(), next]), []);
    }
    // Encrypted or stored: which of them a request has, only the app knows.
    let stored = json!({ "type": "reasoning", "id": "rs_1", "summary": [] });
    let history = [user(), stored, said()];
    assert_eq!(broken(&history), []);
    assert_eq!(places(problems(&history, true)), [("OR2", 1)]);
}

#[test]
fn or2_reasoning_and_its_call_are_dropped_together() {
    let history = [user(), reasoning(), reasoning(), call("a"), user()];
    assert_eq!(broken(&history), [("OR1", 3)]);
    let (mended, changes) = mended(&history);
    assert_eq!(mended, [user(), user()]);
    assert_eq!(places(changes), [("OR2", 1), ("OR2", 2), ("OR1", 3)]);

    // What is left of the response is sent as news: the server would look for its reasoning.
    let history = [
        user(),
        named("rs_1", reasoning()),
        named("fc_1", call("a")),
        named("fc_2", call("b")),
        output("b"),
        named("rs_2", reasoning()),
        named("msg_1", said()),
    ];
    assert_eq!(repaired(&history), [&[user(), call("b")], &history[4..]].concat());
    // A later call takes nothing with it: the reasoning still has its item.
    let history =
        [user(), named("rs_1", reasoning()), named("fc_1", call("a")), named("fc_2", call("b")), output("a")];
    assert_eq!(repaired(&history), [&history[..3], &history[4..]].concat());
}

#[test]
fn f39_or2_of_two_fixes_for_one_item_the_stronger_decides_about_its_reasoning() {
    let lone = json!({ "$cc": "utf16", "v": "ANg=" });
    let call = json!({ "type": "custom_tool_call", "call_id": "a", "name": "run", "input": lone });
    let history = [user(), reasoning(), call, said(), user()];
    assert_eq!(broken(&history), [("OR0", 2), ("OR1", 2)], "its text could be mended, its output is missing");
    assert_eq!(repaired(&history), [user(), said(), user()], "the reasoning is not that of what follows");
}

/// lesson: opaque server compaction
#[test]
fn or3_a_compaction_item_is_sent_as_it_is_or_not_at_all() {
    let compaction = |kind: &str, length: usize| json!({ "type": kind, "id": "cmp_1", "encrypted_content": "g".repeat(length) });
    let limit = 10 * 1024 * 1024;
    for kind in ["compaction", "compaction_summary"] {
        assert_eq!(broken(&[user(), compaction(kind, limit), user()]), []);
        let history = [user(), compaction(kind, limit + 1), user()];
        assert_eq!(broken(&history), [("OR3", 1)]);
        assert_eq!(repaired(&history), [user(), user()]);
    }
}

#[test]
fn or4_an_id_of_the_server_stands_once() {
    let history = [user(), named("msg_1", said()), user(), named("msg_1", said())];
    assert_eq!(broken(&history), [("OR4", 3)]);
    assert_eq!(repaired(&history), [&history[..3], &[said()]].concat());
    let history =
        [user(), named("rs_1", reasoning()), said(), named("rs_1", reasoning()), named("msg_1", said())];
    assert_eq!(repaired(&history), [&history[..3], &[said()]].concat());
    let search = json!({ "type": "web_search_call", "id": "ws_1", "action": {} });
    assert_eq!(repaired(&[user(), search.clone(), search.clone()]), [user(), search]);
    // The id of a call is no id of an item.
    let local = [
        json!({ "type": "local_shell_call", "id": "lsh_1", "call_id": "a", "action": {} }),
        json!({ "type": "local_shell_call_output", "id": "a", "output": "x" }),
    ];
    assert_eq!(
        broken(
            &[
                local.clone(),
                local.clone().map(|mut item| {
                    if item["id"] == "lsh_1" {
                        item["id"] = "lsh_2".into();
                    }
                    item
                })
            ]
            .concat()
        ),
        []
    );
}

#[test]
fn or4_calls_that_must_have_an_id_keep_it_or_go() {
    let call = |id: &str| json!({ "type": "local_shell_call", "id": "lsh_1", "call_id": id, "action": {} });
    let output = |id: &str| json!({ "type": "local_shell_call_output", "id": id, "output": "x" });
    let history = [user(), call("a"), output("a"), call("b"), output("b")];
    assert_eq!(repaired(&history), history[..3]);
    // The first of two goes for want of an output: the second has the id alone then.
    let history = [user(), call("a"), call("a"), output("a")];
    assert_eq!(repaired(&history), [user(), call("a"), output("a")]);
}

#[test]
fn or4_ids_that_the_api_did_not_give_are_reported_strictly() {
    let history =
        [user(), named("item_1", reasoning()), named("call_a", call("a")), output("a"), named("x", said())];
    assert_eq!(broken(&history), []);
    assert_eq!(places(problems(&history, true)), [("OR4", 1), ("OR4", 2), ("OR4", 4)]);
}

#[test]
fn or5_a_trigger_is_the_last_item() {
    let trigger = json!({ "type": "compaction_trigger" });
    assert_eq!(broken(&[user(), trigger.clone()]), []);
    let history = [user(), trigger.clone(), said(), trigger.clone()];
    assert_eq!(broken(&history), [("OR5", 1)]);
    assert_eq!(repaired(&history), [user(), said(), trigger.clone()]);
    // What stood behind it goes for a reason of its own.
    assert_eq!(repaired(&[user(), trigger.clone(), output("x")]), [user(), trigger]);
    assert_eq!(places(problems(&[], true)), [("OR5", 0)]);
}

#[test]
fn unknown_fields_and_kinds_are_left_as_they_are() {
    let strange = json!({ "type": "aura", "z": 1.50, "a": { "안녕": ["👩‍👩‍👧", null] } });
    let mut kept = call("a");
    kept["x_extra"] = json!({ "שלום": [1, 2] });
    let history = [user(), strange.clone(), kept.clone(), output("a"), call("b")];
    assert_eq!(repaired(&history), [user(), strange, kept, output("a")]);
    // Of an item that is edited everything else stays, in its order.
    let json = r#"{"z":1,"id":"msg_1","type":"message","role":"user","content":[{"type":"input_text","text":{"$cc":"utf16","v":"ANg="}},{"type":"x","k":"한"}],"a":null}"#;
    let parsed = [parse(0, json).unwrap()];
    let (repaired, _) = FORMAT.rules().repair(&parsed);
    let [Repaired::Replace { json, .. }] = repaired.as_slice() else { panic!("{repaired:?}") };
    assert_eq!(
        json,
        &r#"{"z":1,"type":"message","role":"user","content":[{"type":"input_text","text":"?"},{"type":"x","k":"한"}],"a":null}"#
            .replace('?', "\u{fffd}")
    );
}

#[test]
fn a_broken_history_of_50_000_items_is_mended_in_linear_time() {
    let item = |at: usize| match at % 7 {
        0 => user(),
        1 => named(&format!("rs_{at}"), reasoning()),
        2 => named(&format!("fc_{at}"), call(&format!("call_{}", at % 21))),
        3 if at.is_multiple_of(3) => output(&format!("call_{}", (at - 1) % 21)),
        3 => output("nobody"),
        4 => json!({ "role": "robot" }),
        5 => reasoning(),
        _ => named("msg_1", said()),
    };
    let history: Vec<Value> = (0..50_000).map(item).collect();
    with(&history, |messages| {
        let start = Instant::now();
        let found = FORMAT.rules().validate(messages, true).len();
        let (kept, changes) = FORMAT.rules().repair(messages);
        assert!(found > 10_000 && changes.len() > 10_000 && kept.len() > 10_000);
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    });
}

#[test]
fn generated_histories_are_valid_and_can_be_cut_at_every_boundary() {
    for seed in 0..500 {
        let history = valid(FORMAT, &mut Rng::with_seed(seed));
        assert_eq!(problems(&history, false), [], "seed {seed}: {history:#?}");
        assert!((1..=120).contains(&history.len()), "seed {seed}: {}", history.len());
        with(&history, |items| {
            assert_eq!(detect(items).unwrap(), FORMAT, "seed {seed}");
            let messages: Vec<_> = items.iter().map(|item| FORMAT.wire().read(0, item).unwrap()).collect();
            let exchanges = Exchanges::of(&messages);
            for at in (0..=items.len()).filter(|&at| exchanges.is_boundary(at)) {
                for half in [&items[..at], &items[at..]] {
                    // A trigger is last, wherever the history ends.
                    let found = FORMAT.rules().validate(half, false);
                    assert_eq!(found, [], "seed {seed}, cut at {at}");
                }
            }
        });
    }
}

/// An offload changes the text of an output and nothing that the API looks at.
#[test]
fn or4_histories_stay_valid_when_outputs_are_replaced() {
    let reference = "Tool result is at: 참조 👩‍👩‍👧";
    let mut replaced = 0;
    for seed in 0..500 {
        let mut history = valid(FORMAT, &mut Rng::with_seed(seed));
        for item in &mut history {
            let text = item.to_string();
            let parsed = parse(0, &text).unwrap();
            let message = FORMAT.wire().read(0, &parsed).unwrap();
            let Some(result) = message.results().find(|result| !result.text.is_empty()) else { continue };
            let edited =
                FORMAT.rules().with_result_text(&parsed, 0, reference).expect("a place for the text");
            let parsed = parse(0, &edited).unwrap();
            let again = FORMAT.wire().read(0, &parsed).unwrap();
            let now = again.results().next().unwrap();
            assert_eq!((now.text.as_ref(), &now.call_id), (reference, &result.call_id), "{edited}");
            assert_eq!((now.is_error, &now.media), (result.is_error, &result.media), "{edited}");
            *item = serde_json::from_str(&edited).unwrap();
            assert!(item.get("id").is_none_or(|id| *id == json!(result.call_id.as_ref())), "{edited}");
            replaced += 1;
        }
        assert_eq!(broken(&history), [], "seed {seed}");
    }
    assert!(replaced > 500, "{replaced}");
}

/// Parts taken out and doubled at random: whatever is left is mended, and mended once.
#[test]
fn damaged_histories_are_mended() {
    for seed in 0..500 {
        let mut rng = Rng::with_seed(seed);
        let mut history = valid(FORMAT, &mut rng);
        for _ in 0..rng.usize(1..6) {
            let at = rng.usize(..history.len());
            match rng.u8(..3) {
                0 if history.len() > 1 => {
                    history.remove(at);
                }
                1 => history.insert(at, history[rng.usize(..history.len())].clone()),
                _ => {
                    let other = rng.usize(..history.len());
                    history.swap(at, other);
                }
            }
        }
        repaired(&history);
    }
}
