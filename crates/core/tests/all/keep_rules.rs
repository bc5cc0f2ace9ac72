//! Preset `balanced`: what stands beside a summary whoever writes it, made anew from the log each time, and which answers
//! are summaries of a conversation.

use crate::support::*;
use context_compactor_core::compaction::CompactionResult;
use context_compactor_core::context::Fate;
use context_compactor_core::keys::batch::{Batch, Key};
use context_compactor_core::log::SnapshotPurpose;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Session;
use context_compactor_core::step::{Effect, Scan};
use context_compactor_core::{Code, Result};
use context_compactor_store_tests::conversation::{Body, assistant, body, user};
use context_compactor_store_tests::host::{Summarise, summary, thrown};
use context_compactor_store_tests::summariser::{Behavior, give};
use context_compactor_store_tests::{Host, How, MemoryStore, Store};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What must stand in every context, whatever becomes of the summary.
const MUSTS: [&str; 9] = [
    "Never touch migrations/, whatever the tests say.",
    "必须使用 UTF-8 编码。",
    "src/export/writer.rs",
    "src/export/mod.rs",
    "legacy/dump.sql",
    "error[E0463]: can't find crate for `exporter_core`",
    "Document the --flush-every flag",
    "Now make the retry limit 7 and tell me when the nightly job passes.",
    "rotate the key of the staging bucket by hand",
];

fn call(id: &str, name: &str, arguments: Value) -> Body {
    let function = json!({ "name": name, "arguments": arguments.to_string() });
    let call = json!({ "id": id, "type": "function", "function": function });
    body(&json!({ "role": "assistant", "content": null, "tool_calls": [call] }))
}

fn answer(id: &str, text: &str) -> Body {
    body(&json!({ "role": "tool", "tool_call_id": id, "content": text }))
}

fn filler(nth: usize) -> Vec<Body> {
    let line =
        |at: usize| format!("pub fn helper_{nth}_{at}(input: &str) -> usize {{ input.len() + {at} }}\n");
    let text: String = (0..20).map(line).collect();
    let path = format!("src/helpers/part_{nth}.rs");
    vec![
        call(&format!("f{nth}"), "Read", json!({ "file_path": path, "offset": 1, "limit": 20 })),
        answer(&format!("f{nth}"), &text),
        assistant(&format!("Part {nth} has its helpers; none of them writes a file.")),
    ]
}

/// A conversation with everything in it that must be kept, early on.
fn conversation() -> Vec<Body> {
    let mut bodies = vec![
        user("Build the exporter. Never touch migrations/, whatever the tests say. 必须使用 UTF-8 编码。"),
        call(
            "1",
            "Write",
            json!({ "file_path": "src/export/writer.rs", "content": "pub fn write_all() {}\n" }),
        ),
        answer("1", "ok"),
        call("2", "Read", json!({ "file_path": "src/export/mod.rs", "offset": 10, "limit": 30 })),
        answer("2", "pub mod writer;"),
        call("3", "Edit", json!({ "file_path": "src/export/mod.rs", "old_string": "a", "new_string": "b" })),
        answer("3", "ok"),
        call("4", "bash", json!({ "command": "rm legacy/dump.sql && cargo test -p exporter" })),
        answer("4", "error[E0463]: can't find crate for `exporter_core`\nExit code 101"),
        call(
            "5",
            "TodoWrite",
            json!({ "todos": [
                { "content": "Write the exporter", "status": "completed" },
                { "content": "Document the --flush-every flag", "status": "pending" },
            ] }),
        ),
        answer("5", "ok"),
        user("Please rotate the key of the staging bucket by hand, I have no access."),
        assistant("Done: the key of the staging bucket is rotated."),
    ];
    bodies.extend((0..12).flat_map(filler));
    bodies.push(user("Now make the retry limit 7 and tell me when the nightly job passes."));
    bodies.extend((12..16).flat_map(filler));
    bodies
}

fn options() -> Value {
    json!({
        "preset": "balanced", "contextWindow": 60_000, "summarize": { "attempts": 2, "fallback": "extractive" },
        "keep": { "messages": 2 },
    })
}

fn text_of(harness: &Harness) -> String {
    let texts =
        harness.context().into_iter().filter_map(|message| Some(message["content"].as_str()?.to_owned()));
    texts.collect::<Vec<_>>().join("\n")
}

fn lost(text: &str) -> Vec<&'static str> {
    MUSTS.into_iter().filter(|must| !text.contains(must)).collect()
}

fn compact(harness: &mut Harness) -> Option<CompactionResult> {
    let compacted = harness.host.run(harness.session.compact(None));
    compacted.ok().map(|compacted| compacted.result)
}

/// A summariser that writes down what it is asked to keep, and drops two of every five.
fn dropping() -> Summarise {
    Box::new(|request, _| {
        let facts = request.facts.iter().enumerate().filter(|(at, _)| at % 5 > 1);
        let lines: String = facts.map(|(_, fact)| format!("- {}\n", fact.text)).collect();
        summary(&format!("## State\nThe exporter is being built, and these things matter:\n{lines}"))
    })
}

#[test]
fn s4_3_lesson_lost_constraints_must_keeps_survive_every_summariser_in_every_compaction() {
    for temper in Behavior::ALL.into_iter().map(Some).chain([None]) {
        let mut harness = Harness::new(options());
        match temper {
            Some(temper) => {
                give(&mut harness.host, temper, 1_000_000);
            }
            None => harness.host.summarise = dropping(),
        }
        harness.append(&conversation());
        let mut compactions = 0;
        for round in 0..4 {
            // An abort is the caller's wish, and changes nothing.
            let result = (0..6).find_map(|_| compact(&mut harness));
            let summarised = result.is_some_and(|result| result.success && result.summary.is_some());
            compactions += usize::from(summarised);
            if compactions > 0 {
                let text = text_of(&harness);
                assert_eq!(lost(&text), Vec::<&str>::new(), "{temper:?}, round {round}:\n{text}");
            }
            harness.append(&(20 * (round + 1)..20 * (round + 1) + 6).flat_map(filler).collect::<Vec<_>>());
        }
        // Who aborts the call that asks once more wants no summary at all.
        let least = if temper == Some(Behavior::AfterAbort) { 0..=4 } else { 4..=4 };
        assert!(least.contains(&compactions), "{temper:?}: {compactions}");
        harness.stored();
    }
}

#[test]
fn s4_3_lesson_later_compactions_what_is_kept_is_made_anew_from_the_log_and_not_from_the_summary_before() {
    let mut harness = Harness::new(options());
    harness.append(&conversation());
    harness.compact();
    harness.append(&(30..36).flat_map(filler).collect::<Vec<_>>());
    harness.compact();
    let second = text_of(&harness);
    assert_eq!(lost(&second), Vec::<&str>::new(), "{second}");
    assert_eq!(second.matches("## Files").count(), 1, "{second}");
    // Of what came since, the file that was read last before those messages that stay.
    assert!(second.contains("src/helpers/part_34.rs (read; lines 1-20)"), "{second}");
}

/// A store that counts the rows of the log that are read of it.
#[derive(Default)]
struct Counting {
    rows: MemoryStore,
    read: Cell<usize>,
}

impl Store for Counting {
    fn read(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        self.rows.read(keys)
    }

    fn scan(&self, scan: &Scan) -> Result<Vec<(Key, Vec<u8>)>> {
        let found = self.rows.scan(scan)?;
        let of_log = found.iter().filter(|(key, _)| key.to_string().starts_with("log/"));
        self.read.set(self.read.get() + of_log.count());
        Ok(found)
    }

    fn commit(&self, batch: &Batch) -> Result<()> {
        self.rows.commit(batch)
    }
}

/// A host, and a session that it opens over the store.
fn open(store: &Rc<Counting>, name: &str) -> (Host, Session) {
    let mut host = Host::new(Rc::clone(store) as _, name);
    host.summarise = dropping();
    let (session, _) = host.run(Session::open(settings(options()), Some("s".into()), 10_000)).unwrap();
    (host, session)
}

/// What a session sends after each of several compactions, and the rows of the log that each of these read. Where it is
/// `reopened` for each, all there is to know has to be read again.
fn rounds(reopened: bool) -> (Vec<Vec<Value>>, Vec<usize>) {
    let store = Rc::<Counting>::default();
    let (mut host, mut session) = open(&store, "a");
    let (mut sent, mut read, mut before) = (Vec::new(), Vec::new(), String::new());
    for round in 0..5 {
        let more = match round {
            0 => conversation(),
            1 => vec![user(&format!("My key is {}, never print it.", secret(1)))],
            3 => vec![user(&format!("The keys are {} and {}; never swap them.", secret(2), secret(1)))],
            _ => Vec::new(),
        };
        let nth = 100 + 20 * round;
        host.run(session.append(more.into_iter().chain((nth..nth + 6).flat_map(filler)).collect())).unwrap();
        if reopened {
            (host, session) = open(&store, &format!("a{round}"));
        }
        store.read.set(0);
        assert!(host.run(session.compact(None)).unwrap().result.success);
        read.push(store.read.get());
        if round == 0 {
            before = host.run(session.snapshot(SnapshotPurpose::Rollback)).unwrap();
        }
        if round == 2 {
            // The last two summaries go, and with them what is known of their messages.
            host.run(session.restore(before.clone())).unwrap();
        }
        let prepared = host.run(session.prepare(Trigger::Auto, Vec::new())).unwrap();
        sent.push(bodies(&session, &prepared));
    }
    (sent, read)
}

fn secret(nth: usize) -> String {
    format!("sk-proj-{}", format!("{nth}aB3dE5gH7").repeat(5))
}

#[test]
fn s4_3_lesson_later_compactions_what_was_read_of_the_log_is_not_read_again_and_as_good_as_read_again() {
    let (going_on, read) = rounds(false);
    let (reopened, read_again) = rounds(true);
    for (round, (one, other)) in going_on.iter().zip(&reopened).enumerate() {
        assert_eq!(texts(one), texts(other), "round {round}");
    }
    assert!(read_again.is_sorted() && read_again[4] > 100, "{read_again:?}");
    assert!(read[1] < read_again[1] / 2 && read[2] < read_again[2] / 2, "{read:?} of {read_again:?}");
}

/// What a fork sends after each of its first compactions. Its parent's summary quotes nothing, and tells of its files.
fn of_fork(reopened: bool) -> Vec<Vec<String>> {
    let mut harness = Harness::new(options());
    harness.append(&[user(&long("Build the exporter", 4_000))]);
    harness.append(&conversation().drain(1..11).collect::<Vec<_>>());
    harness.append(&(0..12).flat_map(filler).collect::<Vec<_>>());
    assert!(harness.compact().success);
    harness.session = harness.host.run(harness.session.fork(Some("child".into()))).unwrap().0;
    let mut sent = Vec::new();
    for nth in [100, 120, 140] {
        harness.append(&(nth..nth + 6).flat_map(filler).collect::<Vec<_>>());
        if reopened {
            let open = Session::open(settings(options()), Some("child".into()), 10_000);
            harness.session = harness.host.run(open).unwrap().0;
        }
        assert!(harness.compact().success);
        sent.push(texts(&harness.sent()));
    }
    sent
}

#[test]
fn f39_s4_3_a_fork_keeps_the_same_of_its_parent_whether_its_tab_was_reopened_or_not() {
    let (going_on, reopened) = (of_fork(false), of_fork(true));
    for (round, (one, other)) in going_on.iter().zip(&reopened).enumerate() {
        assert_eq!(one, other, "round {round}");
    }
    for sent in &going_on {
        assert!(sent.join("\n").contains("legacy/dump.sql"), "what the parent's summary told: {sent:?}");
    }
}

/// What messages say, without the ids of summaries.
fn texts(messages: &[Value]) -> Vec<String> {
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    messages.iter().map(text).collect()
}

#[test]
fn s5_16_an_answer_that_drops_what_must_be_kept_is_asked_for_once_more_and_then_added_to() {
    let mut harness = Harness::new(json!({
        "preset": "balanced", "contextWindow": 60_000, "summarize": { "attempts": 3 },
        "keep": { "messages": 2 },
    }));
    harness.host.summarise =
        Box::new(|_, _| summary("## State\nThe exporter was begun, and more was said about it."));
    harness.append(&conversation());
    let result = harness.compact();
    assert!(result.success, "{result:?}");
    let requests: Vec<String> =
        harness.host.seen.requests.iter().map(|(request, _)| request.messages[0].content.clone()).collect();
    assert_eq!(requests.len(), 2);
    for must in ["Never touch migrations/", "src/export/writer.rs", "legacy/dump.sql", "exporter_core"] {
        assert!(requests[1].rsplit("not accepted").next().unwrap().contains(must), "{must}");
    }
    assert_eq!(lost(&text_of(&harness)), Vec::<&str>::new());

    // One that repeats them is taken at once, and nothing of it is said twice.
    let mut harness = Harness::new(options());
    harness.host.summarise = Box::new(|_, _| {
        let lines: String = MUSTS.iter().map(|must| format!("- {must}\n")).collect();
        summary(&format!("## State\nThe exporter was begun.\n{lines}"))
    });
    harness.append(&conversation());
    harness.compact();
    assert_eq!(harness.host.seen.requests.len(), 1);
    assert!(!text_of(&harness).contains("src/export/writer.rs ("), "{}", text_of(&harness));
}

#[test]
fn s5_16_what_is_no_summary_of_these_messages_is_refused_and_the_built_in_one_takes_its_place() {
    let invented =
        "## State\nChanged src/ghost/alpha.rs, src/ghost/beta.rs, src/ghost/gamma.rs and the helpers in \
                    src/ghost/delta.rs, see https://ghost.example/issue/1 for what is left to do. "
            .to_owned()
            + &"It was all done as the user had asked for it. ".repeat(14);
    for (what, told) in [
        ("## State\nThe user asked for it.".to_owned(), "left out almost everything"),
        (invented, "names what the conversation does not"),
        (
            "Sure! I will write the exporter for you now and run the tests. ".repeat(14),
            "went on with the conversation",
        ),
        (
            format!("{}<tool_call>{{}}</tool_call>", "The exporter is built. ".repeat(40)),
            "went on with the conversation",
        ),
        ("## State\n\n## Decisions\n-\n\n## Next\n-".to_owned(), "headings"),
    ] {
        let reasons = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&reasons);
        let mut harness = Harness::new(options());
        let answer = what.clone();
        harness.host.summarise = Box::new(move |request, _| {
            seen.borrow_mut().push(request.messages[0].content.clone());
            summary(&answer)
        });
        harness.append(&[conversation(), (40..90).flat_map(filler).collect()].concat());
        let result = harness.compact();
        assert!(result.success, "{what}: {result:?}");
        assert_eq!(reasons.borrow().len(), 2, "{what}");
        assert!(reasons.borrow()[1].contains(told), "{what}");
        let text = text_of(&harness);
        assert!(!text.contains(&what) && text.contains("## Files"), "{what}: {text}");
    }
}

#[test]
fn s5_16_a_summariser_that_fails_leaves_the_built_in_summary_in_the_language_of_the_conversation() {
    let mut harness = Harness::new(options());
    harness.host.summarise = Box::new(|_, _| thrown("503 overloaded", Some(503)));
    let turns = (0..40).flat_map(|nth| {
        [
            user(&format!("请检查第 {nth} 个模块 src/模块/m{nth}.rs 的错误处理，并告诉我结果如何。")),
            assistant(&format!("第 {nth} 个模块已经检查完毕，错误处理没有问题，超时时间是 {nth}50ms。")),
        ]
    });
    harness.append(&turns.collect::<Vec<_>>());
    let result = harness.compact();
    assert!(result.success && result.llm_calls == 2, "{result:?}");
    let text = result.summary.unwrap();
    assert!(text.contains("## 用户所说") && text.contains("## 经过"), "{text}");
    assert!(text_of(&harness).contains("请检查第 0 个模块"), "what the user began with is quoted");
    assert!(!text.contains("503"), "{text}");
}

#[test]
fn the_users_newest_messages_are_quoted_within_the_budget_and_the_ledger_says_which() {
    let mut harness = Harness::new(options());
    let long = "The log of the nightly job follows, read it with care. ".repeat(200);
    let later = vec![user("And the next one?"), assistant("It is the same.")];
    harness.append(&[conversation(), vec![user(&long), assistant("I read it.")], later, filler(50)].concat());
    harness.compact();
    let ledger = harness.session.explain().unwrap();
    let quoted: Vec<usize> = ledger.iter().filter(|entry| entry.quoted).map(|entry| entry.index).collect();
    let text = text_of(&harness);
    for index in &quoted {
        assert_eq!(ledger[*index].fate, Fate::Verbatim);
        assert!(text.contains(&format!("<message index=\"{index}\" role=\"user\">")), "{text}");
    }
    // Too long for it: summarised, and one recall away.
    let index = conversation().len();
    assert!(!quoted.contains(&index) && ledger[index].fate == Fate::Summarised, "{:?}", ledger[index]);
    let hits = harness.host.run(harness.session.search("nightly job follows".into(), 3)).unwrap();
    assert!(!hits.is_empty());
    assert_eq!(ledger.len(), conversation().len() + 4 + 3);
}

#[test]
fn a_plan_and_a_prepare_agree_and_the_window_is_kept() {
    let mut harness =
        Harness::new(json!({ "preset": "balanced", "contextWindow": 12_000, "maxOutputTokens": 500 }));
    for nth in 0..300 {
        harness.append(&filler(nth));
        let prepared = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())).unwrap();
        assert!(prepared.usage.used_tokens <= 11_500, "{nth}");
    }
    assert!(harness.session.metadata().unwrap().compression_count > 0);
}

#[test]
fn a_long_history_is_gone_through_with_pauses_in_which_it_can_be_stopped() {
    let over = json!({
        "preset": "balanced", "contextWindow": 8_000_000, "compactAt": { "fraction": 1 },
        "summarize": { "fallback": "extractive" },
    });
    let mut harness = Harness::new(over);
    let part = 1 << 16;
    for nth in 0..12 {
        harness.append(&[user(&format!("Question {nth}?")), assistant(&long(&format!("part {nth}"), part))]);
    }
    let before = harness.context();
    let paused = |effect: &Effect| matches!(effect, Effect::Pause(_));
    harness.host.fault(5, paused, How::Fail(Code::Aborted));
    let stopped = harness.host.run(harness.session.compact(None)).unwrap_err();
    assert_eq!((stopped.code, harness.context()), (Code::Aborted, before));
    harness.host.seen.slept.clear();
    assert!(harness.compact().success);
    // Once for each part of the log, beside those between stages.
    assert!(harness.host.seen.slept.len() > 12, "{:?}", harness.host.seen.slept);
}

/// A conversation in which these commands were run, compacted by a model that names nothing.
fn after(commands: &[(&str, &str)]) -> String {
    let mut harness = Harness::new(options());
    harness.host.summarise =
        Box::new(|_, _| summary("## State\nThe exporter was begun, and more was said about it."));
    harness.append(&[user("Build the exporter.")]);
    for (nth, (command, output)) in commands.iter().enumerate() {
        let id = format!("c{nth}");
        harness.append(&[call(&id, "bash", json!({ "command": command })), answer(&id, output)]);
    }
    harness.append(&(0..12).flat_map(filler).collect::<Vec<_>>());
    harness.append(&[user("Go on."), assistant("I do.")]);
    assert!(harness.compact().success);
    text_of(&harness)
}

#[test]
fn s4_3_what_a_command_removes_is_a_file_only_where_it_names_one() {
    let text = after(&[("rm -f build/*.log $OUT/x.tmp `ls`.bak old/ /dev/shm.lock legacy/dump.sql", "")]);
    let removed: Vec<&str> = text.lines().filter(|line| line.ends_with("(deleted)")).collect();
    assert_eq!(removed, ["- legacy/dump.sql (deleted)"]);
}

#[test]
fn s4_3_a_command_that_failed_is_open_until_the_same_command_works() {
    let failed =
        ("cargo test -p exporter", "error[E0463]: can't find crate for `exporter_core`\nExit code 101");
    // What is no longer open is at most a detail.
    let is_open = |text: &str| text.split("## Details").next().unwrap().contains("exporter_core");
    let other = after(&[failed, ("cargo fmt --all", "ok")]);
    assert!(is_open(&other), "{other}");
    let same = after(&[failed, ("cargo test -p exporter", "test result: ok. 12 passed")]);
    assert!(!is_open(&same), "{same}");
}
