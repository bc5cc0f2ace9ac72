use super::{
    Limits, OUTLINES, SCALE, Sampled, Value, count, each, read, shape, shape_lines, write, write_text,
};

fn shown(count: usize, limit: usize) -> Vec<String> {
    let list = format!("{:?}", (0..count).collect::<Vec<_>>());
    let Some(Value::List(items)) = read(&list).map(|node| node.value) else { return Vec::new() };
    let mut shown = Vec::new();
    each(&items, limit, "items", &mut |part| {
        shown.push(match part {
            Sampled::Item(node) => match node.value {
                Value::Scalar(text) => text.to_string(),
                _ => String::new(),
            },
            Sampled::Gap(text) => text,
        });
    });
    shown
}

#[test]
fn f39_of_a_long_list_the_first_items_and_the_last_one_are_shown_up_to_the_limit() {
    assert_eq!(shown(10, 1), ["0", "… 9 items left out"]);
    assert_eq!(shown(10, 2), ["0", "… 8 items left out", "9"]);
    assert_eq!(shown(10, 3), ["0", "1", "… 7 items left out", "9"]);
    assert_eq!(shown(4, 3), ["0", "1", "2", "3"], "one item is no longer than what says that it is left out");
}

#[test]
fn f39_a_text_of_exactly_the_limit_stays_to_the_letter_and_a_longer_one_is_shaped_as_what_it_is() {
    let line = r"2026-11-22T02:43:00Z INFO served src\/a\u0062.rs\n";
    let text = format!("\"{}\"", line.repeat(40));
    let shown = |limit: usize| {
        let mut out = String::new();
        write_text(&text, Limits { text: limit, ..Limits::NONE }, &mut out);
        out
    };
    assert_eq!(shown(text.len()), text);
    assert!(shown(1_000).len() < 1_200 && shown(1_000).contains("[log: 40 lines"), "{}", shown(1_000));
}

#[test]
fn f39_the_least_that_is_more_than_an_outline_shows_an_item_eight_fields_and_24_characters() {
    let least = Limits::of(OUTLINES.len())
        .map(|Limits { items, fields, text, names, depth }| (items, fields, text, names, depth));
    assert_eq!(least, Some((1, 8, 24, false, 3)));
}

/// JSON with as much of it as the limits say, one level deep already.
fn written(text: &str, limits: Limits) -> String {
    let mut out = String::new();
    if let Some(node) = read(text) {
        write(&node, limits, 1, &mut out);
    }
    out
}

#[test]
fn f39_s2_11_json_is_written_to_the_letter_up_to_each_limit() {
    for (text, expected) in [
        ("\u{feff} {\"a\" : 1,\n  \"b\":[ ]}", "{\"a\":1,\"b\":[]}"),
        (r#"{"a\"b":"c\\","d":["]" , -1.5e3,true ]}"#, r#"{"a\"b":"c\\","d":["]",-1.5e3,true]}"#),
        ("[1\n,2\r,3\t,4  ,   5]", "[1,2,3,4,5]"),
        ("{\"a\" 1}", ""),
        ("12", ""),
    ] {
        assert_eq!(written(text, Limits::NONE), expected, "{text}");
    }
    let limits = Limits { items: 2, fields: 2, text: 10, names: false, depth: 3 };
    for (text, expected) in [
        ("[1,2,3]", "[1,2,3]"),
        ("[1,2,3,4]", "[1,\"… 2 items left out\",4]"),
        (r#"{"a":1,"b":2}"#, r#"{"a":1,"b":2}"#),
        (r#"{"a":1,"b":2,"c":3}"#, r#"{"a":1,"b":2,"…":"1 keys left out"}"#),
        // What says what it is, and what went wrong, is shown wherever it stands.
        (
            r#"{"a":1,"b":2,"c":3,"error":"x","id":7,"d":4}"#,
            r#"{"a":1,"b":2,"error":"x","id":7,"…":"2 keys left out"}"#,
        ),
        (r#"{"a":{"b":{"c":1}}}"#, r#"{"a":{"b":"… 1 keys"}}"#),
        (r#"{"a":{"b":[1,2]}}"#, r#"{"a":{"b":"… 2 items"}}"#),
        (r#"[[[1]],[{"a":1}]]"#, r#"[["… 1 items"],["… 1 keys"]]"#),
        (r#"{"a":{"b":[],"c":{}}}"#, r#"{"a":{"b":[],"c":{}}}"#),
    ] {
        assert_eq!(written(text, limits), expected, "{text}");
    }
}

#[test]
fn f39_s2_11_what_reports_an_error_stays_in_a_list_as_often_as_the_limit() {
    let list = |marks: &str| {
        let item = |mark: char| if mark == 'E' { r#"{"error":1}"# } else { "0" };
        format!("[{}]", marks.chars().map(item).collect::<Vec<_>>().join(","))
    };
    let shown = |marks: &str, items: usize| {
        let shown = written(&list(marks), Limits { items, ..Limits::NONE });
        shown
            .replace(r#"{"error":1}"#, "E")
            .replace(" items left out", "")
            .replace(['"', '…', ' ', ',', '[', ']'], "")
    };
    for (marks, items, expected) in [
        ("0000E0000", 1, "03E4"),
        ("00E0", 1, "01E1"),
        ("0EE00", 1, "0E3"),
        ("0000E00E0", 2, "03E2E0"),
        ("E000000EEE", 3, "E05EEE"),
        ("EEEEEE0", 3, "EEEEE10"),
        ("EE0EEEE0", 3, "EE1EEE10"),
    ] {
        assert_eq!(shown(marks, items), expected, "{marks} {items}");
    }
}

#[test]
fn f39_s2_11_json_reports_an_error_where_a_key_or_a_short_text_says_so() {
    let text = |bytes: usize| format!("[\"failed {}\"]", "x".repeat(bytes - 9));
    for (text, expected) in [
        (r#"{"error":1}"#, true),
        (r#"{"error":"x"}"#, true),
        (r#"{"errors":[1]}"#, true),
        (r#"{"errors":{"a":1}}"#, true),
        (r#"{"a":{"error":true}}"#, true),
        (r#"[1,["request failed"]]"#, true),
        (r#"{"error":null}"#, false),
        (r#"{"error":false}"#, false),
        (r#"{"error":0}"#, false),
        (r#"{"error":""}"#, false),
        (r#"{"errors":[]}"#, false),
        (r#"{"errors":{}}"#, false),
        (r#"{"a":1,"b":["all is well"]}"#, false),
        (&text(199), true),
        (&text(200), false),
    ] {
        assert_eq!(read(text).map(|node| node.alarming), Some(expected), "{text}");
    }
}

#[test]
fn f39_s2_11_fields_of_json_are_found_and_read() {
    let node = read(r#"{"n":1.50,"a\u0062":"c\n","null":null,"list":[]}"#);
    let field =
        |name: &str| node.as_ref().and_then(|node| node.get(name)).map(|node| node.text().map(Into::into));
    assert_eq!(field("n"), Some(Some("1.50".to_string())));
    assert_eq!(field("ab"), Some(Some("c\n".to_string())));
    assert_eq!((field("null"), field("list"), field("other")), (Some(None), Some(None), None));
}

#[test]
fn f39_s2_11_a_name_stays_whole_and_a_text_is_cut_or_shaped_from_400_characters_and_5_lines_on() {
    let shown = |text: &str, limits: Limits| written(&format!("[\"{text}\"]"), limits);
    let limits = |text: usize, names: bool| Limits { text, names, ..Limits::NONE };
    let x = |count: usize| "x".repeat(count);
    assert_eq!(shown(&x(198), limits(24, true)), format!("[\"{}\"]", x(198)));
    assert_eq!(shown(&x(199), limits(24, true)), format!("[\"{}… [199 characters]\"]", x(24)));
    assert_eq!(shown(&x(198), limits(24, false)), format!("[\"{}… [198 characters]\"]", x(24)));
    let blank = format!("{} {}", x(30), x(60));
    assert_eq!(shown(&blank, limits(24, true)), format!("[\"{}… [91 characters]\"]", x(24)));
    let lines = |count: usize| format!("[{}]\\n", "1,".repeat(100) + "1").repeat(count);
    for (count, text, shaped) in [(4, 400, false), (5, 399, false), (5, 400, true)] {
        let shown = shown(&lines(count), limits(text, false));
        assert_eq!(shown.contains("items left out"), shaped, "{count} {text}: {shown}");
        assert_eq!(shown.contains(&format!("… [{} characters]", count * 204)), !shaped, "{count} {text}");
    }
}

#[test]
fn f39_s2_11_the_largest_form_that_fits_is_found_at_each_size() {
    let second = Limits::of(OUTLINES.len() + 1);
    let second =
        second.map(|Limits { items, fields, text, names, depth }| (items, fields, text, names, depth));
    assert_eq!(second, Some((2, 16, 48, true, 4)));
    let text = format!("[{}]", vec!["1"; 10_000].join(","));
    let Some(node) = read(&text) else { panic!("{} bytes", text.len()) };
    let mut most = 0;
    for nth in 0..OUTLINES.len() + SCALE.len() {
        let Some(limits) = Limits::of(nth) else { panic!("{nth}") };
        let mut form = String::new();
        write(&node, limits, 0, &mut form);
        if count(&form) > most {
            most = count(&form);
            assert_eq!(shape(&node, most).map(|found| count(&found)), Some(most), "{nth}");
        }
    }
    assert!(Limits::of(OUTLINES.len() + SCALE.len()).is_none() && most > 12_000, "{most}");
}

#[test]
fn f39_s2_11_json_has_an_outline_of_each_depth() {
    let node = read(r#"[1, {"a": {"b": 2}}]"#);
    let shown = |target: usize| node.as_ref().and_then(|node| shape(node, target));
    assert_eq!(shown(17).as_deref(), Some(r#"[1,{"a":{"b":2}}]"#), "all of it, without its blanks");
    assert_eq!(shown(16).as_deref(), Some(r#"[1,"… 1 keys"]"#));
    assert_eq!(shown(13), None);
    let fields = (1..=9).map(|nth| format!("\"{nth}\":0")).collect::<Vec<_>>().join(",");
    let text = format!("{{{fields}}}");
    let node = read(&text);
    let shown = |target: usize| node.as_ref().and_then(|node| shape(node, target));
    let three = r#"{"1":0,"2":0,"3":0,"…":"6 keys left out"}"#;
    assert_eq!((shown(41).as_deref(), shown(40)), (Some(three), None));
    let line = r#"{"a":{"b":[1,2]}}"#;
    let nodes: Vec<_> = (0..5).filter_map(|_| read(line)).collect();
    let lines = |target: usize| shape_lines(&nodes, target);
    assert_eq!(lines(10_000), Some([line; 5].join("\n")));
    let gap = |line: &str, left_out: usize| format!("{line}\n{{\"…\":\"… {left_out} lines left out\"}}");
    assert_eq!(lines(88), Some(format!("{line}\n{}\n{line}", gap(line, 2))));
    assert_eq!(lines(50), Some(gap(r#"{"a":{"b":"… 2 items"}}"#, 4)));
    assert_eq!(lines(49), Some(gap(r#"{"a":"… 1 keys"}"#, 4)));
    assert_eq!(lines(37), Some(gap(r#""… 1 keys""#, 4)));
    assert_eq!(lines(36), None);
}
