//! Sessions from the transcripts of other agents (`S3.9`).

use crate::support::transcripts::*;
use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::session::transcript::{Restore, TranscriptKind};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, results};
use context_compactor_store_tests::host::summary;
use context_compactor_store_tests::{Host, MemoryStore, recorded};
use serde_json::{Value, json};
use std::rc::Rc;

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

fn parsed(harness: &mut Harness) -> Vec<Value> {
    history(harness).iter().map(|body| serde_json::from_str(body).unwrap()).collect()
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
    let (mut harness, report) = import(&text, Restore::Context, json!({})).unwrap();
    assert_eq!(
        parsed(&mut harness),
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
    assert_eq!((report.kind, report.lines, report.messages), (TranscriptKind::ClaudeCode, 14, 5));
    let skipped = ["api_error", "file-history-snapshot", "sidechain", "summary", "system"];
    assert_eq!(report.skipped.keys().collect::<Vec<_>>(), skipped);
    assert_valid(Format::Anthropic, &harness.sent());
    assert_eq!(harness.session.metadata().unwrap().start_time, 1_767_323_041_500, "when it was said");
    assert!(harness.stored().messages.len() == 5 && harness.session.metadata().unwrap().total_tokens > 0);
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
    let (mut harness, report) = import(&text, Restore::Context, json!({})).unwrap();
    assert_eq!(report.skipped["abandoned"], 2);
    let texts =
        |messages: &[Value]| messages.iter().map(|m| m["content"].to_string()).collect::<Vec<String>>();
    let all = [r#""one""#, r#"[{"text":"first","type":"text"}]"#];
    let behind = [r#""two, otherwise""#, r#"[{"text":"third","type":"text"}]"#];
    assert_eq!(texts(&parsed(&mut harness)), [all, behind].concat());
    let summary = [r#""This session is continued: one was asked.""#];
    assert_eq!(texts(&harness.context()), [&summary[..], &behind].concat());
    let record = &harness.session.checkpoints().unwrap()[0];
    assert_eq!((record.message_range, record.number), ((0, 2), 0));
    assert_eq!(harness.session.metadata().unwrap().compression_count, 1);
    // It is compacted further as any other session, and exported.
    harness.append(&(0..3).flat_map(|nth| turn(Format::Anthropic, nth, 300)).collect::<Vec<_>>());
    let done = harness.compact();
    assert!(done.success, "{done:?}");
    harness.stored();
    let text_again = archive(&mut harness.host, &harness.session);
    assert_eq!(
        import(&text_again, Restore::Context, json!({})).unwrap().0.stored().context,
        harness.stored().context
    );
    let (mut whole, report) = import(&text, Restore::Transcript, json!({})).unwrap();
    assert_eq!(texts(&whole.context()), [all, behind].concat());
    assert_eq!(report.skipped["summary"], 1);
    whole.prepare();
}

#[test]
fn f39_s3_9_a_line_of_a_branch_that_was_left_takes_nothing_from_the_one_that_goes_on() {
    let says = |id: &str| block(id, json!({ "type": "text", "text": id }));
    let from = |parent: &str, text: &str| {
        let mut line = said(json!(text));
        line["parentUuid"] = json!(parent);
        line
    };
    // The user goes back to the first answer (line u1), and much later to behind the second one (u3), which was left then.
    let lines = [
        said(json!("one")),
        says("first"),
        said(json!("two")),
        says("second"),
        from("u1", "two, otherwise"),
        says("third"),
        said(json!("three")),
        says("fourth"),
        from("u3", "where were we?"),
    ];
    let (mut harness, report) = import(&claude(&lines), Restore::Context, json!({})).unwrap();
    assert_eq!(report.skipped["abandoned"], 2, "what the user went back from, once");
    let texts: Vec<String> = parsed(&mut harness)
        .iter()
        .map(|message| match &message["content"][0]["text"] {
            Value::String(text) => text.clone(),
            _ => message["content"].as_str().unwrap().to_string(),
        })
        .collect();
    assert_eq!(texts, ["one", "first", "two, otherwise", "third", "three", "fourth", "where were we?"]);
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
    let (mut harness, report) = import(&text(&lines), Restore::Context, json!({})).unwrap();
    assert_eq!(parsed(&mut harness), items);
    let skipped = [("event_msg", 1), ("ghost_snapshot", 1), ("session_meta", 1), ("turn_context", 1)];
    assert_eq!(
        report.skipped.iter().map(|(what, count)| (what.as_str(), *count)).collect::<Vec<_>>(),
        skipped
    );
    assert_eq!(
        (report.kind, report.messages, harness.stored().messages.len()),
        (TranscriptKind::Codex, 5, 5)
    );
    assert_valid(Format::OpenaiResponses, &harness.sent());
    // Its own compaction.
    lines.push(json!({ "timestamp": "2026-01-02T03:05:05.000Z", "type": "compacted", "payload": { "message": "Files were listed." } }));
    lines.push(item(message("user", "Go on.")));
    let (harness, _) = import(&text(&lines), Restore::Context, json!({})).unwrap();
    assert_eq!(harness.context().len(), 2);
    assert!(harness.context()[0].to_string().contains("Files were listed."));
    // The first release wrote items without envelopes.
    let old = [
        json!({ "id": "x", "timestamp": "2025-05-01T00:00:00Z", "instructions": "" }),
        json!({ "record_type": "state" }),
    ];
    let old: Vec<Value> = old.into_iter().chain(items.iter().cloned()).collect();
    let (mut harness, report) = import(&text(&old), Restore::Context, json!({})).unwrap();
    assert_eq!((parsed(&mut harness), report.skipped["state"]), (items.to_vec(), 1));
    let broken = format!(
        "{}{}\n",
        text(&lines),
        item(json!({ "type": "function_call_output", "call_id": 4, "output": "x" }))
    );
    let error = refused(&broken, Restore::Context, json!({}));
    assert_eq!((error.code, error.index), (Code::InvalidMessage, Some(6)));
    assert!(error.field.as_ref().unwrap().starts_with("line 12, "));
}

#[test]
fn s3_9_what_the_app_pins_of_an_imported_session_is_never_summarised() {
    let lines: Vec<Value> = (0..8)
        .flat_map(|nth| {
            let answer = format!("answer {nth}: {}", "it is so. ".repeat(8));
            let text = json!({ "type": "text", "text": answer });
            [said(json!(format!("question {nth}"))), block(&format!("m{nth}"), text)]
        })
        .collect();
    let memory = Rc::new(MemoryStore::default());
    let mut host = Host::new(Rc::clone(&memory) as _, "import");
    host.summarise = Box::new(|_, _| summary(SUMMARY));
    host.pinned = Box::new(|index| index == 2);
    let over = json!({ "pins": { "match": true } });
    let (session, ..) =
        import_in(&mut host, &claude(&lines), Some("s"), Restore::Context, 1 << 16, over).unwrap();
    let mut harness = Harness { memory, host, session };
    let result = harness.compact();
    assert!(result.success, "{:?}", result.error);
    let fates = harness.session.explain().unwrap();
    let quoted: Vec<usize> = fates.iter().filter(|entry| entry.quoted).map(|entry| entry.index).collect();
    assert_eq!(quoted, [2]);
    assert!(harness.context()[0].to_string().contains("question 1"), "word for word");
}

#[test]
fn s3_9_what_json_of_others_may_hold_is_kept_as_the_codec_keeps_it() {
    let text =
        claude(&[said(json!([{ "type": "text", "text": "HALF", "extra": { "$cc": "bytes", "v": "" } }]))]);
    let text = text.replace("HALF", r"a\ud83d\ude00\ud800b\\ud800");
    let (mut harness, _) = import(&text, Restore::Context, json!({})).unwrap();
    let found = parsed(&mut harness);
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
        let (mut harness, _) =
            import(&claude(&written), Restore::Context, json!({ "contextWindow": 2_000_000 })).unwrap();
        assert_eq!(parsed(&mut harness), messages, "{}", recorded.id);
        harness.stored();
        round_trip(&mut harness);
    }
    for line in recorded::lines("responses/codex").iter().take(6) {
        let recorded = recorded::record(line).unwrap();
        let envelope = |body: &Body| format!("{{\"type\":\"response_item\",\"payload\":{body}}}\n");
        let text: String = recorded.bodies.iter().map(envelope).collect();
        let (mut harness, _) =
            import(&text, Restore::Context, json!({ "contextWindow": 2_000_000 })).unwrap();
        assert_eq!(
            history(&mut harness),
            recorded.bodies.iter().map(|body| body.to_string()).collect::<Vec<_>>()
        );
        round_trip(&mut harness);
    }
}

/// The archive of a session with a compaction restores the session; its Markdown has a heading for each message.
fn round_trip(harness: &mut Harness) {
    let format = harness.session.tools(None).unwrap().format;
    harness.append(&results(format, &[]));
    harness.compact();
    let text = archive(&mut harness.host, &harness.session);
    let (mut again, _) = import(&text, Restore::Context, json!({ "contextWindow": 2_000_000 })).unwrap();
    assert_eq!(again.stored().context, harness.stored().context);
    assert_eq!(history(&mut again), history(harness));
    let headings = markdown(harness).lines().filter(|line| line.starts_with("## ")).count();
    assert_eq!(headings, harness.session.metadata().unwrap().total_messages);
}

#[test]
fn f33_lines_that_are_messages_are_a_session() {
    let lines =
        |messages: &[Value]| messages.iter().map(|message| format!("{message}\n")).collect::<String>();
    let chat =
        [json!({ "role": "user", "content": "Hi." }), json!({ "role": "assistant", "content": "Hello." })];
    let blocks = [
        chat[0].clone(),
        json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "t", "name": "read", "input": {} }] }),
        answer("t")["message"].clone(),
    ];
    let items = [
        json!({ "role": "user", "content": "Hi." }),
        json!({ "type": "function_call", "call_id": "c", "name": "read", "arguments": "{}" }),
        json!({ "type": "function_call_output", "call_id": "c", "output": "x" }),
    ];
    for (messages, format) in [
        (&chat[..], Format::OpenaiChat),
        (&blocks[..], Format::Anthropic),
        (&items[..], Format::OpenaiResponses),
    ] {
        let (mut harness, report) = import(&lines(messages), Restore::Context, json!({})).unwrap();
        assert_eq!(parsed(&mut harness), messages);
        assert_eq!(harness.session.tools(None).unwrap().format, format);
        assert_eq!((report.kind, report.messages), (TranscriptKind::Messages, messages.len()));
    }
    let (harness, _) = import(&lines(&chat), Restore::Context, json!({ "format": "anthropic" })).unwrap();
    assert_eq!(harness.session.tools(None).unwrap().format, Format::Anthropic);
    let torn = format!("{}not a message\n", lines(&chat));
    let error = import(&torn, Restore::Context, json!({})).err().unwrap();
    assert_eq!((error.code, error.field.as_deref()), (Code::InvalidMessage, Some("line 3")));
    for text in ["{\"hello\": 1}\n", "5\n"] {
        assert_eq!(
            import(text, Restore::Context, json!({})).err().unwrap().code,
            Code::UnknownFormat,
            "{text}"
        );
    }
}
