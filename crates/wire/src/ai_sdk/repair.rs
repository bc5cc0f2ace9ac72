//! Applying the mends, and what an edit does to the reasoning after it (AN8).

use super::rules::{self, Fix};
use super::{Shape, kind, options, output, parts, parts_mut, ui};
use crate::rules::{Repair, Slot};
use crate::{Change, Repaired, Unbound, edit};
use serde_json_borrow::Value;

pub(super) fn repair(messages: &[Value<'_>]) -> (Vec<Repaired>, Vec<Change>) {
    let mut repair = Repair::of(messages);
    repair.until_clean(rules::find, apply);
    if let Some(first) = first_edit(&repair, messages.len()) {
        unbind(&mut repair, first);
        repair.until_clean(rules::find, apply);
    }
    repair.finish()
}

fn apply(repair: &mut Repair<'_>, position: usize, fix: &Fix) {
    let Some(slot) = repair.slots.get_mut(position) else { return };
    match *fix {
        Fix::Drop => slot.drop(),
        Fix::WellFormed => edit::make_well_formed(slot.edit()),
        Fix::Direct(nth) => {
            if let Some(part) = parts_mut(slot.edit()).and_then(|parts| parts.get_mut(nth)) {
                options::make_direct(part);
            }
        }
        Fix::Tag(nth) => {
            if let Some(part) = parts_mut(slot.edit()).and_then(|parts| parts.get_mut(nth))
                && let Some(output) = edit::field_mut(part, "output")
            {
                *output = output::retagged(std::mem::take(output));
            }
        }
        Fix::Part(nth) => {
            let shape = Shape::of(slot.value());
            if let Some(parts) = parts_mut(slot.edit())
                && nth < parts.len()
            {
                remove(parts, nth, shape);
            }
        }
    }
}

/// Takes out a part, a call with the reasoning that led to nothing else: the two stay together (AI4).
fn remove(parts: &mut Vec<Value<'_>>, nth: usize, shape: Shape) {
    let is_reasoning = |part: &Value<'_>| kind(part).starts_with("reasoning");
    let removed = parts.remove(nth);
    let led_on = parts.get(nth).is_some_and(|next| !is_reasoning(next) && !ui::ends_step(&kind(next)));
    if led_on || !rules::is_call(&kind(&removed), shape) {
        return;
    }
    let before = parts.get(..nth).unwrap_or_default();
    let start = before.iter().rposition(|part| !is_reasoning(part)).map_or(0, |last| last + 1);
    parts.drain(start..nth);
}

/// Where what the model saw first differs: (index of the message, parts before it in that message).
fn first_edit(repair: &Repair<'_>, length: usize) -> Option<(usize, usize)> {
    let mut expected = 0;
    for slot in &repair.slots {
        if slot.index != expected {
            return Some((expected, 0));
        }
        if slot.is_edited() {
            return Some((slot.index, same_parts(slot)));
        }
        expected += 1;
    }
    (expected < length).then_some((expected, 0))
}

fn same_parts(slot: &Slot<'_>) -> usize {
    parts(slot.original()).iter().zip(parts(slot.value())).take_while(|(before, now)| before == now).count()
}

/// Takes out the reasoning that is bound to a past that was edited.
fn unbind(repair: &mut Repair<'_>, (index, same): (usize, usize)) {
    for slot in repair.slots.iter_mut().filter(|slot| slot.index >= index) {
        let from = if slot.index == index { same } else { 0 };
        if !parts(slot.value()).iter().skip(from).any(options::is_bound) {
            continue;
        }
        if let Some(parts) = parts_mut(slot.edit()) {
            let mut nth = 0;
            parts.retain(|part| {
                nth += 1;
                nth <= from || !options::is_bound(part)
            });
        }
        repair.changes.push(Change {
            rule: "AI4",
            index: slot.index,
            message: "its reasoning was bound to messages that were changed; removed".to_owned(),
        });
    }
}

/// See [`crate::Rules::without_bound_reasoning`].
pub(super) fn without_reasoning(message: &Value<'_>) -> Unbound {
    if !parts(message).iter().any(options::is_bound) {
        return Unbound::Same;
    }
    let mut edited = message.clone();
    let Some(left) = parts_mut(&mut edited) else { return Unbound::Same };
    left.retain(|part| !options::is_bound(part));
    let says_nothing = left.iter().all(|part| kind(part) == "step-start");
    if says_nothing { Unbound::Nothing } else { Unbound::Changed(crate::json(&edited)) }
}
