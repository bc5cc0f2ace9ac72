//! What holds for every history: valid ones are left alone, broken ones are mended for good, nothing panics.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use context_compactor_core::message::Part;
use context_compactor_core::wire::{Change, Format, Repaired, Unbound, detect, parse};
use context_compactor_store_tests::conversation::PLAIN;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

type Case = BoxedStrategy<Vec<Value>>;

fn with<T>(history: &[Value], run: impl FnOnce(&[serde_json_borrow::Value<'_>]) -> T) -> T {
    let texts: Vec<String> = history.iter().map(Value::to_string).collect();
    let messages: Vec<_> = texts.iter().enumerate().map(|(i, text)| parse(i, text).unwrap()).collect();
    run(&messages)
}

fn repair(format: Format, history: &[Value]) -> (Vec<Value>, Vec<usize>, Vec<Change>) {
    let (repaired, changes) = with(history, |messages| format.wire().repair(messages));
    let indices = repaired
        .iter()
        .map(|message| match message {
            Repaired::Keep(index) | Repaired::Replace { index, .. } => *index,
        })
        .collect();
    let messages = repaired.iter().map(|message| match message {
        Repaired::Keep(index) => history[*index].clone(),
        Repaired::Replace { json, .. } => serde_json::from_str(json).unwrap(),
    });
    (messages.collect(), indices, changes)
}

fn text() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!("")),
        Just(json!(" \n")),
        Just(json!("hello ")),
        Just(json!("한국어 👩‍👩‍👧 שלום")),
        Just(json!({ "$cc": "utf16", "v": "YQAA2GIA" })),
        Just(json!({ "$cc": "utf16", "v": "IAA=" })),
        Just(json!({ "$cc": "date", "v": "" })),
    ]
}

fn prose() -> impl Strategy<Value = String> {
    "[a-z가-힣😀]{1,12}"
}

fn id() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c"])
}

/// Broken in every way that reading lets pass, and in some that it does not.
mod broken {
    use super::*;

    fn openai_message() -> impl Strategy<Value = Value> {
        let content = || {
            prop_oneof![
                text(),
                Just(Value::Null),
                Just(json!([])),
                Just(json!({ "$cc": "undefined" })),
                Just(json!([{ "type": "text", "text": "hi" }, { "type": "mystery" }])),
                Just(json!([{ "type": "text" }])),
            ]
        };
        let arguments = prop::sample::select(vec!["{}", "{\"a\":1}", "", "[]", "{"]);
        let call = (id(), arguments).prop_map(|(id, arguments)| {
            json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": arguments } })
        });
        prop_oneof![
            1 => (prop::sample::select(vec!["user", "system", "robot"]), content())
                .prop_map(|(role, content)| json!({ "role": role, "content": content, "x": 1 })),
            1 => content().prop_map(|content| json!({ "role": "assistant", "content": content, "tool_calls": [] })),
            3 => (content(), prop::collection::vec(call, 1..4), any::<bool>()).prop_map(|(content, calls, legacy)| {
                let mut message = json!({ "role": "assistant", "content": content, "tool_calls": calls });
                if legacy {
                    message["function_call"] = json!({ "name": "a", "arguments": "{}" });
                }
                message
            }),
            4 => (id(), content()).prop_map(|(id, content)| json!({ "role": "tool", "tool_call_id": id, "content": content })),
            1 => id().prop_map(|name| json!({ "role": "function", "name": name, "content": "x" })),
        ]
    }

    fn anthropic_block() -> impl Strategy<Value = Value> {
        let inner =
            prop::collection::vec(text().prop_map(|text| json!({ "type": "text", "text": text })), 0..3);
        let block = prop_oneof![
            2 => text().prop_map(|text| json!({ "type": "text", "text": text })),
            3 => id().prop_map(|id| json!({ "type": "tool_use", "id": id, "name": "f", "input": { "x": 1 } })),
            2 => id().prop_map(|id| json!({ "type": "tool_result", "tool_use_id": id, "content": "x" })),
            1 => (id(), inner).prop_map(|(id, inner)| json!({ "type": "tool_result", "tool_use_id": id, "content": inner })),
            1 => id().prop_map(|id| json!({ "type": "server_tool_use", "id": id, "name": "w", "input": {} })),
            1 => id().prop_map(|id| json!({ "type": "web_search_tool_result", "tool_use_id": id, "content": [] })),
            1 => Just(json!({ "type": "thinking", "thinking": "hm", "signature": "s" })),
            1 => Just(json!({ "type": "thinking", "thinking": "hm" })),
            1 => Just(json!({ "type": "redacted_thinking", "data": "d" })),
            1 => Just(json!({ "type": "compaction", "content": "c" })),
            1 => Just(json!({ "type": "tool_use", "id": "a" })),
            1 => Just(json!({ "type": "mystery", "data": 1 })),
        ];
        (block, 0..4_u8).prop_map(|(mut block, marked)| {
            if marked == 0 {
                block["cache_control"] = json!({ "type": "ephemeral" });
            }
            block
        })
    }

    fn anthropic_message() -> impl Strategy<Value = Value> {
        let role = prop::sample::select(vec!["user", "assistant", "user", "assistant", "system", "robot"]);
        let content = prop_oneof![
            1 => text(),
            5 => prop::collection::vec(anthropic_block(), 0..5).prop_map(Value::from),
        ];
        (role, content).prop_map(|(role, content)| json!({ "role": role, "content": content, "x": 1 }))
    }

    pub(super) fn history(format: Format) -> Case {
        match format {
            Format::OpenaiChat => prop::collection::vec(openai_message(), 0..14).boxed(),
            _ => prop::collection::vec(anthropic_message(), 0..10).boxed(),
        }
    }
}

/// As an agent would write them: parallel calls, thinking, media, unknown blocks, mixed content.
mod valid {
    use super::*;

    #[derive(Debug)]
    struct Turn {
        user: String,
        steps: Vec<(Option<String>, usize, bool)>,
        answer: String,
    }

    fn turns() -> impl Strategy<Value = Vec<Turn>> {
        let step = (prop::option::of(prose()), 1..4_usize, any::<bool>());
        let turn = (prose(), prop::collection::vec(step, 0..3), prose());
        prop::collection::vec(turn.prop_map(|(user, steps, answer)| Turn { user, steps, answer }), 1..5)
    }

    // The same ids in every step: they are unique within one only.
    fn ids(count: usize) -> impl Iterator<Item = String> {
        (0..count).map(|n| format!("call_{n}"))
    }

    fn openai(turns: Vec<Turn>) -> Vec<Value> {
        let mut history = vec![json!({ "role": "system", "content": "Be brief." })];
        for Turn { user, steps, answer } in turns {
            let image = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } });
            history.push(json!({ "role": "user", "content": [{ "type": "text", "text": user }, image] }));
            for (prose, count, rich) in steps {
                let calls: Vec<Value> = ids(count)
                    .map(|id| json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": "{}" } }))
                    .collect();
                history.push(json!({ "role": "assistant", "content": prose, "tool_calls": calls, "mine": { "x": [] } }));
                let content = if rich {
                    json!([{ "type": "text", "text": "x" }, { "type": "new" }])
                } else {
                    json!("")
                };
                // Answers in any order.
                let answers: Vec<Value> = ids(count)
                    .map(|id| json!({ "role": "tool", "tool_call_id": id, "content": content }))
                    .collect();
                history.extend(answers.into_iter().rev());
            }
            history.push(json!({ "role": "assistant", "content": answer }));
        }
        history
    }

    fn anthropic(turns: Vec<Turn>) -> Vec<Value> {
        let mut history = Vec::new();
        for Turn { user, steps, answer } in turns {
            history.push(json!({ "role": "user", "content": user }));
            for (prose, count, rich) in steps {
                let mut says = vec![json!({ "type": "thinking", "thinking": "hm", "signature": "s" })];
                says.extend(prose.map(|prose| json!({ "type": "text", "text": prose })));
                if rich {
                    says.push(
                        json!({ "type": "server_tool_use", "id": "w", "name": "web_search", "input": {} }),
                    );
                    says.push(json!({ "type": "web_search_tool_result", "tool_use_id": "w", "content": [] }));
                    says.push(json!({ "type": "new", "data": "?" }));
                }
                says.extend(
                    ids(count).map(|id| json!({ "type": "tool_use", "id": id, "name": "f", "input": {} })),
                );
                history.push(json!({ "role": "assistant", "content": says }));
                let image = json!({ "type": "image", "source": { "type": "base64", "data": "AAAA" } });
                let mut gets: Vec<Value> = ids(count)
                    .map(|id| json!({ "type": "tool_result", "tool_use_id": id, "content": [image], "is_error": rich }))
                    .collect();
                if rich {
                    gets.push(json!({ "type": "text", "text": "and hurry" }));
                }
                history.push(json!({ "role": "user", "content": gets }));
            }
            history.push(json!({ "role": "assistant", "content": [{ "type": "text", "text": answer }] }));
        }
        history
    }

    pub(super) fn history(format: Format) -> Case {
        match format {
            Format::OpenaiChat => turns().prop_map(openai).boxed(),
            _ => turns().prop_map(anthropic).boxed(),
        }
    }
}

fn case(history: fn(Format) -> Case) -> impl Strategy<Value = (Format, Vec<Value>)> {
    prop::sample::select(PLAIN.to_vec()).prop_flat_map(move |format| (Just(format), history(format)))
}

/// Any JSON object, made of words that formats use.
fn anything() -> impl Strategy<Value = Value> {
    let words = || {
        prop::sample::select(vec![
            "role",
            "content",
            "type",
            "text",
            "tool_calls",
            "id",
            "function",
            "arguments",
            "name",
            "user",
            "assistant",
            "tool",
            "tool_use",
            "tool_result",
            "tool_use_id",
            "input",
            "thinking",
            "source",
            "data",
            "$cc",
            "v",
            "utf16",
            "undefined",
            "object",
            "bytes",
            "image_url",
            "url",
            "data:a;base64,=",
            "reasoning",
        ])
    };
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        words().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(words().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    });
    prop::collection::btree_map(words().prop_map(str::to_owned), tree, 0..6).prop_map(|mut fields| {
        fields.entry("role".to_owned()).or_insert_with(|| json!("user"));
        Value::Object(fields.into_iter().collect())
    })
}

#[test]
fn long_broken_histories_take_linear_time() {
    let openai = [
        json!({ "role": "assistant", "content": "x", "tool_calls": [
            { "id": "a", "function": { "name": "f", "arguments": "{}" } },
            { "id": "b", "function": { "name": "f", "arguments": "{" } }] }),
        json!({ "role": "tool", "tool_call_id": "b", "content": "x" }),
        json!({ "role": "user", "content": null }),
    ];
    let anthropic = [
        json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "x" }, { "type": "text", "text": "x" }] }),
        json!({ "role": "assistant", "content": [
            { "type": "thinking", "thinking": "x", "signature": "s" }, { "type": "text", "text": "" },
            { "type": "server_tool_use", "id": "w", "name": "w", "input": {} },
            { "type": "tool_use", "id": "a", "name": "f", "input": {} }] }),
    ];
    for (format, pattern) in [(Format::OpenaiChat, &openai[..]), (Format::Anthropic, &anthropic[..])] {
        let history: Vec<Value> = pattern.iter().cycle().take(50_000).cloned().collect();
        let start = Instant::now();
        let (mended, _, changes) = repair(format, &history);
        assert!(!changes.is_empty() && !mended.is_empty());
        assert!(start.elapsed() < Duration::from_secs(30), "{format:?}: {:?}", start.elapsed());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn a_repaired_history_is_valid_and_stays_as_it_is((format, history) in case(broken::history)) {
        let (mended, indices, changes) = repair(format, &history);
        let problems = with(&mended, |messages| format.wire().validate(messages, false));
        prop_assert_eq!(&problems, &[], "{:?} of {}", mended, Value::from(history.clone()));
        prop_assert!(indices.is_sorted(), "messages keep their order");
        let broken = !with(&history, |messages| format.wire().validate(messages, false)).is_empty();
        prop_assert_eq!(broken, !changes.is_empty(), "what is broken is mended and told, what is not is not");
        let (again, _, changes) = repair(format, &mended);
        prop_assert_eq!((again, changes), (mended, vec![]));
    }

    #[test]
    fn a_valid_history_is_left_alone((format, history) in case(valid::history)) {
        let problems = with(&history, |messages| format.wire().validate(messages, false));
        prop_assert_eq!(problems, []);
        let (repaired, changes) = with(&history, |messages| format.wire().repair(messages));
        prop_assert_eq!(repaired, (0..history.len()).map(Repaired::Keep).collect::<Vec<_>>());
        prop_assert_eq!(changes, []);
        prop_assert_eq!(with(&history, detect).is_ok(), true);
    }

    #[test]
    fn a_hole_in_a_valid_history_costs_no_more_than_its_exchange(
        (format, history) in case(valid::history), at in any::<prop::sample::Index>(),
    ) {
        let mut cut = history;
        cut.remove(at.index(cut.len()));
        let (mended, _, _) = repair(format, &cut);
        // An exchange of the generator has at most three results and one call; anthropic's opening may be added.
        prop_assert!(mended.len() + 4 >= cut.len(), "{} of {}", mended.len(), cut.len());
    }

    #[test]
    fn the_text_of_each_result_can_be_replaced((format, history) in case(valid::history)) {
        with(&history, |messages| {
            for (index, message) in messages.iter().enumerate() {
                let read = format.wire().read(index, message).unwrap();
                let count = read.results().count();
                prop_assert!(format.wire().with_result_text(message, count, "x").is_none());
                for nth in 0..count {
                    let json = format.wire().with_result_text(message, nth, "new \u{1F600}").unwrap();
                    let edited = parse(index, &json).unwrap();
                    let edited = format.wire().read(index, &edited).unwrap();
                    let mut expected = read.clone();
                    let result = expected.parts.iter_mut().filter_map(|part| match part {
                        Part::ToolResult(result) => Some(result),
                        _ => None,
                    }).nth(nth).unwrap();
                    result.text = "new \u{1F600}".into();
                    prop_assert_eq!(expected, edited);
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn nothing_panics_whatever_comes_in(history in prop::collection::vec(anything(), 0..4)) {
        with(&history, |messages| {
            let _ = detect(messages);
            for format in PLAIN {
                for (index, message) in messages.iter().enumerate() {
                    let read = format.wire().read(index, message);
                    prop_assert!(read.is_ok() || read.is_err_and(|error| error.index == Some(index)));
                    let _ = format.wire().with_result_text(message, 0, "x");
                    if let Unbound::Changed(json) = format.wire().without_bound_reasoning(message) {
                        prop_assert!(parse(index, &json).is_ok());
                    }
                }
                let _ = format.wire().validate(messages, true);
            }
            Ok(())
        })?;
        for format in PLAIN {
            let (mended, _, _) = repair(format, &history);
            prop_assert_eq!(with(&mended, |messages| format.wire().validate(messages, false)), []);
        }
    }
}
