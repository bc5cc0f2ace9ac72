//! Prompts that would die of bytes (`X5`): old images and documents become a text in their place, in every format.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::context::{Fate, Item};
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::audit::look;
use context_compactor_core::step::Notice;
use context_compactor_core::wire::{Author, Format};
use context_compactor_store_tests::conversation::{Body, body, calls, say};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::rc::Rc;

/// Bytes of a picture in base64.
const PICTURE: usize = 8_000;
const LIMIT: usize = 60_000;

/// The kinds of message: of the SDK there are two.
const SHAPES: [(Format, bool); 6] = [
    (Format::OpenaiChat, false),
    (Format::OpenaiResponses, false),
    (Format::Anthropic, false),
    (Format::Gemini, false),
    (Format::AiSdk, false),
    (Format::AiSdk, true),
];

fn options(limits: Value) -> Value {
    json!({ "preset": "balanced", "contextWindow": 200_000, "recall": true, "limits": limits })
}

/// A PNG of 1,280 × 720 pixels that no other is equal to, in base64.
fn png(nth: usize, bytes: usize) -> String {
    let mut text = format!("iVBORw0KGgoAAAANSUhEUgAABQAAAALQCAYAAAA{}", "A".repeat(bytes));
    text.truncate(bytes - 8);
    text + &format!("{nth:08}")
}

/// A question with a picture.
fn shown((format, is_ui): (Format, bool), nth: usize, bytes: usize) -> Body {
    let (data, text) = (png(nth, bytes), format!("What is picture {nth}?"));
    let url = format!("data:image/png;base64,{data}");
    body(&match (format, is_ui) {
        (Format::OpenaiChat, _) => json!({ "role": "user", "content": [
            { "type": "text", "text": text }, { "type": "image_url", "image_url": { "url": url } }] }),
        (Format::OpenaiResponses, _) => json!({ "type": "message", "role": "user", "content": [
            { "type": "input_text", "text": text }, { "type": "input_image", "image_url": url, "detail": "auto" }] }),
        (Format::Anthropic, _) => json!({ "role": "user", "content": [{ "type": "text", "text": text },
            { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": data } }] }),
        (Format::Gemini, _) => json!({ "role": "user", "parts": [
            { "text": text }, { "inlineData": { "mimeType": "image/png", "data": data } }] }),
        (Format::AiSdk, false) => json!({ "role": "user", "content": [
            { "type": "text", "text": text }, { "type": "image", "image": data, "mediaType": "image/png" }] }),
        _ => json!({ "id": format!("m{nth}"), "role": "user", "parts": [
            { "type": "text", "text": text }, { "type": "file", "mediaType": "image/png", "filename": format!("shot {nth}.png"), "url": url }] }),
    })
}

fn asked((format, is_ui): (Format, bool), text: &str) -> Body {
    match is_ui {
        true => body(&json!({ "id": text, "role": "user", "parts": [{ "type": "text", "text": text }] })),
        false => say(format, Author::User, text),
    }
}

fn said((format, is_ui): (Format, bool), nth: usize) -> Body {
    let text = format!("It is picture {nth}.");
    match is_ui {
        true => body(
            &json!({ "id": format!("a{nth}"), "role": "assistant", "parts": [{ "type": "text", "text": text }] }),
        ),
        false => say(format, Author::Assistant, &text),
    }
}

/// A tool call and the screenshot that answers it, where the format can show one there.
fn screenshot(format: Format, nth: usize) -> Option<Vec<Body>> {
    let (id, data) = (format!("call_{nth}"), png(nth, PICTURE));
    let result = match format {
        Format::OpenaiResponses => json!({ "type": "function_call_output", "call_id": id, "output": [
            { "type": "input_text", "text": "Done." }, { "type": "input_image", "image_url": format!("data:image/png;base64,{data}") }] }),
        Format::Anthropic => {
            json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id, "content": [
            { "type": "text", "text": "Done." },
            { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": data } }] }] })
        }
        Format::AiSdk => {
            json!({ "role": "tool", "content": [{ "type": "tool-result", "toolCallId": id, "toolName": "read_file",
            "output": { "type": "content", "value": [
                { "type": "text", "text": "Done." }, { "type": "media", "data": data, "mediaType": "image/png" }] } }] })
        }
        Format::Gemini => {
            json!({ "role": "user", "parts": [{ "functionResponse": { "id": id, "name": "read_file",
            "response": { "output": "Done." }, "parts": [{ "inlineData": { "mimeType": "image/png", "data": data } }] } }] })
        }
        _ => return None,
    };
    let mut bodies = calls(format, &[(&id, "screen")]);
    bodies.push(body(&result));
    Some(bodies)
}

fn context(harness: &Harness) -> Vec<Item> {
    look(&harness.session).unwrap().context.items().to_vec()
}

/// The pictures of a prompt that are still shown.
fn pictures(sent: &[Value], of: usize) -> Vec<usize> {
    let text = Value::from(sent.to_vec()).to_string();
    (0..of).filter(|nth| text.contains(&format!("AAAA{nth:08}"))).collect()
}

fn json_bytes(sent: &[Value]) -> usize {
    serde_json::to_string(sent).unwrap().len()
}

fn warned(harness: &Harness) -> usize {
    let is_limit =
        |notice: &&Notice| matches!(notice, Notice::Warning { code, .. } if *code == Code::LimitReached);
    harness.host.seen.notices.iter().filter(is_limit).count()
}

#[test]
fn x5_old_pictures_become_a_text_in_their_place_in_every_format() {
    for shape in SHAPES {
        let mut harness = Harness::new(options(json!({ "requestBytes": LIMIT })));
        let (mut changed, mut before) = (0, Vec::new());
        for nth in 0..20 {
            harness.append(&[shown(shape, nth, PICTURE)]);
            let sent = harness.sent();
            assert!(json_bytes(&sent) <= LIMIT, "{shape:?}: {} bytes", json_bytes(&sent));
            assert_valid(shape.0, &sent);
            let shown = pictures(&sent, nth + 1);
            assert_eq!(shown, (nth + 1 - shown.len()..nth + 1).collect::<Vec<_>>(), "the newest stay");
            // The beginning of the prompt stays for some turns.
            changed += usize::from(!sent.starts_with(&before));
            before = sent;
            harness.append(&[said(shape, nth)]);
        }
        assert!((3..=8).contains(&changed), "{shape:?}: {changed} of 20 prompts have another beginning");
        assert_eq!(warned(&harness), 0);
        harness.stored();
        let entries = harness.session.explain().unwrap();
        let first = &entries[0];
        assert_eq!(first.fate, Fate::Offloaded, "{first:?}");
        assert!(first.reason.as_ref().unwrap().contains("the log keeps it"));
        let reference = first.reference.clone().unwrap();
        assert!(before[0].to_string().contains(&format!("Image is at: {reference} (")), "{}", before[0]);
        let read = harness.read(&reference);
        assert!(read.starts_with("Image of message 0, left out"), "{read}");
        assert!(read.contains("image/png; 1280 × 720 pixels; 6 KB"), "{read}");
    }
}

#[test]
fn x5_it_is_the_same_after_reopening_and_undone_as_a_whole() {
    for shape in SHAPES {
        let over = || options(json!({ "requestBytes": LIMIT }));
        let mut harness = Harness::new(over());
        for nth in 0..7 {
            harness.append(&[shown(shape, nth, PICTURE), said(shape, nth)]);
        }
        harness.append(&[shown(shape, 7, PICTURE)]);
        let before = context(&harness);
        let sent = harness.sent();
        assert_eq!(pictures(&sent, 8), [3, 4, 5, 6, 7], "down to three quarters");
        let mut again = Harness::over(Rc::clone(&harness.memory), "b", over());
        assert_eq!(again.sent(), sent);
        assert_eq!(context(&again), context(&harness));
        let mut other = Harness::new(over());
        other.append(&before.iter().map(|item| Rc::clone(&item.body)).collect::<Vec<_>>());
        let others = other.sent();
        assert_eq!(pictures(&others, 8), [3, 4, 5, 6, 7]);
        again.host.run(again.session.undo()).unwrap();
        assert_eq!(context(&again), before);
        again.stored();
    }
}

#[test]
fn x5_what_the_user_asks_about_stays_and_of_a_long_run_of_tools_the_older_ones_leave() {
    for (format, is_ui) in SHAPES {
        if is_ui || screenshot(format, 0).is_none() {
            continue;
        }
        let mut harness = Harness::new(options(json!({ "requestBytes": LIMIT })));
        harness.append(&[shown((format, false), 0, PICTURE)]);
        for nth in 1..30 {
            harness.append(&screenshot(format, nth).unwrap());
            let sent = harness.sent();
            assert!(json_bytes(&sent) <= LIMIT, "{format:?}: {} bytes", json_bytes(&sent));
            assert_valid(format, &sent);
            let shown = pictures(&sent, nth + 1);
            assert!(shown.contains(&0) && shown.contains(&nth), "{format:?}: {shown:?}");
        }
        assert_eq!(warned(&harness), 0);
        harness.stored();
    }
}

#[test]
fn x5_pictures_since_the_users_last_message_leave_after_those_before_it() {
    let format = Format::Anthropic;
    let mut harness = Harness::new(options(json!({ "requestBytes": LIMIT })));
    harness.append(&[say(format, Author::User, "Begin.")]);
    for nth in 0..3 {
        harness.append(&screenshot(format, nth).unwrap());
    }
    harness.append(&[say(format, Author::User, "Go on.")]);
    for nth in 3..8 {
        harness.append(&screenshot(format, nth).unwrap());
    }
    // Those before it are enough to get below the limit, and not below three quarters of it.
    assert_eq!(pictures(&harness.sent(), 8), [3, 4, 5, 6, 7]);
}

#[test]
fn x5_where_nothing_more_can_leave_the_app_decides() {
    let shape = (Format::Anthropic, false);
    for refuses in [false, true] {
        let on_exceed = if refuses { "throw" } else { "warn" };
        let mut harness = Harness::new(options(json!({ "requestBytes": 5_000, "onExceed": on_exceed })));
        harness.append(&[shown(shape, 0, PICTURE)]);
        let prepare = harness.session.prepare(Trigger::Auto, Vec::new());
        match harness.host.run(prepare) {
            Ok(_) => assert!(!refuses),
            Err(error) => {
                assert!(refuses, "{error}");
                assert_eq!(
                    (error.code, error.field.as_deref()),
                    (Code::LimitReached, Some("limits.requestBytes"))
                );
                assert!(error.message.contains("5,000"), "{}", error.message);
            }
        }
        assert_eq!(warned(&harness), usize::from(!refuses));
        if !refuses {
            harness.prepare();
            assert_eq!(warned(&harness), 1, "once");
        }
        assert_eq!(context(&harness).len(), 1, "it is in the context as it was");
        assert!(context(&harness)[0].body.contains("iVBOR"));
    }
}

#[test]
fn x5_the_plan_tells_what_would_leave_and_the_bytes() {
    let shape = (Format::OpenaiChat, false);
    let mut harness = Harness::new(options(json!({ "requestBytes": LIMIT })));
    for nth in 0..8 {
        harness.append(&[shown(shape, nth, PICTURE), said(shape, nth)]);
    }
    let items = context(&harness);
    let plan = harness.host.run(harness.session.plan()).unwrap();
    assert!(plan.will_compact);
    assert_eq!(plan.edits.iter().map(|edit| edit.kind).collect::<Vec<_>>(), ["media"]);
    let told = plan.limits.unwrap().request_bytes.unwrap();
    assert_eq!(told.limit, LIMIT);
    assert_eq!(told.bytes, items.iter().map(|item| item.body.len() + 1).sum::<usize>() + 1);
    let prepared = harness.prepare();
    let sent = bodies(&harness.session, &prepared);
    assert_eq!(told.after, json_bytes(&sent));
    assert_eq!(prepared.edits[0].indices, plan.edits[0].indices);
    assert_eq!(prepared.edits[0].detail.as_deref(), Some("3 images or documents"));
}

#[test]
fn x5_pinned_messages_small_pictures_and_a_session_without_a_limit_stay_as_they_are() {
    let shape = (Format::OpenaiChat, false);
    for limits in [json!({ "requestBytes": LIMIT }), json!({ "storeTimeoutMs": 30_000 })] {
        let has_limit = limits.get("requestBytes").is_some();
        let mut harness = Harness::new(options(limits));
        harness.append(&[shown(shape, 0, PICTURE)]);
        harness.host.run(harness.session.pin(0)).unwrap();
        harness.append(&[shown(shape, 1, 600)]);
        for nth in 2..9 {
            harness.append(&[shown(shape, nth, PICTURE), said(shape, nth)]);
        }
        let left = pictures(&harness.sent(), 9);
        let wanted: &[usize] = if has_limit { &[0, 1, 5, 6, 7, 8] } else { &[0, 1, 2, 3, 4, 5, 6, 7, 8] };
        assert_eq!(left, wanted);
    }
}

#[test]
fn x5_a_fork_an_import_and_a_summary_know_what_left() {
    let shape = (Format::Anthropic, false);
    let mut harness = Harness::new(options(json!({ "requestBytes": LIMIT })));
    for nth in 0..9 {
        harness.append(&[shown(shape, nth, PICTURE), said(shape, nth)]);
    }
    harness.sent();
    let reference = harness.session.explain().unwrap()[0].reference.clone().unwrap();
    let (child, _) = harness.host.run(harness.session.fork(Some("child".into()))).unwrap();
    let read = harness.host.run(child.read(reference.clone(), 0, None)).unwrap();
    assert!(read.starts_with("Image of message 0"), "{read}");
    let verified = harness.host.run(child.verify()).unwrap();
    assert!(verified.ok, "{verified:?}");
    assert!(harness.compact().success);
    let verified = harness.host.run(harness.session.verify()).unwrap();
    assert!(verified.ok, "{verified:?}");
    assert!(harness.read(&reference).starts_with("Image of message 0"));
    let mut again = Harness::over(Rc::clone(&harness.memory), "b", options(json!({ "requestBytes": LIMIT })));
    assert!(again.read(&reference).starts_with("Image of message 0"));
    assert_eq!(again.stored().context, harness.stored().context);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn x5_any_history_of_pictures_stays_valid_below_the_limit_and_whole_in_the_log(
        shape in prop::sample::select(SHAPES.to_vec()),
        steps in prop::collection::vec((0_usize..4, 100_usize..20_000), 1..40),
        limit in 20_000_usize..120_000,
    ) {
        let mut harness = Harness::new(options(json!({ "requestBytes": limit })));
        let mut given: Vec<Body> = vec![asked(shape, "Begin.")];
        harness.append(&given);
        for (nth, (kind, bytes)) in steps.into_iter().enumerate() {
            let mut new = match kind {
                0 if !shape.1 && screenshot(shape.0, nth).is_some() => {
                    let mut run = vec![asked(shape, &format!("Look, {nth}."))];
                    run.extend((0..bytes % 5).flat_map(|more| screenshot(shape.0, nth * 10 + more).unwrap()));
                    run
                }
                1 => vec![asked(shape, &format!("Go on, {nth}."))],
                _ => vec![shown(shape, nth, bytes.max(200))],
            };
            new.push(said(shape, nth));
            harness.append(&new);
            given.extend(new);
            let sent = harness.sent();
            assert_valid(shape.0, &sent);
            prop_assert_eq!(sent.len(), given.len());
            // What is left of it above the limit cannot leave.
            let open = bytes_of_open(&sent);
            prop_assert!(json_bytes(&sent) <= limit || open == 0, "{} bytes of {}, {} may leave", json_bytes(&sent), limit, open);
        }
        let stored = harness.stored();
        let given: Vec<String> = given.iter().map(ToString::to_string).collect();
        prop_assert_eq!(stored.messages, given);
    }
}

/// Messages with a large picture that neither is the newest nor the user's newest.
fn bytes_of_open(sent: &[Value]) -> usize {
    let is_large = |message: &&Value| message.to_string().contains(&"A".repeat(1_100));
    let with: Vec<usize> = (0..sent.len()).filter(|at| is_large(&&sent[*at])).collect();
    let is_user = |message: &Value| message["role"] == "user" && !message.to_string().contains("tool_result");
    let user = sent.iter().rposition(is_user);
    let has_any = |message: &Value| message.to_string().contains("iVBORw0KGgo");
    let newest = sent.iter().rposition(has_any);
    with.into_iter().filter(|at| Some(*at) != user && Some(*at) != newest).count()
}
