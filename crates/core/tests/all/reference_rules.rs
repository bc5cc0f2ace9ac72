//! References: resolved by the session's own table and never from text, whatever the text is.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::context::{Fate, Origin};
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Session;
use context_compactor_core::session::audit::audit;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, PLAIN, assistant, body, exchange, results, user};
use context_compactor_store_tests::host::summary;
use context_compactor_store_tests::{Host, MemoryStore};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;
use std::rc::Rc;

const BASE32: &str = "abcdefghijklmnopqrstuvwxyz234567";

/// Every piece of a text that has the shape of a reference, and of one that was cut or grown.
fn lookalikes(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c: char| !is_part(c));
    words.filter(|word| word.starts_with("off_")).map(str::to_string).collect()
}

/// References that a session issued.
fn issued(session: &Session) -> BTreeSet<String> {
    let entries = session.explain().unwrap();
    entries.into_iter().flat_map(|entry| entry.references.into_iter().chain(entry.reference)).collect()
}

fn eager_options() -> serde_json::Value {
    json!({
        "contextWindow": 8_000,
        "presetOptions": { "offloadThreshold": 50, "scanRatio": 1, "compactTriggerThreshold": 1 },
        "keep": { "messages": 2 },
    })
}

fn open(host: &mut Host, id: &str) -> Session {
    host.run(Session::open(settings(eager_options()), Some(id.into()), 10_000)).unwrap().0
}

/// What a text that poses as a reference is made of.
#[derive(Debug, Clone)]
enum Forged {
    Random(String),
    /// One of the other session, with the nth character changed or not.
    Foreign(usize, Option<usize>),
    /// One of its own, with the nth character changed.
    Own(usize, usize),
    Message(usize, char),
    Said(&'static str),
}

fn forged() -> impl Strategy<Value = Forged> {
    let id = "[a-z2-7]{26}";
    prop_oneof![
        id.prop_map(Forged::Random),
        (0..4_usize, prop::option::of(0..26_usize)).prop_map(|(nth, at)| Forged::Foreign(nth, at)),
        (0..4_usize, 0..26_usize).prop_map(|(nth, at)| Forged::Own(nth, at)),
        (0..9_usize, prop::char::range('a', 'z')).prop_map(|(index, check)| Forged::Message(index, check)),
        prop::sample::select(vec![
            "off_",
            "off_../../etc/passwd",
            "off_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "m0",
            "m00a",
            "m99999999999999999999999a",
            "off_AAAAAAAAAAAAAAAAAAAAAAAAAA",
        ])
        .prop_map(Forged::Said),
    ]
}

fn changed(reference: &str, at: usize) -> String {
    let mut letters: Vec<char> = reference.chars().collect();
    let at = 4 + at % letters.len().saturating_sub(4).max(1);
    let next = BASE32.find(letters[at]).map_or(0, |nth| (nth + 1) % 32);
    letters[at] = BASE32.chars().nth(next).unwrap();
    letters.into_iter().collect()
}

fn text_of(forged: &Forged, own: &[String], foreign: &[String]) -> String {
    let pick = |of: &[String], nth: usize| of.get(nth % of.len().max(1)).cloned().unwrap_or_default();
    match forged {
        Forged::Random(id) => format!("off_{id}"),
        Forged::Foreign(nth, None) => pick(foreign, *nth),
        Forged::Foreign(nth, Some(at)) => changed(&pick(foreign, *nth), *at),
        Forged::Own(nth, at) => changed(&pick(own, *nth), *at),
        Forged::Message(index, check) => format!("m{index}{check}"),
        Forged::Said(text) => (*text).to_string(),
    }
}

/// What happens to a session.
#[derive(Debug, Clone)]
enum Act {
    Say(String),
    Tool(usize),
    Prepare,
    Compact,
    Search(String),
    Recall,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => "[a-z字]{1,6}( [a-z]{1,6}){0,20}".prop_map(Act::Say),
        3 => (10..200_usize).prop_map(Act::Tool),
        2 => Just(Act::Prepare),
        1 => Just(Act::Compact),
        1 => "[a-z]{2,4}".prop_map(Act::Search),
        1 => Just(Act::Recall),
    ]
}

/// Does it, and tells what the app sees of it.
fn perform(host: &mut Host, session: &Session, format: Format, nth: usize, act: &Act) -> String {
    match act {
        Act::Say(text) => {
            let said = host.run(session.append(vec![user(text), assistant("I see.")])).unwrap();
            format!("{said:?}")
        }
        Act::Tool(tokens) => {
            let mut messages = vec![user("look")];
            messages.extend(exchange(format, &format!("call_{nth}"), &long("result", *tokens)));
            messages.push(assistant("I see."));
            format!("{:?}", host.run(session.append(messages)).unwrap())
        }
        Act::Prepare => {
            format!("{:?}", host.run(session.prepare(Trigger::Auto, Vec::new())).map(|sent| sent.items))
        }
        Act::Compact => format!("{:?}", host.run(session.compact(None)).unwrap().result.summary),
        Act::Search(query) => format!("{:?}", host.run(session.search(query.clone(), 5)).unwrap()),
        Act::Recall => {
            let texts = issued(session).into_iter().map(|reference| {
                let text = host.run(session.read(reference.clone(), 0, None)).unwrap();
                format!("{reference}: {text}")
            });
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

fn host(store: &Rc<MemoryStore>, name: &str) -> Host {
    let mut host = Host::new(Rc::clone(store) as _, name);
    host.summarise = Box::new(|_, _| summary(SUMMARY));
    host
}

/// A recall tool's call and its answer.
fn recalled(format: Format, id: &str, reference: &str, answer: &str) -> Vec<Body> {
    let input = json!({ "ref": reference });
    let call = match format {
        Format::OpenaiChat => {
            let function = json!({ "name": "recall_read", "arguments": input.to_string() });
            json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": id, "type": "function", "function": function }] })
        }
        _ => {
            json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": id, "name": "recall_read", "input": input }] })
        }
    };
    [vec![body(&call)], results(format, &[(id, answer)])].concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever messages, results and summaries say: what resolves is what this session issued.
    #[test]
    fn s1_6_the_references_that_resolve_are_those_that_were_issued(
        format in prop::sample::select(PLAIN.to_vec()), forged in prop::collection::vec(forged(), 1..8), in_results in any::<bool>(),
    ) {
        let store: Rc<MemoryStore> = Rc::default();
        let mut host = host(&store, "h");
        let (one, other) = (open(&mut host, "s"), open(&mut host, "other"));
        for session in [&one, &other] {
            for nth in 0..3 {
                host.run(session.append(turn(format, nth, 80))).unwrap();
            }
            host.run(session.prepare(Trigger::Auto, Vec::new())).unwrap();
        }
        let lists = [&one, &other].map(|session| issued(session).into_iter().collect::<Vec<_>>());
        prop_assert!(!lists[0].is_empty() && !lists[1].is_empty());
        let texts: Vec<String> = forged.iter().map(|forged| text_of(forged, &lists[0], &lists[1])).collect();
        for (nth, text) in texts.iter().enumerate() {
            let line = format!("Tool result is at: {text}");
            let mut messages = vec![user(&line)];
            if in_results {
                messages.extend(exchange(format, &format!("f{nth}"), &format!("{line}\n{}", long("x", 40))));
            }
            messages.push(assistant(&line));
            host.run(one.append(messages)).unwrap();
        }
        let said = texts.join(", ");
        host.summarise = Box::new(move |_, _| summary(&format!("{SUMMARY}\nResults are at {said}.")));
        let ranged = issued(&one);
        host.run(one.prepare(Trigger::Auto, Vec::new())).unwrap();
        host.run(one.compact(None)).unwrap();
        let known = issued(&one);
        prop_assert!(ranged.is_subset(&known), "nothing that was issued is forgotten");
        let rows = store.rows();
        let everything: String = rows.iter().map(|(_, row)| String::from_utf8_lossy(row).into_owned()).collect();
        for reference in lookalikes(&everything).into_iter().chain(texts.clone()) {
            let read = host.run(one.read(reference.clone(), 0, None));
            match known.contains(&reference) {
                true => prop_assert!(read.is_ok(), "{reference}: {read:?}"),
                // Whoever guesses the check letter reads what this session says there.
                false if reference.starts_with('m') && read.is_ok() => {
                    let index: usize = reference[1..reference.len() - 1].parse().unwrap();
                    prop_assert!(index < one.metadata().unwrap().total_messages);
                }
                false => prop_assert_eq!(read.map_err(|error| error.code), Err(Code::NotFound), "{}", reference),
            }
        }
        // What a summary says is in no table: it stands for what it took the place of, and for nothing else.
        let stored = audit("s", &rows).unwrap();
        let covered: BTreeSet<String> = stored.context.iter().flat_map(|(origin, _)| match origin {
            Origin::Summary { covers, .. } => {
                covers.iter().flat_map(|cover| cover.offloads.iter().map(|(_, offload)| offload.reference.clone())).collect()
            }
            _ => Vec::new(),
        }).collect();
        prop_assert!(covered.is_subset(&known));
        audit("other", &rows).unwrap();
    }

    /// Two sessions of one store are, byte by byte, what each would be in a store of its own.
    #[test]
    fn storage_s3_sessions_of_one_store_never_meet(
        format in prop::sample::select(PLAIN.to_vec()), acts in prop::collection::vec((any::<bool>(), act()), 1..24),
    ) {
        let together: Rc<MemoryStore> = Rc::default();
        let apart: [Rc<MemoryStore>; 2] = Default::default();
        let names = ["a", "b"];
        let mut shared = names.map(|name| host(&together, name));
        let mut own = [0, 1].map(|nth| host(&apart[nth], names[nth]));
        let of = |hosts: &mut [Host; 2]| {
            let [a, b] = hosts;
            [open(a, "a"), open(b, "b")]
        };
        let (in_one, alone) = (of(&mut shared), of(&mut own));
        for (nth, (second, act)) in acts.iter().enumerate() {
            let at = usize::from(*second);
            let seen = perform(&mut shared[at], &in_one[at], format, nth, act);
            prop_assert_eq!(seen, perform(&mut own[at], &alone[at], format, nth, act), "{:?}", act);
        }
        let mut rows = [apart[0].rows(), apart[1].rows()].concat();
        rows.sort();
        let mut found = together.rows();
        found.sort();
        prop_assert_eq!(found.len(), rows.len());
        prop_assert!(found == rows);
        for (at, other) in [(0, 1), (1, 0)] {
            for reference in issued(&in_one[other]) {
                let read = shared[at].run(in_one[at].read(reference, 0, None));
                prop_assert_eq!(read.map_err(|error| error.code), Err(Code::NotFound));
            }
        }
    }

    /// What the model read back is in the context for good, or in a summary: to move it would be to read it again.
    #[test]
    fn lesson_offload_traps_no_answer_of_recall_is_offloaded(
        format in prop::sample::select(PLAIN.to_vec()), turns in prop::collection::vec((any::<bool>(), 20..200_usize), 1..12),
    ) {
        let mut harness = Harness::new(json!({
            "presetOptions": { "offloadThreshold": 50, "scanRatio": 1, "compactTriggerThreshold": 1 },
        }));
        let mut answers = Vec::new();
        for (nth, (recalls, tokens)) in turns.iter().enumerate() {
            // Ids come again, as providers give them.
            let id = format!("call_{}", nth % 3);
            harness.append(&[user("look")]);
            let at = harness.session.explain().unwrap().len() + 1;
            let known = issued(&harness.session).into_iter().next();
            match known.filter(|_| *recalls) {
                Some(reference) => {
                    harness.append(&recalled(format, &id, &reference, &long("read back", *tokens)));
                    answers.push(at);
                }
                None => harness.append(&exchange(format, &id, &long("result", *tokens))),
            }
            harness.append(&[assistant("I see.")]);
            harness.prepare();
        }
        let entries = harness.session.explain().unwrap();
        for at in answers {
            prop_assert!(matches!(entries[at].fate, Fate::Verbatim | Fate::Summarised), "{:?}", entries[at]);
            prop_assert_eq!(&entries[at].reference, &None);
        }
    }
}

#[test]
fn s1_6_every_result_of_a_message_is_restored() {
    let mut harness = Harness::new(
        json!({ "compactAt": { "tokens": 100 }, "presetOptions": { "compactTriggerThreshold": 1 } }),
    );
    let texts = [long("the first result", 200), long("the second result", 200)];
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "read_file", "input": {} });
    let result = |id: &str, text: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": text });
    harness.append(&[
        user("look at both"),
        body(&json!({ "role": "assistant", "content": [call("a"), call("b")] })),
        body(&json!({ "role": "user", "content": [result("a", &texts[0]), result("b", &texts[1])] })),
    ]);
    harness.append(&talk(4, 20));
    harness.prepare();
    assert!(
        harness.context()[2]["content"].as_array().unwrap().iter().all(|part| part["content"] != texts[0])
    );
    harness.append(&talk(1, 20));
    harness.compact();
    let prompt = &harness.host.seen.requests[0].0.messages[0].content;
    for text in &texts {
        assert!(prompt.contains(text.trim()), "{prompt}");
    }
    assert!(!prompt.contains("off_"), "no reference is left");
}
