//! The tool with which a model begins anew (`X11`): its notes stand for the older messages, in the next prompt.

use crate::recall_tools::{answer, call};
use crate::support::checkpoints::warnings;
use crate::support::*;
use context_compactor_core::context::Fate;
use context_compactor_core::policy::Trigger;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, assistant, body, user};
use context_compactor_store_tests::host::summary;
use serde_json::{Value, json};
use std::cell::Cell;
use std::rc::Rc;

const NAME: &str = "new_context";
const NOTES: &str = "The parser in src/parse.rs is done and its 12 tests pass. Next: the printer in src/print.rs, which must keep \
                     comments. The user wants no new dependency.";
const FORMATS: [Format; 5] =
    [Format::OpenaiChat, Format::OpenaiResponses, Format::Anthropic, Format::Gemini, Format::AiSdk];

fn options(format: Format) -> Value {
    json!({ "preset": "balanced", "contextWindow": 40_000, "format": format, "handoff": {} })
}

/// The message in which the model calls the tool, with a text before it.
fn asks(format: Format, notes: &Value) -> Vec<Body> {
    let call = call(format, NAME, &json!({ "notes": notes }));
    match format {
        Format::OpenaiChat => {
            vec![body(&json!({ "role": "assistant", "content": "Done.", "tool_calls": [call] }))]
        }
        Format::OpenaiResponses => vec![assistant("Done."), body(&call)],
        Format::Gemini => vec![body(&json!({ "role": "model", "parts": [{ "text": "Done." }, call] }))],
        _ => vec![body(
            &json!({ "role": "assistant", "content": [{ "type": "text", "text": "Done." }, call] }),
        )],
    }
}

fn said(format: Format, role: &str, text: &str) -> Body {
    match (format, role) {
        (Format::Gemini, "user") => body(&json!({ "role": "user", "parts": [{ "text": text }] })),
        (Format::Gemini, _) => body(&json!({ "role": "model", "parts": [{ "text": text }] })),
        (_, "user") => user(text),
        _ => assistant(text),
    }
}

/// A session with some turns.
fn begun(format: Format, over: Value) -> Harness {
    let mut all = options(format);
    all.as_object_mut().unwrap().extend(over.as_object().unwrap().clone());
    let mut harness = Harness::new(all);
    harness.append(&[said(format, "user", "Never touch the public API. Write the parser first.")]);
    for nth in 0..6 {
        let (question, answer) = (long(&format!("question {nth}"), 300), long(&format!("answer {nth}"), 300));
        harness.append(&[said(format, "assistant", &answer), said(format, "user", &question)]);
    }
    harness
}

/// The model calls the tool, and is answered; true for a failure.
fn call_it(harness: &mut Harness, format: Format, notes: &Value) -> bool {
    harness.append(&asks(format, notes));
    let given = call(format, NAME, &json!({ "notes": notes }));
    let answered = harness.answer(&given, Some(format)).unwrap();
    harness.append(&[body(&answered)]);
    answered == answer(format, NAME, &json!({ "notes": notes }), &text_of(&answered), true)
        && text_of(&answered).starts_with("Nothing was changed")
}

/// What a result says.
fn text_of(answered: &Value) -> String {
    let texts = ["/content", "/output", "/content/0/content", "/content/0/output/value"];
    let response = ["/parts/0/functionResponse/response/output", "/parts/0/functionResponse/response/error"];
    let found = texts.iter().chain(&response).find_map(|at| answered.pointer(at)?.as_str());
    found.unwrap().to_owned()
}

/// Counts how often a model is asked for a summary.
fn counted(harness: &mut Harness) -> Rc<Cell<usize>> {
    let asked = Rc::new(Cell::new(0));
    let count = Rc::clone(&asked);
    harness.host.summarise = Box::new(move |_, _| {
        count.set(count.get() + 1);
        summary(SUMMARY)
    });
    asked
}

#[test]
fn x11_the_models_notes_stand_for_the_older_messages_in_every_format() {
    for format in FORMATS {
        let mut harness = begun(format, json!({}));
        let asked = counted(&mut harness);
        let before = harness.prepare();
        assert!(!call_it(&mut harness, format, &json!(NOTES)));
        let plan = harness.host.run(harness.session.plan()).unwrap();
        assert!(plan.will_compact, "{format:?}: {}", plan.reason);

        let prepared = harness.prepare();
        let sent = bodies(&harness.session, &prepared);
        let result = prepared.result.unwrap();
        assert!(result.success && result.changed && result.fell_back.is_none(), "{format:?}: {result:?}");
        assert_eq!((result.trigger, result.summary.as_deref()), (Trigger::Model, Some(NOTES)));
        assert_eq!(asked.get(), 0, "the notes are the summary");
        assert!(prepared.usage.used_tokens < before.usage.used_tokens / 2, "{format:?}");
        assert_valid(format, &sent);
        let page = sent[0].to_string();
        assert!(page.contains(NOTES) && page.contains("Never touch the public API"), "{format:?}: {page}");
        assert!(sent[sent.len() - 2].to_string().contains(NAME), "{format:?}");

        // What is said twice: nothing, and not at the next prompt either.
        let again = harness.prepare();
        assert!(again.result.is_none(), "{format:?}: {:?}", again.result);
        harness.append(&[said(format, "assistant", "On with the printer."), said(format, "user", "Go on.")]);
        assert!(harness.prepare().result.is_none());
        let fates = harness.session.explain().unwrap();
        assert!(fates[..12].iter().all(|entry| entry.fate == Fate::Summarised || entry.quoted), "{fates:?}");
        let search = call(format, "recall_search", &json!({ "query": "question 3" }));
        assert!(text_of(&harness.answer(&search, Some(format)).unwrap()).contains("question 3"));
        harness.stored();
    }
}

#[test]
fn x11_without_the_option_there_is_no_such_tool() {
    for over in [json!({ "handoff": false }), json!({ "handoff": null })] {
        let mut harness = begun(Format::OpenaiChat, over);
        assert_eq!(harness.session.tools(None).unwrap().definitions.len(), 2);
        harness.append(&asks(Format::OpenaiChat, &json!(NOTES)));
        let told = harness.told(NAME, &json!({ "notes": NOTES }));
        assert!(told.starts_with("There is no such tool here"), "{told}");
        let answered = json!({ "role": "tool", "tool_call_id": "c", "content": "A tool of the app's own." });
        harness.append(&[body(&answered)]);
        assert!(harness.prepare().result.is_none());
    }
    let harness = begun(Format::OpenaiChat, json!({}));
    let definitions = harness.session.tools(None).unwrap().definitions;
    assert!(definitions[2].to_string().contains(NAME) && definitions.len() == 3);
}

#[test]
fn x11_notes_that_are_none_change_nothing_and_the_model_is_told() {
    for notes in [json!(""), json!("ok"), json!(5), Value::Null] {
        let mut harness = begun(Format::Anthropic, json!({}));
        assert!(call_it(&mut harness, Format::Anthropic, &notes), "{notes}");
        assert!(harness.prepare().result.is_none(), "{notes}");
    }
}

#[test]
fn x11_notes_that_are_refused_give_way_to_a_summary_and_it_is_told() {
    let mut harness = begun(Format::OpenaiChat, json!({}));
    let asked = counted(&mut harness);
    let refusal = "I'm sorry, but I can't help with that request, whatever it was about.";
    assert!(!call_it(&mut harness, Format::OpenaiChat, &json!(refusal)));
    let result = harness.prepare().result.unwrap();
    assert!(result.success && result.changed);
    assert_ne!(result.summary.as_deref(), Some(refusal));
    assert!(asked.get() > 0);
    let warned = warnings(&harness);
    assert!(warned.iter().any(|warning| warning.contains("the model's notes are no summary")), "{warned:?}");
}

#[test]
fn x11_questions_that_came_since_stay_with_the_call() {
    let mut harness = begun(Format::OpenaiChat, json!({}));
    assert!(!call_it(&mut harness, Format::OpenaiChat, &json!(NOTES)));
    harness.append(&[user("And the printer?"), user("With comments.")]);
    let sent = harness.sent();
    let tail: Vec<_> =
        sent[sent.len() - 4..].iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(tail, ["assistant", "tool", "user", "user"]);
    assert!(sent[0].to_string().contains(NOTES));
}

#[test]
fn x11_the_older_messages_come_back_as_they_were_with_undo() {
    let mut harness = begun(Format::OpenaiChat, json!({}));
    let before = harness.sent();
    assert!(!call_it(&mut harness, Format::OpenaiChat, &json!(NOTES)));
    assert!(harness.prepare().result.unwrap().changed);
    harness.host.run(harness.session.undo()).unwrap();
    assert_eq!(harness.context()[..before.len()], before);
    assert!(harness.prepare().result.is_none(), "what is undone stays so");
}
