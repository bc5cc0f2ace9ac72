//! Compaction by the provider (`X10`). The answers are recorded from the published documentation:
//! <https://platform.claude.com/docs/en/build-with-claude/compaction-threshold> and
//! <https://developers.openai.com/api/docs/guides/compaction>.

use crate::support::transcripts::{archive, import};
use crate::support::*;
use context_compactor_core::context::Fate;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Session;
use context_compactor_core::session::transcript::Restore;
use context_compactor_core::step::Notice;
use context_compactor_core::wire::Format;
use context_compactor_core::{Code, Error};
use context_compactor_store_tests::How;
use context_compactor_store_tests::conversation::{Body, assistant, body, user};
use serde_json::{Value, json};
use std::rc::Rc;

const PROVIDERS: [&str; 2] = ["anthropic", "openai-responses"];

fn options(format: &str, over: Value) -> Value {
    let mut options = json!({
        "preset": "balanced", "format": format, "contextWindow": 200_000, "compactAt": { "tokens": 60_000 },
        "summarize": "server",
    });
    merge(&mut options, &over);
    options
}

fn open(format: &str, over: Value) -> Harness {
    Harness::new(options(format, over))
}

/// An open attempt on the same store.
fn reopened(harness: &Harness, over: Value) -> Harness {
    Harness::over(Rc::clone(&harness.memory), "again", over)
}

fn try_open(over: Value) -> Result<(), Error> {
    let mut harness = Harness::new(json!({}));
    let settings =
        context_compactor_core::policy::Settings::read(&serde_json::from_str(&over.to_string()).unwrap())?;
    harness.host.run(Session::open(Rc::new(settings), Some("t".into()), 10_000)).map(drop)
}

/// A question and an answer.
fn said(format: &str, nth: usize, tokens: usize) -> Vec<Body> {
    let (question, answer) = (long(&format!("question {nth}"), tokens), long(&format!("answer {nth}"), 20));
    match format {
        "anthropic" => vec![user(&question), assistant(&answer)],
        _ => vec![user(&question), answered(&format!("msg_{nth}"), &answer)],
    }
}

fn answered(id: &str, text: &str) -> Body {
    body(&json!({
        "type": "message", "id": id, "status": "completed", "role": "assistant",
        "content": [{ "type": "output_text", "text": text, "annotations": [] }],
    }))
}

/// The answer to a request that the provider compacted on the way.
fn compacted(format: &str, nth: usize) -> Vec<Body> {
    match format {
        "anthropic" => vec![body(&json!({ "role": "assistant", "content": [
            { "type": "compaction", "content": format!("Summary of the conversation: part {nth}."), "encrypted_content": null },
            { "type": "text", "text": format!("Based on our conversation so far, on we go ({nth}).") },
        ] }))],
        _ => vec![
            body(
                &json!({ "type": "compaction", "id": format!("cmp_{nth}"), "encrypted_content": "gAAAAABpb3BhcXVl" }),
            ),
            answered(&format!("msg_c{nth}"), "On we go."),
        ],
    }
}

/// Turns until the session would compact, and the provider's answer.
fn worked(harness: &mut Harness, format: &str, round: usize) -> (Vec<Body>, Vec<Body>) {
    let mut before = Vec::new();
    for nth in 0..8 {
        before.extend(said(format, 100 * round + nth, 8_000));
    }
    harness.append(&before);
    harness.prepare();
    let answer = compacted(format, round);
    harness.append(&answer);
    (before, answer)
}

fn of(bodies: &[Body]) -> Vec<Value> {
    bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect()
}

fn fates(harness: &Harness) -> Vec<Fate> {
    harness.session.explain().unwrap().iter().map(|entry| entry.fate).collect()
}

fn contents(harness: &Harness) -> Vec<String> {
    harness.stored().messages
}

#[test]
fn x10_a_prompt_has_what_the_request_must_say() {
    for (format, expected) in [
        (
            "anthropic",
            json!({
                "betas": ["compact-2026-01-12"],
                "context_management": { "edits": [
                    { "type": "compact_20260112", "trigger": { "type": "input_tokens", "value": 60_000 } },
                ] },
            }),
        ),
        (
            "openai-responses",
            json!({ "context_management": [{ "type": "compaction", "compact_threshold": 60_000 }] }),
        ),
    ] {
        let mut harness = open(format, json!({}));
        harness.append(&said(format, 0, 100));
        let request = harness.prepare().request.unwrap();
        assert_eq!(serde_json::from_str::<Value>(&request).unwrap(), expected);
        let mut other = Harness::new(options(format, json!({ "summarize": "extractive" })));
        other.append(&said(format, 0, 100));
        assert_eq!(other.prepare().request, None);
    }
}

#[test]
fn x10_where_no_provider_compacts_the_option_is_refused() {
    for format in ["openai-chat", "gemini", "ai-sdk", "react"] {
        let error = try_open(options(format, json!({}))).unwrap_err();
        assert_eq!(error.code, Code::InvalidOption, "{format}");
        assert!(error.message.contains("anthropic and openai-responses"), "{error}");
    }
    let error = try_open(options("anthropic", json!({ "compactAt": { "tokens": 49_999 } }))).unwrap_err();
    assert!(error.message.contains("from 50000 on"), "{error}");
    try_open(options("openai-responses", json!({ "compactAt": { "tokens": 20_000 } }))).unwrap();
    for (over, named) in [
        (json!({ "pins": { "match": true } }), "pins.match"),
        (json!({ "toolPolicies": { "a": { "keep": "always" } } }), "toolPolicies"),
        (json!({ "background": true }), "background"),
    ] {
        let error = try_open(options("anthropic", over)).unwrap_err();
        assert_eq!((error.code, error.field.as_deref()), (Code::InvalidOption, Some(named)));
    }
    // The format is known with the first message that says it: nothing is written.
    let mut harness =
        Harness::new(json!({ "preset": "balanced", "contextWindow": 200_000, "summarize": "server" }));
    let call = json!({ "role": "assistant", "content": null, "tool_calls": [
        { "id": "c", "type": "function", "function": { "name": "t", "arguments": "{}" } },
    ] });
    let error = harness.host.run(harness.session.append(vec![user("Go."), body(&call)])).unwrap_err();
    assert_eq!(error.code, Code::InvalidOption);
    assert_eq!(harness.session.explain().unwrap(), []);
    let mut host = harness.host;
    let once = Session::compact_once(settings(options("anthropic", json!({}))), vec![user("Go.")]);
    assert_eq!(host.run(once).unwrap_err().code, Code::InvalidOption);
}

#[test]
fn x10_the_answer_takes_the_place_of_what_it_stands_for() {
    for format in PROVIDERS {
        let mut harness = open(format, json!({}));
        let (before, answer) = worked(&mut harness, format, 0);
        let own = before.len();
        let ledger = harness.session.explain().unwrap();
        for (index, entry) in ledger.iter().enumerate() {
            let is_gone = index < own;
            assert_eq!(
                entry.fate,
                if is_gone { Fate::Summarised } else { Fate::Verbatim },
                "{format} {index}"
            );
            assert_eq!(entry.checkpoint.is_some(), index <= own);
            assert_eq!(entry.reason.is_some(), is_gone);
            assert!(!entry.quoted);
        }
        let told = |notice: &&Notice| matches!(notice, Notice::Compact { freed_tokens, .. } if *freed_tokens > 60_000);
        assert_eq!(harness.host.seen.notices.iter().filter(told).count(), 1, "{format}");
        let records = harness.session.checkpoints().unwrap();
        assert_eq!((records.len(), records[0].message_range), (1, (0, own + 1)));

        let next = said(format, 50, 100);
        harness.append(&next[..1]);
        let expected = [of(&answer), of(&next[..1])].concat();
        let sent = harness.sent();
        assert_eq!(sent, expected, "{format}");
        assert_valid(Format::named(format).unwrap(), &sent);
        let again = &mut reopened(&harness, options(format, json!({})));
        assert_eq!(again.sent(), expected, "{format}: read back");
        let all: Vec<Value> =
            [before, answer].concat().iter().map(|body| serde_json::from_str(body).unwrap()).collect();
        let kept: Vec<Value> =
            contents(again).iter().map(|body| serde_json::from_str(body).unwrap()).collect();
        assert_eq!(kept[..all.len()], all, "every original is readable");
        // The host has the app's own object for it.
        assert_eq!(again.prepare().items[0].index, Some(own));
    }
}

#[test]
fn x10_the_next_one_stands_for_the_one_before_too() {
    for format in PROVIDERS {
        let mut harness = open(format, json!({}));
        let mut said = Vec::new();
        let mut last = Vec::new();
        for round in 0..3 {
            let (before, answer) = worked(&mut harness, format, round);
            said.extend([before, answer.clone()].concat());
            last = answer;
        }
        assert_eq!(harness.sent(), of(&last), "{format}");
        assert_eq!(
            of(&contents(&harness).iter().map(|one| Rc::from(one.as_str())).collect::<Vec<_>>()),
            of(&said)
        );
        let standing = harness.session.checkpoints().unwrap();
        assert_eq!(standing.len(), 1, "{format}");
        assert_eq!(harness.session.metadata().unwrap().compression_count, 3);
        assert!(harness.host.seen.requests.is_empty(), "no other model is asked");
    }
}

#[test]
fn x10_undo_gives_the_bytes_of_before() {
    for format in PROVIDERS {
        let mut harness = open(format, json!({}));
        let (before, answer) = worked(&mut harness, format, 0);
        harness.host.run(harness.session.undo()).unwrap();
        assert_eq!(harness.context(), of(&[before.clone(), answer.clone()].concat()), "{format}");
        assert!(fates(&harness).iter().all(|fate| *fate == Fate::Verbatim));
        // It stays taken back.
        let sent = harness.sent();
        assert_eq!(sent, of(&[before, answer].concat()), "{format}");
        let rewound = &mut reopened(&harness, options(format, json!({})));
        assert_eq!(rewound.sent(), sent, "{format}: read back");
    }
}

#[test]
fn x10_only_what_a_provider_made_is_taken_over() {
    let format = "anthropic";
    let empty = json!({ "role": "assistant", "content": [
        { "type": "compaction", "content": null, "encrypted_content": null }, { "type": "text", "text": "On." },
    ] });
    let of_user = json!({ "role": "user", "content": [{ "type": "compaction", "content": "so far" }] });
    let talks =
        json!({ "role": "assistant", "content": "{ \"type\": \"compaction\", \"content\": \"so far\" }" });
    for other in [empty, of_user, talks] {
        let mut harness = open(format, json!({}));
        harness.append(&said(format, 0, 100));
        harness.append(&[body(&other)]);
        assert!(fates(&harness).iter().all(|fate| *fate == Fate::Verbatim), "{other}");
        assert_eq!(harness.session.checkpoints().unwrap(), []);
    }
    let mut harness = open(format, json!({ "summarize": "extractive" }));
    harness.append(&[said(format, 0, 100), compacted(format, 0)].concat());
    harness.prepare();
    assert!(fates(&harness).iter().all(|fate| *fate == Fate::Verbatim), "as without the option");
    // One that stands first stands for nothing that the session has.
    let mut harness = open(format, json!({}));
    harness.append(&compacted(format, 0));
    assert_eq!(fates(&harness), [Fate::Verbatim]);
}

#[test]
fn x10_the_built_in_page_stands_by() {
    for format in PROVIDERS {
        let mut harness = open(format, json!({}));
        let (_, answer) = worked(&mut harness, format, 0);
        let mut rounds = 1_000;
        // Above the threshold, the prompt goes out as it is.
        while harness.session.usage().unwrap().used_tokens < 150_000 {
            harness.append(&said(format, rounds, 8_000));
            rounds += 1;
            let prepared = harness.prepare();
            assert!(prepared.result.is_none(), "{format}: {:?}", prepared.edits);
        }
        assert!(harness.host.run(harness.session.plan()).unwrap().reason.contains("the provider is asked"));
        for nth in 0..8 {
            harness.append(&said(format, 2_000 + nth, 8_000));
        }
        let prepared = harness.prepare();
        let result = prepared.result.as_ref().unwrap();
        let fell_back = result.fell_back.as_ref().unwrap();
        assert!(fell_back.message.contains("the provider had not compacted"), "{format}: {fell_back}");
        assert!(result.success && result.fits);
        let sent = bodies(&harness.session, &prepared);
        assert_eq!(sent[..answer.len().min(1)], of(&answer)[..1], "{format}: it stays first");
        assert_valid(Format::named(format).unwrap(), &sent);
        // The provider then stands for the page too.
        let answer = compacted(format, 7);
        harness.append(&answer);
        assert_eq!(harness.sent(), of(&answer), "{format}");
        let result = harness.compact();
        assert!(!result.changed, "nothing is left to compact");
    }
}

#[test]
fn x10_a_session_moves_between_the_provider_and_its_own_and_back() {
    for format in PROVIDERS {
        let mut harness = open(format, json!({}));
        let (before, answer) = worked(&mut harness, format, 0);
        let own = json!({ "summarize": "extractive" });
        let mut local = reopened(&harness, options(format, own));
        let page = local.sent();
        let text = serde_json::to_string(&page).unwrap();
        assert!(!text.contains("\"compaction\""), "{format}: {text:.300}");
        assert_valid(Format::named(format).unwrap(), &page);
        assert!(local.session.usage().unwrap().used_tokens < 62_000);
        assert!(
            text.contains("question 0") || text.contains("earlier messages"),
            "{format}: the originals made the page"
        );
        assert_eq!(contents(&local).len(), before.len() + answer.len());

        let mut server = reopened(&local, options(format, json!({})));
        let (_, answer) = worked(&mut server, format, 1);
        assert_eq!(server.sent(), of(&answer), "{format}: and back");
        assert_eq!(contents(&server).len(), 2 * (before.len() + answer.len()));
        server.stored();
        let id = server.session.checkpoints().unwrap()[0].id.clone();
        let parts = server.host.run(server.session.expand(id)).unwrap();
        assert!(parts.len() >= before.len(), "{format}: {}", parts.len());
    }
}

#[test]
fn x10_a_call_that_waits_for_its_result_stays() {
    let format = "openai-responses";
    let mut harness = open(format, json!({}));
    let call = body(
        &json!({ "type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}", "id": "fc_1" }),
    );
    let item = &compacted(format, 0)[..1];
    let result = body(&json!({ "type": "function_call_output", "call_id": "c1", "output": "done" }));
    harness.append(&[&said(format, 0, 100)[..], &[Rc::clone(&call)], item].concat());
    harness.append(&[Rc::clone(&result)]);
    let sent = harness.sent();
    assert_eq!(sent, of(&[&[call], item, &[result]].concat()));
    assert_valid(Format::OpenaiResponses, &sent);
    let mut local = reopened(&harness, options(format, json!({ "summarize": "extractive" })));
    let sent = local.sent();
    assert_eq!(sent.len(), 4, "the question, its answer, the call and its result: {sent:#?}");
    assert_valid(Format::OpenaiResponses, &sent);
}

#[test]
fn x10_what_was_not_taken_over_is_by_the_next_prepare() {
    for format in PROVIDERS {
        let mut other = Harness::new(options(format, json!({ "summarize": "extractive" })));
        let answer = compacted(format, 0);
        other.append(&[said(format, 0, 100), answer.clone()].concat());
        let mut harness = reopened(&other, options(format, json!({})));
        assert_eq!(harness.sent(), of(&answer), "{format}");
    }
}

#[test]
fn x10_a_commit_that_fails_costs_no_message_and_is_made_up_for() {
    for how in [How::Fail(Code::StoreUnavailable), How::Lost, How::CrashBefore, How::CrashAfter] {
        for format in PROVIDERS {
            let mut harness = open(format, json!({}));
            harness.append(&said(format, 0, 100));
            harness.host.fault(1, is_change, how);
            let answer = compacted(format, 0);
            match harness.host.try_run(harness.session.append(answer.clone())) {
                Some(done) => {
                    done.unwrap();
                    assert_eq!(harness.sent(), of(&answer), "{format} {how:?}");
                }
                None => assert!(matches!(how, How::CrashBefore | How::CrashAfter)),
            }
            let mut again = reopened(&harness, options(format, json!({})));
            assert_eq!(again.sent(), of(&answer), "{format} {how:?}: read back");
            assert_eq!(contents(&again).len(), 2 + answer.len());
        }
    }
}

#[test]
fn x10_what_was_made_on_demand_comes_first() {
    let mut harness = open("anthropic", json!({}));
    harness.append(&said("anthropic", 0, 100));
    let signed = body(&json!({ "role": "assistant", "content": [
        { "type": "compaction", "content": "so far", "encrypted_content": null, "signature": "c2ln", "tool_changes": [] },
    ] }));
    harness.append(&[Rc::clone(&signed), user("Go on.")]);
    let prepared = harness.prepare();
    let sent = bodies(&harness.session, &prepared);
    assert_eq!(sent, of(&[signed, user("Go on.")]));
    assert_valid(Format::Anthropic, &sent);
    let request: Value = serde_json::from_str(&prepared.request.unwrap()).unwrap();
    assert_eq!(request["betas"], json!(["compact-2026-01-12", "compact-2026-09-04"]));
}

#[test]
fn x10_an_erased_message_is_in_no_compaction_either() {
    for format in PROVIDERS {
        for of_item in [false, true] {
            let mut harness = open(format, json!({}));
            let (before, _) = worked(&mut harness, format, 0);
            let index = if of_item { before.len() } else { 2 };
            harness.host.run(harness.session.erase(index, "a key".into())).unwrap();
            let text = serde_json::to_string(&harness.context()).unwrap();
            assert!(
                !text.contains("Summary of the conversation") && !text.contains("gAAAAABpb3"),
                "{format}"
            );
            harness.stored();
            let sent = harness.sent();
            assert_valid(Format::named(format).unwrap(), &sent);
        }
    }
}

#[test]
fn x10_a_fork_and_an_archive_begin_with_it() {
    for format in PROVIDERS {
        let mut harness = open(format, json!({}));
        let (before, answer) = worked(&mut harness, format, 0);
        let (child, _) = harness.host.run(harness.session.fork(Some("child".into()))).unwrap();
        let prepared = harness.host.run(child.prepare(Trigger::Auto, Vec::new())).unwrap();
        assert_eq!(bodies(&child, &prepared), of(&answer), "{format}");
        let text = archive(&mut harness.host, &harness.session);
        let (mut imported, _) = import(&text, Restore::Context, options(format, json!({}))).unwrap();
        assert_eq!(imported.sent(), of(&answer), "{format}");
        assert_eq!(contents(&imported).len(), before.len() + answer.len());
    }
}

#[test]
fn x10_no_message_is_pinned() {
    let mut harness = open("anthropic", json!({}));
    harness.append(&said("anthropic", 0, 100));
    let error = harness.host.run(harness.session.pin(0)).unwrap_err();
    assert_eq!(error.code, Code::InvalidOption);
    // Pinned by an earlier session: it says so.
    let mut local = reopened(&harness, options("anthropic", json!({ "summarize": "extractive" })));
    local.host.run(local.session.pin(0)).unwrap();
    let mut harness = reopened(&local, options("anthropic", json!({})));
    harness.append(&compacted("anthropic", 0));
    let warned = |notice: &&Notice| matches!(notice, Notice::Warning { message, .. } if message.contains("pinned messages too (0)"));
    assert_eq!(harness.host.seen.notices.iter().filter(warned).count(), 1);
}
