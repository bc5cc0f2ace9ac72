//! Lines that a text has in common with another (`X1`): what is left out stands in the other one, between the same lines.

use crate::compaction::shape::overlap::overlap;

/// A generator of numbers that is the same everywhere.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

fn lines(from: usize, to: usize) -> Vec<String> {
    (from..to).map(|nth| format!("    let value_{nth} = compute(\"字{nth}\", {});", nth * 7)).collect()
}

fn numbered(from: usize, of: &[String]) -> String {
    of.iter().enumerate().map(|(at, line)| format!("{:>6}→{line}", from + at)).collect::<Vec<_>>().join("\n")
}

/// The text that `shown` is of, from the other one; nothing where what was left out does not stand there.
fn restored(shown: &str, other: &str) -> Option<String> {
    let (lines, others): (Vec<&str>, Vec<&str>) = (shown.split('\n').collect(), other.split('\n').collect());
    let mut out: Vec<&str> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let left_out = line.strip_prefix("[… ").and_then(|rest| rest.strip_suffix(" lines …]"));
        let Some(count) = left_out.and_then(|count| count.parse::<usize>().ok()) else {
            out.push(line);
            continue;
        };
        let (before, behind) = (lines[at - 1], lines[at + 1]);
        let begins = (0..others.len()).find(|from| {
            others[*from] == before && others.get(from + count + 1).is_some_and(|line| *line == behind)
        })?;
        out.extend(&others[begins + 1..=begins + count]);
    }
    Some(out.join("\n"))
}

#[test]
fn x1_another_part_of_a_file_is_shown_without_the_lines_that_were_seen() {
    let all = lines(0, 200);
    let (first, second) = (all[40..120].join("\n"), all[80..160].join("\n"));
    let found = overlap(&second, &first).unwrap();
    assert!(!found.renumbered);
    assert_eq!(restored(&found.text, &first).unwrap(), second);
    assert!(
        found.text.starts_with(&format!("{}\n[… 38 lines …]\n{}\n{}", all[80], all[119], all[120])),
        "{}",
        found.text
    );
}

#[test]
fn x1_numbers_in_front_may_differ_and_the_first_and_last_line_show_them() {
    let all = lines(0, 100);
    let (before, now) = (numbered(1, &all), numbered(4, &all));
    let found = overlap(&now, &before).unwrap();
    assert!(found.renumbered);
    assert_eq!(found.text, format!("     4→{}\n[… 98 lines …]\n   103→{}", all[0], all[99]));
    // Other marks between number and line, and none.
    let grep = all.iter().enumerate().map(|(at, line)| format!("{at}:{line}")).collect::<Vec<_>>().join("\n");
    assert!(
        overlap(&grep, &before).unwrap().renumbered && overlap(&all.join("\n"), &before).unwrap().renumbered
    );
}

#[test]
fn x1_short_stretches_and_lines_that_stand_everywhere_stay() {
    let all = lines(0, 100);
    let few = [lines(500, 540), all[10..17].to_vec(), lines(600, 640)].concat().join("\n");
    assert!(overlap(&few, &all.join("\n")).is_none());
    let brackets = vec!["}"; 60].join("\n");
    assert!(overlap(&brackets, &brackets).is_none());
    assert!(overlap("", "").is_none() && overlap("a", &all.join("\n")).is_none());
}

#[test]
fn x1_what_is_left_out_of_any_text_stands_in_the_other_one() {
    let mut numbers = Numbers(7);
    let mut found = 0;
    for _ in 0..3_000 {
        // Of few different lines, so that they repeat within a text, too.
        let words = 2 + numbers.below(60);
        let mut text = |length: u64| -> Vec<String> {
            let start = numbers.below(words);
            let mut at = start;
            (0..length)
                .map(|_| {
                    at = if numbers.below(16) == 0 { numbers.below(words) } else { (at + 1) % words };
                    format!("line {at} of what was read, with some words behind it")
                })
                .collect()
        };
        let (one, other) = (text(80).join("\n"), text(120).join("\n"));
        if let Some(overlap) = overlap(&one, &other) {
            found += 1;
            assert!(overlap.text.len() < one.len() && !overlap.renumbered);
            // Where lines repeat, the same anchors stand twice: any of the places will do.
            let restored = restored(&overlap.text, &other).unwrap();
            assert_eq!(restored.lines().count(), one.lines().count());
        }
    }
    assert!(found > 300, "{found}");
}
