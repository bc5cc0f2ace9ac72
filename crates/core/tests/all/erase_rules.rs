//! One message is erased for good (D24): nothing of what it said is left in the store, wherever that is stopped, and every
//! other message stays as it was.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::context::Fate;
use context_compactor_core::log::SnapshotPurpose;
use context_compactor_core::policy::PRESETS;
use context_compactor_core::step::{Effect, Notice, Stage};
use context_compactor_core::wire::{Author, Format};
use context_compactor_store_tests::How;
use context_compactor_store_tests::conversation::{Body, assistant, calls, results, say, user};
use context_compactor_store_tests::host::summary;
use serde_json::{Value, json};
use std::rc::Rc;

const SECRET: &str = "zanzibarkey";
/// A summarizer that tells it to whoever reads on.
const TELLTALE: &str = "## Current Status\nThe user asked about the parser.\nThe token is zanzibarkey, keep it.\nThe tools answered.";

fn options(preset: &str) -> Value {
    json!({ "preset": preset, "contextWindow": 8_000 })
}

fn harness(preset: &str) -> Harness {
    let mut harness = Harness::new(options(preset));
    harness.host.summarise = Box::new(|_, _| summary(TELLTALE));
    harness
}

/// Who says it, and how: the messages of an exchange, and which of them does.
fn leaks(format: Format) -> Vec<(&'static str, Vec<Body>, usize)> {
    let read = |path: &str, text: &str| {
        [calls(format, &[("call_leak", path)]), results(format, &[("call_leak", text)])].concat()
    };
    let large = format!("{} {SECRET} {}", long("result leak", 1_500), long("and more", 1_500));
    let call = read(&format!("/home/{SECRET}"), "fine");
    vec![
        ("user", vec![say(format, Author::User, &format!("Never push to main. My token is {SECRET}."))], 0),
        ("assistant", vec![say(format, Author::Assistant, &format!("I take {SECRET} then."))], 0),
        ("call", call.clone(), 0),
        ("result", read("a.rs", SECRET), call.len() - 1),
        ("large result", read("a.rs", &large), call.len() - 1),
    ]
}

/// A session that was summarized with the leak in what the summary stands for, with a snapshot: the leak's index.
fn leaked(harness: &mut Harness, format: Format, leak: &(&str, Vec<Body>, usize)) -> usize {
    for nth in 0..3 {
        harness.append(&turn(format, nth, 400));
    }
    let (_, bodies, at) = leak;
    if leak.0 == "assistant" {
        harness.append(&[say(format, Author::User, "And?")]);
    }
    let index = harness.stored().messages.len() + at;
    harness.append(bodies);
    harness.append(&[say(format, Author::Assistant, "Done.")]);
    for nth in 3..8 {
        harness.append(&turn(format, nth, 800));
        harness.prepare();
    }
    harness.host.run(harness.session.snapshot(SnapshotPurpose::Rollback)).unwrap();
    harness.compact();
    harness.append(&[say(format, Author::User, "And now?")]);
    index
}

fn history(harness: &Harness) -> Vec<String> {
    harness.stored().messages.iter().map(|body| body.to_string()).collect()
}

/// Rows of the store in which `needle` stands, in any case.
fn hits(harness: &Harness, needle: &str) -> Vec<String> {
    let is_hit = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_lowercase().contains(needle);
    harness.memory.rows().iter().filter(|(_, value)| is_hit(value)).map(|(key, _)| key.to_string()).collect()
}

fn erase(harness: &mut Harness, index: usize) {
    harness.host.run(harness.session.erase(index, "a leaked token".into())).unwrap();
}

/// The session is whole and has nothing of the leak; all other messages are as they were `before`.
fn check(harness: &mut Harness, format: Format, index: usize, before: &[String], what: &str) {
    assert_eq!(hits(harness, SECRET), [""; 0], "{what}");
    let verified = harness.host.run(harness.session.verify()).unwrap();
    assert!(verified.ok, "{what}: {:?}", verified.problems);
    let now = history(harness);
    assert_eq!(now.len(), before.len(), "{what}");
    for (at, (now, before)) in now.iter().zip(before).enumerate() {
        assert_eq!(now == before, at != index, "{what}: message {at}: {now}");
    }
    let sent = harness.sent();
    assert_valid(format, &sent);
    assert!(!json!(sent).to_string().contains(SECRET), "{what}");
    let entry = harness.session.explain().unwrap().into_iter().find(|entry| entry.index == index).unwrap();
    assert_eq!(entry.fate, Fate::Dropped, "{what}");
    assert_eq!(entry.reason.as_deref(), Some("it was erased: a leaked token"), "{what}");
    assert!(entry.sha256.is_some(), "{what}");
}

#[test]
fn d24_nothing_of_an_erased_message_is_left_and_the_others_are_as_they_were() {
    for preset in PRESETS.iter().filter(|preset| preset.name != "react") {
        for format in FORMATS {
            for leak in leaks(format) {
                let what = format!("{} {format:?} {}", preset.name, leak.0);
                let mut harness = harness(preset.name);
                let index = leaked(&mut harness, format, &leak);
                let before = history(&harness);
                assert!(!hits(&harness, SECRET).is_empty(), "{what}");
                erase(&mut harness, index);
                check(&mut harness, format, index, &before, &what);
                let mut again = Harness::over(Rc::clone(&harness.memory), "b", options(preset.name));
                check(&mut again, format, index, &before, &format!("{what}, opened again"));
                // No way back leads to it.
                let found = again.host.run(again.session.search(SECRET.into(), 10)).unwrap();
                assert!(found.is_empty(), "{what}");
                let snapshots = again.host.run(again.session.snapshots()).unwrap();
                for snapshot in snapshots {
                    again.host.run(again.session.restore(snapshot.id)).unwrap();
                    assert!(!json!(again.sent()).to_string().contains(SECRET), "{what}");
                }
                again.host.run(again.session.rewind(before.len() - 1)).unwrap();
                assert!(!json!(again.sent()).to_string().contains(SECRET), "{what}");
                assert!(again.host.run(again.session.verify()).unwrap().ok, "{what}");
                again.append(&[say(format, Author::User, "More.")]);
                again.compact();
                assert_eq!(hits(&again, SECRET), [""; 0], "{what}");
            }
        }
    }
}

#[test]
fn d24_wherever_it_is_stopped_the_message_is_whole_or_erased_after_reopening() {
    let format = Format::OpenaiChat;
    for how in [How::CrashBefore, How::CrashAfter, How::Lost, How::Fail(Code::StoreUnavailable)] {
        let mut ends = [0, 0];
        for nth in 1.. {
            let mut harness = harness("balanced");
            let index = leaked(&mut harness, format, &leaks(format)[4]);
            let before = history(&harness);
            let commits = |effect: &Effect| matches!(effect, Effect::Commit(_));
            let ran = harness.host.seen.commits.len();
            harness.host.fault(nth, commits, how);
            let ended = harness.host.try_run(harness.session.erase(index, "a leaked token".into()));
            let is_over = matches!(ended, Some(Ok(()))) && harness.host.seen.commits.len() - ran < nth;
            let mut again = Harness::over(Rc::clone(&harness.memory), "b", options("balanced"));
            let what = format!("{how:?} {nth}");
            if hits(&again, SECRET).is_empty() {
                check(&mut again, format, index, &before, &what);
                ends[1] += 1;
            } else {
                assert_eq!(history(&again), before, "{what}");
                assert!(again.host.run(again.session.verify()).unwrap().ok, "{what}");
                assert!(!matches!(ended, Some(Ok(()))), "{what}: it said that it was erased");
                // The next time nothing is left either.
                erase(&mut again, index);
                check(&mut again, format, index, &before, &what);
                ends[0] += 1;
            }
            if is_over {
                break;
            }
        }
        assert!(ends[0] > 0 && ends[1] > 0 || matches!(how, How::Lost), "{how:?}: {ends:?}");
    }
}

#[test]
fn d24_another_tab_goes_on_with_what_is_left() {
    let format = Format::OpenaiChat;
    let mut harness = harness("balanced");
    let index = leaked(&mut harness, format, &leaks(format)[0]);
    let mut other = Harness::over(Rc::clone(&harness.memory), "b", options("balanced"));
    let mut third = Harness::over(Rc::clone(&harness.memory), "c", options("balanced"));
    let before = history(&harness);
    erase(&mut harness, index);
    other.append(&[user("From the other tab.")]);
    let mut after = before.clone();
    after.push(user("From the other tab.").to_string());
    check(&mut other, format, index, &after, "the tab that appends");
    check(&mut third, format, index, &after, "the tab that prepares");
    assert_eq!(harness.sent(), other.sent());
    third.host.run(third.session.delete()).unwrap();
    assert_eq!(harness.memory.rows().len(), 0);
}

#[test]
fn d24_an_append_of_another_tab_during_an_erasure_is_kept() {
    let format = Format::OpenaiChat;
    let mut harness = harness("balanced");
    let index = leaked(&mut harness, format, &leaks(format)[3]);
    let mut before = history(&harness);
    let mut other = Harness::over(Rc::clone(&harness.memory), "b", options("balanced"));
    let mut commits = 0;
    harness.host.meanwhile = Box::new(move |effect| {
        if is_commit(effect) {
            commits += 1;
            if commits == 3 {
                other.append(&[user("Meanwhile.")]);
            }
        }
    });
    erase(&mut harness, index);
    before.push(user("Meanwhile.").to_string());
    check(&mut harness, format, index, &before, "appended meanwhile");
}

#[test]
fn d24_sessions_that_began_from_it_stay_its_children_and_have_their_own_copies() {
    let mut harness = harness("balanced");
    harness.append(&[user("One zanzibarkey."), assistant("Two.")]);
    harness.host.run(harness.session.fork(Some("child".into()))).unwrap();
    erase(&mut harness, 0);
    let children = harness.host.run(harness.session.children()).unwrap();
    assert_eq!(children.iter().map(|child| child.id.as_str()).collect::<Vec<_>>(), ["child"]);
    assert!(!hits(&harness, SECRET).is_empty(), "a fork has a copy of its own, as `erase` says");
}

#[test]
fn d24_a_history_that_still_has_it_is_recognized() {
    let format = Format::OpenaiChat;
    let mut harness = harness("balanced");
    let index = leaked(&mut harness, format, &leaks(format)[0]);
    let before = harness.stored().messages.iter().map(|body| Rc::from(&**body)).collect::<Vec<Rc<str>>>();
    erase(&mut harness, index);
    let all = [before, vec![assistant("Yes.")]].concat();
    let synced = harness.host.run(harness.session.sync(0, all)).unwrap();
    assert_eq!((synced.appended, synced.branched_at), (1, None));
}

#[test]
fn d24_what_cannot_be_erased_says_so_and_twice_is_once() {
    let mut harness = harness("balanced");
    harness.append(&[user("One zanzibarkey."), assistant("Two.")]);
    let error = harness.host.run(harness.session.erase(2, String::new())).unwrap_err();
    assert_eq!((error.code, error.index), (Code::InvalidOption, Some(2)));
    harness.host.run(harness.session.pin(0)).unwrap();
    erase(&mut harness, 0);
    let rows = harness.memory.rows();
    erase(&mut harness, 0);
    assert_eq!(harness.memory.rows(), rows);
    assert_eq!(hits(&harness, SECRET), [""; 0]);
    let told = harness.host.seen.progress.iter().any(|told| told.stage == Stage::Erase);
    assert!(told, "nobody was told how far it is");
}

#[test]
fn f39_d24_an_erasure_tells_how_far_it_is_and_can_be_stopped_while_it_reads_and_while_it_writes() {
    // More than one page of the log, which holds 1,000 rows.
    let whole = || {
        let mut harness = harness("balanced");
        harness.append(&[user("One zanzibarkey.")]);
        harness.append(&vec![assistant("Two."); 1_200]);
        harness
    };
    let mut harness = whole();
    erase(&mut harness, 0);
    let told: Vec<_> = harness.host.seen.progress.iter().filter(|told| told.stage == Stage::Erase).collect();
    let told: Vec<_> = told.iter().map(|told| (told.done, told.total)).collect();
    // All rows are read for what only the message says, and then once more to be written.
    assert_eq!(told, [(1_000, 2_402), (1_201, 2_402), (2_201, 2_402), (2_402, 2_402)]);
    for nth in 1..=told.len() {
        let mut harness = whole();
        let before = history(&harness);
        let paused = |effect: &Effect| matches!(effect, Effect::Pause(_));
        harness.host.fault(nth, paused, How::Fail(Code::Aborted));
        let error = harness.host.run(harness.session.erase(0, "a leaked token".into())).unwrap_err();
        assert_eq!((error.code, history(&harness)), (Code::Aborted, before), "{nth}");
    }
}

#[test]
fn d24_an_erasure_is_no_loss_to_the_watermark_wherever_it_stops() {
    let over = || {
        let mut options = options("balanced");
        options["advanced"] = json!({ "watermark": true });
        options
    };
    for how in [None, Some(How::CrashBefore), Some(How::CrashAfter)] {
        for nth in 1..12 {
            let mut harness = Harness::new(over());
            harness.append(&[user("One zanzibarkey."), assistant("Two."), user("Three.")]);
            if let Some(how) = how {
                harness.host.fault(nth, is_commit, how);
            }
            harness.host.try_run(harness.session.erase(0, "a leaked token".into()));
            let marks = Rc::clone(&harness.host.marks);
            let mut again = context_compactor_store_tests::Host::new(Rc::clone(&harness.memory) as _, "b");
            again.marks = marks;
            let open =
                || context_compactor_core::session::Session::open(settings(over()), Some("s".into()), 10_000);
            for _ in 0..2 {
                again.run(open()).unwrap();
                let losses =
                    again.seen.notices.iter().filter(|told| matches!(told, Notice::DataLoss { .. })).count();
                assert_eq!(losses, 0, "{how:?} {nth}");
            }
        }
    }
}

#[test]
fn d24_an_erased_message_of_any_format_leaves_a_history_that_its_provider_takes() {
    let mut failures: Vec<String> = Vec::new();
    for format in Format::ALL {
        for seed in 0..150 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let history = context_compactor_store_tests::histories::valid(format, &mut rng);
            if history.is_empty() || !problems(format, &history).is_empty() {
                continue;
            }
            let what = format!("{format:?} {seed}");
            let over = json!({ "format": format.as_str(), "preset": "layered", "contextWindow": 1_000_000 });
            let mut harness = Harness::new(over);
            harness
                .append(&history.iter().map(|message| Rc::from(message.to_string())).collect::<Vec<Body>>());
            let before = self::history(&harness);
            let index = rng.usize(..before.len());
            erase(&mut harness, index);
            let now = self::history(&harness);
            for (at, (now, before)) in now.iter().zip(&before).enumerate() {
                assert!(at == index || now == before, "{what}: message {at}");
            }
            assert!(harness.host.run(harness.session.verify()).unwrap().ok, "{what}");
            let left: Vec<Value> = now.iter().map(|body| serde_json::from_str(body).unwrap()).collect();
            let broken = problems(format, &left);
            if !broken.is_empty() {
                failures.push(format!(
                    "{what}: message {index}, {} -> {}: {broken:?}",
                    before[index], now[index]
                ));
            }
            for text in texts(&serde_json::from_str(&before[index]).unwrap()) {
                let is_long = text.chars().count() > 24;
                assert!(!is_long || !now[index].contains(&json!(text).to_string()), "{what}: {text}");
            }
        }
    }
    assert_eq!(failures, [""; 0]);
}

/// The rules that a history breaks.
fn problems(format: Format, messages: &[Value]) -> Vec<String> {
    let texts: Vec<String> = messages.iter().map(Value::to_string).collect();
    let values: Vec<_> =
        texts.iter().map(|text| context_compactor_core::wire::parse(0, text).unwrap()).collect();
    format.rules().validate(&values, false).iter().map(|problem| format!("{problem:?}")).collect()
}

/// What ties messages together.
const STRUCTURE: [&str; 9] =
    ["type", "id", "name", "call_id", "tool_use_id", "tool_call_id", "toolCallId", "toolName", "state"];

/// What is said in a value.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(fields) => {
            let said = fields.iter().filter(|(key, _)| !STRUCTURE.contains(&key.as_str()));
            said.flat_map(|(_, field)| texts(field)).collect()
        }
        _ => Vec::new(),
    }
}
