use super::super::text::{Severity, count, level};
use super::super::{digest, is_error, is_structured, shape};
use super::fixtures;
use crate::policy::{Digest, FACTOR3};
use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

/// What a line that says what was there takes at most.
const FRAME: usize = 60;

/// Text of pieces that mean something to one of the readers.
fn text() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "{",
        "}",
        "[",
        "]",
        "\"",
        "\\",
        ",",
        ":",
        "\n",
        "\r\n",
        "\t",
        " ",
        "|",
        "---",
        "<",
        ">",
        "</",
        "<!--",
        "<div>",
        "<script>",
        "<a href='",
        "&amp;",
        "&#x41;",
        "=",
        "diff --git a/x b/x\n",
        "--- a\n+++ b\n",
        "@@ -1 +1 @@\n",
        "+x",
        "2026-11-22T02:43:58Z ",
        "ERROR ",
        "WARN ",
        "Nov 22 02:43:58 ",
        "error: x\n",
        "    at f (/a.js:1:2)\n",
        "1",
        "true",
        "null",
        "name",
        "a,b,c\n1,2,3\n",
        "한국어",
        "👩‍👩‍👧",
        "e\u{301}",
        "עברית",
        "字",
        "🇩🇪",
        "\u{feff}",
        "HTTP/1.1 200 OK\r\n",
        "https://example.org/a",
        "Title: ",
        "def f():\n",
        "# h\n",
    ];
    let piece = prop_oneof![
        6 => proptest::sample::select(PIECES).prop_map(str::to_string),
        1 => any::<String>(),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn s2_11_arbitrary_text_never_panics_and_never_exceeds_the_target(text in text(), repeat in 1..20_usize, target in 0..400_usize) {
        let text = text.repeat(repeat);
        if let Some(shaped) = shape(&text, target) {
            let chars = count(&shaped.text);
            prop_assert!(chars <= target.max(FRAME) && chars <= count(&text), "{shaped:?}");
            let again = shape(&shaped.text, target.max(FRAME));
            prop_assert!(again.is_none_or(|again| again.text == shaped.text));
        }
    }

    #[test]
    fn s4_5_arbitrary_text_is_digested_or_left_alone(text in text(), repeat in 1..20_usize) {
        let text = text.repeat(repeat);
        let numbers = crate::policy::ProcessNumbers { file_lines: 3, query_rows: 2, ..FACTOR3.numbers.process };
        for kind in [Digest::Search, Digest::File, Digest::Query, Digest::Api] {
            digest(kind, &text, "{\"path\":\"src/lib.rs\"}", &numbers);
        }
        is_error(&text);
        is_structured(&text);
    }

    #[test]
    fn s2_11_every_target_is_kept(target in 0..9_000_usize) {
        for (name, text) in fixtures::all(120) {
            let shaped = shape(&text, target).unwrap();
            prop_assert_eq!(shaped.kind.as_str(), name);
            prop_assert!(count(&shaped.text) <= target.max(FRAME), "{} of {}", count(&shaped.text), target);
        }
    }

    #[test]
    fn s2_11_clusters_stay_whole(target in 100..3_000_usize) {
        // Every cluster of the result is one of the text, or of what was said about it.
        let all: std::collections::HashSet<String> =
            fixtures::all(60).iter().flat_map(|(_, text)| text.graphemes(true).map(str::to_string).collect::<Vec<_>>()).collect();
        for (_, text) in fixtures::all(60) {
            for cluster in shape(&text, target).unwrap().text.graphemes(true) {
                prop_assert!(cluster.is_ascii() || "…×–".contains(cluster) || all.contains(cluster), "{cluster:?}");
            }
        }
    }

    #[test]
    fn s2_11_errors_of_a_log_are_kept_to_the_letter(places in proptest::collection::btree_set(0..900_usize, 1..20)) {
        let line = |nth: usize| match places.contains(&nth) {
            true => format!("2026-11-22T02:43:58Z ERROR 작업 job_{nth} failed in /srv/app/job{nth}.rs: code {nth}"),
            false => format!("2026-11-22T02:43:58Z INFO step {nth} done 👍"),
        };
        let log: Vec<String> = (0..900).map(line).collect();
        let shaped = shape(&log.join("\n"), 4_000).unwrap().text;
        for line in log.iter().filter(|line| level(line) == Severity::Error) {
            prop_assert!(shaped.lines().any(|shown| shown == line), "{line}");
        }
    }
}

#[test]
fn s2_11_time_grows_with_the_text_and_not_faster() {
    // What made naive readers of these formats quadratic.
    for hostile in [
        "<", "<a ", "<a \"", "<!--", "<script>", "&", "[", "{\"a\":", "|", "@@ ", "\"", "a\u{301}", "🇩🇪",
        "</",
    ] {
        for frame in ["", "<html>", "a,b\n", "diff --git a b\n--- a\n+++ b\n@@ x\n"] {
            let text = format!("{frame}{}", hostile.repeat(400_000 / hostile.len()));
            let started = std::time::Instant::now();
            shape(&text, 5_000);
            assert!(started.elapsed().as_secs() < 5, "{hostile:?} {frame:?} took {:?}", started.elapsed());
        }
    }
}
