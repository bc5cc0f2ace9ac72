//! Applying the mends, and what one does to the reasoning beside it (OR2, OR4).

use super::item;
use super::rules::{self, Fix};
use crate::message::Role;
use crate::rules::{Finding, Repair};
use crate::{Change, Repaired, edit};
use serde_json_borrow::Value;
use std::collections::HashMap;

pub(super) fn repair(messages: &[Value<'_>]) -> (Vec<Repaired>, Vec<Change>) {
    let mut repair = Repair::of(messages);
    repair.until_clean(
        |items| {
            let mut findings = rules::find(items);
            // What other mends take away may be all that stands behind a trigger.
            if findings.iter().any(|found| found.rule != "OR5") {
                findings.retain(|found| found.rule != "OR5");
            }
            reasoning_with_its_item(items, &mut findings);
            findings
        },
        apply,
    );
    repair.finish()
}

/// Reasoning and the item behind it are kept or dropped as one. The server looks for the reasoning of an item that has
/// an id of its own: what is left of the response is sent as news.
fn reasoning_with_its_item(items: &[&Value<'_>], findings: &mut Vec<Finding<Fix>>) {
    let mut fixes: HashMap<usize, Fix> = HashMap::new();
    for found in findings.iter() {
        let fix = fixes.entry(found.position).or_insert(found.fix);
        *fix = found.fix.min(*fix);
    }
    if fixes.is_empty() {
        return;
    }
    let kinds: Vec<_> = items.iter().map(|item| item::kind(item).unwrap_or_default()).collect();
    let items: Vec<_> = items.iter().zip(&kinds).map(|(value, kind)| (*value, kind.as_ref())).collect();
    // True when the item behind the one at hand is not what the server knows any more.
    let mut changed = false;
    for (position, &(value, kind)) in items.iter().enumerate().rev() {
        if changed && kind == "reasoning" && fixes.get(&position) != Some(&Fix::Drop) {
            let what = "the item behind the reasoning was changed; removed with it".to_owned();
            findings.push(Finding { position, rule: "OR2", what, fix: Fix::Drop });
            fixes.insert(position, Fix::Drop);
        }
        changed = match fixes.get(&position) {
            Some(Fix::Drop) => true,
            Some(_) => item::server_id(value, kind).is_some(),
            None => false,
        };
    }
    let mut bare = false;
    for (position, &(value, kind)) in items.iter().enumerate() {
        if kind == "reasoning" {
            bare = fixes.get(&position) == Some(&Fix::Drop);
            continue;
        }
        bare &= item::role(value, kind) == Role::Assistant;
        if bare && !fixes.contains_key(&position) && item::server_id(value, kind).is_some() {
            let what =
                "its reasoning was removed, so that the id of the server means nothing any more".to_owned();
            findings.push(Finding { position, rule: "OR4", what, fix: Fix::Id });
        }
    }
}

fn apply(repair: &mut Repair<'_>, position: usize, fix: &Fix) {
    let Some(slot) = repair.slots.get_mut(position) else { return };
    if *fix == Fix::Drop {
        return slot.drop();
    }
    if *fix == Fix::WellFormed {
        edit::make_well_formed(slot.edit());
    }
    let kind = item::kind(slot.value()).unwrap_or_default().into_owned();
    if item::server_id(slot.value(), &kind).is_some() {
        slot.remove("id");
    }
}
