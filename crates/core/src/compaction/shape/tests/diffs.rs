use super::super::diff::{is_diff, shape};

#[test]
fn f39_s2_11_a_diff_names_a_file_and_has_a_hunk_in_its_first_200_lines() {
    let at = |line: usize| format!("diff --git a b\n{}@@ -1 +1 @@\n", "x\n".repeat(line - 2));
    for (text, expected) in [
        (at(200).as_str(), true),
        (&at(201), false),
        ("diff --git a b\n@@ -1", true),
        ("x\n--- a\n+++ b\n@@ -1", true),
        ("--- a\n@@ -1", false),
        ("+++ b\n+++ c\n@@ -1", false),
        ("x\n+++ b\n@@ -1", false),
        ("@@ -1", false),
        ("diff --git a b\n+x", false),
    ] {
        assert_eq!(is_diff(text), expected, "{text}");
    }
}

#[test]
fn f39_s2_11_of_a_diff_files_come_first_then_hunks_then_changes_then_the_rest() {
    let git = |nth: usize, lines: usize| {
        let changes: String = (0..lines)
            .map(|line| format!(" same {line}\n-old {line}\n--- old {line}\n+new {line}\n"))
            .collect();
        format!("diff --git a/{nth} b/{nth}\n--- a/{nth}\n+++ b/{nth}\n@@ -1 +1 @@ f{nth}\n{changes}")
    };
    let above: String = (1..=14).map(|nth| format!("above {nth}\n")).collect();
    let text = format!("{above}@@ no hunk\n+no change\n{}{}", git(1, 1), git(2, 9));
    let twelve: String = (1..=12).map(|nth| format!("above {nth}\n")).collect();
    let cut = |count: usize| format!("[… {count} lines left out …]\n");
    let change = |nth: usize| format!("-old {nth}\n--- old {nth}\n+new {nth}\n");
    let [first, second] = ["diff --git a/1 b/1 [+1 -2]\n", "diff --git a/2 b/2 [+9 -18]\n"];
    let start = format!(
        "[diff: 2 files, +10 -20]\n{twelve}{}{first}{}@@ -1 +1 @@ f1\n{}{}{second}",
        cut(4),
        cut(2),
        cut(1),
        change(0)
    );
    let hunk = format!("{}@@ -1 +1 @@ f2\n", cut(2));
    let changes: String = (0..3).map(|nth| cut(1) + &change(nth)).collect();
    for (target, expected) in [
        (100, format!("[diff: 2 files, +10 -20]\n{}{first}{}", cut(16), cut(47))),
        (360, format!("{start}{}-old 0\n--- old 0\n{}", cut(4), cut(33))),
        (420, format!("{start}{hunk}{}{}{}", cut(1), change(0), cut(32))),
        (500, format!("{start}{hunk}{changes}{}", cut(24))),
    ] {
        assert_eq!(shape(&text, target), expected.trim_end(), "{target}");
    }
    // The first changes of each hunk come before the next ones of any.
    let long = git(1, 9) + &git(2, 1);
    let hunk = |nth: usize| format!("{}@@ -1 +1 @@ f{nth}\n{}{}", cut(2), cut(1), change(0));
    let [first, second] = ["diff --git a/1 b/1 [+9 -18]\n", "diff --git a/2 b/2 [+1 -2]\n"];
    let shown = format!("[diff: 2 files, +10 -20]\n{first}{}{}{second}{}", hunk(1), cut(32), hunk(2));
    assert_eq!(shape(&long, 300), shown.trim_end());
    let whole = text.replace("a/1 b/1\n", "a/1 b/1 [+1 -2]\n").replace("a/2 b/2\n", "a/2 b/2 [+9 -18]\n");
    assert_eq!(shape(&text, 800), format!("[diff: 2 files, +10 -20]\n{}", whole.trim_end()));
    // Without the line of git, a file is named by two lines: a removed comment of SQL is none.
    let plain = "--- a\n+++ b\n@@ -1 +1 @@\n-x\n--- y\n-z\n+w\n--- c\n+++ d\n@@ -2 +2 @@\n+v\n-u";
    let told = plain.replace("--- a\n", "--- a [+1 -3]\n").replace("--- c\n", "--- c [+1 -1]\n");
    assert_eq!(shape(plain, 500), format!("[diff: 2 files, +2 -4]\n{told}"));
}
