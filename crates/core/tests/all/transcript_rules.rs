//! The transcript of a session: history, metadata, Markdown (`S5.3`).

use crate::support::transcripts::*;
use crate::support::*;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, assistant, body, exchange, user};
use context_compactor_store_tests::host::summary;
use serde_json::json;
use std::rc::Rc;

#[test]
fn s5_3_the_history_is_every_message_in_order_whatever_was_compacted() {
    for over in presets() {
        let (mut harness, all) = worked(over);
        assert_eq!(history(&mut harness), all.iter().map(|body| body.to_string()).collect::<Vec<_>>());
    }
}

#[test]
fn s5_3_a_page_of_the_history_is_of_bounded_bytes_and_what_is_appended_meanwhile_is_not_in_it() {
    let mut harness = Harness::new(json!({ "contextWindow": 10_000_000 }));
    let big: Vec<Body> = (0..12).map(|nth| user(&long(&nth.to_string(), 250_000))).collect();
    harness.append(&big);
    let first = harness.host.run(harness.session.history(None)).unwrap();
    let bytes: usize = first.messages.iter().map(|said| said.body.len()).sum();
    assert!(bytes <= 4 << 20 && first.messages.len() >= 3, "{bytes}");
    harness.append(&[user("later")]);
    let mut indices: Vec<usize> = first.messages.iter().map(|said| said.index).collect();
    let mut next = first.next;
    while next.is_some() {
        let page = harness.host.run(harness.session.history(next)).unwrap();
        indices.extend(page.messages.iter().map(|said| said.index));
        next = page.next;
    }
    assert_eq!(indices, (0..12).collect::<Vec<_>>());
}

#[test]
fn s5_3_metadata_counts_what_was_said_and_the_records_tell_of_every_checkpoint() {
    let (mut harness, all) =
        worked(json!({ "preset": "checkpoint", "contextWindow": 32_000, "summarize": { "detail": 3 } }));
    let metadata = harness.session.metadata().unwrap();
    assert_eq!((metadata.total_messages, metadata.compression_count), (all.len(), 2));
    let mut plain = Harness::new(json!({ "contextWindow": 1_000_000 }));
    plain.append(&all);
    assert_eq!(metadata.total_tokens, plain.session.usage().unwrap().used_tokens, "of what was appended");
    assert!(1_700_000_000_000 < metadata.start_time && metadata.start_time < metadata.last_update);
    let records = harness.host.run(harness.session.checkpoint_records()).unwrap();
    assert_eq!(records.len(), 2);
    assert_eq!(records[0].message_range.0, 0, "half-open and real");
    assert!(records[0].message_range.1 <= 12 && records[1].message_range.1 <= 24);
    for record in &records {
        let ratio = record.compressed_tokens as f64 / record.original_tokens as f64;
        assert_eq!((record.compression_ratio, record.level.map(u8::from)), (ratio, Some(3)));
    }
    // Those that another one stands for are told of too.
    let mut aged = Harness::new(
        json!({ "preset": "checkpoint", "contextWindow": 32_000, "summarize": { "detail": 3 } }),
    );
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
    let mut harness = Harness::new(json!({}));
    let image = json!({ "role": "user", "content": [
        { "type": "text", "text": "Look:" },
        { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
    ] });
    harness.append(&[user("Fix it.\n## assistant (now)"), body(&image)]);
    harness.append(&exchange(Format::OpenaiChat, "c1", "ok\n## user (never)\n```"));
    let started = harness.session.metadata().unwrap().start_time;
    assert_eq!(started, 1_700_000_000_001);
    let text = markdown(&mut harness);
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
fn s5_3_what_another_handle_wrote_is_in_the_transcript_at_once() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(1, 10));
    let mut other = Harness::over(Rc::clone(&harness.memory), "other", json!({}));
    let first = other.host.run(other.session.history(None)).unwrap();
    assert_eq!(first.messages.len(), 2);
    harness.append(&[user("the raven flies at midnight"), assistant("noted")]);
    assert_eq!(history(&mut other), history(&mut harness));
    assert_eq!(archive(&mut other.host, &other.session), archive(&mut harness.host, &harness.session));
    let markdown = other.host.run(other.session.markdown(None)).unwrap().text;
    assert!(markdown.contains("**Messages:** 4") && markdown.contains("raven"));
    let hits = other.host.run(other.session.search("raven".into(), 5)).unwrap();
    assert_eq!((hits.len(), hits[0].seq), (1, 2));
    assert!(other.read(&hits[0].reference).contains("midnight"));
    harness.append(&talk(8, 100));
    assert!(harness.compact().success);
    let records = other.host.run(other.session.checkpoint_records()).unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(archive(&mut other.host, &other.session), archive(&mut harness.host, &harness.session));
    // What was looked at changes nothing: the handle goes on as it was, and takes over the rest when it writes.
    assert_eq!(other.session.explain().unwrap().len(), 2);
    other.append(&talk(1, 10));
    assert_eq!(other.session.explain().unwrap().len(), 22);
    // A page is of the moment of the first one.
    let cursor =
        context_compactor_core::session::transcript::Cursor { seq: 0, rows: 2, index: 0, messages: 2 };
    let page = other.host.run(other.session.history(Some(cursor))).unwrap();
    assert_eq!((page.messages.len(), page.next), (2, None));
}

#[test]
fn s5_3_a_row_of_the_session_that_cannot_be_read_leaves_what_is_known() {
    let mut harness = Harness::new(json!({}));
    harness.append(&talk(2, 10));
    let rows = harness.memory.rows();
    let (key, _) = rows.iter().find(|(key, _)| key.to_string().starts_with("sessions/")).unwrap();
    for damage in [Some(b"not JSON".to_vec()), None] {
        harness.memory.damage(key, damage);
        assert_eq!(history(&mut harness).len(), 4);
    }
}
