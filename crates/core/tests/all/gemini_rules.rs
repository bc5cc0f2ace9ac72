//! The rules of Gemini: a history that keeps each, one that breaks it, and its repair.

use context_compactor_core::message::Exchanges;
use context_compactor_core::wire::{Format, Problem, Repaired, detect, parse};
use context_compactor_store_tests::histories;
use fastrand::Rng;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const GEMINI: Format = Format::Gemini;

fn with<T>(history: &Value, run: impl FnOnce(&[serde_json_borrow::Value<'_>]) -> T) -> T {
    let texts: Vec<String> = history.as_array().unwrap().iter().map(Value::to_string).collect();
    let messages: Vec<_> = texts.iter().enumerate().map(|(i, text)| parse(i, text).unwrap()).collect();
    run(&messages)
}

fn problems(history: &Value, strict: bool) -> Vec<Problem> {
    with(history, |messages| GEMINI.rules().validate(messages, strict))
}

/// The rules broken, with the index of the message.
fn broken(history: &Value) -> Vec<(&'static str, usize)> {
    problems(history, false).into_iter().map(|problem| (problem.rule, problem.index)).collect()
}

fn broken_strictly(history: &Value) -> Vec<(&'static str, usize)> {
    problems(history, true).into_iter().map(|problem| (problem.rule, problem.index)).collect()
}

fn once(history: &Value) -> (Value, Vec<Problem>) {
    with(history, |messages| {
        let (repaired, changes) = GEMINI.rules().repair(messages);
        let message = |message| match message {
            Repaired::Keep(index) => history[index].clone(),
            Repaired::Replace { json, .. } => serde_json::from_str(&json).unwrap(),
        };
        (repaired.into_iter().map(message).collect(), changes)
    })
}

/// The repaired history, after asserting that it is valid and that repairing it again changes nothing.
fn repaired(history: &Value) -> Value {
    let (result, _) = once(history);
    assert_eq!(problems(&result, false), [], "repaired: {result}");
    assert_eq!(once(&result), (result.clone(), vec![]), "a repaired history is left alone");
    result
}

/// The rules that a repair mends, with the index of the message.
fn changed(history: &Value) -> Vec<(&'static str, usize)> {
    once(history).1.into_iter().map(|change| (change.rule, change.index)).collect()
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "parts": [{ "text": text }] })
}
fn model(text: &str) -> Value {
    json!({ "role": "model", "parts": [{ "text": text }] })
}
fn call(name: &str) -> Value {
    json!({ "functionCall": { "name": name, "args": { "path": "a" } } })
}
fn signed(mut part: Value) -> Value {
    part["thoughtSignature"] = json!("c2ln");
    part
}
fn with_id(mut part: Value, id: &str) -> Value {
    let key = if part.get("functionCall").is_some() { "functionCall" } else { "functionResponse" };
    part[key]["id"] = json!(id);
    part
}
fn response(name: &str) -> Value {
    json!({ "functionResponse": { "name": name, "response": { "output": "done" } } })
}
fn calls(parts: &[Value]) -> Value {
    json!({ "role": "model", "parts": parts })
}
fn responses(parts: &[Value]) -> Value {
    json!({ "role": "user", "parts": parts })
}

#[test]
fn a_valid_history_breaks_nothing() {
    let history = json!([
        user("go"),
        calls(&[json!({ "text": "Let me see.", "thought": true }), signed(call("read")), call("grep")]),
        responses(&[response("grep"), response("read"), json!({ "text": "and hurry" })]),
        { "role": "model", "parts": [{ "function_call": { "name": "read" }, "thought_signature": "c2ln" }] },
        { "role": "function", "parts": [{ "function_response": { "name": "read", "response": {} } }] },
        { "role": "model", "parts": [
            { "executableCode": { "language": "PYTHON", "code": "1" } },
            { "codeExecutionResult": { "outcome": "OUTCOME_OK", "output": "1" } },
            { "text": "Done." },
            { "text": "", "thoughtSignature": "c2ln" },
        ] },
        { "parts": [{ "text": "thanks" }, { "fileData": { "fileUri": "files/a", "mimeType": "video/mp4" } }] },
    ]);
    assert_eq!(broken_strictly(&history), []);
    assert_eq!(repaired(&history), history);
}

#[test]
fn gm0_what_cannot_be_read_is_named_and_dropped() {
    let bad = [
        json!({ "role": "system", "parts": [{ "text": "Be brief." }] }),
        json!({ "role": "user" }),
        json!({ "role": "user", "parts": "hi" }),
        json!({ "role": "user", "parts": ["hi"] }),
        json!({ "role": "user", "parts": [{ "text": 5 }] }),
        json!({ "role": "model", "parts": [{ "functionCall": { "args": {} } }] }),
        json!({ "role": "model", "parts": [{ "functionCall": "read" }] }),
        json!({ "role": "user", "parts": [{ "functionResponse": { "name": "read", "id": 5, "response": {} } }] }),
    ];
    for message in bad {
        let history = json!([user("go"), message, model("ok")]);
        assert_eq!(broken(&history), [("GM0", 1)], "{message}");
        assert_eq!(repaired(&history), json!([user("go"), model("ok")]));
    }
}

// lesson: Unicode cuts
#[test]
fn gm0_lone_surrogates_are_replaced() {
    let lone = json!({ "$cc": "utf16", "v": "QQAA2A==" });
    let history = json!([
        { "role": "user", "parts": [{ "text": lone }] },
        calls(&[call("read")]),
        responses(&[json!({ "functionResponse": { "name": "read", "response": { "output": lone } } })]),
    ]);
    assert_eq!(broken(&history), [("GM0", 0), ("GM0", 2)]);
    let mended = repaired(&history);
    assert_eq!(mended[0]["parts"][0]["text"], "A\u{FFFD}");
    assert_eq!(mended[2]["parts"][0]["functionResponse"]["response"]["output"], "A\u{FFFD}");
}

// lesson: role order
#[test]
fn gm1_the_user_begins() {
    let history = json!([model("Hello!"), user("go")]);
    assert_eq!(broken(&history), [("GM1", 0)]);
    let mended = repaired(&history);
    assert_eq!((&mended[0]["role"], &mended[1]), (&json!("user"), &history[0]));
    assert_eq!(mended[0].as_object().unwrap().len(), 2, "no stray key");

    let history = json!([calls(&[signed(call("read"))]), responses(&[response("read")]), model("ok")]);
    assert_eq!(broken(&history), [("GM1", 0)]);
    assert_eq!(repaired(&history).as_array().unwrap().len(), 4);
    let apart = json!([model("Hello!"), calls(&[call("read")]), responses(&[response("read")])]);
    assert_eq!(changed(&apart), [("GM1", 0), ("GM3", 1)], "one opening");
    assert_eq!(repaired(&apart).as_array().unwrap().len(), 3);
    // Results of what is gone go first, and then nothing may be left to open.
    assert_eq!(repaired(&json!([responses(&[response("read")])])), json!([]));
}

#[test]
fn gm1_alternation_and_the_end_are_strict() {
    let history = json!([user("go"), user("now"), model("ok"), model("so")]);
    assert_eq!(broken(&history), []);
    assert_eq!(broken_strictly(&history), [("GM1", 1), ("GM1", 3), ("GM1", 3)]);
}

// lesson: orphaned tool pairs
#[test]
fn gm2_every_call_has_one_response_at_once() {
    let pending = json!([user("go"), calls(&[call("read")])]);
    assert_eq!(broken(&pending), [("GM2", 1)]);
    assert_eq!(repaired(&pending), json!([user("go")]));

    let left =
        json!([user("go"), calls(&[signed(call("a")), call("b")]), responses(&[response("a")]), model("ok")]);
    assert_eq!(broken(&left), [("GM2", 1)]);
    let mended = json!([user("go"), calls(&[signed(call("a"))]), responses(&[response("a")]), model("ok")]);
    assert_eq!(repaired(&left), mended);

    let late = json!([
        user("go"),
        calls(&[call("a")]),
        model("hm"),
        user("well?"),
        model("so"),
        responses(&[response("a")])
    ]);
    assert_eq!(broken(&late), [("GM2", 1), ("GM3", 2), ("GM2", 5)]);
    assert_eq!(repaired(&late), json!([user("go"), model("hm"), user("well?"), model("so")]));
}

#[test]
fn gm2_responses_answer_the_calls_before() {
    let orphan = json!([user("go"), model("ok"), responses(&[response("a")]), model("so")]);
    assert_eq!(broken(&orphan), [("GM2", 2)]);
    assert_eq!(repaired(&orphan), json!([user("go"), model("ok"), model("so")]));

    let twice = json!([user("go"), calls(&[call("a")]), responses(&[response("a"), response("a")])]);
    assert_eq!(broken(&twice), [("GM2", 2)]);
    assert_eq!(repaired(&twice), json!([user("go"), calls(&[call("a")]), responses(&[response("a")])]));

    let other = json!([user("go"), calls(&[call("a")]), responses(&[response("b")]), model("ok")]);
    assert_eq!(broken(&other), [("GM2", 1), ("GM2", 2)]);
    assert_eq!(repaired(&other), json!([user("go"), model("ok")]));
}

#[test]
fn gm2_ids_count_where_both_have_one() {
    let ask =
        |parts: [Value; 2], answers: [Value; 2]| json!([user("go"), calls(&parts), responses(&answers)]);
    let [a, b] = ["1", "2"].map(|id| with_id(call("a"), id));
    let [ra, rb] = ["1", "2"].map(|id| with_id(response("a"), id));
    for (parts, answers) in [
        ([a.clone(), b.clone()], [rb.clone(), ra.clone()]),
        ([a.clone(), b.clone()], [response("a"), ra.clone()]),
        ([a.clone(), b.clone()], [response("a"), response("a")]),
        ([a.clone(), call("a")], [response("a"), with_id(response("a"), "7")]),
        ([call("a"), a.clone()], [response("a"), with_id(response("a"), "7")]),
        ([call("a"), call("a")], [rb.clone(), ra.clone()]),
    ] {
        let history = ask(parts, answers);
        assert_eq!(broken(&history), [], "{history}");
    }
    let wrong = ask([a.clone(), b], [ra.clone(), with_id(response("a"), "7")]);
    assert_eq!(broken(&wrong), [("GM2", 1), ("GM2", 2)]);
    assert_eq!(repaired(&wrong), json!([user("go"), calls(&[a]), responses(&[ra])]));
}

#[test]
fn gm2_responses_stand_first_and_together() {
    let prose = json!({ "text": "look" });
    let mixed = json!([user("go"), calls(&[call("a")]), responses(&[prose.clone(), response("a")])]);
    assert_eq!(broken(&mixed), [("GM2", 2)]);
    let mended = json!([user("go"), calls(&[call("a")]), responses(&[response("a"), prose.clone()])]);
    assert_eq!(repaired(&mixed), mended);

    let apart = json!([
        user("go"),
        calls(&[call("a"), call("b")]),
        responses(&[response("a")]),
        user("wait"),
        responses(&[response("b"), prose.clone()]),
    ]);
    assert_eq!(broken(&apart), [("GM2", 4)]);
    let joined = responses(&[response("a"), response("b")]);
    let mended =
        json!([user("go"), calls(&[call("a"), call("b")]), joined, user("wait"), responses(&[prose])]);
    assert_eq!(repaired(&apart), mended);

    let one_each = json!([
        user("go"),
        calls(&[call("a"), call("b")]),
        responses(&[response("a")]),
        responses(&[response("b")]),
        model("ok"),
    ]);
    assert_eq!(broken(&one_each), [("GM2", 3)]);
    let joined = responses(&[response("a"), response("b")]);
    assert_eq!(repaired(&one_each), json!([user("go"), calls(&[call("a"), call("b")]), joined, model("ok")]));
    assert_eq!(changed(&one_each), [("GM2", 3)], "told once, with all that it takes");
}

#[test]
fn gm2_each_half_stands_in_its_role() {
    let history = json!([
        responses(&[json!({ "text": "go" }), call("a")]),
        calls(&[json!({ "text": "ok" }), response("a")])
    ]);
    assert_eq!(broken(&history), [("GM2", 0), ("GM2", 1)]);
    assert_eq!(repaired(&history), json!([user("go"), model("ok")]));
}

#[test]
fn gm3_calls_follow_the_user() {
    let history =
        json!([user("go"), model("I look."), calls(&[signed(call("a"))]), responses(&[response("a")])]);
    assert_eq!(broken(&history), [("GM3", 2)]);
    let joined = calls(&[json!({ "text": "I look." }), signed(call("a"))]);
    assert_eq!(repaired(&history), json!([user("go"), joined, responses(&[response("a")])]));

    let apart = json!([
        user("go"),
        calls(&[call("a")]),
        calls(&[call("b")]),
        model("Now?"),
        responses(&[response("a"), response("b")]),
    ]);
    assert_eq!(broken(&apart), [("GM3", 2)]);
    let joined = calls(&[call("a"), call("b"), json!({ "text": "Now?" })]);
    assert_eq!(repaired(&apart), json!([user("go"), joined, responses(&[response("a"), response("b")])]));
}

// lesson: reasoning and call coupling
#[test]
fn gm4_signatures_of_the_current_turn_are_strict() {
    let old = [user("go"), calls(&[call("a")]), responses(&[response("a")]), model("ok")];
    let mut history: Vec<Value> = old.to_vec();
    history.extend([
        user("more"),
        calls(&[signed(call("a")), call("b")]),
        responses(&[response("b"), response("a")]),
    ]);
    assert_eq!(broken_strictly(&json!(history)), [], "old turns and parallel calls need none");
    history.extend([calls(&[call("a")]), responses(&[response("a")])]);
    assert_eq!(broken(&json!(history)), [], "older models sign nothing");
    assert_eq!(broken_strictly(&json!(history)), [("GM4", 7)]);
    history[7]["parts"][0]["thoughtSignature"] = json!("skip_thought_signature_validator");
    assert_eq!(broken_strictly(&json!(history)), []);
    history[7]["parts"][0]["thoughtSignature"] = json!("");
    assert_eq!(broken_strictly(&json!(history)), [("GM4", 7)]);
}

#[test]
fn gm4_a_repair_leaves_no_step_unsigned() {
    let history = json!([user("go"), calls(&[signed(call("a")), call("b")]), responses(&[response("b")])]);
    assert_eq!(broken(&history), [("GM2", 1)]);
    let mended = repaired(&history);
    assert_eq!(mended[1]["parts"][0]["thoughtSignature"], "skip_thought_signature_validator");
    assert_eq!(broken_strictly(&mended), []);
    let snake = json!([
        user("go"),
        calls(&[
            json!({ "function_call": { "name": "a" }, "thought_signature": "c2ln" }),
            json!({ "function_call": { "name": "b" } }),
        ]),
        responses(&[response("b")]),
    ]);
    assert_eq!(repaired(&snake)[1]["parts"][0]["thought_signature"], "skip_thought_signature_validator");
    // Nothing is signed for models that sign nothing.
    let unsigned = json!([user("go"), calls(&[call("a"), call("b")]), responses(&[response("b")])]);
    assert_eq!(repaired(&unsigned)[1], calls(&[call("b")]));
}

#[test]
fn s1_15_reasoning_goes_with_its_last_call() {
    let thought = json!({ "text": "Which file?", "thought": true });
    let history = json!([user("go"), calls(&[thought.clone(), signed(call("a"))])]);
    assert_eq!(repaired(&history), json!([user("go")]));
    let speaking = json!([user("go"), calls(&[thought.clone(), json!({ "text": "I look." }), call("a")])]);
    assert_eq!(repaired(&speaking), json!([user("go"), calls(&[thought, json!({ "text": "I look." })])]));
}

#[test]
fn gm5_s1_15_args_are_objects() {
    for args in [json!("{\"path\":\"a\"}"), json!([1]), json!(5)] {
        let mut bad = call("a");
        bad["functionCall"]["args"] = args;
        let history =
            json!([user("go"), calls(&[bad, call("b")]), responses(&[response("a"), response("b")])]);
        assert_eq!(broken(&history), [("GM5", 1)]);
        assert_eq!(repaired(&history), json!([user("go"), calls(&[call("b")]), responses(&[response("b")])]));
    }
    let mut none = call("a");
    none["functionCall"]["args"] = Value::Null;
    assert_eq!(broken(&json!([user("go"), calls(&[none]), responses(&[response("a")])])), []);
}

#[test]
fn gm5_responses_are_objects() {
    let shapes = [
        (json!("plain"), json!({ "output": "plain" })),
        (json!([1, "two"]), json!({ "output": [1, "two"] })),
        (Value::Null, json!({})),
    ];
    for (given, object) in shapes {
        let mut bad = response("a");
        bad["functionResponse"]["response"] = given;
        let mut good = response("a");
        good["functionResponse"]["response"] = object;
        let history = json!([user("go"), calls(&[call("a")]), responses(&[bad])]);
        assert_eq!(broken(&history), [("GM5", 2)]);
        assert_eq!(repaired(&history), json!([user("go"), calls(&[call("a")]), responses(&[good])]));
    }
    let missing = json!({ "functionResponse": { "name": "a" } });
    let history = json!([user("go"), calls(&[call("a")]), responses(&[missing])]);
    assert_eq!(broken(&history), [("GM5", 2)]);
    assert_eq!(repaired(&history)[2]["parts"][0]["functionResponse"]["response"], json!({}));
}

#[test]
fn gm5_nothing_is_empty() {
    let none = json!([user("go"), { "role": "model", "parts": [] }, user("hello?")]);
    assert_eq!(broken(&none), [("GM5", 1)]);
    assert_eq!(repaired(&none), json!([user("go"), user("hello?")]));

    let holes = json!([user("go"), { "role": "model", "parts": [{}, { "text": "ok" }, { "thoughtSignature": "c2ln" }] }]);
    assert_eq!(broken(&holes), [("GM5", 1), ("GM5", 1)]);
    assert_eq!(repaired(&holes), json!([user("go"), model("ok")]));

    // Vertex AI refuses an empty text, the Gemini API takes it.
    let empty = json!([user("go"), model(""), user("hello?")]);
    assert_eq!(broken(&empty), []);
    assert_eq!(broken_strictly(&empty), [("GM5", 1)]);
}

#[test]
fn gm5_unknown_fields_are_strict() {
    let history = json!([{ "role": "user", "parts": [{ "text": "go" }], "createdAt": 5 }]);
    assert_eq!(broken(&history), []);
    assert_eq!(broken_strictly(&history), [("GM5", 0)]);
}

#[test]
fn a_repair_changes_nothing_else() {
    let note = json!({ "한국어": ["שלום", "👩‍👩‍👧"] });
    let mut kept = signed(call("a"));
    kept["x_part"] = note.clone();
    kept["functionCall"]["x_call"] = note.clone();
    let history = json!([
        user("go"),
        { "role": "model", "parts": [kept, call("b")], "x_message": note },
        { "role": "user", "parts": [response("a")], "x_message": note },
    ]);
    let mut expected = history.clone();
    expected[1]["parts"].as_array_mut().unwrap().pop();
    assert_eq!(repaired(&history), expected);
}

#[test]
fn problems_say_what_to_do() {
    let mut bad = call("a");
    bad["functionCall"]["args"] = json!("{}");
    for history in [
        json!([model("hi"), calls(&[call("a")])]),
        json!([user("go"), model("so"), calls(&[bad])]),
        json!([user("go"), { "role": "model", "parts": [{}] }, responses(&[response("a")])]),
    ] {
        for problem in problems(&history, true) {
            let acts = ["remove", "join", "put", "move", "make", "keep", "must"];
            assert!(acts.iter().any(|act| problem.message.contains(act)), "{problem:?}");
        }
    }
}

#[test]
fn long_broken_histories_take_linear_time() {
    let mut bad = call("a");
    bad["functionCall"]["args"] = json!("{}");
    let patterns = [
        vec![calls(&[call("a")])],
        vec![responses(&[response("a")])],
        vec![
            calls(&[call("a")]),
            responses(&[json!({ "text": "x" }), response("a")]),
            model("so"),
            calls(&[bad]),
        ],
        vec![
            user("go"),
            json!({ "role": "model", "parts": [] }),
            json!({ "role": "system" }),
            calls(&[call("b")]),
        ],
    ];
    let mut histories: Vec<Value> =
        patterns.iter().map(|pattern| pattern.iter().cycle().take(50_000).cloned().collect()).collect();
    // One turn of 25,000 calls, each a message, and as many responses.
    let halves = std::iter::repeat_n(calls(&[call("a")]), 25_000)
        .chain(std::iter::repeat_n(responses(&[response("a")]), 25_000));
    histories.push(std::iter::once(user("go")).chain(halves).collect());
    for history in histories {
        let start = Instant::now();
        let (result, changes) = once(&history);
        assert_eq!(problems(&result, false), []);
        assert!(!changes.is_empty());
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    }
}

#[test]
fn generated_histories_are_valid() {
    let (mut lengths, mut signed, mut parallel) = (0, 0, 0);
    for seed in 0..500 {
        let history = Value::from(histories::valid(GEMINI, &mut Rng::with_seed(seed)));
        assert_eq!(problems(&history, false), [], "seed {seed}: {history}");
        assert_eq!(once(&history), (history.clone(), vec![]), "seed {seed}");
        with(&history, |messages| {
            assert_eq!(detect(messages).unwrap(), GEMINI, "seed {seed}");
            let wire = GEMINI.wire();
            let read: Vec<_> = messages.iter().map(|message| wire.read(0, message).unwrap()).collect();
            let exchanges = Exchanges::of(&read);
            assert_eq!(
                (exchanges.unanswered, exchanges.orphaned),
                (vec![], vec![]),
                "seed {seed}: {history}"
            );
            lengths += read.len();
            parallel += read.iter().filter(|message| message.calls().count() > 1).count();
        });
        signed += history.to_string().matches("c2lnbmF0dXJl").count();
    }
    assert!(lengths > 5_000 && signed > 500 && parallel > 200, "{lengths} {signed} {parallel}");
}
