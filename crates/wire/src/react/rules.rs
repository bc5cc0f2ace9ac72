//! The shape of a turn (RT0, RT1) with the change that mends it: no turn is ever taken out (S2.5), so a field that is
//! missing is put in empty, and one of another type is written as text.

use super::read::FIELDS;
use crate::rules::{Finding, Repair};
use crate::{Past, Problem, edit, tagged};
use serde_json_borrow::Value;

/// What mends a turn.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fix {
    /// Make a turn of what is none: its JSON text is the result.
    Turn,
    /// Put the field in, empty.
    Empty(&'static str),
    /// Write the field's value as JSON text.
    Text(&'static str),
    /// Put the value into an object, as `input`.
    Object(&'static str),
    /// Replace lone surrogates.
    WellFormed,
}

/// A turn that does nothing but think and note.
pub(super) fn idle<'v>(thought: Value<'v>, result: Value<'v>) -> Value<'v> {
    Value::Object([("thought", thought), ("action", no_action()), ("result", result)].into_iter().collect())
}

fn no_action<'v>() -> Value<'v> {
    Value::Object(std::iter::empty::<(&str, Value<'v>)>().collect())
}

pub(super) fn find(messages: &[&Value<'_>]) -> Vec<Finding<Fix>> {
    let mut findings = Vec::new();
    for (position, value) in messages.iter().enumerate() {
        let mut report = |rule, what: String, fix| findings.push(Finding { position, rule, what, fix });
        if tagged::object(value).is_none() {
            let what = "a turn must be an object with a thought, an action and a result";
            report("RT0", what.to_owned(), Fix::Turn);
            continue;
        }
        for field in FIELDS {
            let is_action = field == "action";
            let kind = if is_action { "an object" } else { "a string" };
            match tagged::given(value, field) {
                None => {
                    let what = format!("the turn has no {field}; it must have one, {kind}, if an empty one");
                    report("RT1", what, Fix::Empty(field));
                }
                Some(found) if is_action && tagged::object(found).is_none() => {
                    report("RT0", format!("{field} must be {kind}"), Fix::Object(field));
                }
                Some(found) if !is_action && tagged::text(found).is_none() => {
                    let what = format!("{field} must be {kind}; write anything else as JSON text");
                    report("RT0", what, Fix::Text(field));
                }
                Some(_) => {}
            }
        }
        if tagged::is_ill_formed(value) {
            let what = "a text has a lone surrogate, which providers refuse; replace it by U+FFFD";
            report("RT0", what.to_owned(), Fix::WellFormed);
        }
    }
    findings
}

/// A turn depends on no other.
pub(super) fn grows(past: &mut Past, window: &[&Value<'_>]) -> bool {
    let clean = find(window).is_empty();
    past.messages += if clean { window.len() } else { 0 };
    clean
}

/// Mends one turn.
pub(super) fn apply(repair: &mut Repair<'_>, position: usize, fix: &Fix) {
    let Some(slot) = repair.slots.get_mut(position) else { return };
    let turn = slot.edit();
    match *fix {
        Fix::Turn => {
            let text = tagged::plain_json(turn);
            *turn = idle(edit::text(""), edit::text(&text));
        }
        Fix::Empty("action") => edit::set(turn, "action", no_action()),
        Fix::Empty(field) => edit::set(turn, field, edit::text("")),
        Fix::Text(field) => {
            if let Some(value) = edit::field_mut(turn, field) {
                *value = edit::text(&tagged::plain_json(value));
            }
        }
        Fix::Object(field) => {
            if let Some(value) = edit::field_mut(turn, field) {
                let input = std::mem::take(value);
                *value = Value::Object([("input", input)].into_iter().collect());
            }
        }
        Fix::WellFormed => edit::make_well_formed(turn),
    }
}

/// Where a trajectory differs from what it was in more than its results (RT1): as many turns, each with the same
/// thought and the same action.
pub fn compare(before: &[Value<'_>], after: &[Value<'_>]) -> Vec<Problem> {
    let problem = |index, message: String| Problem { rule: "RT1", index, message };
    let mut problems = Vec::new();
    for (index, (was, is)) in before.iter().zip(after).enumerate() {
        for field in ["thought", "action"] {
            let sent = |turn: &Value<'_>| tagged::given(turn, field).map(tagged::plain_json);
            if sent(was) != sent(is) {
                problems.push(problem(index, format!("{field} was changed; only results may be")));
            }
        }
    }
    if before.len() != after.len() {
        let what = format!("{} turns became {}; no turn may be removed or added", before.len(), after.len());
        problems.push(problem(before.len().min(after.len()), what));
    }
    problems
}
