use super::super::text::count;
use super::super::{TextKind, shape};
use super::fixtures;
use serde_json::Value;

fn shaped(text: &str, target: usize, kind: TextKind) -> String {
    let shaped = shape(text, target).unwrap();
    assert_eq!(shaped.kind, kind);
    assert!(count(&shaped.text) <= target);
    shaped.text
}

#[test]
fn s2_11_json_keeps_keys_and_nesting_samples_lists_and_clips_texts() {
    let text = fixtures::json(300);
    let shaped = shaped(&text, 6_000, TextKind::Json);
    assert!(count(&shaped) > 2_500, "the room is used: {}", count(&shaped));
    let value: Value = serde_json::from_str(&shaped).unwrap();
    assert_eq!(value["page"]["next"], "/orders?page=2");
    let orders = value["orders"].as_array().unwrap();
    assert_eq!(orders[0]["id"], "ord_000000");
    assert_eq!(orders[0]["customer"]["mail"], "👩‍👩‍👧 家");
    assert!(shaped.contains(":1234567890123456789,") && shaped.contains(":12.5}"), "numbers to the letter");
    assert!(orders[0]["note"].as_str().unwrap().ends_with("… [308 characters]"), "{}", orders[0]["note"]);
    assert!(shaped.contains("upstream refused order ord_000050"), "an item with an error is in the sample");
    let left_out: usize = orders
        .iter()
        .filter_map(Value::as_str)
        .map(|gap| gap.split(' ').nth(1).unwrap().parse::<usize>().unwrap())
        .sum();
    assert_eq!(left_out + orders.iter().filter(|order| order.is_object()).count(), 300, "the counts add up");
}

#[test]
fn s2_11_json_that_fits_without_its_blanks_loses_nothing() {
    let text = fixtures::json(3);
    let value: Value = serde_json::from_str(&text).unwrap();
    let shaped = shaped(&text, count(&text) - 1, TextKind::Json);
    assert_eq!(serde_json::from_str::<Value>(&shaped).unwrap(), value);
}

#[test]
fn s2_11_json_has_an_outline_at_any_size_and_shapes_the_texts_in_it() {
    let text = fixtures::json(300);
    for target in [120, 200, 300, 500] {
        assert!(!shape(&text, target).unwrap().is_bare, "{target}");
    }
    let output = serde_json::json!({ "code": 1, "output": fixtures::log(3_000) }).to_string();
    let shaped = shaped(&output, 5_000, TextKind::Json);
    let value: Value = serde_json::from_str(&shaped).unwrap();
    assert!(value["output"].as_str().unwrap().starts_with("[log: 3015 lines, 30 of errors"), "{shaped}");
}

#[test]
fn s2_11_json_lines_stay_json_lines() {
    let shaped = shaped(&fixtures::json_lines(2_000), 2_000, TextKind::JsonLines);
    for line in shaped.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    assert!(shaped.contains("\"level\":\"error\"") && shaped.contains(" lines left out\"}"));
}

#[test]
fn s2_11_tables_keep_their_header_both_ends_and_rows_with_errors() {
    let shaped = shaped(&fixtures::csv(2_000), 1_000, TextKind::Table);
    assert!(
        shaped.starts_with("[table: 2000 rows, 4 columns]\nid,name,city,balance\n0,\"Ren, 0\",서울,0\n"),
        "{shaped}"
    );
    assert!(shaped.contains(" rows left out …]") && shaped.ends_with("1999,\"Ren, 1999\",서울,983"));
    for text in [fixtures::markdown(400), fixtures::processes(400)] {
        let shaped = self::shaped(&text, 1_000, TextKind::Table);
        assert!(shaped.contains(text.lines().next().unwrap()));
        assert!(!text.contains("Error") || shaped.contains("worker-20"), "{shaped}");
    }
    let shell = format!(" id | name\n----+------\n{}(300 rows)\n", " 1 | x\n".repeat(300));
    let shaped = self::shaped(&shell, 300, TextKind::Table);
    assert!(shaped.contains("[table: 300 rows, 2 columns]") && shaped.ends_with("(300 rows)"), "{shaped}");
}

#[test]
fn s2_11_logs_fold_what_repeats_and_keep_errors_with_their_stacks() {
    let text = fixtures::log(3_000);
    let shaped = shaped(&text, 4_000, TextKind::Log);
    assert!(
        shaped.starts_with(
            "[log: 3015 lines, 30 of errors, 15 of warnings, 2026-11-22T00:00:00Z to 2026-11-22T00:49:59Z]\n"
        ),
        "{shaped}"
    );
    assert_eq!(shaped.matches(" ERROR ").count(), 15);
    assert_eq!(
        shaped.matches("at Pool.acquire (/srv/app/pool.js:").count(),
        15,
        "stacks belong to their errors"
    );
    assert!(shaped.contains("WARN pool nearly full: 70 of 5000 [×15]"), "{shaped}");
    assert!(shaped.contains("INFO GET /health took 0ms [×2968]"), "{shaped}");
    // Too many for the room: they fold too, and are counted.
    let failing = "2026-11-22T02:43:58Z ERROR disk 7 full\n".repeat(5_000);
    let shaped = self::shaped(&failing, 300, TextKind::Log);
    assert!(shaped.contains("ERROR disk 7 full [×4998]"), "{shaped}");
}

#[test]
fn s2_11_diffs_keep_every_file_its_counts_and_its_hunks() {
    let shaped = shaped(&fixtures::diff(12), 3_200, TextKind::Diff);
    assert!(shaped.starts_with("[diff: 12 files, +24 -24]\ncommit 4e313bb0"), "{shaped}");
    for nth in 0..12 {
        assert!(
            shaped.contains(&format!("diff --git a/src/part{nth}.rs b/src/part{nth}.rs [+2 -2]")),
            "{nth}"
        );
        assert!(shaped.contains(&format!("@@ -10,7 +10,8 @@ fn part{nth}()")), "{nth}");
        assert!(shaped.contains(&format!("-    let old_state = {nth};")), "{nth}: {shaped}");
    }
    let less = self::shaped(&fixtures::diff(12), 2_000, TextKind::Diff);
    assert!(less.matches("diff --git").count() == 12 && less.contains("-    let old_state = 0;"), "{less}");
    assert!(!less.contains("unchanged"), "context goes first: {less}");
    let plain = "--- old.txt\n+++ new.txt\n@@ -1,2 +1,2 @@\n-a\n+b\n".repeat(40);
    assert!(self::shaped(&plain, 700, TextKind::Diff).starts_with("[diff: 40 files, +40 -40]"));
}

#[test]
fn s2_11_html_becomes_its_text() {
    let text = fixtures::page(40);
    let shaped = shaped(&text, count(&text) - 1, TextKind::Html);
    assert!(shaped.contains("\n# Context & windows\n") && shaped.contains("\n- Home (/home)\n"), "{shaped}");
    assert!(shaped.contains("## Part 3\nThe window of part 3 is small; see the notes (https://example.org/3?a=1&b=2). 한국어 👩‍👩‍👧 <ok>\na | 3\n"));
    for gone in ["alert", "color:red", "hidden", "</p>", "x>y"] {
        assert!(!shaped.contains(gone), "{gone}");
    }
    let shaped = self::shaped(&text, 1_500, TextKind::Html);
    assert!(shaped.contains("# Context & windows") && shaped.contains(" lines left out …]"));
    let list = crate::compaction::shape::html::text("<html><ul><li>One</li>two<li>Three</ul></html>");
    let lines: Vec<&str> = list.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines, ["- One", "two", "- Three"]);
    for broken in [
        "<html><p>a < b && c <",
        "<html><a href='x>unclosed",
        "<html><script>never closed",
        "<html>&#xD800;&#0;&nope;",
    ] {
        shape(broken, 10).unwrap();
    }
}

#[test]
fn s2_11_prose_and_code_are_the_summarisers() {
    let prose = "The parser, the lexer, and the printer share a state.\nIt is kept in memory, and that is fine, mostly.\n";
    let code = "fn main() {\n    let a = [1, 2];\n    println!(\"{a:?}\", a);\n}\n";
    let errors = "An error of judgement is no log.\nIt has, however, lines.\n";
    for text in [
        prose,
        code,
        errors,
        "xxxx",
        "한국어 문장입니다. ",
        "<?xml version=\"1.0\"?><a/>",
        "",
        "12",
        "\"text\"",
    ] {
        assert_eq!(shape(&text.repeat(100), 500), None, "{text}");
    }
}

#[test]
fn s2_11_an_absurd_target_gets_the_smallest_honest_line() {
    assert_eq!(shape(&fixtures::log(100), 1).unwrap().text, "[log: 4708 characters left out]");
    assert_eq!(shape("{\"a\":1}", 1).unwrap().text, "{\"a\":1}", "which is never longer than the text");
    for (chars, expected) in [(30, None), (31, Some("[JSON: 31 characters left out]"))] {
        let text = format!("[\"{}\"]", "x".repeat(chars - 4));
        assert_eq!(shape(&text, 1).unwrap().text, expected.unwrap_or(&text));
    }
    assert_eq!(shape("[1, 2]", 5).unwrap().text, "[1,2]", "a form may take all of the target");
}

#[test]
fn s2_11_what_fits_is_as_it_was() {
    for (_, text) in fixtures::all(40) {
        assert_eq!(shape(&text, count(&text)).unwrap().text, text);
        let small = shape(&text, 1_500).unwrap().text;
        assert!(shape(&small, 1_500).is_none_or(|again| again.text == small));
    }
}
