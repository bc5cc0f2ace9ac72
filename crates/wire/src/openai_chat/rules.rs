//! The rules of the API (OC1 to OC5, OC7) with the change that mends each, and those of stricter servers.

use super::{read, reasoning};
use crate::message::{Message, Role};
use crate::rules::{Finding, Repair};
use crate::{Change, Past, Problem, edit, tagged};
use serde::de::IgnoredAny;
use serde_json_borrow::Value;
use std::borrow::Cow;
use std::collections::HashMap;

/// What mends a message.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fix {
    /// Take it out.
    Drop,
    /// `content: ""`.
    EmptyContent,
    /// Replace lone surrogates.
    WellFormed,
    /// Take out the call with this position, the legacy call counting last.
    Call(usize),
}

/// An assistant's calls that wait for their answers.
struct Step<'a> {
    position: usize,
    calls: Vec<Call<'a>>,
    /// Calls by (legacy, id): names of legacy functions and ids do not meet.
    by_id: HashMap<(bool, Cow<'a, str>), usize>,
}

struct Call<'a> {
    nth: usize,
    id: Cow<'a, str>,
    answered: bool,
}

pub(super) fn find(messages: &[&Value<'_>]) -> Vec<Finding<Fix>> {
    let mut findings = Vec::new();
    let mut step: Option<Step<'_>> = None;
    for (position, value) in messages.iter().enumerate() {
        let mut report = |rule, what: String, fix| findings.push(Finding { position, rule, what, fix });
        let message = match read::message(position, value) {
            Ok(message) => message,
            Err(error) => {
                report(
                    "OC0",
                    format!("the message cannot be read ({error}); correct or remove it"),
                    Fix::Drop,
                );
                continue;
            }
        };
        if tagged::is_ill_formed(value) {
            let what = "a text has a lone surrogate, which providers refuse; replace it by U+FFFD";
            report("OC7", what.to_owned(), Fix::WellFormed);
        }
        if let Some((what, fix)) = content_problem(value, &message) {
            report("OC5", what.to_owned(), fix);
        }
        if message.role == Role::Tool {
            let legacy = super::role(value).as_deref() == Some("function");
            let id = message.results().next().map(|result| result.call_id.clone()).unwrap_or_default();
            if let Some((rule, what)) = answer(step.as_mut(), legacy, id) {
                report(rule, what, Fix::Drop);
            }
            continue;
        }
        close(step.take(), &mut findings);
        step = open(position, value, &message, &mut findings);
    }
    close(step, &mut findings);
    findings
}

/// Answers belong to the last message that is none: nothing goes further back.
pub(super) fn grows(past: &mut Past, window: &[&Value<'_>]) -> bool {
    let answers =
        |value: &&Value<'_>| read::message(0, value).is_ok_and(|message| message.role == Role::Tool);
    let clean = find(window).is_empty();
    if clean {
        past.messages += window.iter().rposition(|value| !answers(value)).unwrap_or(0);
    }
    clean
}

fn content_problem(value: &Value<'_>, message: &Message<'_>) -> Option<(&'static str, Fix)> {
    if tagged::given(value, "content").is_some() && !has_empty_content(value) {
        return None;
    }
    match message.role {
        Role::Assistant => {
            let speaks = message.calls().next().is_some()
                || ["refusal", "audio"].into_iter().any(|key| tagged::given(value, key).is_some());
            (!speaks)
                .then_some(("an assistant's message without calls must have content; remove it", Fix::Drop))
        }
        Role::Tool => Some(("a tool's message must have content; an empty text will do", Fix::EmptyContent)),
        Role::User | Role::System => Some(("the message must have content; remove it", Fix::Drop)),
    }
}

/// An empty array is as good as null for some servers (Mistral) and refused by others.
fn has_empty_content(value: &Value<'_>) -> bool {
    matches!(tagged::given(value, "content"), Some(Value::Array(blocks)) if blocks.is_empty())
}

/// Notes an answer; what is wrong with it when no call waits for it.
fn answer(step: Option<&mut Step<'_>>, legacy: bool, id: Cow<'_, str>) -> Option<(&'static str, String)> {
    let what = if legacy { "function" } else { "call" };
    let Some(step) = step else {
        let rule = "OC1";
        return Some((
            rule,
            format!("answers the {what} `{id}`, but no assistant's calls stand before it; remove it"),
        ));
    };
    let key = (legacy, Cow::Owned(id.into_owned()));
    let found = step.by_id.get(&key).and_then(|&at| step.calls.get_mut(at));
    let (_, id) = key;
    match found {
        Some(call) if !call.answered => {
            call.answered = true;
            None
        }
        Some(_) => Some(("OC2", format!("answers the {what} `{id}` a second time; keep one answer"))),
        None => Some((
            "OC1",
            format!("answers the {what} `{id}`, which message {} did not make; remove it", step.position),
        )),
    }
}

fn open<'a>(
    position: usize,
    value: &'a Value<'a>,
    message: &Message<'a>,
    findings: &mut Vec<Finding<Fix>>,
) -> Option<Step<'a>> {
    let tool_calls = match tagged::given(value, "tool_calls") {
        Some(Value::Array(calls)) if message.role == Role::Assistant => calls.as_slice(),
        _ => &[],
    };
    let mut step = Step { position, calls: Vec::new(), by_id: HashMap::new() };
    for (nth, call) in message.calls().enumerate() {
        let legacy = nth >= tool_calls.len();
        let mut report =
            |rule, what: String| findings.push(Finding { position, rule, what, fix: Fix::Call(nth) });
        // A custom tool's input is free text.
        let is_function = tool_calls.get(nth).is_none_or(|call| {
            tagged::given(call, "type").and_then(tagged::text).is_none_or(|kind| kind == "function")
        });
        if is_function && !is_json_object(&call.arguments) {
            report(
                "OC3",
                format!(
                    "the arguments of call {nth} (`{}`) are not the JSON text of an object; remove the call",
                    call.id
                ),
            );
        }
        if step.by_id.contains_key(&(legacy, call.id.clone())) {
            report("OC2", format!("the id `{}` stands on two calls of one message; remove one", call.id));
            continue;
        }
        step.by_id.insert((legacy, call.id.clone()), step.calls.len());
        step.calls.push(Call { nth, id: call.id.clone(), answered: false });
    }
    (!step.calls.is_empty()).then_some(step)
}

fn close(step: Option<Step<'_>>, findings: &mut Vec<Finding<Fix>>) {
    let Some(Step { position, calls, .. }) = step else { return };
    for Call { nth, id, .. } in calls.into_iter().filter(|call| !call.answered) {
        let what = format!(
            "call {nth} (`{id}`) has no answer right after the message; add a tool message for it or remove it"
        );
        findings.push(Finding { position, rule: "OC2", what, fix: Fix::Call(nth) });
    }
}

/// True for the JSON text of an object, which is what every server makes of arguments (`S1.15`); some models write nothing
/// for none, and their servers take that back.
fn is_json_object(text: &str) -> bool {
    text.trim_start().is_empty()
        || text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Mends one message.
pub(super) fn apply(repair: &mut Repair<'_>, position: usize, fix: &Fix) {
    let Some(slot) = repair.slots.get_mut(position) else { return };
    match *fix {
        Fix::Drop => slot.drop(),
        Fix::EmptyContent => edit::set(slot.edit(), "content", edit::text("")),
        Fix::WellFormed => edit::make_well_formed(slot.edit()),
        Fix::Call(nth) => {
            match edit::field_mut(slot.edit(), "tool_calls") {
                Some(Value::Array(calls)) if nth < calls.len() => {
                    calls.remove(nth);
                    if calls.is_empty() {
                        slot.remove("tool_calls");
                    }
                }
                _ => slot.remove("function_call"),
            }
            // An exchange is removed whole: what is left of its message stays only when it says something.
            let silent = read::message(0, slot.value()).is_ok_and(|message| message.parts.is_empty());
            if silent {
                slot.drop();
            }
        }
    }
}

/// Takes out the reasoning that is bound to a past that was mended (AN8).
pub(super) fn unbind(repair: &mut Repair<'_>) {
    let Some(first) = repair.changes.iter().map(|change| change.index).min() else { return };
    for slot in repair.slots.iter_mut().filter(|slot| slot.index > first) {
        if reasoning::has_bound(slot.value()) {
            for key in reasoning::unbind(slot.edit()) {
                slot.remove(key);
            }
            repair.changes.push(Change {
                rule: "AN8",
                index: slot.index,
                message: "its reasoning was bound to messages that were changed; removed".to_owned(),
            });
        }
    }
}

/// Rules of stricter servers (OC4, OC5, OC6).
pub(super) fn strict(messages: &[Value<'_>]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut before: Option<Role> = None;
    for (index, value) in messages.iter().enumerate() {
        let Ok(message) = read::message(index, value) else { continue };
        let mut report = |rule, what: &str| problems.push(Problem { rule, index, message: what.to_owned() });
        if matches!(tagged::given(value, "tool_calls"), Some(Value::Array(calls)) if calls.is_empty()) {
            report("OC4", "tool_calls is an empty array; leave the field out");
        }
        let calls = message.calls().filter(|call| call.arguments.trim_start().is_empty());
        calls.for_each(|_| report("OC3", "the arguments of a call are an empty text; write `{}`"));
        if has_empty_content(value) {
            report("OC5", "content is an empty array; make it null");
        }
        if message.role == Role::System && index > 0 {
            report("OC6", "a system message must be the first one; move it there");
        }
        if before == Some(message.role) && matches!(message.role, Role::User | Role::Assistant) {
            report("OC6", "two neighbours of one role; join them");
        }
        if index + 1 == messages.len() && !matches!(message.role, Role::User | Role::Tool) {
            report("OC6", "the last message must be from the user or a tool; remove it or add one");
        }
        before = Some(message.role);
    }
    problems
}
