use super::super::fit::{Lines, ends};
use super::super::log::{is_log, shape};
use super::super::text::{Severity, clip, is_continuation, is_logged, level, timestamp};

#[test]
fn f39_s2_11_a_text_is_cut_where_its_mark_is_shorter_than_the_rest() {
    assert_eq!(clip(&"字".repeat(50), 10), "字".repeat(50));
    assert_eq!(clip(&"字".repeat(51), 10), format!("{}… [51 characters]", "字".repeat(10)));
}

#[test]
fn f39_s2_11_the_level_of_a_line_is_what_it_says_first() {
    let at = |at: usize| format!("{}info error", ".".repeat(at));
    for (line, expected) in [
        ("error", Severity::Error),
        ("my_error x", Severity::Error),
        ("error_log", Severity::Other),
        ("info x", Severity::Other),
        ("a warning", Severity::Warning),
        ("0 warnings", Severity::Other),
        ("without errors, zero failures", Severity::Other),
        ("warning, then error", Severity::Error),
        (&at(79), Severity::Warning),
        (&at(80), Severity::Error),
    ] {
        assert_eq!(level(line), expected, "{line}");
    }
}

#[test]
fn f39_s2_11_a_line_of_a_log_has_a_level_or_a_time_at_its_start() {
    let at = |at: usize| format!("{}INFO x", ".".repeat(at));
    for (line, expected) in [
        (at(60).as_str(), true),
        (&at(61), false),
        ("HELLO x", false),
        ("x [info] y", true),
        ("x [[ info y", false),
        ("error: x", true),
        ("error x", false),
        ("x error: y", false),
        ("lvl=warn x", true),
        ("level info", true),
        ("other info", false),
        ("02:43 x", true),
    ] {
        assert_eq!(is_logged(line), expected, "{line}");
    }
    let access = |before: usize, blanks: usize| {
        format!("{}[22/Nov/2026:02:43:58{}] x", "x".repeat(before), " ".repeat(blanks))
    };
    for (line, expected) in [
        (access(119, 0).as_str(), true),
        (&access(120, 0), false),
        (&access(1, 19), true),
        (&access(1, 20), false),
        ("x [x 02:43:58] y", false),
        ("x [22] y", false),
        ("Dec 22 02:43 x", true),
        ("2:43 x", false),
        ("2026: - x", false),
        ("2026 :1 x", false),
    ] {
        assert_eq!(timestamp(line).is_some(), expected, "{line}");
    }
    for (line, expected) in
        [(" x", true), ("\tx", true), ("at x", true), ("atx", false), ("Caused by: x", true), ("x", false)]
    {
        assert_eq!(is_continuation(line), expected, "{line}");
    }
}

#[test]
fn f39_s2_11_a_log_has_five_lines_of_one_and_not_too_many_others() {
    let lines = |logged: usize, stacked: usize, other: usize, blank: usize| {
        "INFO x\n".repeat(logged)
            + &"  at x\n".repeat(stacked)
            + &"prose\n".repeat(other)
            + &" \n".repeat(blank)
    };
    for (logged, stacked, other, blank, expected) in [
        (4, 0, 0, 0, false),
        (5, 0, 0, 0, true),
        (5, 20, 0, 0, true),
        (5, 21, 0, 0, false),
        (5, 0, 5, 9, true),
        (5, 0, 6, 0, false),
        (0, 9, 0, 0, false),
    ] {
        assert_eq!(
            is_log(&lines(logged, stacked, other, blank)),
            expected,
            "{logged} {stacked} {other} {blank}"
        );
    }
}

#[test]
fn f39_s2_11_lines_are_taken_while_they_fit_with_the_marks_between_them() {
    let texts: Vec<String> = (0..20).map(|nth| format!("{nth:04}")).collect();
    let lines = || Lines::new(texts.iter().map(|text| text.as_str().into()), "lines");
    let written = |lines: &Lines<'_>| {
        let mut out = String::new();
        lines.write(&mut out);
        out
    };
    let mark = |count: usize| format!("[… {count} lines left out …]");
    // A line has 5 characters with its break, a mark has 24: 29 for the first line, 58 for one in the middle.
    let mut found = lines();
    assert_eq!((found.chars(), found.len()), (24, 20));
    assert!(!found.take([10], 52) && found.take([10], 53) && found.chars() == 53);
    assert_eq!(written(&found), format!("{}\n0010\n{}", mark(10), mark(9)));
    assert!(found.take([10, 11], 58) && !found.take([12], 62), "what is taken costs nothing again");
    assert!(!found.fill([0, 12], 63) && found.take([0, 12], 68));
    assert_eq!(written(&found), format!("0000\n{}\n0010\n0011\n0012\n{}", mark(9), mark(7)));
    assert!(found.take(0..20, 124) && found.chars() == 100, "all of them need no mark");
    assert_eq!(written(&found), texts.join("\n"));
    let none = Lines::new(std::iter::empty(), "lines");
    assert_eq!((none.chars(), written(&none)), (0, String::new()));
    assert_eq!(ends(6).collect::<Vec<_>>(), [0, 5, 1, 4, 2, 3]);
}

#[test]
fn f39_s2_11_of_a_log_errors_ends_warnings_and_one_of_each_kind_are_shown() {
    let long = "x".repeat(500);
    let mut log = vec!["02:43:00 INFO begin".to_string(), "02:43:00 INFO go 0".to_string()];
    for nth in 1..9 {
        log.push(format!("02:43:0{nth} INFO served {nth}"));
        log.push(format!("02:43:0{nth} WARN slow {nth}"));
        log.push(String::new());
    }
    log.push(format!("02:43:30 ERROR {long}"));
    log.push("  at f (a.js:1)".into());
    log.push(format!("02:43:31 INFO {long}"));
    log.push("02:43:40 INFO served 9".into());
    log.push("02:43:41 INFO served 10".into());
    let text = log.join("\n");
    let head = "[log: 23 lines, 2 of errors, 8 of warnings, 02:43:00 to 02:43:41]\n";
    let errors = format!("02:43:30 ERROR {long}\n  at f (a.js:1)\n");
    let tail = "02:43:40 INFO served 9\n02:43:41 INFO served 10";
    let start = "02:43:00 INFO begin\n02:43:00 INFO go 0\n";
    let folded = "02:43:01 INFO served 1 [×8]\n02:43:01 WARN slow 1 [×8]\n";
    let other = format!("02:43:31 INFO {}… [514 characters]\n", "x".repeat(386));
    let all = format!("{head}{start}{folded}{errors}{other}{tail}");
    assert_eq!(shape(&text, 5_000), all);
    let other = format!("{head}{start}{folded}{errors}[… 1 lines left out …]\n{tail}");
    assert_eq!(shape(&text, 800), other);
    let cut = format!("{head}02:43:00 INFO begin\n[… 3 lines left out …]\n{errors}[… 3 lines left out …]");
    assert_eq!(shape(&text, 670), cut);
    // Where errors do not fit they are cut.
    let errors = format!("02:43:30 ERROR {}… [515 characters]\n  at f (a.js:1)\n", "x".repeat(385));
    let gaps = |gap: usize, last: &str| format!("[… {gap} lines left out …]{last}");
    let tail = gaps(2, "\n02:43:41 INFO served 10");
    assert_eq!(shape(&text, 600), format!("{head}02:43:00 INFO begin\n{}\n{errors}{tail}", gaps(3, "")));
}

#[test]
fn f39_s2_11_of_a_log_two_lines_at_each_end_are_shown_and_what_belongs_to_an_error() {
    let long = "x".repeat(90);
    let middle: String = (0..26_u8).map(|nth| format!("WARN {}\n", char::from(b'a' + nth))).collect();
    let start = "INFO one\nINFO two\n";
    let error = "ERROR x\n at f\n";
    let other = format!(" INFO four {long}\nINFO twice 1\nINFO twice 2\n");
    let text = format!("{start}INFO three {long}\n{error}{other}{middle}INFO y {long}\nINFO z\nINFO end\n");
    let head = "[log: 37 lines, 2 of errors, 26 of warnings]\n";
    let three = format!("{start}[… 1 lines left out …]\n{error}[… 2 lines left out …]\n");
    let shown = format!("{head}{three}{middle}[… 1 lines left out …]\nINFO z\nINFO end");
    assert_eq!(shape(&text, 400), shown);
    // Warnings may take all that the ends leave.
    let least = shape(&text, 300);
    assert!(
        least.starts_with(&format!("{head}{start}[…")) && least.ends_with("\nINFO z\nINFO end"),
        "{least}"
    );
    assert!(shape(&text, 1_200).contains("\nINFO twice 1 [×2]\nWARN a\n"));
}
