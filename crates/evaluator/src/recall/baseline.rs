//! Methods to compare with: what is common, and what is known from the literature. Pure functions.

use super::lexrank::{Terms, centrality};
use super::page::{Line, Page, lines};
use super::text::Voice;
use context_compactor_core::message::Message;
use context_compactor_core::tokens::Estimator;

/// Characters of a message that `lead` keeps.
const LEAD: usize = 200;
/// Results that `masked` leaves as they are.
const UNMASKED: usize = 3;

/// The newest lines: a sliding window.
pub fn tail(messages: &[Message<'_>], budget: usize, estimator: Estimator) -> String {
    let lines = lines(messages, estimator);
    let mut page = Page::new(&lines, budget);
    page.take_tail(budget);
    page.text()
}

/// The oldest lines in 30 % of the budget, the newest in the rest.
pub fn head_and_tail(messages: &[Message<'_>], budget: usize, estimator: Estimator) -> String {
    let lines = lines(messages, estimator);
    let mut page = Page::new(&lines, budget);
    page.take(0..lines.len(), budget * 3 / 10);
    page.take_tail(page.left());
    page.text()
}

/// Results but for the newest three masked, then the newest lines.
pub fn masked(messages: &[Message<'_>], budget: usize, estimator: Estimator) -> String {
    let mut lines = lines(messages, estimator);
    let mut results: Vec<usize> =
        lines.iter().filter(|line| line.voice == Voice::Result).map(|line| line.message).collect();
    results.dedup();
    let first = results.len().checked_sub(UNMASKED).and_then(|at| results.get(at)).copied().unwrap_or(0);
    lines.retain(|line| line.voice != Voice::Result || line.message >= first);
    let mut page = Page::new(&lines, budget);
    page.take_tail(budget);
    page.text()
}

/// The first 200 characters of each message, the newest messages first, in half of the budget; the newest lines in the rest.
pub fn lead(messages: &[Message<'_>], budget: usize, estimator: Estimator) -> String {
    let lines = lines(messages, estimator);
    let mut page = Page::new(&lines, budget);
    page.take_tail(budget / 2);
    let mut starts: Vec<usize> = Vec::new();
    let (mut message, mut taken) = (usize::MAX, 0);
    for (at, line) in lines.iter().enumerate() {
        if line.message != message {
            (message, taken) = (line.message, 0);
        }
        if taken < LEAD {
            starts.push(at);
        }
        taken += line.text.chars().count();
    }
    page.take(starts.into_iter().rev(), page.left());
    page.text()
}

/// The lines nearest to the centroid of all by TF-IDF in half of the budget, the newest in the rest.
pub fn tfidf(messages: &[Message<'_>], budget: usize, estimator: Estimator) -> String {
    central(messages, budget, estimator, |terms| terms.to_centroid())
}

/// The most central lines by LexRank in half of the budget, the newest in the rest.
pub fn lexrank(messages: &[Message<'_>], budget: usize, estimator: Estimator) -> String {
    central(messages, budget, estimator, centrality)
}

fn central(
    messages: &[Message<'_>],
    budget: usize,
    estimator: Estimator,
    rank: impl Fn(&Terms) -> Vec<f64>,
) -> String {
    let lines = lines(messages, estimator);
    let mut page = Page::new(&lines, budget);
    page.take_tail(budget / 2);
    let until = page.tail_start();
    let candidates = candidates(&lines[..until]);
    let terms = Terms::of(candidates.iter().map(|at| lines[*at].text.as_str()));
    let scores = rank(&terms);
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(b.cmp(a)));
    page.take(order.into_iter().map(|nth| candidates[nth]), page.left());
    page.text()
}

/// At most 1,200 lines of five words or more, each text once, evenly taken: the ranking is quadratic.
fn candidates(lines: &[Line]) -> Vec<usize> {
    const MOST: usize = 1_200;
    let mut seen = std::collections::HashSet::new();
    let says = |line: &Line| line.text.split_whitespace().count() >= 5;
    let all: Vec<usize> =
        (0..lines.len()).filter(|at| says(&lines[*at]) && seen.insert(lines[*at].text.trim())).collect();
    let step = all.len().div_ceil(MOST).max(1);
    all.into_iter().step_by(step).collect()
}
