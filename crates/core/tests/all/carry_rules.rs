//! A state that goes from call to call (`E4`) does what a session does, and nothing that it says is believed.

use context_compactor_core::Code;
use context_compactor_core::context::Fate;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::{Carried, Session};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::checked::{problems, settings};
use context_compactor_store_tests::conversation::{Body, assistant, exchange, user};
use context_compactor_store_tests::host::{summary, thrown};
use context_compactor_store_tests::{Host, MemoryStore};
use fastrand::Rng;
use serde_json::{Value, json};
use std::rc::Rc;

const FORMAT: Format = Format::OpenaiChat;

fn options() -> Value {
    json!({ "format": "openai-chat", "contextWindow": 16_000, "maxOutputTokens": 1_000, "background": false })
}

fn host() -> Host {
    let mut host = Host::new(Rc::new(MemoryStore::default()), "host");
    host.summarise =
        Box::new(|_, attempt| summary(&format!("## Current Status\nThe files were read, {attempt}.")));
    host
}

/// Words of about so many tokens, other ones each time.
fn file(nth: usize, tokens: usize) -> String {
    let mut rng = Rng::with_seed(nth as u64 + 1);
    let word = |rng: &mut Rng| (0..6).map(|_| rng.lowercase()).collect::<String>();
    let lines = (0..tokens / 12)
        .map(|line| format!("{line}: {} {} {}", word(&mut rng), word(&mut rng), word(&mut rng)));
    lines.collect::<Vec<_>>().join("\n")
}

/// An agent that reads a file at each step.
fn agent(steps: usize, tokens: usize) -> Vec<Vec<Body>> {
    let mut calls =
        vec![vec![user("Read all files of src/ and say what they do. Never touch src/secret.rs.")]];
    calls.extend((0..steps).map(|nth| exchange(FORMAT, &format!("call_{nth}"), &file(nth, tokens))));
    calls
}

/// Through a column of a database: fields in another order.
fn stored(state: &str) -> String {
    serde_json::from_str::<Value>(state).unwrap().to_string()
}

fn carry(
    host: &mut Host,
    options: &Value,
    history: &[Body],
    state: Option<String>,
) -> Result<Carried, context_compactor_core::Error> {
    host.run(Session::compact_carried(settings(options), history.to_vec(), state))
}

fn sent(carried: &Carried, history: &[Body]) -> Vec<Body> {
    carried
        .items
        .iter()
        .map(|item| item.index.map_or_else(|| item.body.clone().unwrap(), |index| Rc::clone(&history[index])))
        .collect()
}

/// Every call of an agent with a state that is stored when it changed: the prompts, the states, and how often it changed.
fn run(options: &Value, calls: &[Vec<Body>], host: &mut Host) -> (Vec<Vec<Body>>, Vec<String>, usize) {
    let (mut history, mut state, mut prompts, mut states, mut changes) =
        (Vec::new(), None, Vec::new(), Vec::new(), 0);
    for more in calls {
        history.extend(more.iter().cloned());
        let carried = carry(host, options, &history, state.clone()).unwrap();
        assert!(carried.result.success, "{:?}", carried.result.error);
        prompts.push(sent(&carried, &history));
        assert!(problems(FORMAT, prompts.last().unwrap()).unwrap().is_empty());
        if carried.result.changed {
            changes += 1;
            state = carried.state.as_deref().map(stored);
            states.extend(state.clone());
        }
    }
    (prompts, states, changes)
}

/// The prompts of a session.
fn session(options: &Value, calls: &[Vec<Body>], host: &mut Host) -> Vec<Vec<Body>> {
    let (session, _) = host.run(Session::open(settings(options), Some("s".into()), 10_000)).unwrap();
    let mut history: Vec<Body> = Vec::new();
    let prompt = |more: &Vec<Body>| {
        host.run(session.append(more.clone())).unwrap();
        history.extend(more.iter().cloned());
        let prepared = host.run(session.prepare(Trigger::Auto, Vec::new())).unwrap();
        let own = |item: &context_compactor_core::session::OutItem| {
            item.index.map_or_else(|| item.body.clone().unwrap(), |index| Rc::clone(&history[index]))
        };
        prepared.items.iter().map(own).collect()
    };
    calls.iter().map(prompt).collect()
}

/// A prompt without what is drawn at random.
fn told(prompt: &[Body]) -> Vec<String> {
    let off = |text: &str| {
        let mut out = String::new();
        let mut rest = text;
        // `off_` and `cp_` with 26 characters.
        while let Some(at) = rest.find("off_").into_iter().chain(rest.find("[Checkpoint cp_")).min() {
            let skips = if rest[at..].starts_with("off_") { 30 } else { 41 };
            out.push_str(&rest[..at]);
            rest = rest.get(at + skips..).unwrap_or_default();
        }
        out + rest
    };
    prompt.iter().map(|body| off(body)).collect()
}

#[test]
fn e4_the_61_calls_take_few_summaries_and_a_small_state() {
    for summarise in [json!("extractive"), json!({ "call": true })] {
        let mut options = options();
        options["summarize"] = summarise;
        let mut host = host();
        let (prompts, states, changes) = run(&options, &agent(60, 650), &mut host);
        let largest = prompts
            .iter()
            .map(|prompt| prompt.iter().map(|body| body.len()).sum::<usize>() / 4)
            .max()
            .unwrap();
        let bytes = states.iter().map(String::len).max().unwrap();
        let summaries = states
            .iter()
            .map(|state| serde_json::from_str::<Value>(state).unwrap()["compressions"].as_u64().unwrap_or(0))
            .max()
            .unwrap();
        println!(
            "{changes} changes, {summaries} summaries, {} asked, largest prompt {largest}, {bytes} bytes",
            host.seen.requests.len()
        );
        assert!(
            summaries <= 6 && largest <= 16_000 && bytes <= 8 << 10,
            "{summaries} {largest} {bytes}: {}",
            states.iter().max_by_key(|state| state.len()).unwrap()
        );
    }
}

#[test]
fn e4_a_session_and_a_state_give_equal_prompts() {
    for preset in ["balanced", "offload", "layered", "factor3", "checkpoint", "react"] {
        let mut options = options();
        options["preset"] = json!(preset);
        options["summarize"] = json!({ "call": true });
        let calls = agent(40, 650);
        let (carried, ..) = run(&options, &calls, &mut host());
        let stateful = session(&options, &calls, &mut host());
        for (nth, (one, other)) in carried.iter().zip(&stateful).enumerate() {
            assert_eq!(told(one), told(other), "{preset}, call {nth}");
        }
    }
}

#[test]
fn e4_what_text_columns_do_not_take_is_the_same_after_it() {
    let mut options = options();
    options["admit"] = json!({ "maxTokens": 200 });
    options["summarize"] = json!({ "call": true });
    let with_nul = |body: &Body| {
        let mut message: Value = serde_json::from_str(body).unwrap();
        if message["role"] == "tool" {
            message["content"] = json!(format!("\0{}", message["content"].as_str().unwrap()));
        }
        Rc::from(message.to_string())
    };
    let calls: Vec<Vec<Body>> =
        agent(12, 650).iter().map(|call| call.iter().map(with_nul).collect()).collect();
    let (carried, states, _) = run(&options, &calls, &mut host());
    let whole = serde_json::from_str::<Value>(states.last().unwrap()).unwrap()["edited"].clone();
    assert!(whole.as_array().unwrap().len() > 1, "several messages are stored whole");
    assert!(states.iter().all(|state| !state.contains('\0')));
    let stateful = session(&options, &calls, &mut host());
    for (nth, (one, other)) in carried.iter().zip(&stateful).enumerate() {
        assert_eq!(told(one), told(other), "call {nth}");
    }
}

#[test]
fn e4_what_is_not_sent_is_told() {
    let mut history = agent(3, 100).concat();
    let last = exchange(FORMAT, "call_z", "never read").remove(0);
    history.push(last);
    let carried = carry(&mut host(), &options(), &history, None).unwrap();
    let entry = carried.result.ledger.entries().pop().unwrap();
    assert_eq!((entry.index, entry.fate), (history.len() - 1, Fate::Dropped), "a call without its result");
    assert_eq!(carried.items.len(), history.len() - 1);
}

/// A history that was compacted, and its state.
fn compacted(options: &Value) -> (Vec<Body>, String) {
    let calls = agent(30, 650);
    let (_, states, _) = run(options, &calls, &mut host());
    (calls.concat(), states.last().unwrap().clone())
}

#[test]
fn e4_an_edited_history_uses_what_it_still_has_and_says_so() {
    let (history, state) = compacted(&options());
    let boundaries = serde_json::from_str::<Value>(&state).unwrap()["boundaries"].clone();
    let ends: Vec<usize> =
        boundaries.as_array().unwrap().iter().map(|end| end["n"].as_u64().unwrap() as usize).collect();
    assert!(ends.len() >= 2 && ends.len() <= 8, "{ends:?}");
    // The last message that the state knows is another one.
    let mut edited = history.clone();
    edited.truncate(ends[0]);
    edited.push(user("Now something else."));
    edited[ends[0] - 1] = exchange(FORMAT, "call_x", "other").pop().unwrap();
    edited[ends[0] - 2] = exchange(FORMAT, "call_x", "other").remove(0);
    let carried = carry(&mut host(), &options(), &edited, Some(state.clone())).unwrap();
    let told = carried.result.reason.clone().unwrap();
    assert!(told.contains("the history was edited: the state is used for its first"), "{told}");
    assert!(carried.result.changed && carried.state.is_some());
    assert!(problems(FORMAT, &sent(&carried, &edited)).unwrap().is_empty());
    // It is shorter than the state says.
    let shorter = history[..ends[0] - 4].to_vec();
    let carried = carry(&mut host(), &options(), &shorter, Some(state.clone())).unwrap();
    assert!(problems(FORMAT, &sent(&carried, &shorter)).unwrap().is_empty());
    assert!(carried.result.reason.unwrap().contains("the state"));
    // Another conversation.
    let other = vec![user("Hello."), assistant("Hello.")];
    let carried = carry(&mut host(), &options(), &other, Some(state.clone())).unwrap();
    assert!(carried.result.reason.unwrap().contains("the state was dropped"));
    assert_eq!((carried.result.changed, carried.state), (true, None));
    // One that is read in another format.
    let other = vec![Rc::from(r#"{"role":"user","parts":[{"text":"Hello."}]}"#)];
    let carried = carry(&mut host(), &json!({ "contextWindow": 16_000 }), &other, Some(state)).unwrap();
    assert!(carried.result.reason.unwrap().contains("openai-chat"));
}

#[test]
fn e4_what_is_not_due_is_left_alone_and_now_forces_it() {
    let history = agent(6, 200).concat();
    let carried = carry(&mut host(), &options(), &history, None).unwrap();
    assert_eq!((carried.result.changed, carried.state, carried.items.len()), (false, None, history.len()));
    let mut now = options();
    now["state"] = json!({ "when": "now" });
    let carried = carry(&mut host(), &now, &history, None).unwrap();
    assert!(carried.result.changed && carried.state.is_some() && carried.items.len() < history.len());
    // From there on it goes on.
    let state = carried.state.clone();
    let carried = carry(&mut host(), &options(), &history, state).unwrap();
    assert!(!carried.result.changed && carried.state.is_none() && carried.items.len() < history.len());
}

#[test]
fn e4_a_state_takes_no_more_than_its_bytes() {
    for most in [2_000, 3_000, 5_000] {
        let mut options = options();
        options["preset"] = json!("offload");
        options["state"] = json!({ "maxBytes": most });
        options["summarize"] = json!({ "call": true });
        let mut host = host();
        host.summarise =
            Box::new(|_, _| summary(&format!("## Current Status\n{}", "The file was read. ".repeat(150))));
        let (_, states, _) = run(&options, &agent(40, 650), &mut host);
        assert!(states.iter().all(|state| state.len() <= most + 100), "{most}");
        assert!(!states.is_empty(), "{most}");
    }
}

#[test]
fn e4_a_summary_that_is_shortened_is_still_of_its_author() {
    let chat: Vec<Vec<Body>> =
        (0..40).map(|nth| vec![assistant(&file(nth, 300)), user(&file(nth + 40, 300))]).collect();
    let authors = |preset: &str, calls: &[Vec<Body>], most: usize| {
        let mut options = options();
        options["preset"] = json!(preset);
        options["state"] = json!({ "maxBytes": most });
        options["summarize"] = json!({ "call": true });
        let mut host = host();
        host.summarise =
            Box::new(|_, _| summary(&format!("## Current Status\n{}", "The file was read. ".repeat(150))));
        let (_, states, _) = run(&options, calls, &mut host);
        let first = states.iter().find_map(|state| {
            let state: Value = serde_json::from_str(state).unwrap();
            state["view"].as_array().unwrap().iter().find_map(|piece| piece.get("summary")).cloned()
        });
        let body = first.unwrap()["body"].as_str().unwrap().to_owned();
        (serde_json::from_str::<Value>(&body).unwrap()["role"].clone(), body.len())
    };
    for (preset, calls, author) in [("offload", agent(40, 650), "user"), ("factor3", chat, "assistant")] {
        let whole = authors(preset, &calls, 100_000);
        // Halved as often as each takes.
        for most in (2_000..3_200).step_by(200) {
            let short = authors(preset, &calls, most);
            assert_eq!((whole.0.as_str(), short.0.as_str()), (Some(author), Some(author)), "{most}");
            assert!(short.1 < whole.1, "{preset}, {most}: {} and {} bytes", short.1, whole.1);
        }
    }
}

#[test]
fn e4_a_limit_of_the_app_that_is_passed_is_told_and_what_there_is_is_sent() {
    let mut options = options();
    options["preset"] = json!("react");
    options["presetOptions"] = json!({ "modelContextLimit": 1_000 });
    let history = agent(8, 650).concat();
    let carried = carry(&mut host(), &options, &history, None).unwrap();
    let error = carried.result.error.clone().unwrap();
    assert_eq!((carried.result.success, error.code), (false, Code::ContextOverflow));
    assert!(problems(FORMAT, &sent(&carried, &history)).unwrap().is_empty());
}

#[test]
fn e4_numbers_and_texts_that_no_state_has_are_refused() {
    let mut options = options();
    options["preset"] = json!("offload");
    let calls = agent(40, 650);
    let (_, states, _) = run(&options, &calls, &mut host());
    let history = calls.concat();
    let whole: Value = serde_json::from_str(states.last().unwrap()).unwrap();
    let summary = whole["view"].as_array().unwrap().iter().position(|piece| piece.get("summary").is_some());
    let checkpoint = format!("/view/{}/summary/checkpoint", summary.unwrap());
    let large = json!(2_000_000_000_u64);
    let cases = [
        ("/generation", large.clone()),
        ("/compressions", large.clone()),
        ("/steps", large.clone()),
        ("/attemptedAt", large.clone()),
        ("/failures", large.clone()),
        ("/boundaries/0/n", large),
        ("/secret", json!("")),
        ("/secret", json!("x".repeat(201))),
        (&checkpoint, json!("")),
    ];
    for (place, value) in cases {
        let mut state = whole.clone();
        match state.pointer_mut(place) {
            Some(field) => *field = value,
            None => state[&place[1..]] = value,
        }
        let error = carry(&mut host(), &options, &history, Some(state.to_string())).unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (Code::StoreCorrupt, Some("state")), "{place}");
        assert!(error.message.contains("cannot be"), "{place}: {error}");
    }
}

#[test]
fn e4_a_failed_summary_is_told_and_what_was_freed_before_stays() {
    let mut options = options();
    options["summarize"] = json!({ "call": true, "attempts": 1 });
    options["contextWindow"] = json!(32_000);
    let history = agent(36, 650).concat();
    let mut host = host();
    host.summarise = Box::new(|_, _| thrown("401", Some(401)));
    let carried = carry(&mut host, &options, &history, None).unwrap();
    assert!(problems(FORMAT, &sent(&carried, &history)).unwrap().is_empty());
    assert!(carried.state.is_some(), "an attempt is remembered: the next call does not ask at once");
}

#[test]
fn e4_recall_reads_the_apps_own_messages_and_not_those_that_it_deleted() {
    let mut options = options();
    options["preset"] = json!("offload");
    let (history, state) = compacted(&options);
    let open = |host: &mut Host, history: &[Body]| {
        host.run(Session::recall_carried(settings(&options), history.to_vec(), Some(state.clone()), 10_000))
            .unwrap()
    };
    let at = state.find("Tool result is at: off_").map(|at| at + "Tool result is at: ".len());
    // Bare references are not in the state: they follow from the prompt.
    let carried = carry(&mut host(), &options, &history, Some(state.clone())).unwrap();
    let prompt = sent(&carried, &history).iter().map(|body| body.to_string()).collect::<Vec<_>>().join("\n");
    let at = prompt
        .find("off_")
        .map(|at| prompt[at..at + 30].to_owned())
        .or_else(|| at.map(|at| state[at..at + 30].to_owned()));
    let reference = at.expect("a reference");
    let mut one = host();
    let session = open(&mut one, &history);
    let text = one.run(session.read(reference.clone(), 0, None)).unwrap();
    let holder =
        history.iter().position(|body| body.contains(&json!(text).to_string())).expect("a result of the app");
    // The app deleted an earlier exchange: it is read from where it is now.
    let mut shorter = history.clone();
    shorter.drain(if holder > 4 { 1..3 } else { 5..7 });
    let mut one = host();
    let session = open(&mut one, &shorter);
    assert_eq!(one.run(session.read(reference.clone(), 0, None)).unwrap(), text);
    // The message itself.
    let mut without = history.clone();
    without.drain(holder - 1..=holder);
    let mut one = host();
    let session = open(&mut one, &without);
    assert_eq!(one.run(session.read(reference, 0, None)).unwrap_err().code, Code::NotFound);
    assert!(!one.run(session.search("secret.rs".into(), 5)).unwrap().is_empty());
}

/// A state with something in it changed.
fn damaged(state: &Value, rng: &mut Rng) -> String {
    fn places(value: &Value, path: &str, found: &mut Vec<String>) {
        found.push(path.into());
        match value {
            Value::Object(fields) => {
                fields.iter().for_each(|(key, field)| places(field, &format!("{path}/{key}"), found))
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(at, item)| places(item, &format!("{path}/{at}"), found))
            }
            _ => {}
        }
    }
    let mut state = state.clone();
    for _ in 0..rng.usize(1..4) {
        let mut found = Vec::new();
        places(&state, "", &mut found);
        let (one, other) = (rng.choice(&found).unwrap().clone(), rng.choice(&found).unwrap().clone());
        let other = state.pointer(&other).cloned().unwrap_or_default();
        let Some(place) = state.pointer_mut(&one) else { continue };
        *place = match (&*place, rng.usize(0..8)) {
            (_, 0) => Value::Null,
            (_, 1) => other,
            (Value::Number(_), 2) => json!(u64::MAX),
            (Value::Number(_), 3) => json!(-1),
            (Value::Number(number), _) => {
                json!(number.as_u64().unwrap_or(0).wrapping_add(rng.u64(0..3)).wrapping_sub(1))
            }
            (Value::String(text), 2) => json!(text.chars().rev().collect::<String>()),
            (Value::String(text), 3) => {
                json!(text.chars().take(text.chars().count() / 2).collect::<String>())
            }
            (Value::String(text), 4) => json!(text.replace("user", "system").replace("assistant", "tool")),
            (Value::String(_), 5) => json!(r#"{"role":"tool","tool_call_id":"x","content":"y"}"#),
            (Value::String(_), _) => json!(""),
            (Value::Array(items), 2) => json!([items.clone(), items.clone()].concat()),
            (Value::Array(items), 3) => json!(items.iter().rev().cloned().collect::<Vec<_>>()),
            (Value::Array(items), _) => json!(items.iter().skip(1).cloned().collect::<Vec<_>>()),
            (Value::Object(fields), _) => {
                let kept = fields.iter().filter(|_| rng.usize(0..6) > 0);
                Value::Object(kept.map(|(key, field)| (key.clone(), field.clone())).collect())
            }
            (_, _) => json!(true),
        };
    }
    let mut text = state.to_string();
    if rng.usize(0..20) == 0 {
        text.truncate(
            (0..=rng.usize(0..text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0),
        );
    }
    text
}

#[test]
fn e4_a_damaged_state_gives_no_invalid_prompt_and_no_other_error() {
    let count: usize = std::env::var("CC_DAMAGED").ok().and_then(|count| count.parse().ok()).unwrap_or(600);
    let mut rng = Rng::with_seed(4);
    let (mut used, mut refused, mut dropped) = (0, 0, 0);
    let presets = ["balanced", "offload", "checkpoint"];
    let cases: Vec<(Value, Vec<Body>, Value)> = presets
        .iter()
        .map(|preset| {
            let mut options = options();
            options["preset"] = json!(preset);
            options["summarize"] = json!({ "call": true, "attempts": 1 });
            let calls = agent(30, 650);
            let (_, states, _) = run(&options, &calls, &mut host());
            (options, calls.concat(), serde_json::from_str(states.last().unwrap()).unwrap())
        })
        .collect();
    for nth in 0..count {
        let (options, history, state) = &cases[nth % cases.len()];
        let text = damaged(state, &mut rng);
        let mut more = history.clone();
        more.truncate(history.len() - 2 * rng.usize(0..3));
        match carry(&mut host(), options, &more, Some(text.clone())) {
            Ok(carried) => {
                let found = problems(FORMAT, &sent(&carried, &more)).unwrap();
                assert!(found.is_empty(), "{nth}: {found:?}\n{text}");
                assert!(
                    carried.result.ledger.entries().iter().map(|entry| entry.index).eq(0..more.len()),
                    "{nth}: {text}"
                );
                if carried.result.reason.is_some_and(|told| told.contains("the state")) {
                    dropped += 1
                } else {
                    used += 1
                }
            }
            Err(error) => {
                assert!(
                    matches!(error.code, Code::StoreCorrupt | Code::SchemaTooNew),
                    "{nth}: {error:?}\n{text}"
                );
                assert_eq!(error.field.as_deref(), Some("state"), "{nth}: {error:?}");
                refused += 1;
            }
        }
    }
    println!("{count} damaged states: {used} used, {dropped} dropped in part or whole, {refused} refused");
    assert!(used > 0 && refused > 0 && dropped > 0);
}
