//! Sub-agents: sessions that begin from another one, linked to it and independent of it.

use crate::support::*;
use context_compactor_core::context::Fate;
use context_compactor_core::keys::batch::Batch;
use context_compactor_core::log::SnapshotPurpose;
use context_compactor_core::session::{Forked, ParentInfo, Session, SessionInfo, audit};
use context_compactor_core::step::Effect;
use context_compactor_core::wire::Format;
use context_compactor_core::{Code, Error};
use context_compactor_store_tests::conversation::{assistant, user};
use context_compactor_store_tests::host::{summary, thrown};
use context_compactor_store_tests::{How, MemoryStore};
use serde_json::{Value, json};
use std::rc::Rc;

/// A harness on the fork of a harness's session.
fn fork(harness: &mut Harness, id: &str) -> Result<(Harness, Forked), Error> {
    let (session, forked) = harness.host.run(harness.session.fork(Some(id.into())))?;
    let mut child = Harness::over(Rc::clone(&harness.memory), &format!("host of {id}"), json!({}));
    child.session = session;
    Ok((child, forked))
}

/// The session called `id`, opened anew.
fn open(memory: &Rc<MemoryStore>, id: &str, over: Value) -> Result<Harness, Error> {
    let mut harness = Harness::over(Rc::clone(memory), &format!("another host of {id}"), json!({}));
    harness.session = harness.host.run(Session::open(settings(over), Some(id.into()), 10_000))?.0;
    Ok(harness)
}

/// What the store holds of the session called `id`, checked.
fn stored(harness: &Harness, id: &str) -> audit::Audit {
    audit::audit(id, &harness.memory.rows()).unwrap()
}

fn list(harness: &mut Harness) -> Vec<SessionInfo> {
    let mut found = harness.host.run(Session::list()).unwrap();
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found
}

fn references(harness: &Harness) -> Vec<String> {
    harness.session.explain().unwrap().into_iter().filter_map(|entry| entry.reference).collect()
}

/// A session with offloads in front of a summary and behind it, and a pinned message that the summary quotes.
fn worked(format: Format) -> Harness {
    let offload = json!({ "offloadThreshold": 600, "compactCooldownSteps": 1_000, "scanRatio": 1 });
    let mut harness = Harness::new(json!({ "presetOptions": offload, "pins": { "match": true } }));
    harness.host.pinned = Box::new(|index| index == 1);
    harness.append(&[Rc::from(json!({ "role": "user", "content": "begin" }).to_string())]);
    for nth in 0..4 {
        harness.append(&turn(format, nth, 120));
    }
    harness.prepare();
    assert!(harness.compact().success);
    for nth in 4..8 {
        harness.append(&turn(format, nth, 120));
    }
    harness.prepare();
    let fates: Vec<Fate> = harness.session.explain().unwrap().iter().map(|entry| entry.fate).collect();
    assert!(fates.contains(&Fate::Summarised) && fates.contains(&Fate::Offloaded), "{fates:?}");
    harness
}

#[test]
fn s3_10_a_fork_begins_with_the_parents_context_and_reads_its_references() {
    for format in [Format::OpenaiChat, Format::Anthropic] {
        let mut parent = worked(format);
        let sent = parent.sent();
        let rows = parent.stored().rows;
        let (mut child, forked) = fork(&mut parent, "child").unwrap();
        assert_eq!(child.sent(), sent, "the same messages");
        let (usage, of_parent) = (child.session.usage().unwrap(), parent.session.usage().unwrap());
        assert_eq!(usage.used_tokens, of_parent.used_tokens);
        assert_eq!(usage.offload_count, of_parent.offload_count);
        // Of its own log every message has one fate; the pinned one stands in the summary still.
        let fates = child.session.explain().unwrap();
        assert!(fates.iter().map(|entry| entry.index).eq(0..forked.opened.messages));
        assert_eq!(fates.iter().filter(|entry| entry.quoted).count(), 1);
        assert!(!fates.iter().any(|entry| entry.fate == Fate::Summarised));
        assert_eq!(forked.places.len(), forked.opened.messages);
        let (audited, of_parent) = (stored(&child, "child"), parent.stored());
        for (place, body) in forked.places.iter().zip(&audited.messages) {
            assert_eq!(&of_parent.messages[place.index], body, "messages as the app handed them over");
        }
        let inherited = references(&child);
        assert!(inherited.len() >= 2);
        for reference in &inherited {
            assert_eq!(child.read(reference), parent.read(reference));
        }
        // A reference in a text is not one, and one of the parent that the context does not hold is not the child's.
        let hidden = references(&parent).into_iter().find(|reference| !inherited.contains(reference));
        let hidden = child.host.run(child.session.read(hidden.unwrap(), 0, None)).unwrap_err();
        assert_eq!(hidden.code, Code::NotFound);
        // Read back, it is the same; and it is linked.
        let mut again = open(
            &parent.memory,
            "child",
            json!({ "presetOptions": { "offloadThreshold": 600, "scanRatio": 1 } }),
        )
        .unwrap();
        assert_eq!(again.sent(), sent);
        let link = ParentInfo { id: "s".into(), seq: rows };
        let sessions = list(&mut parent);
        assert_eq!(sessions[0].parent, Some(link));
        assert_eq!((sessions[1].id.as_str(), &sessions[1].parent), ("s", &None));
        let children = parent.host.run(parent.session.children()).unwrap();
        assert_eq!(children, sessions[..1]);
        assert!(child.host.run(child.session.children()).unwrap().is_empty());
    }
}

#[test]
fn s3_10_what_the_parent_pinned_stays_in_the_child_word_for_word() {
    let mut parent = worked(Format::OpenaiChat);
    let (mut child, _) = fork(&mut parent, "child").unwrap();
    for round in 0..2 {
        child.append(&talk(8, 100));
        let result = child.compact();
        assert!(result.success && result.summary.is_some(), "{round}");
        let quoted = child.session.explain().unwrap().iter().filter(|entry| entry.quoted).count();
        assert_eq!(quoted, 1, "{round}");
    }
}

#[test]
fn s3_10_parent_and_child_never_change_each_other() {
    let format = Format::OpenaiChat;
    let mut parent = worked(format);
    let (mut child, _) = fork(&mut parent, "child").unwrap();
    let inherited = references(&child);
    let (of_parent, sent) = (parent.context(), parent.sent());
    child.append(&turn(format, 20, 200));
    assert!(child.compact().success, "by the same rules");
    child.append(&turn(format, 21, 200));
    child.prepare();
    assert_eq!((parent.context(), parent.sent()), (of_parent, sent));
    parent.append(&[user("meanwhile")]);
    assert!(parent.compact().success);
    stored(&child, "child");
    // The summary of the child covers what it inherited: offloads are retired in the child alone.
    for reference in &inherited {
        assert_eq!(child.read(reference), parent.read(reference));
    }
    let before = child.sent();
    parent.host.run(parent.session.delete()).unwrap();
    assert_eq!(child.sent(), before);
    let mut again = open(&child.memory, "child", json!({})).unwrap();
    assert_eq!(again.session.explain().unwrap(), child.session.explain().unwrap());
    for reference in &inherited {
        assert!(again.read(reference).starts_with("result "), "whole without its parent");
    }
    let sessions = list(&mut again);
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].parent.as_ref().unwrap().id, "s", "it says where it came from");
    again.append(&[user("on my own")]);
    stored(&again, "child");
    again.host.run(again.session.delete()).unwrap();
    assert!(again.memory.rows().is_empty(), "nothing is left behind");
}

#[test]
fn s3_10_deleting_a_child_leaves_the_parent_and_its_other_children_whole() {
    let mut parent = worked(Format::OpenaiChat);
    let sent = parent.sent();
    let (child, _) = fork(&mut parent, "a").unwrap();
    let (mut other, _) = fork(&mut parent, "b").unwrap();
    parent.host.run(child.session.delete()).unwrap();
    assert_eq!((parent.sent(), other.sent()), (sent.clone(), sent));
    parent.stored();
    stored(&other, "b");
    // A new session under the parent's name is not their parent.
    parent.host.run(parent.session.delete()).unwrap();
    let mut next = Harness::over(Rc::clone(&other.memory), "c", json!({}));
    next.append(&[user("new")]);
    assert!(next.host.run(next.session.children()).unwrap().is_empty());
}

#[test]
fn s3_10_forks_of_forks() {
    let mut parent = worked(Format::OpenaiChat);
    let sent = parent.sent();
    let (mut child, _) = fork(&mut parent, "child").unwrap();
    child.append(&[user("deeper")]);
    let (mut grandchild, _) = fork(&mut child, "grandchild").unwrap();
    let mut expected = sent;
    expected.push(json!({ "role": "user", "content": "deeper" }));
    assert_eq!(grandchild.sent(), expected);
    stored(&grandchild, "grandchild");
    child.host.run(child.session.delete()).unwrap();
    parent.host.run(parent.session.delete()).unwrap();
    for reference in references(&grandchild) {
        assert!(grandchild.read(&reference).starts_with("result "));
    }
    assert_eq!(list(&mut grandchild)[0].parent.as_ref().unwrap().id, "child");
}

#[test]
fn s3_10_a_fork_is_rewound_as_far_as_it_stands_behind_the_summary() {
    let mut parent = worked(Format::OpenaiChat);
    let (mut child, forked) = fork(&mut parent, "child").unwrap();
    let error = child.host.run(child.session.rewind(0)).unwrap_err();
    assert_eq!(error.code, Code::InvalidOption);
    assert!(error.message.contains("rewind to 1 or later"), "{error}");
    // The last answer is left, and the context before it is the parent's of then: summary first, results whole.
    let last = forked.opened.messages - 1;
    child.host.run(child.session.rewind(last)).unwrap();
    let sent = child.sent();
    assert_eq!(sent[0], parent.sent()[0], "the summary");
    assert_eq!(sent.len(), parent.sent().len() - 1);
    assert_valid(Format::OpenaiChat, &sent);
    stored(&child, "child");
}

#[test]
fn s3_10_a_fork_works_on_the_goal_of_its_parent() {
    let mut parent = Harness::new(json!({}));
    let goal = json!({ "id": "g", "description": "Ship it", "checkpoints": [{ "description": "Test it" }] });
    parent.host.run(parent.session.set_goal(goal.to_string())).unwrap();
    parent.append(&[user("one"), assistant("1")]);
    let text = "[CHECKPOINT] Test it - COMPLETED".to_string();
    parent.host.run(parent.session.apply_markers(text)).unwrap();
    let (mut child, _) = fork(&mut parent, "child").unwrap();
    let reached = parent.session.goal().unwrap();
    assert!(reached.as_ref().unwrap().checkpoints[0].completed_at.is_some());
    assert_eq!(child.session.goal().unwrap(), reached);
    assert!(child.prepare().goal.unwrap().contains("Ship it"), "and is told so");
    let again = open(&parent.memory, "child", json!({})).unwrap();
    assert_eq!(again.session.goal().unwrap(), reached);
}

#[test]
fn s3_10_a_fork_waits_as_long_after_an_attempt_as_its_parent() {
    let mut parent = Harness::new(json!({ "compactAt": { "tokens": 100 }, "summarize": { "attempts": 1 } }));
    parent.host.summarise = Box::new(|_, _| thrown("no", None));
    parent.append(&talk(6, 40));
    assert!(!parent.prepare().result.unwrap().success);
    let (mut child, _) = fork(&mut parent, "child").unwrap();
    let mut attempts = Vec::new();
    for step in 2..=7 {
        child.append(&[user("go"), assistant("on")]);
        if child.prepare().result.is_some() {
            attempts.push(step);
        }
    }
    assert_eq!(attempts, [6], "five steps after the attempt of its parent");
}

#[test]
fn s3_10_an_empty_and_a_plain_session_can_be_forked() {
    let mut parent = Harness::new(json!({}));
    let (mut child, _) = fork(&mut parent, "of nothing").unwrap();
    assert!(child.sent().is_empty());
    child.append(&[user("one")]);
    stored(&child, "of nothing");
    parent.append(&[user("hello"), assistant("hi")]);
    let (mut child, _) = fork(&mut parent, "plain").unwrap();
    assert_eq!(child.sent(), parent.sent());
    assert_eq!(stored(&child, "plain").generation, 0, "no view is needed");
    child.host.run(child.session.rewind(0)).unwrap();
    assert!(child.sent().is_empty());
    let session = parent.host.run(parent.session.fork(None)).unwrap();
    assert!(session.1.opened.id.starts_with("session_"));
    assert_eq!(fork(&mut parent, "plain").err().unwrap().code, Code::Conflict);
    assert_eq!(fork(&mut parent, "s").err().unwrap().code, Code::Conflict);
}

#[test]
fn s3_10_s5_2_a_fork_begins_with_no_snapshots_and_without_what_was_left_behind() {
    let mut parent = Harness::new(json!({}));
    parent.append(&[user("one"), assistant("1")]);
    let taken = parent.host.run(parent.session.snapshot(SnapshotPurpose::Rollback)).unwrap();
    parent.append(&[user("two"), assistant("2")]);
    parent.host.run(parent.session.restore(taken.clone())).unwrap();
    let (mut child, forked) = fork(&mut parent, "child").unwrap();
    assert_eq!((forked.opened.messages, child.sent()), (2, parent.sent()));
    assert!(child.host.run(child.session.snapshots()).unwrap().is_empty());
    let error = child.host.run(child.session.restore(taken)).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    let own = child.host.run(child.session.snapshot(SnapshotPurpose::Rollback)).unwrap();
    child.append(&[user("three")]);
    child.host.run(child.session.restore(own)).unwrap();
    assert_eq!(child.sent(), parent.sent());
    stored(&child, "child");
    stored(&parent, "s");
}

#[test]
fn s3_10_a_fork_is_there_whole_or_not_at_all() {
    use How::{CrashAfter, CrashBefore, Fail, Lost};
    for how in [CrashBefore, CrashAfter, Lost, Fail(Code::QuotaExceeded)] {
        let mut parent = worked(Format::OpenaiChat);
        let (sent, before) = (parent.sent(), parent.memory.rows());
        parent.host.fault(1, is_commit, how);
        let forked = parent.host.try_run(parent.session.fork(Some("child".into())));
        if matches!(how, CrashAfter | Lost) {
            assert_eq!(matches!(forked, Some(Ok(_))), how == Lost);
            let over = json!({ "presetOptions": { "offloadThreshold": 600, "scanRatio": 1 } });
            assert_eq!(open(&parent.memory, "child", over).unwrap().sent(), sent);
        } else {
            assert_eq!(parent.memory.rows(), before, "{how:?} wrote nothing");
            fork(&mut parent, "child").unwrap();
        }
        stored(&parent, "child");
    }
}

/// A session over a store that takes few operations at once.
fn small_batches() -> Harness {
    let mut harness = Harness::new(json!({}));
    harness.session = harness.host.run(Session::open(settings(json!({})), Some("s".into()), 12)).unwrap().0;
    harness.append(&talk(20, 5));
    harness
}

#[test]
fn s3_10_a_fork_that_no_batch_holds_is_staged_and_swept_when_it_was_stopped() {
    let size = |batch: &Batch| batch.expect.len() + batch.puts.len() + batch.deletes.len();
    let mut parent = small_batches();
    let (before, commits) = (parent.memory.rows(), parent.host.seen.commits.len());
    let (mut child, _) = fork(&mut parent, "child").unwrap();
    assert_eq!(child.sent(), parent.sent());
    stored(&child, "child");
    let commits = parent.host.seen.commits[commits..].to_vec();
    assert!(commits.len() > 4 && commits.iter().all(|batch| size(batch) <= 12));
    child.session = open(&parent.memory, "child", json!({})).unwrap().session;
    child.host.run(child.session.delete()).unwrap();
    assert_eq!(parent.memory.rows(), before, "no note is left");
    for stop in 1..=commits.len() {
        let mut parent = small_batches();
        let before = parent.memory.rows();
        parent.host.fault(stop, is_commit, How::CrashBefore);
        assert!(parent.host.try_run(parent.session.fork(Some("child".into()))).is_none());
        assert_eq!(list(&mut parent).len(), 1, "nothing of it is seen");
        // A while later the next fork cleans up.
        parent.host.now += 3_700_000;
        let (child, _) = fork(&mut parent, "child").unwrap();
        child_deleted(&mut parent, &child);
        assert_eq!(parent.memory.rows(), before, "stopped before batch {stop}");
    }
}

fn child_deleted(parent: &mut Harness, child: &Harness) {
    parent.host.run(child.session.delete()).unwrap();
}

#[test]
fn s3_10_a_fork_under_way_is_not_swept_and_one_that_was_gives_up() {
    for (late, code) in [(0, None), (3_700_000, Some(Code::Conflict))] {
        let mut parent = small_batches();
        let memory = Rc::clone(&parent.memory);
        let mut commits = 0;
        parent.host.meanwhile = Box::new(move |effect| {
            commits += u32::from(matches!(effect, Effect::Commit(_)));
            if commits == 3 && is_commit(effect) {
                commits += 1;
                let mut other = Harness::over(Rc::clone(&memory), "b", json!({}));
                other.host.now += late;
                let (session, _) = other.host.run(other.session.fork(Some("other".into()))).unwrap();
                other.host.run(session.delete()).unwrap();
            }
        });
        let ended = fork(&mut parent, "child");
        assert_eq!(ended.as_ref().err().map(|error| error.code), code);
        parent.host.meanwhile = Box::new(|_| {});
        if code.is_none() {
            stored(&parent, "child");
        }
        assert_eq!(list(&mut parent).len(), 2 - usize::from(code.is_some()));
    }
}

#[test]
fn s3_10_a_session_that_is_opened_with_a_parent_begins_empty_and_linked() {
    let mut parent = Harness::new(json!({}));
    parent.append(&[user("hello"), assistant("hi")]);
    let rows = parent.stored().rows;
    let with = |parent: &str| json!({ "parent": parent });
    let missing = open(&parent.memory, "child", with("nobody")).map(|_| ()).unwrap_err();
    assert_eq!(missing.code, Code::NotFound);
    let mut child = open(&parent.memory, "child", with("s")).unwrap();
    assert!(child.sent().is_empty());
    // Durable before anything is said.
    let children = parent.host.run(parent.session.children()).unwrap();
    assert_eq!(children[0].parent, Some(ParentInfo { id: "s".into(), seq: rows }));
    child.append(&[user("a task")]);
    stored(&child, "child");
    let other = open(&parent.memory, "child", with("nobody")).map(|_| ()).unwrap_err();
    assert_eq!((other.code, other.field.as_deref()), (Code::InvalidOption, Some("parent")));
    let other = open(&parent.memory, "s", with("child")).map(|_| ()).unwrap_err();
    assert!(other.message.contains("none"), "{other}");
    // Its parent may be gone.
    parent.host.run(parent.session.delete()).unwrap();
    assert_eq!(open(&child.memory, "child", with("s")).unwrap().sent().len(), 1);
}

#[test]
fn s3_10_a_link_is_written_once_whatever_happens() {
    use How::{CrashAfter, CrashBefore, Fail, Lost};
    for how in [CrashBefore, CrashAfter, Lost, Fail(Code::Conflict), Fail(Code::Indeterminate)] {
        let mut parent = Harness::new(json!({}));
        parent.append(&[user("hello")]);
        let given = settings(json!({ "parent": "s" }));
        parent.host.fault(1, is_commit, how);
        let opened = parent.host.try_run(Session::open(Rc::clone(&given), Some("child".into()), 10_000));
        assert_eq!(opened.is_some(), !matches!(how, CrashBefore | CrashAfter));
        assert!(opened.is_none_or(|opened| opened.is_ok()), "{how:?}");
        parent.host.run(Session::open(given, Some("child".into()), 10_000)).unwrap();
        assert_eq!(parent.host.run(parent.session.children()).unwrap().len(), 1);
        stored(&parent, "child");
    }
}

#[test]
fn s3_10_inherited_checkpoints_age_and_merge_in_the_child_as_in_the_parent() {
    let over = json!({
        "preset": "checkpoint", "contextWindow": 32_000, "maxOutputTokens": 0, "summarize": { "detail": 3 },
    });
    let mut parent = Harness::new(over);
    let another = |harness: &mut Harness, nth: usize| {
        for ask in 0..6 {
            harness.append(&[user(&format!("ask {ask}")), assistant(&long("answer", 200))]);
        }
        harness.host.summarise = Box::new(move |request, _| {
            let times = if request.system.starts_with("You keep") { 2 } else { 6 };
            let told = "the tools answered and the parser was read again. ".repeat(times);
            summary(&format!("part {nth}: {told}"))
        });
        let result = harness.compact();
        assert!(result.success, "{result:?}");
    };
    for nth in 0..6 {
        another(&mut parent, nth);
    }
    let (mut child, _) = fork(&mut parent, "child").unwrap();
    assert_eq!(child.sent(), parent.sent());
    let known = |harness: &Harness| {
        let records = harness.session.checkpoints().unwrap();
        records.into_iter().map(|record| (record.id, record.number, record.level)).collect::<Vec<_>>()
    };
    assert_eq!((known(&child), known(&child).len()), (known(&parent), 6));
    assert_eq!(child.session.reliability().unwrap(), parent.session.reliability().unwrap());
    for nth in 6..20 {
        another(&mut parent, nth);
        another(&mut child, nth);
        let levels = |harness: &Harness| {
            let records = harness.session.checkpoints().unwrap();
            records.into_iter().map(|record| (record.number, record.level)).collect::<Vec<_>>()
        };
        assert_eq!(levels(&child), levels(&parent), "{nth}");
        assert_valid(Format::OpenaiChat, &child.sent());
    }
    stored(&child, "child");
    let own = stored(&child, "child").messages.len();
    assert_eq!(child.session.explain().unwrap().len(), own);
    let again = open(&parent.memory, "child", json!({ "preset": "checkpoint" })).unwrap();
    assert_eq!(known(&again), known(&child));
}
