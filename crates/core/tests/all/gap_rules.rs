//! A log of which rows cannot be read: what is told of the gaps, and what an archive with gaps restores.

use crate::support::snapshots::{list, take};
use crate::support::transcripts::*;
use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::context::Fate;
use context_compactor_core::keys::batch::Key;
use context_compactor_core::log::Gap;
use context_compactor_core::session::transcript::Restore;
use context_compactor_core::session::{Remains, Session};
use context_compactor_core::step::{LogLevel, LossKind, Notice};
use context_compactor_store_tests::conversation::user;
use context_compactor_store_tests::{Host, How, MemoryStore};
use serde_json::{Value, json};
use std::rc::Rc;

fn keys(harness: &Harness, table: &str) -> Vec<Key> {
    let rows = harness.memory.rows().into_iter().map(|(key, _)| key);
    rows.filter(|key| key.to_string().starts_with(table)).collect()
}

fn spoil(harness: &Harness, key: &Key) {
    harness.memory.damage(key, Some(b"?".to_vec()));
}

/// Rows that the app was told are lost: position, index, how many.
fn told(host: &Host) -> Vec<(Option<u64>, Option<usize>, Option<u64>)> {
    let loss = |notice: &Notice| match notice {
        Notice::DataLoss { loss } => Some((loss.seq, loss.index, loss.lost_records)),
        _ => None,
    };
    host.seen.notices.iter().filter_map(loss).collect()
}

#[test]
fn f39_the_history_says_which_messages_cannot_be_read() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(4, 40));
    let log = keys(&harness, "log/");
    for seq in [2, 3, 5, 7] {
        spoil(&harness, &log[seq]);
    }
    let page = harness.host.run(harness.session.history(None)).unwrap();
    let places: Vec<(u64, usize)> = page.messages.iter().map(|said| (said.seq, said.index)).collect();
    assert_eq!(places, [(0, 0), (1, 1), (4, 4), (6, 6)]);
    let gap = |gap: &Gap| (gap.seq, gap.count, gap.index, gap.messages);
    let gaps: Vec<_> = page.gaps.iter().map(gap).collect();
    assert_eq!((gaps, page.next), (vec![(2, 2, 2, 2), (5, 1, 5, 1), (7, 1, 7, 1)], None));
    assert!(told(&harness.host).is_empty(), "the page says it");
    harness.host.run(harness.session.markdown(None)).unwrap();
    let lost = |at: u64, count| (Some(at), Some(at as usize), Some(count));
    assert_eq!(told(&harness.host), [lost(2, 2), lost(5, 1), lost(7, 1)]);
}

/// The lines of an archive that tell of a gap: position, rows, index, messages, and whether they have a view.
fn gap_lines(archive: &str) -> Vec<(u64, u64, u64, u64, bool)> {
    let gaps = lines(archive).into_iter().filter(|line| line["kind"] == "gap" && line["seq"].is_u64());
    let number = |line: &Value, field: &str| line[field].as_u64().unwrap();
    let of = |line: Value| {
        let number = |field: &str| number(&line, field);
        (number("seq"), number("count"), number("index"), number("messages"), line["view"].is_object())
    };
    gaps.map(of).collect()
}

fn options() -> Value {
    json!({ "preset": "offload", "compactAt": { "tokens": 2_000 } })
}

#[test]
fn f39_s3_9_an_archive_with_gaps_restores_the_context_with_every_view_and_offload() {
    let (mut harness, _) = worked(options());
    harness.host.run(harness.session.reject_pin(20)).unwrap();
    let whole = archive(&mut harness.host, &harness.session);
    let context = harness.session.explain().unwrap();
    let log: Vec<Value> = lines(&whole).into_iter().filter(|line| line["seq"].is_u64()).collect();
    let rows = keys(&harness, "log/");
    // A row that tells of a view, with the message before it.
    let view = log.iter().position(|line| line["kind"] == "view").unwrap();
    let index = log[view]["index"].as_u64().unwrap();
    spoil(&harness, &rows[view - 1]);
    spoil(&harness, &rows[view]);
    let text = archive(&mut harness.host, &harness.session);
    let at = view as u64;
    assert_eq!(gap_lines(&text), [(at - 1, 1, index - 1, 1, false), (at, 1, index, 0, true)]);
    let (again, report) = import(&text, Restore::Context, options()).unwrap();
    assert_eq!(report.messages, 32);
    assert_eq!(report.skipped.get("gap"), Some(&2), "{report:?}");
    let fates = |entries: Vec<context_compactor_core::context::LedgerEntry>| {
        entries.into_iter().map(|entry| (entry.index, entry.fate)).collect::<Vec<_>>()
    };
    assert_eq!(fates(again.session.explain().unwrap()), fates(context), "each message is what it was");
    // The messages alone come back without the one that is lost, and what was rejected moves with its message.
    let (mut again, _) = import(&text, Restore::Transcript, options()).unwrap();
    let (mut said, left) = (history(&mut harness), history(&mut again));
    assert_eq!((said.len(), left.len()), (31, 31));
    said.truncate(31);
    assert_eq!(said, left);
    let row = again.memory.rows().into_iter().find(|(key, _)| key.to_string().ends_with("/notes")).unwrap().1;
    let row: Value = serde_json::from_slice(&row).unwrap();
    assert_eq!(row["rejected"], json!([19]));
    // A line of a gap that is not where it says is refused.
    for (from, to) in [
        (format!("\"seq\":{},\"count\":1", at - 1), format!("\"seq\":{at},\"count\":1")),
        (format!("\"seq\":{},\"count\":1", at - 1), format!("\"seq\":{},\"count\":0", at - 1)),
        (format!("\"seq\":{},\"count\":1", at - 1), format!("\"seq\":{},\"count\":9999", at - 1)),
        ("\"messages\":1,".to_owned(), "\"messages\":2,".to_owned()),
    ] {
        let gap = text.lines().find(|line| line.contains("\"kind\":\"gap\"")).unwrap();
        assert!(gap.contains(&from), "{gap}");
        let forged = text.replacen(gap, &gap.replacen(&from, &to, 1), 1);
        let error = refused(&forged, Restore::Context, options());
        assert_eq!(error.code, Code::InvalidMessage, "{to}");
        assert!(error.message.contains("it does not follow the line before"), "{error}");
    }
}

#[test]
fn f39_s3_9_a_view_or_an_offload_that_is_lost_is_told_in_the_archive_and_does_not_keep_it_from_being_read() {
    let (mut harness, _) = worked(options());
    let whole = archive(&mut harness.host, &harness.session);
    let reference = harness.session.explain().unwrap().into_iter().find_map(|entry| {
        entry.reference.filter(|_| entry.fate == Fate::Summarised).map(|reference| (entry.index, reference))
    });
    let (index, reference) = reference.unwrap();
    let seq =
        lines(&whole).iter().find(|line| line["kind"] == "message" && line["index"] == json!(index)).unwrap()
            ["seq"]
            .as_u64()
            .unwrap();
    // The first view, the result that the reference is of, and its message.
    spoil(&harness, &keys(&harness, "views/")[0]);
    for key in keys(&harness, "blobs/").into_iter().filter(|key| key.to_string().contains(&reference)) {
        harness.memory.damage(&key, None);
    }
    spoil(&harness, &keys(&harness, "log/")[seq as usize]);
    let text = archive(&mut harness.host, &harness.session);
    let gaps: Vec<Value> = lines(&text).into_iter().filter(|line| line["kind"] == "gap").collect();
    assert!(gaps.iter().any(|line| line["ref"] == json!(reference)), "{gaps:?}");
    let viewless = |line: &Value| line["kind"] == "view" && !line["view"].is_object();
    assert_eq!(lines(&text).into_iter().filter(viewless).count(), 1);
    let (again, report) = import(&text, Restore::Context, options()).unwrap();
    assert_eq!(report.skipped.get("gap"), Some(&3), "{report:?}");
    assert_eq!(again.session.explain().unwrap().len(), 32);
}

#[test]
fn f39_s5_2_a_snapshot_that_cannot_be_read_is_left_out_with_a_warning_and_the_others_stay() {
    let mut harness = Harness::new(json!({}));
    let mut ids = Vec::new();
    for nth in 0..3 {
        harness.append(&[user(&format!("ask {nth}"))]);
        ids.push(take(&mut harness));
    }
    spoil(&harness, &keys(&harness, "log/")[3]);
    let listed: Vec<String> = list(&mut harness).into_iter().map(|one| one.id).collect();
    assert_eq!(listed, [ids[0].as_str(), ids[2].as_str()]);
    let (level, line) = harness.host.seen.logs.last().unwrap();
    assert_eq!(*level, LogLevel::Warn);
    assert!(line.starts_with(&format!("Snapshot {} cannot be restored any more: ", ids[1])), "{line}");
}

#[test]
fn f39_s3_9_messages_of_an_archive_that_ends_early_come_back_and_the_end_is_told_as_missing() {
    let (mut harness, _) = worked(options());
    let text = archive(&mut harness.host, &harness.session);
    let is_log = |line: &&str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["seq"].is_u64() || line["kind"] == "session"
    };
    let log: Vec<&str> = text.lines().filter(is_log).collect();
    let there = log.len() - 1;
    let short = log[..there - 2].join("\n");
    let told = format!("the transcript ends early: {} of {there} lines of the log are there", there - 3);
    let error = refused(&short, Restore::Context, options());
    assert_eq!(error.code, Code::InvalidMessage);
    let more = "; import it with `from: \"transcript\"` to restore these";
    assert!(error.message.contains(&format!("{told}{more}")), "{error}");
    let (again, _) = import(&short, Restore::Transcript, options()).unwrap();
    assert!(again.host.seen.logs.contains(&(LogLevel::Warn, told.clone())), "{:?}", again.host.seen.logs);
    let (whole, _) = import(&log.join("\n"), Restore::Transcript, options()).unwrap();
    assert!(
        whole.host.seen.logs.iter().all(|(level, _)| *level != LogLevel::Warn),
        "{:?}",
        whole.host.seen.logs
    );
}

#[test]
fn f39_d16_of_two_sessions_that_say_the_same_name_one_gets_another() {
    let memory = Rc::<MemoryStore>::default();
    for name in ["one", "two"] {
        let own = Rc::<MemoryStore>::default();
        let mut host = Host::new(Rc::clone(&own) as _, name);
        let (session, _) = host.run(Session::open(settings(json!({})), Some("a".into()), 10_000)).unwrap();
        host.run(session.append(vec![user(name)])).unwrap();
        for (key, bytes) in own.rows().into_iter().filter(|(key, _)| !key.to_string().starts_with("meta/")) {
            memory.damage(&key, Some(bytes));
        }
    }
    let mut host = Host::new(Rc::clone(&memory) as _, "salvage");
    let found: Vec<Remains> = host.run(Session::remains()).unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0].id, "a");
    assert!(found[1].id.starts_with("salvaged-"), "{found:?}");
    let kinds: Vec<_> = found.iter().map(|remains| remains.loss.as_ref().unwrap().kind).collect();
    assert_eq!(kinds, [LossKind::Repaired, LossKind::Repaired]);
}

#[test]
fn f39_d24_a_session_that_was_erased_from_and_is_being_deleted_is_gone_for_every_tab() {
    // A store that takes little at once: the rows go in several batches.
    let memory = Rc::<MemoryStore>::default();
    let open = |name: &str| {
        let mut host = Host::new(Rc::clone(&memory) as _, name);
        let opening = Session::open(settings(json!({})), Some("s".into()), 12);
        let (session, _) = host.run(opening).unwrap();
        Harness { memory: Rc::clone(&memory), host, session }
    };
    let mut harness = open("a");
    for nth in 0..12 {
        harness.append(&[user(&format!("ask {nth}"))]);
    }
    let mut other = open("b");
    harness.host.run(harness.session.erase(0, "a key".into())).unwrap();
    harness.host.fault(1, is_commit, How::CrashAfter);
    assert!(harness.host.try_run(harness.session.delete()).is_none());
    assert!(!harness.memory.rows().is_empty(), "its rows are still there");
    let error = other.host.run(other.session.append(vec![user("more")])).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (Code::Closed, "the session was deleted elsewhere"));
}
