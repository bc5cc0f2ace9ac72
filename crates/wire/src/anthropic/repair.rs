//! Applying the mends, and what an edit does to the thinking after it (AN8).

use super::kind;
use super::rules::{self, Fix};
use super::turns::{compacts, is_thinking};
use crate::rules::{Repair, Slot};
use crate::{Change, Repaired, Unbound, content_blocks, edit, tagged};
use serde_json_borrow::Value;

/// What stands where the start of a conversation is missing: the API wants the user to begin.
const OPENING: &str = r#"{"role":"user","content":"(The start of the conversation is not shown.)"}"#;

pub(super) fn repair(messages: &[Value<'_>]) -> (Vec<Repaired>, Vec<Change>) {
    let mut repair = Repair::of(messages);
    mend(&mut repair);
    if let Some(first) = first_edit(&repair, messages.len()) {
        unbind(&mut repair, first);
        mend(&mut repair);
    }
    repair.finish()
}

fn mend(repair: &mut Repair<'_>) {
    let opened = std::cell::Cell::new(repair.opening.is_some());
    repair.until_clean(
        |values| {
            let mut findings = rules::find(values);
            findings.retain(|found| !(opened.get() && found.fix == Fix::OpenWithUser));
            // What other mends may make needless, or whose positions they may change, waits for its own round.
            let round = |fix: &Fix| match fix {
                Fix::ResultsFirst(_) | Fix::OpenWithUser | Fix::AsUser => 4,
                Fix::From(_) => 3,
                // Instructions between a call and its result keep these apart.
                Fix::To(_) => 1,
                Fix::Drop => 0,
                _ => 2,
            };
            let now = findings.iter().map(|found| round(&found.fix)).min();
            findings.retain(|found| Some(round(&found.fix)) == now);
            findings
        },
        |repair, position, fix| {
            opened.set(opened.get() || *fix == Fix::OpenWithUser);
            apply(repair, position, fix);
        },
    );
}

fn apply(repair: &mut Repair<'_>, position: usize, fix: &Fix) {
    if let Fix::ResultsFirst(positions) = fix {
        return results_first(repair, positions);
    }
    if let Fix::To(to) = *fix {
        let slot = repair.slots.remove(position);
        repair.slots.insert(to, slot);
        return;
    }
    if let Fix::From(nth) = *fix {
        return leave_out_before(repair, position, nth);
    }
    if *fix == Fix::OpenWithUser {
        repair.opening = Some(OPENING.to_owned());
        return;
    }
    let Some(slot) = repair.slots.get_mut(position) else { return };
    match *fix {
        Fix::Drop => slot.drop(),
        Fix::AsUser => {
            edit::set(slot.edit(), "role", edit::text("user"));
            // What the user may not set.
            for key in ["clear_at", "output_config"] {
                if tagged::given(slot.value(), key).is_some() {
                    slot.remove(key);
                }
            }
        }
        Fix::WellFormed => edit::make_well_formed(slot.edit()),
        Fix::Block(nth) => {
            if let Some(blocks) = blocks_mut(slot.edit())
                && nth < blocks.len()
            {
                blocks.remove(nth);
            }
        }
        Fix::Inner(nth, at) => {
            if let Some(result) = block_mut(slot.edit(), nth)
                && let Some(inner) = blocks_mut(result)
                && at < inner.len()
            {
                inner.remove(at);
                if inner.is_empty() {
                    edit::set(result, "content", edit::text(""));
                }
            }
        }
        Fix::Cache(nth, inner) => {
            let block = block_mut(slot.edit(), nth);
            let marked = match inner {
                None => block,
                Some(at) => block.and_then(|block| block_mut(block, at)),
            };
            if let Some(marked) = marked {
                edit::set(marked, "cache_control", Value::Null);
            }
        }
        Fix::Trim(nth) => trim(slot.edit(), nth),
        Fix::To(_) | Fix::OpenWithUser | Fix::From(_) | Fix::ResultsFirst(_) => {}
    }
}

fn blocks_mut<'e, 'v>(value: &'e mut Value<'v>) -> Option<&'e mut Vec<Value<'v>>> {
    match edit::field_mut(value, "content") {
        Some(Value::Array(blocks)) => Some(blocks),
        _ => None,
    }
}

fn block_mut<'e, 'v>(value: &'e mut Value<'v>, nth: usize) -> Option<&'e mut Value<'v>> {
    blocks_mut(value)?.get_mut(nth)
}

fn trim(message: &mut Value<'_>, nth: usize) {
    let (holder, key) = match edit::field_mut(message, "content") {
        Some(Value::Array(blocks)) => match blocks.get_mut(nth) {
            Some(block) => (block, "text"),
            None => return,
        },
        _ => (message, "content"),
    };
    let trimmed = tagged::given(holder, key).and_then(tagged::text).map(|text| text.trim_end().to_owned());
    if let Some(trimmed) = trimmed {
        edit::set(holder, key, edit::text(&trimmed));
    }
}

/// Takes out the messages before this one, and of this one the blocks before `nth`.
fn leave_out_before(repair: &mut Repair<'_>, position: usize, nth: usize) {
    for slot in repair.slots.iter_mut().take(position) {
        slot.drop();
        let message = "a signed compaction block further on stands for it; left out".to_owned();
        repair.changes.push(Change { rule: "AN7", index: slot.index, message });
    }
    if let Some(blocks) =
        repair.slots.get_mut(position).filter(|_| nth > 0).and_then(|slot| blocks_mut(slot.edit()))
    {
        blocks.drain(..nth.min(blocks.len()));
    }
}

/// Moves the results of a user's turn to the start of its first message.
fn results_first(repair: &mut Repair<'_>, positions: &[usize]) {
    let mut results = Vec::new();
    for &position in positions {
        let Some(slot) = repair.slots.get_mut(position) else { continue };
        if !super::content_kinds(slot.value()).any(|kind| kind == "tool_result") {
            continue;
        }
        if let Some(blocks) = blocks_mut(slot.edit()) {
            let (moved, kept) = std::mem::take(blocks)
                .into_iter()
                .partition(|block| kind(block).as_deref() == Some("tool_result"));
            *blocks = kept;
            results.extend::<Vec<_>>(moved);
        }
    }
    let Some(first) = positions.first().and_then(|&first| repair.slots.get_mut(first)) else { return };
    let message = first.edit();
    if let Some(text) = tagged::given(message, "content").and_then(tagged::text) {
        let block = edit::text_block(&text);
        edit::set(message, "content", Value::Array(vec![block]));
    }
    if let Some(blocks) = blocks_mut(message) {
        blocks.splice(0..0, results);
    }
}

/// Where what the model saw first differs: (index of the message, blocks before it in that message).
fn first_edit(repair: &Repair<'_>, length: usize) -> Option<(usize, usize)> {
    if repair.opening.is_some() {
        return Some((0, 0));
    }
    // The API checks thinking against what stands from a compaction block on.
    let compacted = |slot: &&Slot<'_>| content_blocks(slot.value()).first().is_some_and(compacts);
    let mut expected = repair.slots.first().filter(compacted).map_or(0, |slot| slot.index);
    for slot in &repair.slots {
        if slot.index != expected {
            return Some((expected, 0));
        }
        if slot.is_edited()
            && let Some(same) = same_blocks(slot)
        {
            return Some((slot.index, same));
        }
        expected += 1;
    }
    (expected < length).then_some((expected, 0))
}

/// How many blocks of an edited message are what they were; `None` when all are. `cache_control` is not content.
fn same_blocks(slot: &Slot<'_>) -> Option<usize> {
    fn unmarked<'v>(block: &Value<'v>) -> Value<'v> {
        let mut block = block.clone();
        edit::unmark(&mut block);
        block
    }
    if tagged::field(slot.original(), "role") != tagged::field(slot.value(), "role") {
        return Some(0);
    }
    let (before, now) = (content_blocks(slot.original()), content_blocks(slot.value()));
    let same = before.iter().zip(now).take_while(|(a, b)| unmarked(a) == unmarked(b)).count();
    let whole = same == before.len() && same == now.len() && same > 0;
    (!whole).then_some(same)
}

/// Takes out the thinking that is bound to a past that was edited.
fn unbind(repair: &mut Repair<'_>, (index, same): (usize, usize)) {
    for slot in repair.slots.iter_mut().filter(|slot| slot.index >= index) {
        let from = if slot.index == index { same } else { 0 };
        if !super::content_kinds(slot.value()).skip(from).any(|kind| is_thinking(&kind)) {
            continue;
        }
        if let Some(blocks) = blocks_mut(slot.edit()) {
            let mut nth = 0;
            blocks.retain(|block| {
                nth += 1;
                nth <= from || !kind(block).is_some_and(|kind| is_thinking(&kind))
            });
        }
        repair.changes.push(Change {
            rule: "AN8",
            index: slot.index,
            message: "its thinking was bound to messages that were changed; removed".to_owned(),
        });
    }
}

/// See [`crate::Rules::without_bound_reasoning`].
pub(super) fn without_reasoning(message: &Value<'_>) -> Unbound {
    if !super::content_kinds(message).any(|kind| is_thinking(&kind)) {
        return Unbound::Same;
    }
    let mut edited = message.clone();
    let Some(blocks) = blocks_mut(&mut edited) else { return Unbound::Same };
    blocks.retain(|block| !kind(block).is_some_and(|kind| is_thinking(&kind)));
    if blocks.is_empty() { Unbound::Nothing } else { Unbound::Changed(crate::json(&edited)) }
}
