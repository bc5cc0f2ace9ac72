//! Processing of results right after their tool returned them (`S4.5`), and what is never processed (`S4.6`).

use crate::support::*;
use context_compactor_core::context::Fate;
use context_compactor_core::policy::{FACTOR3, Settings};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, exchange, user};
use serde_json::{Value, json};
use std::fmt::Write as _;

fn factor3(over: Value) -> Harness {
    let mut options = json!({ "preset": "factor3", "contextWindow": 200_000 });
    merge(&mut options, &over);
    Harness::new(options)
}

/// A question, and the exchange of a tool.
fn ask(harness: &mut Harness, format: Format, tool: &str, result: &str) {
    harness.append(&[user("look")]);
    let named = |body: &Body| Body::from(body.replace("\"read_file\"", &format!("{tool:?}")));
    let exchange: Vec<Body> = exchange(format, "call_1", result).iter().map(named).collect();
    harness.append(&exchange);
}

/// The only result of what is sent now.
fn result(harness: &mut Harness, format: Format) -> String {
    let sent = harness.sent();
    assert_valid(format, &sent);
    sent.iter().find_map(|message| result_text(format, message)).unwrap()
}

fn hits() -> String {
    let hit = |nth: usize| {
        let (title, url) = (format!("結果 {nth} 👩‍👩‍👧"), format!("https://example.org/{nth}"));
        json!({ "title": title, "url": url, "snippet": "Windows are small. ".repeat(60), "rank": nth })
    };
    json!({ "results": (0..5).map(hit).collect::<Vec<_>>() }).to_string()
}

fn source() -> String {
    (0..200).fold(String::new(), |mut text, nth| {
        let _ = write!(text, "pub fn step_{nth}() -> usize {{\n    {nth}\n}}\n\n");
        text
    })
}

fn rows() -> String {
    (0..150).fold("id,name,city\n".to_string(), |mut text, nth| {
        let _ = writeln!(text, "{nth},name {nth},서울 and its surroundings");
        text
    })
}

fn response() -> String {
    let order = |nth: usize| json!({ "id": nth, "note": "please ring twice ".repeat(20) });
    json!({ "status": 200, "data": (0..80).map(order).collect::<Vec<_>>() }).to_string()
}

#[test]
fn s4_5_results_are_processed_by_the_type_of_their_tool_before_they_are_ever_sent() {
    for format in FORMATS {
        for (tool, text, says) in [
            ("web_search", hits(), "[search results; the whole result is at: "),
            ("Read_File", source(), "[outline of the file; the whole result is at: "),
            ("query", rows(), "[sample of the rows; the whole result is at: "),
            ("fetch", response(), "[key fields of the response; the whole result is at: "),
        ] {
            let mut harness = factor3(json!({}));
            ask(&mut harness, format, tool, &text);
            let prepared = harness.prepare();
            assert_eq!((prepared.edits.len(), prepared.edits[0].kind), (1, "admit"), "{tool}");
            assert!(prepared.edits[0].freed_tokens > 100 && harness.host.seen.requests.is_empty());
            let shown = result(&mut harness, format);
            let reference =
                shown.strip_prefix(says).unwrap_or_else(|| panic!("{shown}")).split(']').next().unwrap();
            assert_eq!(harness.read(reference), text, "the original is kept");
            let entry = harness.session.explain().unwrap().remove(2);
            assert_eq!((entry.fate, entry.reference.as_deref()), (Fate::Offloaded, Some(reference)));
            assert!(harness.prepare().edits.is_empty(), "done once");
            // Another tab reads the same.
            let mut other = Harness::over(harness.memory.clone(), "b", json!({ "preset": "factor3" }));
            assert_eq!(result(&mut other, format), shown);
        }
    }
}

#[test]
fn s4_5_what_the_documents_examples_become() {
    let of = |tool: &str, text: &str| {
        let mut harness = factor3(json!({}));
        ask(&mut harness, FORMATS[0], tool, text);
        result(&mut harness, FORMATS[0]).split_once("]\n").unwrap().1.to_string()
    };
    let search = of("web_search", &hits());
    assert!(
        search.starts_with("5 results\n1. 結果 0 👩‍👩‍👧\n   https://example.org/0\n   Windows are small."),
        "{search}"
    );
    assert!(search.contains("… [1139 characters]") && !search.contains("rank"), "{search}");
    let file = of("read_file", &source());
    assert!(
        file.starts_with("src/lib.rs: 800 lines, 1 to 800\n1-4: pub fn step_0() -> usize\n5-8: "),
        "{file}"
    );
    let query = of("query", &rows());
    assert!(query.starts_with("150 rows; columns: id, name, city\nrow 1: 0,name 0,서울"), "{query}");
    let api = of("fetch", &response());
    assert!(api.starts_with("status: 200\n{\"data\":[{\"id\":0,\"note\":\"please"), "{api}");
}

#[test]
fn s4_5_every_number_and_name_is_an_option() {
    for (options, tool, text, contains) in [
        (json!({ "processTools": { "files": ["Cat"] } }), "cat", source(), "outline of the file"),
        (
            json!({ "fileLines": 10 }),
            "read_file",
            source().lines().take(100).collect::<Vec<_>>().join("\n"),
            "99 lines",
        ),
        (json!({ "outlineLines": 3 }), "read_file", source(), "[… 197 definitions left out …]"),
        (
            json!({ "queryRows": 20 }),
            "sql",
            rows().lines().take(100).collect::<Vec<_>>().join("\n"),
            "99 rows",
        ),
        (json!({ "sampleRows": 2 }), "sql", rows(), "row 1: 0,name 0,서울 and its surroundings\nrow 150: "),
        (json!({ "snippetChars": 30 }), "search", hits(), "Windows are small. Windows are… [1139"),
        (json!({ "apiChars": 300 }), "fetch", response(), "items left out"),
        (json!({ "minTokens": 10 }), "read_file", "x\n".repeat(600), "600 lines"),
    ] {
        let mut harness = factor3(json!({ "presetOptions": options }));
        ask(&mut harness, FORMATS[1], tool, &text);
        let shown = result(&mut harness, FORMATS[1]);
        assert!(shown.contains(contains), "{contains}: {shown}");
    }
    let mut harness = factor3(json!({ "presetOptions": { "processTools": { "files": [] } } }));
    ask(&mut harness, FORMATS[0], "read_file", &source());
    assert_eq!(result(&mut harness, FORMATS[0]), source());
}

#[test]
fn s4_6_errors_small_results_and_structured_ones_are_kept_as_they_are() {
    let row =
        |count: usize| json!((0..count).map(|nth| json!({ "id": nth })).collect::<Vec<_>>()).to_string();
    let error = format!("Error: upstream failed\n{}", "at step (/srv/app.js:1:2)\n".repeat(900));
    let refused = json!({ "status": 503, "body": "x ".repeat(9_000) }).to_string();
    for (tool, text) in [
        ("read_file", error.as_str()),
        ("fetch", refused.as_str()),
        ("read_file", &"x\n".repeat(398)),
        ("query", &row(190)),
        ("grep", &source()),
        ("query", "한국어 문장입니다. ".repeat(900).as_str()),
    ] {
        let mut harness = factor3(json!({ "presetOptions": { "fileLines": 1, "queryRows": 1 } }));
        ask(&mut harness, FORMATS[0], tool, text);
        assert!(harness.prepare().edits.is_empty(), "{tool}");
        assert_eq!(result(&mut harness, FORMATS[0]), text);
    }
    // 500 tokens of JSON are enough.
    let mut harness = factor3(json!({ "presetOptions": { "queryRows": 1 } }));
    ask(&mut harness, FORMATS[0], "query", &row(250));
    assert!(result(&mut harness, FORMATS[0]).contains("250 rows"));
}

#[test]
fn s4_5_s4_6_both_sides_of_every_border() {
    let file = |lines: usize| vec!["pub fn step() {}"; lines].join("\n");
    let table = |count: usize| rows().lines().take(count + 1).collect::<Vec<_>>().join("\n");
    // Four characters are a token here.
    let prose = |tokens: usize| format!("{}{}", "x\n".repeat(100), "y".repeat(tokens * 4 - 200));
    let data = |tokens: usize| {
        let row = json!({ "id": 1 });
        let mut rows: Vec<Value> = vec![row; 150];
        let length = Value::from(rows.clone()).to_string().len();
        rows[149] = json!({ "id": "z".repeat(tokens * 4 - length - 1) });
        Value::from(rows).to_string()
    };
    assert_eq!((prose(200).len(), data(500).len()), (800, 2_000));
    for (tool, kept, processed, options) in [
        ("read_file", file(500), file(501), json!({})),
        ("query", table(100), table(101), json!({})),
        ("read_file", prose(199), prose(200), json!({ "fileLines": 10 })),
        ("query", data(499), data(500), json!({})),
    ] {
        for (text, is_kept) in [(kept, true), (processed, false)] {
            let mut harness = factor3(json!({ "presetOptions": options }));
            ask(&mut harness, FORMATS[0], tool, &text);
            let shown = result(&mut harness, FORMATS[0]);
            assert_eq!(shown == text, is_kept, "{tool} {}: {shown}", text.len());
            if !is_kept {
                let reference = shown.split("is at: ").nth(1).unwrap().split(']').next().unwrap();
                assert_eq!(harness.read(reference), text, "the original is stored");
            }
        }
    }
}

#[test]
fn s4_6_a_result_that_its_format_calls_an_error_is_kept_whole() {
    let format = Format::Anthropic;
    let mut harness = factor3(json!({}));
    harness.append(&[user("look")]);
    let failed = |body: &Body| {
        Body::from(body.replace("\"type\":\"tool_result\"", "\"type\":\"tool_result\",\"is_error\":true"))
    };
    let exchange: Vec<Body> = exchange(format, "call_1", &source()).iter().map(failed).collect();
    harness.append(&exchange);
    assert!(harness.prepare().edits.is_empty());
    assert_eq!(result(&mut harness, format), source());
}

#[test]
fn s4_6_debug_keeps_everything_and_still_summarises() {
    let mut harness = factor3(json!({ "presetOptions": { "verbosity": "debug" }, "contextWindow": 8_000 }));
    ask(&mut harness, FORMATS[0], "read_file", &source());
    assert!(harness.prepare().edits.iter().all(|edit| edit.kind != "admit"));
    assert_eq!(result(&mut harness, FORMATS[0]), source());
    harness.append(&talk(8, 200));
    assert!(harness.prepare().result.is_some_and(|result| result.success), "S4.1 goes on");
}

#[test]
fn s4_6_the_options_are_checked_and_switch_the_rung_on_elsewhere() {
    let read = |options: Value| Settings::read(&serde_json::from_str(&options.to_string()).unwrap());
    for (options, field) in [
        (json!({ "preset": "factor3", "presetOptions": { "verbosity": "loud" } }), "presetOptions.verbosity"),
        (
            json!({ "preset": "factor3", "presetOptions": { "processTools": { "files": "x" } } }),
            "presetOptions.processTools.files",
        ),
        (json!({ "preset": "factor3", "presetOptions": { "fileLines": 0 } }), "presetOptions.fileLines"),
    ] {
        assert_eq!(read(options).unwrap_err().field.as_deref(), Some(field));
    }
    let settings = read(json!({ "preset": "factor3" })).unwrap();
    assert_eq!((settings.numbers.process, settings.rungs.len()), (FACTOR3.numbers.process, 3));
    let mut harness =
        Harness::new(json!({ "contextWindow": 200_000, "digest": { "tools": { "files": ["Cat"] } } }));
    ask(&mut harness, FORMATS[0], "cat", &source());
    assert_eq!(harness.prepare().edits[0].kind, "admit");
}

#[test]
fn s4_5_a_plan_tells_it_and_changes_nothing() {
    let mut harness = factor3(json!({}));
    ask(&mut harness, FORMATS[0], "query", &rows());
    let plan = harness.host.run(harness.session.plan()).unwrap();
    assert_eq!((plan.edits.len(), plan.edits[0].kind, plan.edits[0].llm_calls), (1, "admit", 0));
    assert_eq!(result_text(FORMATS[0], &harness.context()[2]).unwrap(), rows());
}
