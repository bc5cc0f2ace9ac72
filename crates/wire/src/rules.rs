//! Rules and repair in one: whatever a format finds wrong comes with the smallest change that mends it, so that
//! validation and repair cannot disagree.

use super::{Change, Problem, Repaired, edit};
use crate::order;
use serde_json_borrow::Value;

/// One broken rule.
pub(super) struct Finding<F> {
    /// Position in the history as it was handed to the search.
    pub(super) position: usize,
    /// The rule's id.
    pub(super) rule: &'static str,
    /// What is wrong.
    pub(super) what: String,
    /// What mends it.
    pub(super) fix: F,
}

/// The problems of a history whose findings these are, by message.
fn problems<F>(findings: Vec<Finding<F>>) -> Vec<Problem> {
    let problem =
        |found: Finding<F>| Problem { rule: found.rule, index: found.position, message: found.what };
    order::by_key(findings.into_iter().map(problem).collect(), |problem| problem.index as u64)
}

/// A format's own rules as [`super::Rules::validate`] checks them; `more` are those of strict mode.
pub(super) fn validate<F>(
    messages: &[Value<'_>],
    strict: bool,
    find: impl Fn(&[&Value<'_>]) -> Vec<Finding<F>>,
    more: impl Fn(&[Value<'_>]) -> Vec<Problem>,
) -> Vec<Problem> {
    let found = problems(find(&messages.iter().collect::<Vec<_>>()));
    if !strict {
        return found;
    }
    let all = found.into_iter().chain(more(messages)).collect();
    order::by_key(all, |problem: &Problem| problem.index as u64)
}

/// A message under repair.
pub(super) struct Slot<'v> {
    /// Index of the message that it comes from.
    pub(super) index: usize,
    original: &'v Value<'v>,
    edited: Option<Value<'v>>,
    removed: Vec<&'static str>,
    dropped: bool,
}

impl<'v> Slot<'v> {
    /// The message as it stands.
    pub(super) fn value(&self) -> &Value<'v> {
        self.edited.as_ref().unwrap_or(self.original)
    }

    /// The message as the caller gave it.
    pub(super) fn original(&self) -> &'v Value<'v> {
        self.original
    }

    /// The message, to be changed.
    pub(super) fn edit(&mut self) -> &mut Value<'v> {
        self.edited.get_or_insert_with(|| self.original.clone())
    }

    /// Takes a field out of the message.
    pub(super) fn remove(&mut self, key: &'static str) {
        edit::set(self.edit(), key, Value::Null);
        self.removed.push(key);
    }

    /// Takes the message out of the history.
    pub(super) fn drop(&mut self) {
        self.dropped = true;
    }

    /// True for a message that was changed.
    pub(super) fn is_edited(&self) -> bool {
        self.edited.is_some()
    }
}

/// A history under repair.
pub(super) struct Repair<'v> {
    pub(super) slots: Vec<Slot<'v>>,
    pub(super) changes: Vec<Change>,
    /// A message that must be put before all others.
    pub(super) opening: Option<String>,
}

impl<'v> Repair<'v> {
    pub(super) fn of(messages: &'v [Value<'v>]) -> Self {
        let slot =
            |(index, original)| Slot { index, original, edited: None, removed: Vec::new(), dropped: false };
        Repair { slots: messages.iter().enumerate().map(slot).collect(), changes: Vec::new(), opening: None }
    }

    /// Mends what is found until nothing is. Every mend takes away what was found, so this ends.
    ///
    /// Mends of one message are applied in descending order, so that positions inside it stay what they were, and
    /// each once.
    pub(super) fn until_clean<F: Ord>(
        &mut self,
        find: impl Fn(&[&Value<'_>]) -> Vec<Finding<F>>,
        apply: impl Fn(&mut Self, usize, &F),
    ) {
        let mut before = (0, Vec::new());
        loop {
            let values: Vec<&Value<'_>> = self.slots.iter().map(Slot::value).collect();
            let findings = find(&values);
            let places = findings.iter().map(|found| (found.position, found.rule, found.what.clone()));
            let found = (self.slots.len(), places.collect());
            // A mend that mends nothing would be a fault of ours; it must not hang the caller.
            if findings.is_empty() || found == before {
                return;
            }
            before = found;
            let key = |nth: usize| findings.get(nth).map(|found| (found.position, &found.fix));
            let order = order::indices(findings.len(), &|a, b| key(b) < key(a));
            let findings: Vec<&Finding<F>> = order.into_iter().filter_map(|nth| findings.get(nth)).collect();
            // Before a mend that moves messages.
            for found in &findings {
                let Some(slot) = self.slots.get(found.position) else { continue };
                let message = found.what.clone();
                self.changes.push(Change { rule: found.rule, index: slot.index, message });
            }
            let mut last: Option<(usize, &F)> = None;
            for found in &findings {
                if last != Some((found.position, &found.fix)) {
                    apply(self, found.position, &found.fix);
                }
                last = Some((found.position, &found.fix));
            }
            self.slots.retain(|slot| !slot.dropped);
        }
    }

    /// The result, changes in the order of the messages.
    pub(super) fn finish(mut self) -> (Vec<Repaired>, Vec<Change>) {
        self.changes = order::by_key(self.changes, |change| change.index as u64);
        let opening = self.opening.map(|json| Repaired::Replace { index: 0, json });
        let rest = self.slots.iter().map(|slot| match &slot.edited {
            None => Repaired::Keep(slot.index),
            Some(value) => Repaired::Replace {
                index: slot.index,
                json: super::json(&edit::without(value, &slot.removed)),
            },
        });
        (opening.into_iter().chain(rest).collect(), self.changes)
    }
}
