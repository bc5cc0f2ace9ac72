//! What a good metric must not reward: names without words, and words without order.

use super::page::{Page, lines};
use super::text::Text;
use crate::entities::{entities, hash};
use context_compactor_core::message::Message;
use context_compactor_core::tokens::Estimator;
use std::collections::HashMap;

/// A bag of names: the entities that were mentioned most, one beside the other.
pub fn bag(messages: &[Message<'_>], budget: usize, estimator: Estimator) -> String {
    let texts = super::texts(messages);
    let mut names: HashMap<String, f64> = HashMap::new();
    let last = texts.len().max(1) as f64;
    for (nth, Text { text, .. }) in texts.iter().enumerate() {
        let recency = 0.5 + nth as f64 / last;
        entities(text, &mut |_, name, _| match names.get_mut(name) {
            Some(mass) => *mass += recency,
            None => drop(names.insert(name.to_owned(), recency)),
        });
    }
    let mut names: Vec<(String, f64)> = names.into_iter().collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let mut left = budget;
    let mut bag = Vec::new();
    for (name, _) in names {
        let tokens = estimator.text(&name) + 1;
        if tokens > left {
            break;
        }
        left -= tokens;
        bag.push(name);
    }
    bag.join(" ")
}

/// Lines of the history at random, in no order; the same ones whenever it is asked.
pub fn shuffled(messages: &[Message<'_>], budget: usize, estimator: Estimator) -> String {
    let lines = lines(messages, estimator);
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|at| hash(&format!("{at} {}", lines[*at].text)));
    let mut page = Page::new(&lines, budget);
    page.take(order, budget);
    let text = page.text();
    let mut chosen: Vec<&str> = text.lines().collect();
    chosen.sort_by_key(|line| hash(line));
    chosen.join("\n")
}
