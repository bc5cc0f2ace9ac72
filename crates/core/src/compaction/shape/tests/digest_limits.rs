use super::super::{digest, is_error, is_structured};
use crate::policy::{Digest, FACTOR3, ProcessNumbers};

const NUMBERS: ProcessNumbers = FACTOR3.numbers.process;

#[test]
fn f39_s4_5_a_file_of_one_line_more_than_the_limit_is_an_outline() {
    let numbers = ProcessNumbers { file_lines: 3, ..NUMBERS };
    let of = |text: &str, arguments: &str| digest(Digest::File, text, arguments, &numbers);
    assert_eq!(of("fn a() {\n}\nfn b() {}", r#"{"path":"a.rs"}"#), None);
    let outline = of("fn a() {\n}\nfn b() {}\n// end", r#"{"path":"a.rs"}"#);
    assert_eq!(outline.as_deref(), Some("a.rs: 4 lines, 1 to 4\n1-2: fn a()\n3-4: fn b() {}"));
    let numbered = of("11\tfn a() {\n12\t}\n13\tfn b() {}\n14\t// end", "no JSON");
    assert_eq!(numbered.as_deref(), Some("4 lines, 11 to 14\n11-12: fn a()\n13-14: fn b() {}"));
}

#[test]
fn f39_s4_5_rows_are_sampled_from_one_more_than_the_limit_on() {
    let numbers = ProcessNumbers { query_rows: 4, sample_rows: 2, ..NUMBERS };
    let of = |text: &str| digest(Digest::Query, text, "{}", &numbers);
    for (text, expected) in [
        ("[1,2,3,4]", None),
        ("[1,2,3,4,5]", Some("5 rows\nrow 1: 1\nrow 5: 5")),
        (
            r#"{"ok":true,"none":null,"few":[1],"rows":[{"a":1},{"a":2},{"a":3},{"a":4},{"a":5}]}"#,
            Some("ok: true\n5 rows; columns: a\nrow 1: {\"a\":1}\nrow 5: {\"a\":5}"),
        ),
        (r#"{"a":{"b":{"c":[1,2,3,4,5]}}}"#, Some("5 rows\nrow 1: 1\nrow 5: 5")),
        (r#"{"a":{"b":{"c":{"d":[1,2,3,4,5]}}}}"#, None),
        ("{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}", None),
        (
            "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n{\"a\":5}",
            Some("5 rows; columns: a\nrow 1: {\"a\":1}\nrow 5: {\"a\":5}"),
        ),
        ("a,b,c\n1,2,3\n1,2,3\n1,2,3\n1,2,3", None),
        (
            "a,b,c\n1,2,3\n1,2,3\n1,2,3\n1,2,3\n4,5,6",
            Some("5 rows; columns: a, b, c\nrow 1: 1,2,3\nrow 5: 4,5,6"),
        ),
        ("prose", None),
    ] {
        assert_eq!(of(text).as_deref(), expected, "{text}");
    }
}

#[test]
fn f39_s4_5_an_answer_has_one_status_its_telling_headers_and_a_body() {
    let numbers = ProcessNumbers { api_chars: 30, ..NUMBERS };
    let of = |text: &str| digest(Digest::Api, text, "{}", &numbers);
    for (text, expected) in [
        ("HTTP/2 200\nx-trace: 1\nETag: 7\n\n{\"a\":1}", Some("status: 200\nETag: 7\n{\"a\":1}")),
        ("HTTP/2 200\n\n{\"status\":404}", Some("status: 200\n{\"status\":404}")),
        ("Status code: 200 OK \n{\"a\":1}", Some("status: 200 OK\n{\"a\":1}")),
        ("status x12345678901: 200\n{\"a\":1}", Some("status: 200\n{\"a\":1}")),
        ("status x123456789012: 200\n{\"a\":1}", None),
        ("state: 200\n{\"a\":1}", None),
        ("{\"status\":99}", Some("{\"status\":99}")),
        ("{\"status\":100}", Some("status: 100\n{\"status\":100}")),
        ("{\"code\":599}", Some("status: 599\n{\"code\":599}")),
        ("{\"code\":600}", Some("{\"code\":600}")),
        ("{\"status\":\"done\",\"a\":1}", Some("{\"status\":\"done\",\"a\":1}")),
        // What is said before the body is part of the limit.
        ("HTTP/2 200\n\n[1,2,3,4,5,6,7]", Some("status: 200\n[1,2,3,4,5,6,7]")),
        ("HTTP/2 200\n\n[1,2,3,4,5,6,7,8,9]", None),
        ("plain", None),
    ] {
        assert_eq!(of(text).as_deref(), expected, "{text}");
    }
    let page = digest(Digest::Api, "HTTP/2 200\n\n<html><p>x</p>", "{}", &NUMBERS);
    let head = "status: 200\n[HTML of 15 characters as text; scripts, styles and markup left out]\n";
    assert_eq!(page, Some(format!("{head}x")));
}

#[test]
fn f39_s4_6_what_says_that_it_failed_is_an_error_and_nothing_else() {
    for (text, expected) in [
        (r#"{"error":"x"}"#, true),
        (r#"{"error":""}"#, false),
        (r#"{"error":1}"#, true),
        (r#"{"error":0}"#, false),
        (r#"{"errors":["x"]}"#, true),
        (r#"{"errors":{"a":1}}"#, true),
        (r#"{"errors":{}}"#, false),
        (r#"{"isError":true}"#, true),
        (r#"{"is_error":false}"#, false),
        (r#"{"success":false}"#, true),
        (r#"{"success":"false","ok":true}"#, false),
        (r#"{"status":399}"#, false),
        (r#"{"status":400}"#, true),
        (r#"{"status":599}"#, true),
        (r#"{"status":600}"#, false),
        ("Status: 399 x", false),
        ("Status: 400 x", true),
        ("HTTP/1.1 399 x", false),
        ("HTTP/1.1 400 x", true),
        ("error", true),
        ("\n  * Error! no", true),
        ("error(7)", true),
        ("failed: x", true),
        ("error x", false),
        ("errors: x", false),
        ("TypeError: x", true),
        ("a.b.Exception: x", true),
        ("of TypeError: x", false),
        ("TypeError", false),
        ("TypeErrors: x", false),
        ("all: fine", false),
        ("fine\nerror: x", false),
    ] {
        assert_eq!(is_error(text), expected, "{text}");
    }
}

#[test]
fn f39_s4_6_yaml_has_keys_or_items_on_nine_of_ten_lines_and_two_lines_at_least() {
    let lines = |keyed: usize, other: usize| "a: 1\n".repeat(keyed) + &"prose\n".repeat(other);
    for (text, expected) in [
        (lines(9, 1), true),
        (lines(8, 2), false),
        (lines(5, 1), false),
        (lines(1, 0), false),
        (lines(2, 0), true),
        (lines(0, 2), false),
        ("a:\n\n# one\n\n# two\n- b:c\n".to_string(), true),
        ("---\n- x y".to_string(), true),
        ("a: 1\nhttp://b".to_string(), false),
        ("a: 1\n: b".to_string(), false),
        ("a: 1\nof b: c".to_string(), false),
        ("a: 1\nb(): c".to_string(), false),
        ("{}".to_string(), true),
    ] {
        assert_eq!(is_structured(&text), expected, "{text}");
    }
}
