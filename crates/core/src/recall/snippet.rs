//! The passages of a text that a search shows.

use super::passage::Matches;
use super::search::Query;
use crate::summary::text::{head, tail};
use std::ops::Range;

/// Bytes of the best passage, and of another one that has what the first lacks.
const SNIPPET: usize = 500;
const SECOND: usize = 250;
/// Between two passages.
const BETWEEN: &str = "\n…\n";

/// The passage of a text that ranks it, or the stretch of it that has the most of what the query asks for; and, where that
/// does not have all of it, another one.
pub(super) fn snippet(
    text: &str,
    matches: &Matches,
    query: &Query,
    weights: &[f64],
    passage: &Range<usize>,
) -> String {
    let all = || matches.found.iter().map(|(at, number, _)| (at.clone(), *number));
    let mut ranking: Vec<_> = all().filter(|(at, _)| passage.contains(&at.start)).collect();
    // A name that begins where a passage ends counts for it.
    if ranking.is_empty() {
        ranking.extend(all());
    }
    let span = query.phrase_in(text).unwrap_or_else(|| densest(&ranking, weights, SNIPPET));
    let first = around(text, span, SNIPPET);
    let shown: Vec<usize> = all().filter(|(at, _)| first.contains(&at.start)).map(|(_, term)| term).collect();
    let found: Vec<_> =
        all().filter(|(at, term)| !shown.contains(term) && !first.contains(&at.start)).collect();
    if found.is_empty() {
        return shown_as(text, first);
    }
    let second = around(text, densest(&found, weights, SECOND), SECOND);
    // What runs into each other is one passage.
    if second.start < first.end && first.start < second.end {
        return shown_as(text, first.start.min(second.start)..first.end.max(second.end));
    }
    let (one, other) = if first.start < second.start { (first, second) } else { (second, first) };
    let [before, behind] = [one, other].map(|range| shown_as(text, range));
    format!("{}{BETWEEN}{}", before.trim_end_matches('…'), behind.trim_start_matches('…'))
}

/// How a text begins.
pub(super) fn beginning(text: &str) -> String {
    shown_as(text, 0..head(text, SECOND).len())
}

/// A passage around `span`. Most of the room that is left goes after the terms: what they name is explained there.
fn around(text: &str, span: Range<usize>, most: usize) -> Range<usize> {
    let room = most.saturating_sub(span.len());
    let from = span.start.saturating_sub(room / 3);
    let behind = tail(text, text.len() - from);
    let start = text.len() - behind.len();
    start..start + head(behind, most.max(span.len())).len()
}

/// A passage with its lines, without their numbers and empty ones.
fn shown_as(text: &str, range: Range<usize>) -> String {
    let passage = text.get(range.clone()).unwrap_or_default();
    let lines = passage.lines().map(|line| without_number(line).trim_end()).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.collect();
    let before = if range.start > 0 { "…" } else { "" };
    let after = if range.end < text.len() { "…" } else { "" };
    format!("{before}{}{after}", lines.join("\n"))
}

/// A line of a listing: `  12→fn main() {`.
fn without_number(line: &str) -> &str {
    let digits = line.trim_start();
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    match rest.strip_prefix('→') {
        Some(code) if rest.len() < digits.len() => code,
        _ => line,
    }
}

/// Of the stretches of at most `most` bytes whose different terms weigh most the shortest, of these the first.
fn densest(found: &[(Range<usize>, usize)], weights: &[f64], most: usize) -> Range<usize> {
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
            && range.end > start.start + most
            && start != range
        {
            if let Some(count) = counts.get_mut(*number) {
                *count -= 1;
                weight -= if *count == 0 { of(*number) } else { 0.0 };
            }
            first += 1;
        }
        // What stands there twice makes it no heavier, and longer.
        while let Some((start, number)) = found.get(first)
            && start != range
            && counts.get(*number).is_some_and(|count| *count > 1)
        {
            if let Some(count) = counts.get_mut(*number) {
                *count -= 1;
            }
            first += 1;
        }
        let stretch = found.get(first).map_or(0, |(start, _)| start.start)..range.end;
        if weight > heaviest + 1e-9 || (weight > heaviest - 1e-9 && stretch.len() < best.len()) {
            heaviest = weight;
            best = stretch;
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
        let matches = Matches::new(text, &query);
        snippet(text, &matches, &query, &weights, &(0..text.len()))
    }

    #[test]
    fn w21_a_snippet_shows_the_most_of_the_query_with_its_lines() {
        let text =
            format!("port {} the\n  port of the\tdatabase is 5432. {}", "x ".repeat(400), "y ".repeat(400));
        let found = passage(&text, "database port");
        assert!(found.contains(" the\n  port of the\tdatabase is 5432. y y"), "{found}");
        assert!(found.starts_with('…') && found.ends_with('…'));
        assert!(found.len() <= SNIPPET + 2 * '…'.len_utf8());
        assert_eq!(passage("the port", "port"), "the port");
    }

    #[test]
    fn w21_numbers_of_lines_and_empty_lines_are_left_out() {
        let listing = "    11→fn main() {\n    12→\n    13→    port(8080);\n 5 → 6\n→ x";
        assert_eq!(passage(listing, "port"), "fn main() {\n    port(8080);\n 5 → 6\n→ x");
    }

    #[test]
    fn w21_what_the_best_passage_lacks_is_shown_in_another_one() {
        let far = "filler ".repeat(300);
        let text = format!("The port is 5432. {far} The host is db1. {far}");
        let found = passage(&text, "port host");
        assert!(found.contains("The port is 5432.") && found.contains("The host is db1."), "{found}");
        assert_eq!(found.matches("\n…\n").count(), 1);
        assert!(found.len() < SNIPPET + SECOND + 20);
        let near = passage(&format!("port {} host", "x ".repeat(270)), "port host");
        assert_eq!(near.matches('…').count(), 0, "{near}");
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
