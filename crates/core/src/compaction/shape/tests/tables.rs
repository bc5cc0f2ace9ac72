use super::super::table::{read, sample, shape};

/// What was told apart: lines above, columns, rows, lines behind.
fn told(text: &str) -> Option<(usize, String, usize, usize)> {
    read(text).map(|table| (table.head.len(), table.columns.join("+"), table.rows.len(), table.foot.len()))
}

fn is_table(text: &str) -> bool {
    read(text).is_some()
}

#[test]
fn f39_s2_11_a_ruled_table_has_four_rows_and_a_mark_in_nine_of_ten() {
    let ruled = |whole: usize, other: usize| {
        format!("1|2\n-|-\n{}{}{}", "a|b\n".repeat(whole - 1), "prose\n".repeat(other), "a|b\n")
    };
    for (whole, other, rows) in
        [(3, 0, None), (4, 0, Some(4)), (9, 1, Some(10)), (8, 2, None), (5, 1, None), (18, 2, Some(20))]
    {
        assert_eq!(told(&ruled(whole, other)).map(|told| told.2), rows, "{whole} {other}");
    }
    let shell = "+--+--+\n| a | b |\n+--+--+\n|1|2|\n|1|2|\n\n|1|2|\n|1|2|\n+--+--+\n(4 rows)\n";
    assert_eq!(told(shell), Some((3, "a+b".into(), 4, 2)));
    for rule in ["--", "|||", "-x-"] {
        assert!(!is_table(&format!("1|2\n{rule}\n{}", "a|b\n".repeat(9))), "{rule}");
    }
    assert!(!is_table(&format!("1 2\n---\n{}", "a|b\n".repeat(9))), "a header has columns");
}

#[test]
fn f39_s2_11_a_delimited_table_has_as_many_fields_in_each_record() {
    let table =
        |header: &str, row: &str, rows: usize| format!("{header}\n{}", format!("{row}\n").repeat(rows));
    for (header, row, least) in
        [("a,b", "1,2", 8), ("a;b", "1;2", 4), ("a,b,c", "1,2,3", 4), ("a\tb\tc\td", "1\t2\t3\t4", 4)]
    {
        assert!(!is_table(&table(header, row, least - 1)), "{header}");
        assert_eq!(told(&table(header, row, least)).map(|told| told.2), Some(least), "{header}");
    }
    assert_eq!(told(&table("\"a\", b|c", "\"1|2\"|\"3\n4\"", 4)), None);
    assert_eq!(told(&table("\"a\",b,c", "\"1,\n\",2,3\r\n", 4)), Some((1, "a+b+c".into(), 4, 0)));
    assert_eq!(read(&table("a,b,c", "1,2,3\r", 4)).map(|table| table.rows), Some(vec!["1,2,3"; 4]));
    for other in ["a", "a,a,b", "a,9,b", "02:43:00,a,b"] {
        let row = other.replace(|c: char| c != ',', "1");
        assert!(!is_table(&table(other, &row, 20)), "{other}");
    }
    let uneven =
        |even: usize, other: usize| is_table(&(table("a,b,c", "1,2,3", even - 1) + &"1,2\n".repeat(other)));
    assert!(uneven(19, 1) && !uneven(18, 2) && !uneven(10, 1));
    let name = |letters: usize| table(&format!("{},b,c", "a".repeat(letters)), "1,2,3", 4);
    assert!(is_table(&name(64)) && !is_table(&name(65)));
    assert!(is_table(&table("a b c d e,b,c", "1,2,3", 4)) && !is_table(&table("a!,b,c", "1,2,3", 4)));
}

#[test]
fn f39_s2_11_an_aligned_table_has_three_columns_named_in_capitals() {
    let table = |header: &str, even: usize, other: usize| {
        format!("{header}\n{}{}", "x  y z\n".repeat(even), "x y\n\n".repeat(other))
    };
    assert_eq!(told(&table("AA  BB   C9", 4, 0)), Some((1, "AA+BB+C9".into(), 4, 0)));
    for (even, other, expected) in [(3, 0, false), (4, 1, true), (3, 2, false), (7, 2, false), (7, 3, false)]
    {
        assert_eq!(is_table(&table("AA  BB  CC", even, other)), expected, "{even} {other}");
    }
    for header in ["AA  BB", "AA  Bb  CC", "AA  99  CC"] {
        assert!(!is_table(&table(header, 9, 0)), "{header}");
    }
}

#[test]
fn f39_s2_11_of_a_table_the_head_both_ends_and_rows_with_errors_are_shown() {
    let rows = |row: &dyn Fn(usize) -> String| (0..20).map(row).collect::<String>();
    let row = |nth: usize| format!("{nth},{},1\n", if nth % 5 == 2 { "failed" } else { "ok" });
    let run = |from: usize, to: usize| (from..to).map(row).collect::<String>();
    let head = "[table: 20 rows, 3 columns]\n";
    let text = format!("id,state,n\n{}", run(0, 20));
    let Some(table) = read(&text) else { panic!("{text}") };
    for (target, expected) in [
        (40, "[… 21 rows left out …]\n".to_string()),
        (60, format!("[… 20 rows left out …]\n{}", row(19))),
        (100, format!("id,state,n\n{}[… 16 rows left out …]\n{}", run(0, 2), run(18, 20))),
        (130, format!("id,state,n\n{}[… 12 rows left out …]\n{}", run(0, 4), run(16, 20))),
        (140, format!("id,state,n\n{}[… 11 rows left out …]\n{}", run(0, 5), run(16, 20))),
    ] {
        assert_eq!(shape(&table, target), format!("{head}{expected}").trim_end(), "{target}");
    }
    // Rows with errors take half of what is left.
    let row = |nth: usize| format!("{nth},{},1\n", if nth % 20 == 10 { "failed" } else { "ok" });
    let text = format!("id,state,n\n{}", (0..200).map(row).collect::<String>());
    let Some(table) = read(&text) else { panic!("{text}") };
    let run = |from: usize, to: usize| (from..to).map(row).collect::<String>();
    let cut = |count: usize| format!("[… {count} rows left out …]\n");
    let errors = format!("{}{}{}{}{}", cut(14), row(30), cut(19), row(50), cut(134));
    let shown = format!("[table: 200 rows, 3 columns]\nid,state,n\n{}{errors}{}", run(0, 16), run(185, 200));
    assert_eq!(shape(&table, 400), shown.trim_end());
    let long = format!("a,b,c\n{}", rows(&|nth| format!("{},{nth},1\n", "x".repeat(200))));
    let Some(table) = read(&long) else { panic!("{long}") };
    let first = |chars: usize, room: usize| {
        let shown = shape(&table, room);
        assert!(
            shown.starts_with(&format!("{head}a,b,c\n{}… [204 characters]\n", "x".repeat(chars))),
            "{shown}"
        );
    };
    first(80, 300);
    first(80, 675);
    first(81, 676);
}

#[test]
fn f39_s4_5_rows_of_a_sample_are_evenly_spread() {
    let of = |rows: usize, count: usize| -> Vec<usize> {
        let rows: Vec<usize> = (0..rows).collect();
        sample(&rows, count).map(|(at, row)| if at == *row { at } else { usize::MAX }).collect()
    };
    assert!(of(10, 0).is_empty());
    assert_eq!(of(10, 1), [0]);
    assert_eq!(of(10, 2), [0, 9]);
    assert_eq!(of(10, 4), [0, 3, 6, 9]);
    assert_eq!(of(11, 3), [0, 5, 10]);
    assert_eq!(of(2, 9), [0, 1]);
}
