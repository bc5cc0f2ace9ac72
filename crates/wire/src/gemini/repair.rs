//! Applying the mends.

use super::names::{self, Name};
use super::read;
use super::response;
use super::rules::{self, Fix};
use crate::message::Part;
use crate::rules::Repair;
use crate::{Change, Repaired, edit, tagged};
use serde_json_borrow::Value;
use std::cell::Cell;

/// What stands where the start of a conversation is missing: the API wants the user to begin.
const OPENING: &str = r#"{"role":"user","parts":[{"text":"(The start of the conversation is not shown.)"}]}"#;

/// The signature that the API takes for a call that has none of its own.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

pub(super) fn repair(messages: &[Value<'_>]) -> (Vec<Repaired>, Vec<Change>) {
    let mut repair = Repair::of(messages);
    let opened = Cell::new(false);
    repair.until_clean(
        |values| {
            let mut findings = rules::find(values);
            findings.retain(|found| !(opened.get() && found.fix == Fix::OpenWithUser));
            if findings.iter().any(|found| !found.fix.waits()) {
                findings.retain(|found| !found.fix.waits());
            }
            findings
        },
        |repair, position, fix| {
            opened.set(opened.get() || *fix == Fix::OpenWithUser);
            apply(repair, position, fix);
        },
    );
    repair.finish()
}

fn apply(repair: &mut Repair<'_>, position: usize, fix: &Fix) {
    match fix {
        Fix::OpenWithUser => return repair.opening = Some(OPENING.to_owned()),
        Fix::Join(positions) => return gather(repair, positions, |_| true),
        Fix::ResponsesFirst(positions) => {
            return gather(repair, positions, |part| names::FUNCTION_RESPONSE.of(part).is_some());
        }
        _ => {}
    }
    let Some(slot) = repair.slots.get_mut(position) else { return };
    match *fix {
        Fix::Drop => slot.drop(),
        Fix::WellFormed => edit::make_well_formed(slot.edit()),
        Fix::Response(nth) => {
            if let Some(function) = function_mut(slot.edit(), nth, names::FUNCTION_RESPONSE) {
                make_object(function);
            }
        }
        Fix::Part(nth) => {
            if takes_all(slot.edit(), nth) {
                slot.drop();
            }
        }
        Fix::OpenWithUser | Fix::Join(_) | Fix::ResponsesFirst(_) => {}
    }
}

fn parts_mut<'e, 'v>(message: &'e mut Value<'v>) -> Option<&'e mut Vec<Value<'v>>> {
    match edit::field_mut(message, "parts") {
        Some(Value::Array(parts)) => Some(parts),
        _ => None,
    }
}

/// The call or the response of a message's part, to be changed.
pub(super) fn function_mut<'e, 'v>(
    message: &'e mut Value<'v>,
    nth: usize,
    name: Name,
) -> Option<&'e mut Value<'v>> {
    let part = parts_mut(message)?.get_mut(nth)?;
    let spelling = name.spelling(part);
    edit::field_mut(part, spelling)
}

/// A response that is no object, in one; none at all says nothing.
fn make_object(function: &mut Value<'_>) {
    let is_given = tagged::given(function, "response").is_some();
    let given = edit::field_mut(function, "response").filter(|_| is_given).map(std::mem::take);
    let object = response::object("output", given);
    edit::set(function, "response", object);
}

/// Takes a part out of a message; true when nothing that says anything is left. An exchange is removed whole: with its
/// last call goes the reasoning for it.
fn takes_all(message: &mut Value<'_>, nth: usize) -> bool {
    let Some(parts) = parts_mut(message).filter(|parts| nth < parts.len()) else { return false };
    let removed = parts.remove(nth);
    let was_call = names::FUNCTION_CALL.of(&removed).is_some();
    let is_call = |part: &Value<'_>| names::FUNCTION_CALL.of(part).is_some();
    // The first of parallel calls bears the signature of all; the models that check it want one on the next then.
    if was_call
        && names::is_signed(&removed)
        && let Some(first) = parts.iter_mut().find(|part| is_call(part))
        && !names::is_signed(first)
    {
        let Name(camel, snake) = names::THOUGHT_SIGNATURE;
        let is_snake = names::FUNCTION_CALL.spelling(first) == names::FUNCTION_CALL.1;
        edit::set(first, if is_snake { snake } else { camel }, edit::text(NO_SIGNATURE));
    }
    read::message(0, message).is_ok_and(|left| {
        let is_reasoning = |part: &Part<'_>| matches!(part, Part::Reasoning { .. });
        left.parts.is_empty() || (was_call && left.parts.iter().all(is_reasoning))
    })
}

/// Moves the parts that are chosen, of messages that follow each other, to the start of the first one, and takes out the
/// other messages that have none left.
fn gather(repair: &mut Repair<'_>, positions: &[usize], chosen: impl Fn(&Value<'_>) -> bool) {
    let mut gathered = Vec::new();
    for (nth, &position) in positions.iter().enumerate() {
        let Some(slot) = repair.slots.get_mut(position) else { continue };
        if !names::parts(slot.value()).iter().any(&chosen) {
            continue;
        }
        let Some(parts) = parts_mut(slot.edit()) else { continue };
        let (moved, kept): (Vec<_>, Vec<_>) = std::mem::take(parts).into_iter().partition(&chosen);
        let empty = kept.is_empty();
        *parts = kept;
        gathered.extend(moved);
        if empty && nth > 0 {
            slot.drop();
        }
    }
    let first = positions.first().and_then(|&first| repair.slots.get_mut(first));
    if let Some(parts) = first.and_then(|slot| parts_mut(slot.edit())) {
        parts.splice(0..0, gathered);
    }
}
