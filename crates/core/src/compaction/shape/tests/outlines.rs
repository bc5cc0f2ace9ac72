use super::super::outline::{numbered, outline};

fn of(text: &str, path: &str) -> String {
    outline(&text.lines().collect::<Vec<_>>(), 1, path, 99)
}

/// The first lines of the entries, without their ends.
fn starts(text: &str, path: &str) -> Vec<usize> {
    let start = |line: &str| line.split('-').next().and_then(|number| number.parse().ok());
    of(text, path).lines().filter_map(start).collect()
}

#[test]
fn f39_s4_5_each_language_has_its_own_definitions() {
    let text = "# one\ndef two\nfn three\ntype four\ntypedef five\nsub six\ncreate seven\neight: 8\nfunc nine\nint ten() {";
    for (paths, expected) in [
        ("a.md a.mdx dir.py/a.MARKDOWN", vec![1]),
        ("a.py a.pyi", vec![2]),
        ("a.rs", vec![3, 4]),
        ("a.js a.jsx a.mjs a.cjs a.ts a.tsx a.mts a.vue a.svelte", vec![4, 10]),
        ("a.go", vec![4, 9]),
        ("a.c a.h a.cc a.cpp a.hpp a.cxx a.java a.cs a.kt a.scala a.dart", vec![5, 10]),
        ("a.rb a.php a.swift a.lua a.pl a.ex a.exs a.sh a.bash a.zig", vec![2, 6, 9, 10]),
        ("a.sql", vec![7]),
        ("a.yaml a.yml a.toml a.ini a.cfg a.conf", vec![8]),
        ("a.txt README dir\\a", vec![2, 3, 9]),
    ] {
        for path in paths.split(' ') {
            assert_eq!(starts(text, path), expected, "{path}");
        }
    }
}

#[test]
fn f39_s4_5_a_definition_is_a_word_with_modifiers_before_it_and_a_name_behind_it() {
    for (line, expected) in [
        ("pub(crate) async unsafe const extern export default fn a()", true),
        ("pub(crate) async unsafe const extern export default pub fn a()", false),
        ("fn", false),
        ("fnord a", false),
        ("impl<T> A<T> for B", true),
        ("simple a", false),
        ("let fn a", false),
    ] {
        let two = format!("mod first;\n{line}");
        assert_eq!(starts(&two, "a.rs"), if expected { vec![1, 2] } else { vec![1] }, "{line}");
    }
    for (line, expected) in [
        ("int main(int a) {", true),
        ("const f = async (x) => {", true),
        ("const f = (x) {", false),
        ("f(x) => {", true),
        ("a.b(c) {", false),
        ("a(\"b\") {", true),
        ("'a'(b) {", false),
        ("greet () {", false),
        ("(x) {", false),
        ("no_call {", false),
        ("call(x);", false),
        ("if (x) {", false),
        ("} else if (x) {", false),
        ("await f(x) {", false),
        ("        f(x) {", true),
        ("         f(x) {", false),
    ] {
        let text = format!("class A\n{line}");
        assert_eq!(starts(&text, "a.ts"), if expected { vec![1, 2] } else { vec![1] }, "{line}");
    }
}

#[test]
fn f39_s4_5_keys_and_headings_stand_at_the_left_edge() {
    let keys = "a: 1\n b: 2\n[c]\nd e: 3\n4: 5\nf\n_g: 6\nh:";
    assert_eq!(of(keys, "a.toml"), "1-2: a: 1\n3-7: [c]\n8-8: h:");
    let headings = "# a\n###### b\n####### c\n#d\n```\n# e\n  ```\n## f\nx";
    assert_eq!(of(headings, "a.md"), "1-9: # a\n2-7:           ###### b\n8-9:   ## f");
    assert_eq!(of("x\n# a\ny", "a.txt"), "2-3: # a", "a file of no known name may have headings");
    assert_eq!(of("\n x \n# a\ny", "a.py"), "1-4: x", "a comment is no heading");
}

#[test]
fn f39_s4_5_an_outline_shows_how_deep_things_are_and_the_outermost_where_there_are_too_many() {
    let deep: String = (0..9).map(|depth| format!("{}def f{depth}():\n", "  ".repeat(depth))).collect();
    let lines: Vec<&str> = deep.lines().collect();
    let shown = |depth: usize| format!("{}-9: {}def f{depth}():", depth + 1, "  ".repeat(depth.min(6)));
    let all: Vec<String> = (0..9).map(shown).collect();
    assert_eq!(outline(&lines, 1, "a.py", 9), all.join("\n"));
    let left_out =
        |count: usize| format!("{}\n[… {} definitions left out …]", all[..count].join("\n"), 9 - count);
    assert_eq!(outline(&lines, 1, "a.py", 8), left_out(8));
    assert_eq!(outline(&lines, 1, "a.py", 1), left_out(1));
    let flat = "def a():\ndef b():\n    x\n\ndef c():\n";
    let lines: Vec<&str> = flat.lines().collect();
    assert_eq!(
        outline(&lines, 11, "a.py", 2),
        "11-11: def a():\n12-14: def b():\n[… 1 definitions left out …]"
    );
    let nested = "class A:\n    def a():\n        x\n    def b():\nclass B:\n    def c():";
    assert_eq!(
        of(nested, "a.py"),
        "1-4: class A:\n2-3:   def a():\n4-4:   def b():\n5-6: class B:\n6-6:   def c():"
    );
    assert_eq!(
        of("def a():\n def b():\n  def c():", "a.py"),
        "1-3: def a():\n2-3:   def b():\n3-3:     def c():"
    );
    let stretches: String =
        (1..=201).map(|nth| if nth == 101 { "\n".into() } else { format!("line {nth}\n") }).collect();
    assert_eq!(of(&stretches, "a.py"), "1-100: line 1\n101-200: line 102\n201-201: line 201");
}

#[test]
fn f39_s4_5_numbers_before_lines_are_those_of_the_file_where_the_first_twenty_count_up() {
    let text = |count: usize, wrong: usize| -> String {
        (1..=count).map(|nth| format!("{:>4}\tx{nth}\n", if nth == wrong { 99 } else { nth + 6 })).collect()
    };
    let of = |text: &str| {
        let (lines, first) = numbered(text);
        (lines.first().map(|line| (*line).to_string()), first)
    };
    assert_eq!(of(&text(30, 0)), (Some("x1".into()), 7));
    assert_eq!(of(&text(30, 21)), (Some("x1".into()), 7));
    assert_eq!(of(&text(30, 20)), (Some("   7\tx1".into()), 1));
    for mark in ["\t", "→", ":", "|"] {
        assert_eq!(of(&format!("7{mark}a\n8{mark}b")), (Some("a".into()), 7), "{mark}");
    }
    assert_eq!(of("7 a\n8 b"), (Some("7 a".into()), 1));
    assert_eq!(of("a"), (Some("a".into()), 1));
    assert_eq!(numbered("7\ta\n8\tb").0, ["a", "b"]);
    assert_eq!(numbered(&(text(21, 0) + "more")).0.last(), Some(&"more"));
}
