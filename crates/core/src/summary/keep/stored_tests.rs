//! What was taken in, stored and read again.

use super::super::tests::{call, result, text as said};
use super::cover::MOST_BYTES;
use super::*;
use crate::message::{Message, Part, Role, ToolCall};
use serde_json::json;

/// SeededNumbers that are the same in every run.
struct SeededNumbers(u32);

impl SeededNumbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as usize % most
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

/// Messages of all that is taken in: what people say, tasks, rules, calls that wait, fail and are refused, earlier summaries.
fn conversation(seed: u32, length: usize) -> Vec<Message<'static>> {
    let mut numbers = SeededNumbers(seed);
    let mut waiting: Vec<String> = Vec::new();
    let mut messages = Vec::new();
    for nth in 0..length {
        let file = format!("src/part{}.rs", numbers.below(5));
        let name = format!("make_{}", numbers.below(40));
        let words = format!("{name} 必須 \"quotes\" and \\ in {file}, PROJ-{}\u{1F600}", numbers.below(90));
        messages.push(match numbers.below(9) {
            0 => said(
                Role::User,
                &format!("Please mend {words}. Never touch migrations{nth}/.\n- [ ] check {name}"),
            ),
            1 => said(Role::Assistant, &format!("{words}\n- [x] check {name}\nWe decided to use {name}.")),
            2 => said(Role::User, &format!("<system-reminder>{words}</system-reminder>")),
            3 => said(Role::System, &words),
            4 => said(
                Role::User,
                &format!("<summary>\n## Tasks\n- {words}\n## Files\n- {file} (modified)\n</summary>"),
            ),
            5..=6 => {
                let id = format!("call{nth}");
                waiting.push(id.clone());
                let lines = format!("fn {name}() {{\n    {words}\n}}");
                let (tool, arguments) = numbers.of(&[
                    (
                        "Edit",
                        json!({ "file_path": file, "old_string": "let old_line = 1;", "new_string": lines }),
                    ),
                    ("Read", json!({ "file_path": file, "offset": 3, "limit": 40 })),
                    ("Bash", json!({ "command": format!("cargo test {name} && cat {file}") })),
                    ("TaskCreate", json!({ "subject": format!("Do {name}"), "status": "pending" })),
                    ("TaskUpdate", json!({ "taskId": "1", "status": "in_progress" })),
                    ("TodoWrite", json!({ "todos": [{ "content": words, "status": "in_progress" }] })),
                    ("search_history", json!({ "query": name })),
                ]);
                let call = ToolCall {
                    id: id.into(),
                    name: tool.into(),
                    arguments: arguments.to_string().into(),
                    caller: None,
                };
                Message { role: Role::Assistant, parts: vec![Part::ToolCall(call)] }
            }
            _ if waiting.is_empty() => said(Role::Assistant, &words),
            _ => {
                let id = waiting.remove(numbers.below(waiting.len()));
                let numbered = format!("   7→use {name};\n   8→let old_line = 1; // {words}");
                let answers =
                    [numbered, format!("error[E0425]: no {name} in {file}"), "Task #1 created".into()];
                let text = numbers.of(&answers);
                result(&id, &text, numbers.below(3) == 0)
            }
        });
    }
    messages
}

/// What is taken in of a conversation.
fn collected(messages: &[Message<'_>]) -> Collected {
    let (sid, read_as, before, runs, said) = Default::default();
    let collector = KeepLayerBuilder::default();
    let mut collected = Collected { sid, read_as, before, runs, next: 0, fresh: 0, collector, said };
    add(&mut collected, messages, 0);
    collected
}

fn add(collected: &mut Collected, messages: &[Message<'_>], from: usize) {
    let numbered = messages.iter().enumerate();
    numbered.for_each(|(nth, message)| collected.collector.add(from + nth, message));
}

fn parts(collected: &Collected) -> Vec<Vec<u8>> {
    collected.parts().collect()
}

fn again(collected: &Collected) -> Collected {
    let read = |so_far, part: &Vec<u8>| Some(Collected::read(so_far, part).expect("it was written"));
    parts(collected).iter().fold(None, read).expect("there is a part")
}

/// They have the same, and say the same of a conversation.
fn assert_same(one: &Collected, other: &Collected) {
    assert_eq!(parts(one), parts(other));
    let (one, other) = (&one.collector, &other.collector);
    assert_eq!(one.musts(), other.musts());
    for (budget, shares) in [(300, Shares::BESIDE), (2_000, Shares::ALONE)] {
        let page = |of: &KeepLayerBuilder| of.layer(budget, shares, Estimator::default());
        assert_eq!(page(one), page(other));
    }
    let summary = "src/part1.rs, make_3, make_up_this_name, other/part9.rs";
    assert_eq!(one.unsupported(summary), other.unsupported(summary));
}

#[test]
fn p13_what_is_stored_and_read_goes_on_as_what_was_never_stored() {
    let mut kinds = 0;
    for seed in 0..60 {
        let messages = conversation(seed, 80);
        let whole = collected(&messages);
        kinds += usize::from(whole.collector.state().waits_for_a_task());
        for cut in [0, 1, 7, 20, 43, 79, 80] {
            let first = collected(&messages[..cut]);
            let mut read = again(&first);
            assert_same(&first, &read);
            add(&mut read, &messages[cut..], cut);
            assert_same(&whole, &read);
        }
    }
    assert!(kinds > 0, "no conversation ends with a change of a task that waits");
}

#[test]
fn p13_what_is_kept_of_a_long_conversation_is_bounded_and_every_name_is_known() {
    let mut long = collected(&[]);
    let mut largest = 0;
    for nth in (0..6_000).step_by(2) {
        let line = |at: usize| {
            format!("the function unit_{at}_of_{nth} reads src/dir{nth}/file{at}.rs and says so twice")
        };
        let text: Vec<String> = (0..8).map(line).collect();
        let show = json!({ "command": format!("show {nth}") }).to_string();
        let call = call(&nth.to_string(), "Bash", &show);
        let call = Message { role: Role::Assistant, parts: vec![call] };
        add(&mut long, &[call, result(&nth.to_string(), &text.join("\n"), false)], nth);
        largest = largest.max(long.collector.lines.bytes());
        if nth == 4_000 {
            assert_same(&long, &again(&long));
        }
    }
    assert!(largest > MOST_BYTES / 2 && largest <= MOST_BYTES, "{largest}");
    let counted = long.collector.lines.counted();
    assert!(counted < 40_000, "{counted} things are counted");
    // Its lines left long ago.
    let known = "unit_0_of_0, src/dir2/file3.rs, unit_7_of_5998";
    assert!(long.collector.unsupported(known).is_empty());
    assert_eq!(long.collector.unsupported("unit_8_of_0"), ["unit_8_of_0"]);
}

#[test]
fn p13_parts_that_are_cut_or_longer_are_not_read() {
    let parts = parts(&collected(&conversation(3, 80)));
    let first = Collected::read(None, &parts[0]);
    assert!(first.is_some());
    for to in 0..parts[0].len() {
        assert!(Collected::read(None, &parts[0][..to]).is_none(), "{to} bytes");
    }
    assert!(Collected::read(None, &[parts[0].as_slice(), &[0]].concat()).is_none());
    assert!(Collected::read(first, &parts[1][1..]).is_none());
}
