//! The archive of a session, and the session that it restores (`S3.9`).

use crate::support::transcripts::*;
use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::context::Fate;
use context_compactor_core::keys::batch::Key;
use context_compactor_core::log::{SCHEMA, SnapshotPurpose};
use context_compactor_core::session::transcript::{Restore, TranscriptKind};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{assistant, body, exchange, user};
use context_compactor_store_tests::{Host, How, MemoryStore};
use serde_json::{Value, json};
use std::rc::Rc;

#[test]
fn s3_9_an_archive_is_a_line_for_each_message_in_order_and_grows_at_its_end_only() {
    let (mut harness, all) =
        worked(json!({ "preset": "offload", "presetOptions": { "offloadThreshold": 2_000 } }));
    let text = archive(&mut harness.host, &harness.session);
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
    harness.append(&turn(Format::OpenaiChat, 90, 10));
    assert!(harness.compact().success);
    let later = archive(&mut harness.host, &harness.session);
    assert!(of_log(&later).starts_with(&of_log(&text)), "append-only");
}

fn role(body: &str) -> String {
    serde_json::from_str::<Value>(body).unwrap()["role"].as_str().unwrap().into()
}

#[test]
fn s3_9_a_session_is_restored_exactly_from_its_archive() {
    for over in presets() {
        let (mut harness, all) = worked(over.clone());
        let text = archive(&mut harness.host, &harness.session);
        let (mut again, report) = import(&text, Restore::Context, over.clone()).unwrap();
        assert_eq!((report.kind, report.messages), (TranscriptKind::ContextCompactor, all.len()));
        assert_eq!((report.lines, report.skipped.len()), (text.lines().count(), 0));
        assert_eq!(history(&mut again), history(&mut harness));
        assert_eq!(again.stored().context, harness.stored().context, "{over}");
        assert_eq!(again.session.explain().unwrap(), harness.session.explain().unwrap());
        assert_eq!(again.session.checkpoints().unwrap(), harness.session.checkpoints().unwrap());
        assert_eq!(again.session.metadata().unwrap(), harness.session.metadata().unwrap());
        for entry in harness.session.explain().unwrap() {
            if let Some(reference) = entry.reference {
                assert_eq!(again.read(&reference), harness.read(&reference), "an offload reads");
            }
        }
        // The archive of the restored one is the same, but for the version of the row in its first line.
        let twice = archive(&mut again.host, &again.session);
        assert!(text.lines().skip(1).eq(twice.lines().skip(1)));
        // And it goes on.
        again.append(&turn(Format::OpenaiChat, 90, 10));
        assert_eq!(again.sent(), {
            harness.append(&turn(Format::OpenaiChat, 90, 10));
            harness.sent()
        });
        assert!(again.compact().success);
        again.stored();
        again.host.run(again.session.delete()).unwrap();
        assert_eq!(again.memory.rows(), []);
    }
}

#[test]
fn s3_9_a_session_is_restored_from_its_transcript_with_every_message_in_its_context() {
    let (mut harness, all) = worked(json!({ "preset": "checkpoint", "contextWindow": 32_000 }));
    let text = archive(&mut harness.host, &harness.session);
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
    let (mut harness, _) = worked(json!({ "preset": "factor3" }));
    let text = archive(&mut harness.host, &harness.session);
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
    let (mut harness, _) =
        worked(json!({ "preset": "offload", "presetOptions": { "offloadThreshold": 2_000 } }));
    let text = archive(&mut harness.host, &harness.session);
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
                (error.code, error.index, error.into_parts().field),
                (Code::InvalidMessage, Some(index), Some(field))
            );
        }
    }
}

#[test]
fn s3_9_s5_2_snapshots_and_branches_come_back_with_the_context_and_only_the_conversation_from_the_transcript()
{
    let over = json!({ "preset": "checkpoint", "contextWindow": 32_000 });
    let (mut harness, _) = worked(over.clone());
    let taken = harness.host.run(harness.session.snapshot(SnapshotPurpose::Rollback)).unwrap();
    let then = harness.context();
    harness.append(&[user("left behind by the restore"), assistant("so is this")]);
    harness.host.run(harness.session.restore(taken.clone())).unwrap();
    let index = harness.stored().messages.len();
    harness.append(&[user("removed"), assistant("removed")]);
    harness.host.run(harness.session.remove_messages(vec![index])).unwrap();
    let index = harness.stored().messages.len();
    harness.append(&[user("left behind by the rewind")]);
    harness.host.run(harness.session.rewind(index)).unwrap();
    harness.append(&[user("go on"), assistant("done")]);

    let text = archive(&mut harness.host, &harness.session);
    let (mut again, _) = import(&text, Restore::Context, over.clone()).unwrap();
    assert_eq!(again.context(), harness.context());
    assert_eq!(again.session.explain().unwrap(), harness.session.explain().unwrap());
    let (found, kept) = (again.stored(), harness.stored());
    assert_eq!((found.rows, &found.messages), (kept.rows, &kept.messages), "the chain is whole");
    // The first line counts commits, and an import is one.
    let exported = archive(&mut again.host, &again.session);
    assert!(exported.lines().skip(1).eq(text.lines().skip(1)), "byte for byte");
    let known = |harness: &mut Harness| harness.host.run(harness.session.snapshots()).unwrap();
    assert_eq!(known(&mut again), known(&mut harness));
    again.host.run(again.session.restore(taken)).unwrap();
    assert_eq!(again.context(), then);

    let (mut anew, report) = import(&text, Restore::Transcript, over.clone()).unwrap();
    assert_eq!(report.messages, kept.messages.len(), "the log has all");
    assert_eq!(anew.stored().messages, kept.messages);
    assert_eq!(known(&mut anew), []);
    let fates: Vec<Fate> = anew.session.explain().unwrap().iter().map(|entry| entry.fate).collect();
    let is_behind = |index: usize| {
        harness.session.branch().unwrap().behind.iter().any(|(from, to)| (*from..*to).contains(&index))
    };
    for (index, fate) in fates.into_iter().enumerate() {
        let expected = if is_behind(index) { Fate::Dropped } else { Fate::Verbatim };
        assert_eq!(fate, expected, "message {index}: {}", kept.messages[index]);
    }
    let sent = Value::from(anew.context()).to_string();
    assert!(sent.contains("removed") && !sent.contains("left behind"), "{sent}");
    anew.append(&[user("and on")]);
    let reopened = Harness::over(Rc::clone(&anew.memory), "b", over);
    assert_eq!(reopened.context(), anew.context());
}

fn lines_index(line: &str) -> usize {
    serde_json::from_str::<Value>(line).unwrap()["index"].as_u64().unwrap() as usize
}

#[test]
fn s3_9_what_cannot_be_read_is_an_error_with_its_line() {
    let (mut harness, all) = worked(json!({ "preset": "factor3" }));
    let text = archive(&mut harness.host, &harness.session);
    let two: Vec<&str> = text.lines().take(2).collect();
    let newer = |line: &str| line.replacen(&format!(r#""v":{SCHEMA}"#), r#""v":300"#, 1);
    let torn = &text[..text.len() - 40];
    for (wrong, code, field) in [
        (newer(two[0]), Code::SchemaTooNew, "line 1"),
        (format!("{}\n{}", two[0], newer(two[1])), Code::SchemaTooNew, "line 2"),
        (two[1].to_owned(), Code::InvalidMessage, "line 1"),
        (format!("{}\n\n{{\"role\":\"user\"}}", two[0]), Code::InvalidMessage, "line 3"),
        (format!("{}\nhello\n", two[0]), Code::InvalidMessage, "line 2"),
        (format!("{}\n{}\n", two[0], two[0]), Code::InvalidMessage, "line 2"),
        (r#"{"said":"hi"}"#.to_owned(), Code::UnknownFormat, "line 1"),
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
    let (mut harness, _) =
        worked(json!({ "preset": "offload", "presetOptions": { "offloadThreshold": 2_000 } }));
    let text = archive(&mut harness.host, &harness.session);
    let kept = text.lines().filter(|line| !line.contains(r#""kind":"offload""#)).collect::<Vec<_>>();
    let error = refused(&kept.join("\n"), Restore::Context, json!({}));
    assert!(error.message.contains("lacks the offload off_"), "{error}");
    let forged = text.replace(r#""kind":"offload","ref":"off_"#, r#""kind":"offload","ref":"../"#);
    assert_eq!(refused(&forged, Restore::Context, json!({})).code, Code::InvalidMessage);
}

#[test]
fn s3_9_an_import_that_is_stopped_leaves_no_session() {
    let (mut harness, all) =
        worked(json!({ "preset": "offload", "presetOptions": { "offloadThreshold": 2_000 } }));
    let text = archive(&mut harness.host, &harness.session);
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

#[test]
fn s3_9_assistants_and_turns_of_other_formats_are_restored_too() {
    for format in Format::ALL {
        let mut harness = Harness::new(json!({ "format": format }));
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
        harness.append(&messages);
        let text = archive(&mut harness.host, &harness.session);
        let (mut again, _) = import(&text, Restore::Context, json!({})).unwrap();
        assert_eq!(history(&mut again), messages.iter().map(|body| body.to_string()).collect::<Vec<_>>());
        assert_eq!(again.session.tools(None).unwrap().format, format);
    }
}
