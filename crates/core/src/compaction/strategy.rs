//! What compressing results does about each (`S2.11`): content that is known needs no model, a text that was compressed
//! before is taken over, and what later turns rely on gets more room.

use super::compress::{CUT, Found};
use super::shape::shape;
use crate::context::Placeholder;
use crate::error::Result;
use crate::keys::ids;
use crate::log::View;
use crate::message::{Part, Role};
use crate::summary::names;
use crate::wire;
use std::collections::HashMap;

/// A smaller target leaves no room for the structure of anything: a model says more in a sentence.
const LEAST_TARGET: usize = 200;

/// A shorter text that no model was asked for.
#[derive(Debug)]
pub(super) struct Known {
    /// The text.
    pub(super) text: String,
    /// What was done, for the log.
    pub(super) how: String,
}

/// What is known about the results that are to be compressed.
#[derive(Debug, Default)]
pub(super) struct Strategy {
    /// It is on.
    on: bool,
    /// What earlier passes made of texts, by the hash of the text.
    compressed: HashMap<String, String>,
    /// Which results later turns rely on.
    relied: Vec<bool>,
    /// The most that those are compressed to.
    most: f64,
}

impl Strategy {
    /// Looks the context over.
    pub(super) fn of(view: &View, found: &[Found]) -> Result<Self> {
        let numbers = view.settings.numbers.react;
        if !numbers.strategies {
            return Ok(Strategy::default());
        }
        let (compressed, relied) = (compressed(view)?, relied(view, found)?);
        Ok(Strategy { on: true, compressed, relied, most: numbers.reliance_ratio })
    }

    /// What can be done without a model with the text of a result as it is `shown`.
    pub(super) fn without_model(&self, found: &Found, shown: &str, ratio: f64) -> Option<Known> {
        if !self.on {
            return None;
        }
        if let Some(text) = self.compressed.get(&ids::sha256_hex(found.text.as_bytes())) {
            return Some(Known { text: text.clone(), how: "taken over from an earlier result".into() });
        }
        let chars = shown.chars().count();
        let target = (chars as f64 * ratio) as usize;
        let shaped = shape(shown, target)?;
        if target < LEAST_TARGET || shaped.is_bare || shaped.text.len() >= shown.len() {
            return None;
        }
        Some(Known { text: shaped.text, how: format!("shaped as {}", shaped.kind.as_str()) })
    }

    /// The share that the `nth` of the results is compressed to.
    pub(super) fn ratio(&self, nth: usize, ratio: f64) -> f64 {
        match self.relied.get(nth) {
            Some(true) => (ratio * 2.0).min(self.most).max(ratio),
            _ => ratio,
        }
    }
}

/// What stands in the context in place of texts that were compressed, but for those that were cut because a call failed.
fn compressed(view: &View) -> Result<HashMap<String, String>> {
    let mut known = HashMap::new();
    for (at, item) in view.items().iter().enumerate() {
        if !item.origin.offloads().iter().any(|offload| offload.how == Placeholder::Compressed) {
            continue;
        }
        let value = wire::parse(at, &item.body)?;
        let message = view.format.wire().read(at, &value)?;
        for (nth, result) in message.results().enumerate() {
            let offload =
                item.origin.offloads().iter().find(|offload| offload.is_result() && offload.nth == nth);
            if let Some(offload) = offload.filter(|offload| offload.how == Placeholder::Compressed)
                && !result.text.contains(CUT)
            {
                known.insert(offload.sha256.clone(), result.text.to_string());
            }
        }
    }
    Ok(known)
}

/// Where something is named outside of results: by whom (a call by its number, anyone else by none).
#[derive(Debug, Clone, Copy)]
struct Mentions {
    first: usize,
    last: (usize, Option<usize>),
    /// The last one by somebody else than that.
    other: Option<(usize, Option<usize>)>,
}

impl Mentions {
    fn add(&mut self, at: usize, by: Option<usize>) {
        if self.last.1 != by {
            self.other = Some(self.last);
        }
        self.last = (at, by);
    }

    /// Named behind `at`, and not by the same call made again: that replaces its result, it does not rely on it.
    fn is_behind(&self, at: usize, own: Option<usize>) -> bool {
        let counts = |(mentioned, by): (usize, Option<usize>)| mentioned > at && (by.is_none() || by != own);
        counts(self.last) || self.other.is_some_and(counts)
    }
}

/// Which results later turns rely on: they name what its call names, or what nobody had named before the result did.
fn relied(view: &View, found: &[Found]) -> Result<Vec<bool>> {
    let mut calls: HashMap<(String, String), usize> = HashMap::new();
    let mut mentioned: HashMap<String, Mentions> = HashMap::new();
    for (at, item) in view.items().iter().enumerate() {
        let value = wire::parse(at, &item.body)?;
        let message = view.format.wire().read(at, &value)?;
        if message.role == Role::System {
            continue;
        }
        for part in &message.parts {
            let (text, by) = match part {
                Part::Text(text) | Part::Reasoning { text, .. } => (text, None),
                Part::ToolCall(call) => {
                    let next = calls.len();
                    let key = (call.name.to_string(), call.arguments.to_string());
                    (&call.arguments, Some(*calls.entry(key).or_insert(next)))
                }
                _ => continue,
            };
            names(text, &mut |name| match mentioned.get_mut(name) {
                Some(mentions) => mentions.add(at, by),
                None => {
                    mentioned.insert(name.to_string(), Mentions { first: at, last: (at, by), other: None });
                }
            });
        }
    }
    let relied = |found: &Found| {
        let call = (found.purpose.name.clone(), found.purpose.arguments.clone());
        let own = calls.get(&call).copied();
        let mut relied = false;
        names(&found.purpose.arguments, &mut |name| {
            relied |= mentioned.get(name).is_some_and(|mentions| mentions.is_behind(found.at, own));
        });
        names(&found.text, &mut |name| {
            relied |= mentioned.get(name).is_some_and(|mentions| mentions.first > found.at);
        });
        relied
    };
    Ok(found.iter().map(relied).collect())
}
