//! The passage of a text that a search shows.

use super::search::Query;
use crate::summary::text::{head, tail};
use context_compactor_scan::terms::terms;
use std::ops::Range;

/// Bytes of a snippet, without the marks of what was left out.
const SNIPPET: usize = 240;

/// The passage of a text with the most that the query asks for, in one line.
pub(super) fn snippet(text: &str, query: &Query, weights: &[f64]) -> String {
    let mut found: Vec<(Range<usize>, usize)> = Vec::new();
    terms(text, &mut |term, range, _| {
        if let Some(number) = query.terms.get(term) {
            found.push((range, *number));
        }
    });
    let span = densest(&found, weights);
    // Most of the room that is left goes after the terms: what they name is explained there.
    let room = SNIPPET.saturating_sub(span.len());
    let from = span.start.saturating_sub(room / 3);
    let behind = tail(text, text.len() - from);
    let passage = head(behind, SNIPPET.max(span.len()));
    let words: Vec<&str> = passage.split_whitespace().collect();
    let before = if behind.len() < text.len() { "…" } else { "" };
    let after = if passage.len() < behind.len() { "…" } else { "" };
    format!("{before}{}{after}", words.join(" "))
}

/// The first of the stretches no longer than a snippet whose different terms weigh most.
fn densest(found: &[(Range<usize>, usize)], weights: &[f64]) -> Range<usize> {
    let mut counts = vec![0_usize; weights.len()];
    let (mut first, mut weight, mut heaviest) = (0, 0.0, 0.0);
    let mut best = found.first().map_or(0..0, |(range, _)| range.clone());
    let of = |number: usize| weights.get(number).copied().unwrap_or_default();
    for (range, number) in found {
        if let Some(count) = counts.get_mut(*number) {
            weight += if *count == 0 { of(*number) } else { 0.0 };
            *count += 1;
        }
        while let Some((start, number)) = found.get(first)
            && range.end > start.start + SNIPPET
            && start != range
        {
            if let Some(count) = counts.get_mut(*number) {
                *count -= 1;
                weight -= if *count == 0 { of(*number) } else { 0.0 };
            }
            first += 1;
        }
        if weight > heaviest + 1e-9 {
            heaviest = weight;
            best = found.get(first).map_or(0, |(start, _)| start.start)..range.end;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(text: &str, query: &str) -> String {
        let query = Query::new(query).unwrap();
        let weights = vec![1.0; query.terms.len()];
        snippet(text, &query, &weights)
    }

    #[test]
    fn a_snippet_shows_the_most_of_the_query_in_one_line() {
        let text =
            format!("port {} the\n  port of the\tdatabase is 5432. {}", "x ".repeat(300), "y ".repeat(300));
        let found = passage(&text, "database port");
        assert!(found.contains("the port of the database is 5432. y y"), "{found}");
        assert!(found.starts_with('…') && found.ends_with('…') && !found.contains('\n'));
        assert!(found.len() <= SNIPPET + 2 * '…'.len_utf8());
        assert_eq!(passage("the port", "port"), "the port");
    }

    #[test]
    fn lesson_unicode_cuts_a_snippet_ends_between_graphemes() {
        for cluster in ["👨‍👩‍👧‍👦", "각", "e\u{301}", "🇩🇪", "字", "שָׁ"] {
            for pad in 0..30 {
                let around = cluster.repeat(200);
                let text = format!("{}{around} needle {around}", "a".repeat(pad));
                let found = passage(&text, "needle");
                let parts = found.trim_matches('…').split(" needle ");
                for part in parts.map(|part| part.trim_start_matches('a')) {
                    assert_eq!(part.replace(cluster, ""), "", "{found}");
                }
            }
        }
    }
}
