//! Format `anthropic`: calls made by code, server tools that pause a turn, compaction blocks, and kinds that nobody
//! has heard of.

use crate::support::rules::*;
use context_compactor_core::message::{Pairing, Part};
use context_compactor_core::wire::{Format, detect};
use context_compactor_store_tests::histories;
use fastrand::Rng;
use serde_json::{Value, json};

const FORMAT: Format = Format::Anthropic;

pub(crate) fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}
pub(crate) fn says(blocks: &[Value]) -> Value {
    json!({ "role": "assistant", "content": blocks })
}
pub(crate) fn gets(blocks: &[Value]) -> Value {
    json!({ "role": "user", "content": blocks })
}
pub(crate) fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}
pub(crate) fn thinking() -> Value {
    json!({ "type": "thinking", "thinking": "hm", "signature": "s" })
}
fn call(id: &str) -> Value {
    json!({ "type": "tool_use", "id": id, "name": "query", "input": {} })
}
fn result(id: &str) -> Value {
    json!({ "type": "tool_result", "tool_use_id": id, "content": "done" })
}
fn code(id: &str) -> Value {
    json!({ "type": "server_tool_use", "id": id, "name": "code_execution", "input": { "code": "query()" } })
}
fn ended(id: &str) -> Value {
    json!({ "type": "code_execution_tool_result", "tool_use_id": id, "content": { "type": "code_execution_result" } })
}
/// A block made by the code of a call.
fn made_by(id: &str, mut block: Value) -> Value {
    block["caller"] = json!({ "type": "code_execution_20260120", "tool_id": id });
    block
}
pub(crate) fn compaction() -> Value {
    json!({ "type": "compaction", "content": "so far", "encrypted_content": null })
}
pub(crate) fn signed_compaction() -> Value {
    json!({ "type": "compaction", "content": "so far", "signature": "c2ln", "tool_changes": [] })
}

/// Code that calls the app's tools in two turns before it has ended.
pub(crate) fn programmatic() -> Vec<Value> {
    vec![
        user("go"),
        says(&[thinking(), code("c"), made_by("c", call("a")), made_by("c", call("b"))]),
        gets(&[result("b"), result("a")]),
        says(&[made_by("c", call("a"))]),
        gets(&[result("a")]),
        says(&[ended("c"), text("Done.")]),
        user("thanks"),
    ]
}

// lesson: orphaned tool pairs
#[test]
fn an3_no_split_parts_code_from_the_calls_that_it_made() {
    let history = programmatic();
    assert_eq!(broken_strictly(FORMAT, &history), []);
    assert_eq!(boundaries(FORMAT, &history), [0, 1, 6, 7]);
    read(FORMAT, &history[1], |message| {
        let callers: Vec<_> = message.calls().map(|call| call.caller.as_deref()).collect();
        assert_eq!(callers, [Some("c"), Some("c")]);
    });
    read(
        FORMAT,
        &says(&[
            json!({ "type": "tool_use", "id": "a", "name": "f", "input": {}, "caller": { "type": "direct" } }),
        ]),
        |message| {
            assert_eq!(message.calls().next().unwrap().caller, None);
        },
    );
}

#[test]
fn an3_a_server_tool_that_pauses_its_turn_stays_with_its_result() {
    let search = json!({ "type": "server_tool_use", "id": "w", "name": "web_search", "input": {} });
    let found = json!({ "type": "web_search_tool_result", "tool_use_id": "w", "content": [] });
    let history = [
        user("go"),
        says(&[search.clone(), call("a")]),
        gets(&[result("a")]),
        says(&[found.clone(), text("Found.")]),
        user("and?"),
        says(&[text("I look again."), search]),
        says(&[found, text("The same.")]),
    ];
    assert_eq!(broken(FORMAT, &history), []);
    assert_eq!(boundaries(FORMAT, &history), [0, 1, 4, 5, 7]);
}

#[test]
fn an3_a_call_whose_code_is_gone_is_removed_with_its_result() {
    let mut history = programmatic();
    history[1] = says(&[text("I ask."), made_by("c", call("a"))]);
    history[2] = gets(&[result("a")]);
    assert_eq!(broken(FORMAT, &history), [("AN3", 1), ("AN3", 3), ("AN3", 5)]);
    assert_eq!(
        repaired(FORMAT, &history),
        [user("go"), says(&[text("I ask.")]), says(&[text("Done.")]), user("thanks")]
    );
    // What the gone code's own calls made goes as well, server tools too.
    let search = json!({ "type": "server_tool_use", "id": "w", "name": "web_search", "input": {} });
    let found = json!({ "type": "web_search_tool_result", "tool_use_id": "w", "content": [] });
    let nested = [
        user("go"),
        says(&[made_by("gone", search), made_by("w", call("a")), found, text("Hm.")]),
        gets(&[result("a"), text("and?")]),
    ];
    assert_eq!(broken(FORMAT, &nested), [("AN3", 1), ("AN3", 1)]);
    assert_eq!(repaired(FORMAT, &nested), [user("go"), says(&[text("Hm.")]), gets(&[text("and?")])]);
    // Code that never ended takes what it called with it.
    let broken_off = [
        user("go"),
        says(&[text("I run it."), code("c"), made_by("c", call("a"))]),
        gets(&[result("a"), text("stop")]),
        says(&[text("Stopped.")]),
        user("ok"),
    ];
    assert_eq!(broken(FORMAT, &broken_off), [("AN3", 1)]);
    assert_eq!(
        repaired(FORMAT, &broken_off),
        [
            user("go"),
            says(&[text("I run it.")]),
            gets(&[text("stop")]),
            says(&[text("Stopped.")]),
            user("ok")
        ]
    );
}

#[test]
fn an2_answers_to_code_stand_alone() {
    let mut history = programmatic();
    history[2] = gets(&[result("b"), result("a"), text("and hurry")]);
    assert_eq!(broken(FORMAT, &history), []);
    assert_eq!(broken_strictly(FORMAT, &history), [("AN2", 2)]);
}

// lesson: server tools / new block types
#[test]
fn an3_a_kind_that_nobody_has_heard_of_passes_with_its_partner() {
    let asks = json!({ "type": "quantum_tool_use", "id": "q", "input": {} });
    let tells = json!({ "type": "quantum_tool_result", "tool_use_id": "q", "content": [] });
    let by_app = [
        user("go"),
        says(std::slice::from_ref(&asks)),
        gets(std::slice::from_ref(&tells)),
        says(&[text("Done.")]),
        user("ok"),
    ];
    assert_eq!(broken(FORMAT, &by_app), []);
    assert_eq!(boundaries(FORMAT, &by_app), [0, 1, 3, 4, 5]);
    assert_eq!(with(&by_app, detect).unwrap(), FORMAT);
    let alone = [user("go"), says(&[asks, text("?")]), user("no answer")];
    assert_eq!(broken(FORMAT, &alone), [], "who answers, and when, is not known");
    let orphan = [user("go"), gets(&[tells.clone(), text("hm")])];
    assert_eq!(broken(FORMAT, &orphan), [("AN3", 1)]);
    // Instructions call nothing and answer nothing.
    let instructs = |block: &Value| json!({ "role": "system", "content": [block, text("Be brief.")] });
    let called = [user("go"), instructs(&by_app[1]["content"][0]), gets(&[tells.clone(), text("hm")])];
    assert_eq!(broken(FORMAT, &called), [("AN1", 1), ("AN3", 1), ("AN3", 2)]);
    let plain = json!({ "role": "system", "content": [text("Be brief.")] });
    assert_eq!(repaired(FORMAT, &called), [user("go"), gets(&[text("hm")]), plain]);
    let answered = [by_app[0].clone(), by_app[1].clone(), instructs(&tells)];
    assert_eq!(broken(FORMAT, &answered), [("AN3", 2)]);
    // The provider's own are answered by the provider.
    let search = json!({ "type": "server_tool_use", "id": "w", "name": "web_search", "input": {} });
    let found = json!({ "type": "web_search_tool_result", "tool_use_id": "w", "content": [] });
    let by_user =
        [user("go"), says(&[search, call("a")]), gets(&[result("a"), found]), says(&[text("?")]), user("ok")];
    assert_eq!(broken(FORMAT, &by_user), [("AN3", 1), ("AN3", 2)]);
}

#[test]
fn blocks_that_the_app_and_the_provider_hand_on_are_kept_as_they_are() {
    let history = [
        gets(&[
            json!({ "type": "container_upload", "file_id": "file_1" }),
            json!({ "type": "search_result", "source": "a", "title": "b", "content": [text("c")] }),
            text("go"),
        ]),
        says(&[
            json!({ "type": "fallback", "from": { "model": "a" }, "to": { "model": "b" } }),
            json!({ "type": "mcp_tool_listing", "mcp_server_name": "s", "tools": [] }),
            json!({ "type": "mcp_tool_use", "id": "m", "name": "echo", "server_name": "s", "input": {} }),
            json!({ "type": "mcp_tool_result", "tool_use_id": "m", "content": [text("hi")] }),
            call("a"),
        ]),
        gets(&[json!({ "type": "tool_result", "tool_use_id": "a", "content": [
            { "type": "tool_reference", "tool_name": "search" }, { "type": "browser_state", "tabs": [] }] })]),
        json!({ "role": "system", "content": [{ "type": "tool_addition", "tool": { "name": "search" } }] }),
        says(&[text("Done.")]),
    ];
    assert_eq!(broken(FORMAT, &history), []);
    assert_eq!(repaired(FORMAT, &history), history);
    read(FORMAT, &history[1], |message| {
        let ties: Vec<_> = message
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Opaque { tie, .. } => Some(tie.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(
            ties,
            [Pairing::None, Pairing::None, Pairing::Opens("m".into()), Pairing::Closes("m".into())]
        );
    });
}

#[test]
fn an7_what_a_compaction_block_stands_for_may_be_left_out() {
    let threshold = [says(&[compaction(), text("Going on.")]), user("and?")];
    assert_eq!(broken(FORMAT, &threshold), []);
    let with_prefix = [
        user("go"),
        says(&[compaction(), text("Going on.")]),
        user("and?"),
        says(&[compaction(), text("More.")]),
    ];
    assert_eq!(broken(FORMAT, &with_prefix), [], "and need not be");
    let failed = [says(&[json!({ "type": "compaction", "content": null }), text("Going on.")]), user("and?")];
    assert_eq!(broken(FORMAT, &failed), [("AN1", 0)], "one of a compaction that failed stands for nothing");
    assert_eq!(repaired(FORMAT, &failed).len(), 3);
    let late = [says(&[text("Going on."), compaction()]), user("and?")];
    assert_eq!(broken(FORMAT, &late), [("AN1", 0)]);
    let empty = [user("go"), says(&[json!({ "type": "compaction", "content": "" }), text("Yes.")])];
    assert_eq!(broken(FORMAT, &empty), [("AN7", 1)]);
    let misplaced = [user("go"), gets(&[compaction(), text("hm")]), says(&[text("Yes.")])];
    assert_eq!(broken(FORMAT, &misplaced), [("AN7", 1)]);
    assert_eq!(repaired(FORMAT, &misplaced)[1], gets(&[text("hm")]));
}

#[test]
fn an7_a_signed_compaction_block_comes_first() {
    for first in [says(&[signed_compaction()]), gets(&[signed_compaction(), text("and?")])] {
        let history = [first, says(&[thinking(), text("Going on.")]), user("ok")];
        assert_eq!(broken(FORMAT, &history), []);
        let strictly = broken_strictly(FORMAT, &history);
        assert!(strictly.iter().all(|(rule, _)| *rule == "AN1"), "neighbours of one role: {strictly:?}");
    }
    let history = [
        user("go"),
        says(&[thinking(), call("a")]),
        gets(&[result("a")]),
        says(&[signed_compaction()]),
        says(&[thinking(), text("Going on.")]),
        user("ok"),
    ];
    assert_eq!(broken(FORMAT, &history), [("AN7", 3)]);
    assert_eq!(
        repaired(FORMAT, &history),
        history[3..],
        "the thinking behind it is not bound to what it stands for"
    );
    let (_, changes) = with(&history, |messages| FORMAT.rules().repair(messages));
    let told: Vec<_> = changes.iter().map(|change| (change.rule, change.index)).collect();
    assert_eq!(told, [("AN7", 0), ("AN7", 1), ("AN7", 2), ("AN7", 3)]);
    // The newest one stands for the earlier ones too; what is before it in its own message goes as well.
    let twice = [
        says(&[signed_compaction()]),
        user("more"),
        says(&[text("Yes."), signed_compaction(), thinking(), text("Now.")]),
        user("ok"),
    ];
    assert_eq!(broken(FORMAT, &twice), [("AN7", 2)]);
    assert_eq!(repaired(FORMAT, &twice), [says(&[signed_compaction(), text("Now.")]), user("ok")]);
}

#[test]
fn what_is_damaged_is_mended_for_good() {
    mends_what_is_damaged(FORMAT);
}

#[test]
fn generated_histories_are_valid_and_say_what_they_are() {
    let mut kinds = std::collections::BTreeSet::new();
    for seed in 0..500 {
        let history = histories::valid(FORMAT, &mut Rng::with_seed(seed));
        assert!((2..=30).contains(&history.len()), "seed {seed}: {}", history.len());
        assert_eq!(problems(FORMAT, &history, false), [], "seed {seed}");
        assert_eq!(with(&history, detect).unwrap(), FORMAT, "seed {seed}");
        let blocks = history.iter().filter_map(|message| message["content"].as_array()).flatten();
        kinds.extend(blocks.map(|block| block["type"].as_str().unwrap().to_owned()));
    }
    assert!(kinds.len() > 15, "{kinds:?}");
}

fn system(text: &str) -> Value {
    json!({ "role": "system", "content": text })
}

/// What the API says of it in 400s: a system message "must follow a 'user' message or an 'assistant' message ending in a
/// server tool result", and "must precede an 'assistant' message or end the array".
#[test]
fn f3_instructions_stand_behind_the_user_and_before_the_model() {
    let (a, b, s, t) = (says(&[text("A.")]), says(&[text("B.")]), system("s"), system("t"));
    let search = json!({ "type": "server_tool_use", "id": "w", "name": "web_search", "input": {} });
    let found = json!({ "type": "web_search_tool_result", "tool_use_id": "w", "content": [] });
    let (pauses, ends) = (says(std::slice::from_ref(&search)), says(std::slice::from_ref(&found)));
    let searched = says(&[search, found]);
    let may = [
        vec![user("u"), s.clone()],
        vec![user("u"), s.clone(), a.clone()],
        vec![user("u"), s.clone(), t.clone(), a.clone()],
        vec![user("u"), a.clone(), user("v"), user("w"), s.clone(), t.clone()],
        vec![user("u"), says(&[call("a")]), gets(&[result("a")]), s.clone(), a.clone()],
        vec![user("u"), searched.clone(), s.clone()],
        vec![user("u"), searched.clone(), s.clone(), a.clone()],
        vec![user("u"), pauses.clone(), s.clone()],
        vec![user("u"), pauses, s.clone(), ends, user("v")],
    ];
    for history in may {
        assert_eq!(broken(FORMAT, &history), [], "{history:?}");
        assert_eq!(repaired(FORMAT, &history), history);
    }
    // Behind the turn of the user that follows: no text is lost, no message changed, no call parted from its result.
    let moved = [
        (vec![user("u"), s.clone(), user("v"), a.clone()], vec![0, 2, 1, 3]),
        (vec![user("u"), s.clone(), t.clone(), user("v"), user("w"), a.clone()], vec![0, 3, 4, 1, 2, 5]),
        (vec![user("u"), a.clone(), s.clone(), user("v")], vec![0, 1, 3, 2]),
        (vec![user("u"), searched, s.clone(), user("v")], vec![0, 1, 3, 2]),
        (vec![user("u"), s.clone(), user("v"), t.clone(), user("w")], vec![0, 2, 4, 1, 3]),
        (
            vec![user("u"), says(&[call("a")]), s.clone(), gets(&[result("a")]), a.clone()],
            vec![0, 1, 3, 2, 4],
        ),
    ];
    for (history, order) in moved {
        assert_ne!(broken(FORMAT, &history), [], "{history:?}");
        let expected: Vec<Value> = order.into_iter().map(|at: usize| history[at].clone()).collect();
        assert_eq!(repaired(FORMAT, &history), expected);
    }
    // Where no turn of the user follows they are said where they stand, by the user.
    let said = [
        (vec![user("u"), a.clone(), s.clone()], vec![user("u"), a.clone(), user("s")]),
        (
            vec![user("u"), a.clone(), s.clone(), t, b.clone()],
            vec![user("u"), a.clone(), user("s"), user("t"), b.clone()],
        ),
    ];
    for (history, expected) in said {
        assert!(broken(FORMAT, &history).contains(&("AN1", 2)), "{history:?}");
        assert_eq!(repaired(FORMAT, &history), expected);
    }
    let sets = json!({ "role": "system", "content": "s", "clear_at": "next_user_message", "output_config": {}, "x": 1 });
    assert_eq!(
        repaired(FORMAT, &[user("u"), a.clone(), sets])[2],
        json!({ "role": "user", "content": "s", "x": 1 }),
        "without what only the system may set"
    );
    // What other mends make needless is left.
    let thinks = [user("u"), a, user("v"), says(&[thinking()]), s.clone(), b.clone()];
    let unanswered = [user("u"), says(&[call("a")]), s.clone(), b.clone()];
    assert_eq!(repaired(FORMAT, &thinks)[3..], [s.clone(), b.clone()]);
    assert_eq!(repaired(FORMAT, &unanswered), [user("u"), s, b]);
}

#[test]
fn f3_what_only_sets_how_answers_are_made_may_stand_anywhere() {
    let effort = json!({ "role": "system", "content": [], "output_config": { "effort": "low" } });
    let history = [
        effort.clone(),
        user("go"),
        says(&[call("a")]),
        effort.clone(),
        gets(&[result("a")]),
        says(&[text("Done.")]),
        effort.clone(),
        effort.clone(),
        user("ok"),
    ];
    assert_eq!(broken(FORMAT, &history), []);
    assert_eq!(repaired(FORMAT, &history), history);
    let empty = [user("go"), json!({ "role": "system", "content": [] }), says(&[text("Done.")])];
    assert_eq!(broken(FORMAT, &empty), [("AN5", 1)]);
    let speaks = [
        user("go"),
        says(&[text("Done.")]),
        json!({ "role": "system", "content": "x", "output_config": {} }),
    ];
    assert_eq!(broken(FORMAT, &speaks), [("AN1", 2)]);
}
