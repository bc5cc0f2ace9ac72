//! The transcript of a session: history, archive, Markdown, and sessions from transcripts (`S3.9`, `S5.3`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use context_compactor_core::session::batch::Key;
use context_compactor_core::session::transcript::{Export, Importer, Kind, Report, Restore};
use context_compactor_core::session::{Fate, Opened, SCHEMA, Session, SnapshotPurpose};
use context_compactor_core::wire::Format;
use context_compactor_core::{Code, Error};
use context_compactor_store_tests::conversation::{Body, assistant, body, exchange, results, user};
use context_compactor_store_tests::host::summary;
use context_compactor_store_tests::recorded;
use context_compactor_store_tests::{Host, How, MemoryStore};
use serde_json::{Value, json};
use std::rc::Rc;
use support::*;

/// The whole archive of a session.
fn archive(host: &mut Host, session: &Session) -> String {
    let mut bytes = Vec::new();
    let mut next = Some(Export::Begin);
    while let Some(at) = next {
        let (page, then) = host.run(session.export(at)).unwrap();
        bytes.extend(page);
        next = then;
    }
    String::from_utf8(bytes).unwrap()
}

fn lines(archive: &str) -> Vec<Value> {
    archive.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Imports a transcript, fed `chunk` bytes at a time.
fn import_in(
    host: &mut Host,
    text: &str,
    id: Option<&str>,
    restore: Restore,
    chunk: usize,
    over: Value,
) -> Result<(Session, Opened, Report), Error> {
    let open = Importer::open(settings(over), id.map(str::to_owned), restore, 10_000);
    let importer = host.run(open)?;
    let fed = text.as_bytes().chunks(chunk).try_for_each(|bytes| host.run(importer.feed(bytes.to_vec())));
    let done = fed.and_then(|()| host.run(importer.finish()));
    if done.is_err() {
        host.run(importer.abandon())?;
    }
    done
}

/// Imports it into a store of its own, as session `s`.
fn import(text: &str, restore: Restore, over: Value) -> Result<(Desk, Report), Error> {
    let memory = Rc::new(MemoryStore::default());
    let mut host = Host::new(Rc::clone(&memory) as _, "import");
    host.summarise = Box::new(|_, _| summary(SUMMARY));
    let done = import_in(&mut host, text, Some("s"), restore, 1 << 16, over);
    if done.is_err() {
        assert_eq!(memory.rows(), [], "nothing is left of an import that failed");
    }
    done.map(|(session, _, report)| (Desk { memory, host, session }, report))
}

/// Why it cannot be imported.
fn refused(text: &str, restore: Restore, over: Value) -> Error {
    import(text, restore, over).err().expect("the import must fail")
}

fn history(desk: &mut Desk) -> Vec<String> {
    let mut bodies = Vec::new();
    let mut next = None;
    loop {
        let page = desk.host.run(desk.session.history(next)).unwrap();
        bodies.extend(page.messages.into_iter().map(|said| said.body));
        next = page.next;
        if next.is_none() {
            return bodies;
        }
    }
}

fn markdown(desk: &mut Desk) -> String {
    let page = desk.host.run(desk.session.markdown(None)).unwrap();
    assert_eq!(page.next, None);
    page.text
}

/// A session that has offloads and summaries.
fn worked(over: Value) -> (Desk, Vec<Body>) {
    let mut options = json!({ "contextWindow": 12_000 });
    for (key, value) in over.as_object().unwrap() {
        options[key] = value.clone();
    }
    let mut desk = Desk::new(options);
    let mut all = Vec::new();
    for nth in 0..8 {
        let messages = turn(Format::OpenaiChat, nth, 600);
        desk.append(&messages);
        all.extend(messages);
        desk.prepare();
        if nth % 3 == 2 {
            assert!(desk.compact().success);
        }
    }
    (desk, all)
}

fn presets() -> [Value; 5] {
    [
        json!({ "preset": "offload" }),
        json!({ "preset": "offload", "offload": { "offloadThreshold": 2_000 } }),
        json!({ "preset": "layered", "layered": { "largeOutputTokens": 500 } }),
        json!({ "preset": "factor3" }),
        json!({ "preset": "checkpoint", "contextWindow": 32_000 }),
    ]
}

#[test]
fn s5_3_the_history_is_every_message_in_order_whatever_was_compacted() {
    for over in presets() {
        let (mut desk, all) = worked(over);
        assert_eq!(history(&mut desk), all.iter().map(|body| body.to_string()).collect::<Vec<_>>());
    }
}

#[test]
fn s5_3_a_page_of_the_history_is_of_bounded_bytes_and_what_is_appended_meanwhile_is_not_in_it() {
    let mut desk = Desk::new(json!({ "contextWindow": 10_000_000 }));
    let big: Vec<Body> = (0..12).map(|nth| user(&long(&nth.to_string(), 250_000))).collect();
    desk.append(&big);
    let first = desk.host.run(desk.session.history(None)).unwrap();
    let bytes: usize = first.messages.iter().map(|said| said.body.len()).sum();
    assert!(bytes <= 4 << 20 && first.messages.len() >= 3, "{bytes}");
    desk.append(&[user("later")]);
    let mut indices: Vec<usize> = first.messages.iter().map(|said| said.index).collect();
    let mut next = first.next;
    while next.is_some() {
        let page = desk.host.run(desk.session.history(next)).unwrap();
        indices.extend(page.messages.iter().map(|said| said.index));
        next = page.next;
    }
    assert_eq!(indices, (0..12).collect::<Vec<_>>());
}

#[test]
fn s5_3_metadata_counts_what_was_said_and_the_records_tell_of_every_checkpoint() {
    let (mut desk, all) = worked(json!({ "preset": "checkpoint", "contextWindow": 32_000, "level": 3 }));
    let metadata = desk.session.metadata().unwrap();
    assert_eq!((metadata.total_messages, metadata.compression_count), (all.len(), 2));
    let mut plain = Desk::new(json!({ "contextWindow": 1_000_000 }));
    plain.append(&all);
    assert_eq!(metadata.total_tokens, plain.session.usage().unwrap().used_tokens, "of what was appended");
    assert!(1_700_000_000_000 < metadata.start_time && metadata.start_time < metadata.last_update);
    let records = desk.host.run(desk.session.checkpoint_records()).unwrap();
    assert_eq!(records.len(), 2);
    assert_eq!(records[0].message_range.0, 0, "half-open and real");
    assert!(records[0].message_range.1 <= 12 && records[1].message_range.1 <= 24);
    for record in &records {
        let ratio = record.compressed_tokens as f64 / record.original_tokens as f64;
        assert_eq!((record.compression_ratio, record.level.map(u8::from)), (ratio, Some(3)));
    }
    // Those that another one stands for are told of too.
    let mut aged = Desk::new(json!({ "preset": "checkpoint", "contextWindow": 32_000, "level": 3 }));
    aged.host.summarise = Box::new(|request, attempt| {
        let text = format!("summary {attempt} of {} bytes, with a word about each tool.", request.max_tokens);
        summary(&text.repeat(if request.max_tokens > 300 { 8 } else { 1 }))
    });
    for nth in 0..14 {
        aged.append(&talk(6, 300).into_iter().chain([user(&format!("{nth}"))]).collect::<Vec<_>>());
        let done = aged.compact();
        assert!(done.success, "{nth}: {done:?}");
    }
    let standing = aged.session.checkpoints().unwrap();
    let records = aged.host.run(aged.session.checkpoint_records()).unwrap();
    assert!(records.len() > standing.len() && records.len() >= 14, "{} {}", records.len(), standing.len());
    for record in &standing {
        assert!(records.contains(record), "as it is now");
    }
}

#[test]
fn s5_3_markdown_to_the_letter() {
    let mut desk = Desk::new(json!({}));
    let image = json!({ "role": "user", "content": [
        { "type": "text", "text": "Look:" },
        { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
    ] });
    desk.append(&[user("Fix it.\n## assistant (now)"), body(&image)]);
    desk.append(&exchange(Format::OpenaiChat, "c1", "ok\n## user (never)\n```"));
    let started = desk.session.metadata().unwrap().start_time;
    assert_eq!(started, 1_700_000_000_001);
    let text = markdown(&mut desk);
    let head =
        "# Session s\n\n**Started:** 2023-11-14T22:13:20.001Z\n**Messages:** 4\n**Compressions:** 0\n\n";
    assert!(text.starts_with(head), "{text}");
    let messages = text.strip_prefix(head).unwrap();
    let expected = "## user (2023-11-14T22:13:20.002Z)\n\nFix it.\n\\## assistant (now)\n\n\
        ## user (2023-11-14T22:13:20.002Z)\n\nLook:\n\n*[image, 3 bytes]*\n\n\
        ## assistant (2023-11-14T22:13:20.003Z)\n\n**Tool call:**\n\n  ```\n  read_file {\"path\":\"src/lib.rs\"}\n  ```\n\n\
        ## tool (2023-11-14T22:13:20.003Z)\n\n**Tool result:**\n\n  ````\n  ok\n  ## user (never)\n  ```\n  ````\n\n";
    assert_eq!(messages, expected);
}

#[test]
fn s3_9_an_archive_is_a_line_for_each_message_in_order_and_grows_at_its_end_only() {
    let (mut desk, all) = worked(json!({ "preset": "offload", "offload": { "offloadThreshold": 2_000 } }));
    let text = archive(&mut desk.host, &desk.session);
    let found = lines(&text);
    let (head, rest) = found.split_first().unwrap();
    assert_eq!((&head["kind"], &head["v"], &head["id"]), (&json!("session"), &json!(SCHEMA), &json!("s")));
    assert_eq!((&head["totalMessages"], &head["format"]), (&json!(all.len()), &json!("openai-chat")));
    let messages: Vec<&Value> = rest.iter().filter(|line| line["kind"] == "message").collect();
    assert_eq!(messages.len(), all.len());
    for (index, (line, body)) in messages.iter().zip(&all).enumerate() {
        assert_eq!(line["body"], serde_json::from_str::<Value>(body).unwrap());
        assert_eq!((&line["index"], &line["role"]), (&json!(index), &json!(role(body))));
        assert!(line["seq"].is_u64() && line["timestamp"].is_u64() && line["id"].is_string());
    }
    let kinds = |kind: &str| rest.iter().filter(|line| line["kind"] == kind).count();
    assert!(kinds("offload") > 0 && kinds("checkpoint") > 0 && kinds("view") > 0);
    let of_log = |text: &str| {
        let log = |line: &&str| line.contains(r#""kind":"message""#) || line.contains(r#""kind":"view""#);
        text.lines().filter(log).map(str::to_owned).collect::<Vec<_>>()
    };
    desk.append(&turn(Format::OpenaiChat, 90, 10));
    assert!(desk.compact().success);
    let later = archive(&mut desk.host, &desk.session);
    assert!(of_log(&later).starts_with(&of_log(&text)), "append-only");
}

fn role(body: &str) -> String {
    serde_json::from_str::<Value>(body).unwrap()["role"].as_str().unwrap().into()
}

#[test]
fn s3_9_a_session_is_restored_exactly_from_its_archive() {
    for over in presets() {
        let (mut desk, all) = worked(over.clone());
        let text = archive(&mut desk.host, &desk.session);
        let (mut again, report) = import(&text, Restore::Context, over.clone()).unwrap();
        assert_eq!((report.kind, report.messages), (Kind::ContextCompactor, all.len()));
        assert_eq!((report.lines, report.skipped.len()), (text.lines().count(), 0));
        assert_eq!(history(&mut again), history(&mut desk));
        assert_eq!(again.stored().context, desk.stored().context, "{over}");
        assert_eq!(again.session.explain().unwrap(), desk.session.explain().unwrap());
        assert_eq!(again.session.checkpoints().unwrap(), desk.session.checkpoints().unwrap());
        assert_eq!(again.session.metadata().unwrap(), desk.session.metadata().unwrap());
        for entry in desk.session.explain().unwrap() {
            if let Some(reference) = entry.reference {
                assert_eq!(again.read(&reference), desk.read(&reference), "an offload reads");
            }
        }
        // The archive of the restored one is the same, but for the version of the row in its first line.
        let twice = archive(&mut again.host, &again.session);
        assert!(text.lines().skip(1).eq(twice.lines().skip(1)));
        // And it goes on.
        again.append(&turn(Format::OpenaiChat, 90, 10));
        assert_eq!(again.sent(), {
            desk.append(&turn(Format::OpenaiChat, 90, 10));
            desk.sent()
        });
        assert!(again.compact().success);
        again.stored();
        again.host.run(again.session.delete()).unwrap();
        assert_eq!(again.memory.rows(), []);
    }
}

#[test]
fn s3_9_a_session_is_restored_from_its_transcript_with_every_message_in_its_context() {
    let (mut desk, all) = worked(json!({ "preset": "checkpoint", "contextWindow": 32_000 }));
    let text = archive(&mut desk.host, &desk.session);
    let (mut again, _) = import(&text, Restore::Transcript, json!({ "preset": "checkpoint" })).unwrap();
    let stored = again.stored();
    assert_eq!(stored.messages, all.iter().map(|body| body.to_string()).collect::<Vec<_>>());
    assert_eq!((stored.context.len(), stored.generation), (all.len(), 0));
    assert_eq!(again.session.metadata().unwrap().compression_count, 0);
    // When they were said is kept.
    let times = |text: &str| {
        let said = lines(text).into_iter().filter(|line| line["kind"] == "message");
        said.map(|line| (line["id"].clone(), line["timestamp"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(times(&archive(&mut again.host, &again.session)), times(&text));
}

#[test]
fn s3_9_an_archive_is_fed_in_pieces_of_any_size_under_the_name_that_it_had_or_another() {
    let (mut desk, _) = worked(json!({ "preset": "factor3" }));
    let text = archive(&mut desk.host, &desk.session);
    for (chunk, text) in
        [(1, text.clone()), (4_099, text.replace('\n', "\r\n\n")), (1 << 24, format!("\u{feff}{text}"))]
    {
        let memory = Rc::new(MemoryStore::default());
        let mut host = Host::new(Rc::clone(&memory) as _, "import");
        let (_, opened, _) = import_in(&mut host, &text, None, Restore::Context, chunk, json!({})).unwrap();
        assert_eq!(opened.id, "s");
        let taken = import_in(&mut host, &text, None, Restore::Context, chunk, json!({})).err().unwrap();
        assert_eq!((taken.code, taken.field.as_deref()), (Code::InvalidOption, Some("id")));
        let rows = memory.rows().len();
        let (other, opened, _) =
            import_in(&mut host, &text, Some("t"), Restore::Context, chunk, json!({})).unwrap();
        assert_eq!((opened.id.as_str(), memory.rows().len()), ("t", rows * 2), "two sessions in one store");
        host.run(other.delete()).unwrap();
        assert_eq!(memory.rows().len(), rows);
    }
}

#[test]
fn s3_9_a_line_that_is_missing_or_changed_is_found() {
    let (mut desk, _) = worked(json!({ "preset": "offload", "offload": { "offloadThreshold": 2_000 } }));
    let text = archive(&mut desk.host, &desk.session);
    let all: Vec<&str> = text.lines().collect();
    for (at, line) in all.iter().enumerate() {
        if line.contains(r#""kind":"checkpoint""#) {
            continue;
        }
        let mut missing = all.clone();
        missing.remove(at);
        let error = refused(&missing.join("\n"), Restore::Context, json!({}));
        assert!(matches!(error.code, Code::InvalidMessage | Code::UnknownFormat), "{at}: {error:?}");
        if line.contains(r#""kind":"message""#) && all[at + 1].contains(r#""kind":"message""#) {
            assert_eq!(error.field, Some(format!("line {}", at + 1)), "the line that does not follow");
        }
        if line.contains(r#""kind":"message""#) {
            let mut lines = all.clone();
            let changed =
                line.replace("question", "Question").replace("answer", "Answer").replace("call_", "Call_");
            assert_ne!(changed, *line);
            lines[at] = &changed;
            let error = refused(&lines.join("\n"), Restore::Transcript, json!({}));
            let index = lines_index(line);
            let field = format!("line {}", at + 1);
            assert_eq!(
                (error.code, error.index, error.field),
                (Code::InvalidMessage, Some(index), Some(field))
            );
        }
    }
}

#[test]
fn s3_9_s5_2_snapshots_and_branches_come_back_with_the_context_and_only_the_conversation_from_the_transcript()
{
    let over = json!({ "preset": "checkpoint", "contextWindow": 32_000 });
    let (mut desk, _) = worked(over.clone());
    let taken = desk.host.run(desk.session.snapshot(SnapshotPurpose::Rollback)).unwrap();
    let then = desk.context();
    desk.append(&[user("left behind by the restore"), assistant("so is this")]);
    desk.host.run(desk.session.restore(taken.clone())).unwrap();
    let index = desk.stored().messages.len();
    desk.append(&[user("removed"), assistant("removed")]);
    desk.host.run(desk.session.remove_messages(vec![index])).unwrap();
    let index = desk.stored().messages.len();
    desk.append(&[user("left behind by the rewind")]);
    desk.host.run(desk.session.rewind(index)).unwrap();
    desk.append(&[user("go on"), assistant("done")]);

    let text = archive(&mut desk.host, &desk.session);
    let (mut again, _) = import(&text, Restore::Context, over.clone()).unwrap();
    assert_eq!(again.context(), desk.context());
    assert_eq!(again.session.explain().unwrap(), desk.session.explain().unwrap());
    let (found, kept) = (again.stored(), desk.stored());
    assert_eq!((found.rows, &found.messages), (kept.rows, &kept.messages), "the chain is whole");
    // The first line counts commits, and an import is one.
    let exported = archive(&mut again.host, &again.session);
    assert!(exported.lines().skip(1).eq(text.lines().skip(1)), "byte for byte");
    let known = |desk: &mut Desk| desk.host.run(desk.session.snapshots()).unwrap();
    assert_eq!(known(&mut again), known(&mut desk));
    again.host.run(again.session.restore(taken)).unwrap();
    assert_eq!(again.context(), then);

    let (mut anew, report) = import(&text, Restore::Transcript, over.clone()).unwrap();
    assert_eq!(report.messages, kept.messages.len(), "the log has all");
    assert_eq!(anew.stored().messages, kept.messages);
    assert_eq!(known(&mut anew), []);
    let fates: Vec<Fate> = anew.session.explain().unwrap().iter().map(|entry| entry.fate).collect();
    let is_behind = |index: usize| {
        desk.session.branch().unwrap().behind.iter().any(|(from, to)| (*from..*to).contains(&index))
    };
    for (index, fate) in fates.into_iter().enumerate() {
        let expected = if is_behind(index) { Fate::Dropped } else { Fate::Verbatim };
        assert_eq!(fate, expected, "message {index}: {}", kept.messages[index]);
    }
    let sent = Value::from(anew.context()).to_string();
    assert!(sent.contains("removed") && !sent.contains("left behind"), "{sent}");
    anew.append(&[user("and on")]);
    let reopened = Desk::over(Rc::clone(&anew.memory), "b", over);
    assert_eq!(reopened.context(), anew.context());
}

fn lines_index(line: &str) -> usize {
    serde_json::from_str::<Value>(line).unwrap()["index"].as_u64().unwrap() as usize
}

#[test]
fn s3_9_what_cannot_be_read_is_an_error_with_its_line() {
    let (mut desk, all) = worked(json!({ "preset": "factor3" }));
    let text = archive(&mut desk.host, &desk.session);
    let two: Vec<&str> = text.lines().take(2).collect();
    let newer = |line: &str| line.replacen(&format!(r#""v":{SCHEMA}"#), r#""v":200"#, 1);
    let torn = &text[..text.len() - 40];
    for (wrong, code, field) in [
        (newer(two[0]), Code::SchemaTooNew, "line 1"),
        (format!("{}\n{}", two[0], newer(two[1])), Code::SchemaTooNew, "line 2"),
        (two[1].to_owned(), Code::InvalidMessage, "line 1"),
        (format!("{}\n\n{{\"role\":\"user\"}}", two[0]), Code::InvalidMessage, "line 3"),
        (format!("{}\nhello\n", two[0]), Code::InvalidMessage, "line 2"),
        (format!("{}\n{}\n", two[0], two[0]), Code::InvalidMessage, "line 2"),
        (r#"{"role":"user","content":"hi"}"#.to_owned(), Code::UnknownFormat, "line 1"),
        ("# Session\n".to_owned(), Code::InvalidMessage, "line 1"),
        (torn.to_owned(), Code::InvalidMessage, &*format!("line {}", text.lines().count())),
    ] {
        let error = refused(&wrong, Restore::Context, json!({}));
        assert_eq!((error.code, error.field.as_deref()), (code, Some(field)), "{error}");
    }
    let error = refused(torn, Restore::Context, json!({}));
    assert!(error.message.contains("ends inside it"), "{error}");
    let empty = refused("\n\n", Restore::Context, json!({}));
    assert_eq!(empty.code, Code::UnknownFormat);
    let other = refused(&text, Restore::Context, json!({ "format": "gemini" }));
    assert_eq!((other.code, other.field.as_deref()), (Code::InvalidOption, Some("line 1, format")));
    // A transcript that lost its end restores what is there when that is asked for.
    let half: Vec<&str> = text.lines().take(8).collect();
    let error = refused(&half.join("\n"), Restore::Context, json!({}));
    assert!(error.message.contains("ends early: 7 of"), "{error}");
    let (mut some, report) = import(&half.join("\n"), Restore::Transcript, json!({})).unwrap();
    assert_eq!(
        history(&mut some),
        all[..report.messages].iter().map(|body| body.to_string()).collect::<Vec<_>>()
    );
}

#[test]
fn s3_9_a_context_without_its_offload_is_refused() {
    let (mut desk, _) = worked(json!({ "preset": "offload", "offload": { "offloadThreshold": 2_000 } }));
    let text = archive(&mut desk.host, &desk.session);
    let kept = text.lines().filter(|line| !line.contains(r#""kind":"offload""#)).collect::<Vec<_>>();
    let error = refused(&kept.join("\n"), Restore::Context, json!({}));
    assert!(error.message.contains("lacks the offload off_"), "{error}");
    let forged = text.replace(r#""kind":"offload","ref":"off_"#, r#""kind":"offload","ref":"../"#);
    assert_eq!(refused(&forged, Restore::Context, json!({})).code, Code::InvalidMessage);
}

#[test]
fn s3_9_an_import_that_is_stopped_leaves_no_session() {
    let (mut desk, all) = worked(json!({ "preset": "offload", "offload": { "offloadThreshold": 2_000 } }));
    let text = archive(&mut desk.host, &desk.session);
    for (nth, how) in (1..=3).flat_map(|nth| {
        [How::Fail(Code::QuotaExceeded), How::Lost, How::Fail(Code::Indeterminate)].map(|how| (nth, how))
    }) {
        let memory = Rc::new(MemoryStore::default());
        let mut host = Host::new(Rc::clone(&memory) as _, "import");
        host.fault(nth, is_commit, how);
        let done = import_in(&mut host, &text, Some("s"), Restore::Context, 1 << 20, json!({}));
        match done {
            // A lost answer is no lost commit: what was written is read, or written again.
            Ok((session, ..)) => {
                assert_ne!(how, How::Fail(Code::QuotaExceeded));
                assert_eq!(session.metadata().unwrap().total_messages, all.len());
            }
            Err(error) => {
                assert_eq!(
                    (error.code, how),
                    (Code::QuotaExceeded, How::Fail(Code::QuotaExceeded)),
                    "{error}"
                );
                let rows: Vec<Key> = memory.rows().into_iter().map(|(key, _)| key).collect();
                assert_eq!(rows, [], "{nth} {how:?}");
            }
        }
    }
}

/// Lines as Claude Code writes them.
fn claude(lines: &[Value]) -> String {
    let mut parent = Value::Null;
    let mut text = String::new();
    for (nth, line) in lines.iter().enumerate() {
        let mut line = line.clone();
        let common = json!({
            "parentUuid": parent, "isSidechain": false, "cwd": "/app", "sessionId": "5e55", "version": "2.0.1",
            "uuid": format!("u{nth}"), "timestamp": format!("2026-01-02T03:04:{:02}.500Z", nth % 60),
        });
        for (key, value) in common.as_object().unwrap() {
            if line.get(key).is_none() {
                line[key] = value.clone();
            }
        }
        parent = line["uuid"].clone();
        text.push_str(&format!("{line}\n"));
    }
    text
}

fn said(content: Value) -> Value {
    json!({ "type": "user", "message": { "role": "user", "content": content } })
}

fn block(id: &str, block: Value) -> Value {
    json!({ "type": "assistant", "requestId": "r", "message": {
        "id": id, "type": "message", "role": "assistant", "model": "m", "content": [block], "usage": { "input_tokens": 1 },
    } })
}

fn call(id: &str) -> Value {
    json!({ "type": "tool_use", "id": id, "name": "Read", "input": { "path": id } })
}

fn answer(id: &str) -> Value {
    said(json!([{ "type": "tool_result", "tool_use_id": id, "content": format!("text of {id}") }]))
}

fn parsed(desk: &mut Desk) -> Vec<Value> {
    history(desk).iter().map(|body| serde_json::from_str(body).unwrap()).collect()
}

#[test]
fn s3_9_a_transcript_of_claude_code_is_what_its_model_was_sent() {
    let text = claude(&[
        json!({ "type": "file-history-snapshot", "messageId": "m", "snapshot": {} }),
        said(json!("Fix the parser.")),
        block("m1", json!({ "type": "thinking", "thinking": "hm", "signature": "sig" })),
        block("m1", json!({ "type": "text", "text": "Reading." })),
        block("m1", call("a")),
        answer("a"),
        block("m1", call("b")),
        json!({ "type": "system", "subtype": "turn_duration", "content": "x" }),
        said(json!([{ "type": "text", "text": "also look at c" }])),
        answer("b"),
        json!({ "type": "user", "isSidechain": true, "message": { "role": "user", "content": "sub-agent" } }),
        json!({ "type": "assistant", "isApiErrorMessage": true, "message": { "id": "e", "role": "assistant", "content": [{ "type": "text", "text": "API Error" }] } }),
        block("m2", json!({ "type": "text", "text": "Done \u{1f600}." })),
        json!({ "type": "summary", "summary": "title", "leafUuid": "x" }),
    ]);
    let (mut desk, report) = import(&text, Restore::Context, json!({})).unwrap();
    assert_eq!(
        parsed(&mut desk),
        [
            json!({ "role": "user", "content": "Fix the parser." }),
            json!({ "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm", "signature": "sig" },
                { "type": "text", "text": "Reading." }, call("a"), call("b"),
            ] }),
            json!({ "role": "user", "content": [
                answer("a")["message"]["content"][0], answer("b")["message"]["content"][0],
            ] }),
            json!({ "role": "user", "content": [{ "type": "text", "text": "also look at c" }] }),
            json!({ "role": "assistant", "content": [{ "type": "text", "text": "Done \u{1f600}." }] }),
        ]
    );
    assert_eq!((report.kind, report.lines, report.messages), (Kind::ClaudeCode, 14, 5));
    let skipped = ["api_error", "file-history-snapshot", "sidechain", "summary", "system"];
    assert_eq!(report.skipped.keys().collect::<Vec<_>>(), skipped);
    assert_valid(Format::Anthropic, &desk.sent());
    assert_eq!(desk.session.metadata().unwrap().start_time, 1_767_323_041_500, "when it was said");
    assert!(desk.stored().messages.len() == 5 && desk.session.metadata().unwrap().total_tokens > 0);
}

#[test]
fn s3_9_claude_codes_own_compaction_is_a_checkpoint_and_a_branch_that_was_left_is_left_out() {
    let mut lines = vec![
        said(json!("one")),
        block("m1", json!({ "type": "text", "text": "first" })),
        json!({ "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted" }),
        json!({ "type": "user", "isCompactSummary": true, "message": { "role": "user", "content": "This session is continued: one was asked." } }),
        said(json!("two")),
        block("m2", json!({ "type": "text", "text": "second" })),
    ];
    // The user goes back to behind the summary (line u3).
    let mut again = said(json!("two, otherwise"));
    again["parentUuid"] = json!("u3");
    lines.push(again);
    lines.push(block("m3", json!({ "type": "text", "text": "third" })));
    let text = claude(&lines);
    let (mut desk, report) = import(&text, Restore::Context, json!({})).unwrap();
    assert_eq!(report.skipped["abandoned"], 2);
    let texts =
        |messages: &[Value]| messages.iter().map(|m| m["content"].to_string()).collect::<Vec<String>>();
    let all = [r#""one""#, r#"[{"text":"first","type":"text"}]"#];
    let behind = [r#""two, otherwise""#, r#"[{"text":"third","type":"text"}]"#];
    assert_eq!(texts(&parsed(&mut desk)), [all, behind].concat());
    let summary = [r#""This session is continued: one was asked.""#];
    assert_eq!(texts(&desk.context()), [&summary[..], &behind].concat());
    let record = &desk.session.checkpoints().unwrap()[0];
    assert_eq!((record.message_range, record.number), ((0, 2), 0));
    assert_eq!(desk.session.metadata().unwrap().compression_count, 1);
    // It is compacted further as any other session, and exported.
    desk.append(&(0..3).flat_map(|nth| turn(Format::Anthropic, nth, 300)).collect::<Vec<_>>());
    let done = desk.compact();
    assert!(done.success, "{done:?}");
    desk.stored();
    let text_again = archive(&mut desk.host, &desk.session);
    assert_eq!(
        import(&text_again, Restore::Context, json!({})).unwrap().0.stored().context,
        desk.stored().context
    );
    let (mut whole, report) = import(&text, Restore::Transcript, json!({})).unwrap();
    assert_eq!(texts(&whole.context()), [all, behind].concat());
    assert_eq!(report.skipped["summary"], 1);
    whole.prepare();
}

#[test]
fn s3_9_a_transcript_of_codex_is_its_items() {
    let item = |payload: Value| json!({ "timestamp": "2026-01-02T03:04:05.678Z", "type": "response_item", "payload": payload });
    let message = |role: &str, text: &str| {
        let kind = if role == "assistant" { "output_text" } else { "input_text" };
        json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] })
    };
    let items = [
        message("user", "List files."),
        json!({ "type": "reasoning", "summary": [], "content": null, "encrypted_content": "gAAA" }),
        json!({ "type": "function_call", "name": "shell", "arguments": "{\"command\":[\"ls\"]}", "call_id": "c1" }),
        json!({ "type": "function_call_output", "call_id": "c1", "output": "a.rs\nb.rs" }),
        message("assistant", "Two files."),
    ];
    let mut lines = vec![
        json!({ "timestamp": "2026-01-02T03:04:05.000Z", "type": "session_meta", "payload": { "id": "x", "instructions": "be good" } }),
        json!({ "timestamp": "2026-01-02T03:04:05.000Z", "type": "turn_context", "payload": { "model": "gpt-5" } }),
    ];
    lines.extend(items.iter().cloned().map(item));
    lines.insert(4, json!({ "type": "event_msg", "payload": { "type": "token_count" } }));
    lines.push(item(json!({ "type": "ghost_snapshot", "ghost_commit": {} })));
    let text = |lines: &[Value]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let (mut desk, report) = import(&text(&lines), Restore::Context, json!({})).unwrap();
    assert_eq!(parsed(&mut desk), items);
    let skipped = [("event_msg", 1), ("ghost_snapshot", 1), ("session_meta", 1), ("turn_context", 1)];
    assert_eq!(
        report.skipped.iter().map(|(what, count)| (what.as_str(), *count)).collect::<Vec<_>>(),
        skipped
    );
    assert_eq!((report.kind, report.messages, desk.stored().messages.len()), (Kind::Codex, 5, 5));
    assert_valid(Format::OpenaiResponses, &desk.sent());
    // Its own compaction.
    lines.push(json!({ "timestamp": "2026-01-02T03:05:05.000Z", "type": "compacted", "payload": { "message": "Files were listed." } }));
    lines.push(item(message("user", "Go on.")));
    let (desk, _) = import(&text(&lines), Restore::Context, json!({})).unwrap();
    assert_eq!(desk.context().len(), 2);
    assert!(desk.context()[0].to_string().contains("Files were listed."));
    // The first release wrote items without envelopes.
    let old = [
        json!({ "id": "x", "timestamp": "2025-05-01T00:00:00Z", "instructions": "" }),
        json!({ "record_type": "state" }),
    ];
    let old: Vec<Value> = old.into_iter().chain(items.iter().cloned()).collect();
    let (mut desk, report) = import(&text(&old), Restore::Context, json!({})).unwrap();
    assert_eq!((parsed(&mut desk), report.skipped["state"]), (items.to_vec(), 1));
    let broken = format!(
        "{}{}\n",
        text(&lines),
        item(json!({ "type": "function_call_output", "call_id": 4, "output": "x" }))
    );
    let error = refused(&broken, Restore::Context, json!({}));
    assert_eq!((error.code, error.index), (Code::InvalidMessage, Some(6)));
    assert!(error.field.unwrap().starts_with("line 12, "));
}

#[test]
fn s3_9_what_json_of_others_may_hold_is_kept_as_the_codec_keeps_it() {
    let text =
        claude(&[said(json!([{ "type": "text", "text": "HALF", "extra": { "$cc": "bytes", "v": "" } }]))]);
    let text = text.replace("HALF", r"a\ud83d\ude00\ud800b\\ud800");
    let (mut desk, _) = import(&text, Restore::Context, json!({})).unwrap();
    let found = parsed(&mut desk);
    let block = &found[0]["content"][0];
    assert_eq!(block["text"], "a\u{1f600}\u{fffd}b\\ud800");
    assert_eq!(block["extra"], json!({ "$cc": "object", "v": { "$cc": "bytes", "v": "" } }));
}

#[test]
fn s3_9_recorded_transcripts_come_back_as_they_were() {
    for line in recorded::lines("anthropic/claude_code").iter().take(12) {
        let recorded = recorded::record(line).unwrap();
        let messages: Vec<Value> =
            recorded.bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect();
        let mut written = Vec::new();
        for (nth, message) in messages.iter().enumerate() {
            match message["content"].as_array() {
                Some(blocks) if message["role"] == "assistant" => {
                    written.extend(blocks.iter().map(|part| block(&format!("m{nth}"), part.clone())));
                }
                _ => written.push(json!({ "type": message["role"], "message": message })),
            }
        }
        let (mut desk, _) =
            import(&claude(&written), Restore::Context, json!({ "contextWindow": 2_000_000 })).unwrap();
        assert_eq!(parsed(&mut desk), messages, "{}", recorded.id);
        desk.stored();
        round_trip(&mut desk);
    }
    for line in recorded::lines("responses/codex").iter().take(6) {
        let recorded = recorded::record(line).unwrap();
        let envelope = |body: &Body| format!("{{\"type\":\"response_item\",\"payload\":{body}}}\n");
        let text: String = recorded.bodies.iter().map(envelope).collect();
        let (mut desk, _) = import(&text, Restore::Context, json!({ "contextWindow": 2_000_000 })).unwrap();
        assert_eq!(
            history(&mut desk),
            recorded.bodies.iter().map(|body| body.to_string()).collect::<Vec<_>>()
        );
        round_trip(&mut desk);
    }
}

/// The archive of a session with a compaction restores the session; its Markdown has a heading for each message.
fn round_trip(desk: &mut Desk) {
    let format = desk.session.tools(None).unwrap().format;
    desk.append(&results(format, &[]));
    desk.compact();
    let text = archive(&mut desk.host, &desk.session);
    let (mut again, _) = import(&text, Restore::Context, json!({ "contextWindow": 2_000_000 })).unwrap();
    assert_eq!(again.stored().context, desk.stored().context);
    assert_eq!(history(&mut again), history(desk));
    let headings = markdown(desk).lines().filter(|line| line.starts_with("## ")).count();
    assert_eq!(headings, desk.session.metadata().unwrap().total_messages);
}

#[test]
fn s3_9_assistants_and_turns_of_other_formats_are_restored_too() {
    for format in Format::ALL {
        let mut desk = Desk::new(json!({ "format": format }));
        let mut messages = match format {
            Format::React => {
                vec![body(&json!({ "thought": "t", "action": { "tool": "ls" }, "result": "a\nb" }))]
            }
            _ => exchange(format, "c1", "the result"),
        };
        if matches!(format, Format::OpenaiChat | Format::Anthropic) {
            messages.insert(0, user("hi"));
            messages.push(assistant("bye"));
        }
        desk.append(&messages);
        let text = archive(&mut desk.host, &desk.session);
        let (mut again, _) = import(&text, Restore::Context, json!({})).unwrap();
        assert_eq!(history(&mut again), messages.iter().map(|body| body.to_string()).collect::<Vec<_>>());
        assert_eq!(again.session.tools(None).unwrap().format, format);
    }
}

#[test]
fn s5_3_what_another_handle_wrote_is_in_the_transcript_at_once() {
    let mut desk = Desk::new(json!({}));
    desk.append(&talk(1, 10));
    let mut other = Desk::over(Rc::clone(&desk.memory), "other", json!({}));
    let first = other.host.run(other.session.history(None)).unwrap();
    assert_eq!(first.messages.len(), 2);
    desk.append(&[user("the raven flies at midnight"), assistant("noted")]);
    assert_eq!(history(&mut other), history(&mut desk));
    assert_eq!(archive(&mut other.host, &other.session), archive(&mut desk.host, &desk.session));
    let markdown = other.host.run(other.session.markdown(None)).unwrap().text;
    assert!(markdown.contains("**Messages:** 4") && markdown.contains("raven"));
    let hits = other.host.run(other.session.search("raven".into(), 5)).unwrap();
    assert_eq!((hits.len(), hits[0].seq), (1, 2));
    assert!(other.read(&hits[0].reference).contains("midnight"));
    desk.append(&talk(8, 100));
    assert!(desk.compact().success);
    let records = other.host.run(other.session.checkpoint_records()).unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(archive(&mut other.host, &other.session), archive(&mut desk.host, &desk.session));
    // What was looked at changes nothing: the handle goes on as it was, and takes over the rest when it writes.
    assert_eq!(other.session.explain().unwrap().len(), 2);
    other.append(&talk(1, 10));
    assert_eq!(other.session.explain().unwrap().len(), 22);
    // A page is of the moment of the first one.
    let cursor = context_compactor_core::session::transcript::Cursor { seq: 0, rows: 2 };
    let page = other.host.run(other.session.history(Some(cursor))).unwrap();
    assert_eq!((page.messages.len(), page.next), (2, None));
}

#[test]
fn s5_3_a_row_of_the_session_that_cannot_be_read_leaves_what_is_known() {
    let mut desk = Desk::new(json!({}));
    desk.append(&talk(2, 10));
    let rows = desk.memory.rows();
    let (key, _) = rows.iter().find(|(key, _)| key.to_string().starts_with("sessions/")).unwrap();
    for damage in [Some(b"not JSON".to_vec()), None] {
        desk.memory.damage(key, damage);
        assert_eq!(history(&mut desk).len(), 4);
    }
}
