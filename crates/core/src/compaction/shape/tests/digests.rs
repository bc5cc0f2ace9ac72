use super::super::text::count;
use super::super::{digest, is_error, is_structured};
use super::fixtures;
use crate::policy::{Digest, FACTOR3, ProcessNumbers};
use serde_json::json;
use std::fmt::Write as _;

const NUMBERS: ProcessNumbers = FACTOR3.numbers.process;

fn of(kind: Digest, text: &str, arguments: &str) -> Option<String> {
    digest(kind, text, arguments, &NUMBERS)
}

#[test]
fn s4_5_a_search_is_titles_snippets_and_addresses() {
    let long = "컨텍스트 창은 모델이 볼 수 있는 토큰입니다. ".repeat(40);
    let hit = |nth: usize| json!({ "title": format!("Hit {nth}"), "url": format!("https://example.org/{nth}"), "content": long, "score": 0.9, "raw": "x".repeat(900) });
    let answer =
        json!({ "query": "windows", "answer": "About 200K.", "images": [], "results": [hit(1), hit(2)] });
    let found = of(Digest::Search, &answer.to_string(), "{}").unwrap();
    assert!(
        found.starts_with(
            "Answer: About 200K.\n2 results\n1. Hit 1\n   https://example.org/1\n   컨텍스트 창은"
        ),
        "{found}"
    );
    assert!(!found.contains("xxx") && !found.contains("0.9") && count(&found) < 900);
    let text = format!(
        "Title: First\nURL: https://a.example/1\nContent: {long}\n\n2. [Second](https://b.example/2)\n{long}\n\n## Third\nhttps://c.example/3.\n{long}\n\nmore of the third"
    );
    let found = of(Digest::Search, &text, "{}").unwrap();
    for line in [
        "3 results",
        "1. First\n   https://a.example/1\n   컨",
        "2. Second\n   https://b.example/2\n   컨",
        "3. Third\n   https://c.example/3\n   컨",
    ] {
        assert!(found.contains(line), "{line}: {found}");
    }
    assert_eq!(of(Digest::Search, "nothing was found", "{}"), None);
}

#[test]
fn s4_5_a_long_file_is_its_outline_with_line_ranges() {
    let mut rust = "//! Parser.\n\npub struct Parser {\n    at: usize,\n}\n\nimpl Parser {\n".to_string();
    for nth in 0..120 {
        let _ = writeln!(
            rust,
            "    /// 단계 {nth}\n    pub fn step_{nth}(&mut self) -> usize {{\n        {nth}\n    }}\n"
        );
    }
    rust.push_str("}\n\n#[cfg(test)]\nmod tests {\n}\n");
    let lines = rust.lines().count();
    let outline = of(Digest::File, &rust, r#"{"path":"src/parser.rs"}"#).unwrap();
    assert!(
        outline
            .starts_with(&format!("src/parser.rs: {lines} lines, 1 to {lines}\n3-6: pub struct Parser\n7-")),
        "{outline}"
    );
    assert!(
        outline.contains(": impl Parser\n9-13:   pub fn step_0(&mut self) -> usize\n14-18:   pub fn step_1("),
        "{outline}"
    );
    assert!(outline.ends_with(": mod tests"), "{outline}");
    // Too many definitions: the outermost stay.
    let few = ProcessNumbers { outline_lines: 5, ..NUMBERS };
    let outline = digest(Digest::File, &rust, r#"{"path":"src/parser.rs"}"#, &few).unwrap();
    assert!(
        !outline.contains("step_0")
            && outline.contains("mod tests")
            && outline.contains("[… 120 definitions left out …]"),
        "{outline}"
    );
    // With the numbers that the tool printed.
    let numbered: String =
        rust.lines().enumerate().map(|(nth, line)| format!("{:>6}\t{line}\n", nth + 301)).collect();
    let outline = of(Digest::File, &numbered, r#"{"file_path":"a.rs"}"#).unwrap();
    assert!(
        outline.contains("303-306: pub struct Parser") && outline.contains("309-313:   pub fn step_0"),
        "{outline}"
    );
    assert_eq!(of(Digest::File, &"fn a() {}\n".repeat(500), "{}"), None, "500 lines stay");
}

#[test]
fn s4_5_outlines_of_other_languages() {
    let filler = "\n".repeat(600);
    for (path, text, expected) in [
        (
            "a.py",
            "class A:\n    async def b(self):\n        pass\n\ndef c():\n    pass",
            "1-4: class A:\n2-4:   async def b(self):\n5-",
        ),
        (
            "a.ts",
            "export class A {\n  run(x: number) {\n    if (x) {\n    }\n  }\n}\nexport const f = async () => {\n}\ninterface B {}",
            "1-6: export class A\n2-6:   run(x: number)\n7-8: export const f = async () =>\n9-",
        ),
        ("a.md", "# Eins\n```\n# no heading\n```\n## 둘\n# Drei", "1-5: # Eins\n5-5:   ## 둘\n6-"),
        ("a.go", "package a\n\nfunc (s *S) Run() {\n}\ntype S struct {\n}", "3-4: func (s *S) Run()\n5-"),
        ("a.c", "int main(int argc) {\n  return f(1);\n}\nstruct s {\n};", "1-3: int main(int argc)\n4-"),
        ("a.toml", "[package]\nname = \"x\"\n[dependencies]\n", "1-2: [package]\n3-"),
    ] {
        let outline =
            of(Digest::File, &format!("{text}{filler}"), &json!({ "path": path }).to_string()).unwrap();
        assert!(outline.contains(expected), "{path}: {outline}");
    }
    let prose = (0..650).map(|nth| format!("문장 {nth}.\n")).collect::<String>();
    let outline = of(Digest::File, &prose, "{}").unwrap();
    assert!(outline.starts_with("650 lines, 1 to 650\n1-100: 문장 0.\n101-200: 문장 100.\n"), "{outline}");
}

#[test]
fn s4_5_a_query_is_its_number_of_rows_and_some_of_them() {
    let rows: Vec<_> = (0..250).map(|nth| json!({ "id": nth, "name": format!("이름 {nth}") })).collect();
    let answer = json!({ "rowCount": 250, "rows": rows }).to_string();
    let found = of(Digest::Query, &answer, "{}").unwrap();
    assert!(
        found.starts_with(
            "rowCount: 250\n250 rows; columns: id, name\nrow 1: {\"id\":0,\"name\":\"이름 0\"}\n"
        ),
        "{found}"
    );
    assert!(
        found.ends_with("row 250: {\"id\":249,\"name\":\"이름 249\"}")
            && found.matches("\nrow ").count() == 10
    );
    for (text, columns) in [
        (fixtures::csv(300), "300 rows; columns: id, name, city, balance\nrow 1: 0,"),
        (fixtures::markdown(300), "300 rows; columns: id, name, state\nrow 1: | 0 |"),
        (fixtures::json_lines(300), "300 rows; columns: level, msg, ts\nrow 1: {"),
    ] {
        let found = of(Digest::Query, &text, "{}").unwrap();
        assert!(found.starts_with(columns), "{found}");
    }
    assert_eq!(of(Digest::Query, &fixtures::csv(100), "{}"), None, "100 rows stay");
}

#[test]
fn s4_5_a_response_is_its_status_and_its_key_fields() {
    let body = fixtures::json(200);
    let wire = format!(
        "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nX-Trace: 1\r\nLocation: /orders/7\r\n\r\n{body}"
    );
    let found = of(Digest::Api, &wire, "{}").unwrap();
    assert!(
        found.starts_with(
            "status: 201 Created\nContent-Type: application/json\nLocation: /orders/7\n{\"orders\":[{"
        ),
        "{found}"
    );
    assert!(found.contains("\"id\":\"ord_000000\"") && count(&found) <= 4_000 && !found.contains("X-Trace"));
    assert!(of(Digest::Api, &body, "{}").unwrap().starts_with("status: 200\n"));
    assert!(
        of(Digest::Api, &format!("Status: 200 OK\n{body}"), "{}").unwrap().starts_with("status: 200 OK\n")
    );
    assert!(of(Digest::Api, &fixtures::page(300), "{}").unwrap().contains("# Context & windows"));
    assert_eq!(of(Digest::Api, "plain words", "{}"), None);
}

#[test]
fn s4_6_errors_and_structure_are_recognised() {
    for text in [
        "Error: ENOENT: no such file",
        "[ERROR] no",
        "Traceback (most recent call last):\n  File",
        "TypeError: x is undefined",
        "fatal: not a git repository",
        r#"{"error":{"message":"no"}}"#,
        r#"{"ok":false}"#,
        r#"{"status":503,"body":""}"#,
        "HTTP/1.1 404 Not Found\r\n\r\n",
        "Status: 500\n{}",
        "<error>no</error>",
    ] {
        assert!(is_error(text), "{text}");
    }
    for text in [
        "Errors are handled below",
        "all fine",
        r#"{"error":null,"errors":[],"ok":true}"#,
        "HTTP/1.1 200 OK\r\n\r\n",
        "error_log.txt",
        "오류 없음",
    ] {
        assert!(!is_error(text), "{text}");
    }
    assert!(is_structured("[1]") && is_structured("---\na: 1\nb:\n  - 둘\n  - c: x\n"));
    assert!(!is_structured("Dear all: hello\nthe rest") && !is_structured("def f():\n    pass\n"));
}
