//! Results that are read again (`X1`): what changed since is told, and never without what it is told against (`X2`).

use crate::support::*;
use context_compactor_core::context::Fate;
use context_compactor_core::session::audit::{look, view_text};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, assistant, calls, results, user};
use serde_json::{Value, json};

/// Every preset.
pub(crate) const PRESETS: [&str; 6] = ["balanced", "offload", "layered", "factor3", "checkpoint", "react"];

pub(crate) fn rereads(over: Value) -> Harness {
    let mut options = json!({
        "preset": "balanced", "contextWindow": 200_000, "recall": true, "admit": { "rereads": true },
        "summarize": { "call": true },
    });
    merge(&mut options, &over);
    Harness::new(options)
}

/// A file of so many lines, of which some were changed: which line, to which version.
pub(crate) fn file(name: &str, lines: usize, changed: &[(usize, usize)]) -> String {
    let line = |nth: usize| {
        let version = changed.iter().rev().find(|(line, _)| *line == nth).map_or(0, |(_, version)| *version);
        format!("    let value_{nth} = {name}(\"字{version}\");")
    };
    (0..lines).map(line).collect::<Vec<_>>().join("\n")
}

/// A model that reads a file, and what it is answered.
fn read(format: Format, id: &str, path: &str, text: &str) -> Vec<Body> {
    let mut bodies = calls(format, &[(id, path)]);
    bodies.extend(results(format, &[(id, text)]));
    bodies
}

/// The result of the last message that has one, as it is sent.
fn last_result(format: Format, sent: &[Value]) -> String {
    sent.iter().rev().find_map(|message| result_text(format, message)).unwrap()
}

/// The text that a unified diff makes of another.
fn patched(old: &str, diff: &str) -> String {
    let old: Vec<&str> = old.split('\n').collect();
    let (mut out, mut at) = (Vec::new(), 0);
    for line in diff.split('\n') {
        if let Some(header) = line.strip_prefix("@@ -") {
            let (from, count) = header.split(' ').next().unwrap().split_once(',').unwrap();
            let (from, count): (usize, usize) = (from.parse().unwrap(), count.parse().unwrap());
            let from = if count == 0 { from } else { from - 1 };
            out.extend(&old[at..from]);
            at = from;
            continue;
        }
        let (mark, text) = line.split_at(1);
        if mark != "+" {
            assert_eq!(old[at], text, "a line of the diff is not that of the text");
            at += 1;
        }
        if mark != "-" {
            out.push(text);
        }
    }
    out.extend(&old[at..]);
    out.join("\n")
}

/// The whole result that is told as `shown`, from the one that it is told against.
pub(crate) fn told(shown: &str, basis: &str) -> String {
    let (head, diff) = shown.split_once('\n').unwrap_or((shown, ""));
    assert!(head.starts_with('[') && head.ends_with(']'), "{head}");
    if diff.is_empty() {
        assert!(head.starts_with("[Unchanged since the last result of "), "{head}");
        return basis.to_owned();
    }
    if head.starts_with("[Lines that are left out here stand word for word in a result of ") {
        return filled(diff, basis);
    }
    assert!(head.starts_with("[A unified diff against the last result of "), "{head}");
    patched(basis, diff)
}

/// The text with the lines that were left out, which stand in another between the same lines.
fn filled(shown: &str, other: &str) -> String {
    let (lines, others): (Vec<&str>, Vec<&str>) = (shown.split('\n').collect(), other.split('\n').collect());
    let mut out: Vec<&str> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let count =
            line.strip_prefix("[… ").and_then(|rest| rest.strip_suffix(" lines …]")?.parse::<usize>().ok());
        let Some(count) = count else {
            out.push(line);
            continue;
        };
        let is_it = |from: &usize| {
            others[*from] == lines[at - 1] && others.get(from + count + 1) == Some(&lines[at + 1])
        };
        let from = (0..others.len()).find(is_it).expect("what is left out stands in the other one");
        out.extend(&others[from + 1..=from + count]);
    }
    out.join("\n")
}

#[test]
fn x1_what_is_read_again_is_told_as_what_changed_and_the_store_has_all_of_it() {
    for format in FORMATS {
        let mut harness = rereads(json!({}));
        harness.append(&[user("look at it")]);
        let first = file("a", 80, &[]);
        harness.append(&read(format, "call_1", "src/a.rs", &first));
        assert_eq!(last_result(format, &harness.sent()), first, "what was never seen is whole");
        let second = file("a", 80, &[(40, 1)]);
        harness.append(&read(format, "call_2", "src/a.rs", &second));
        let before = harness.sent();
        let shown = last_result(format, &before);
        assert_eq!(told(&shown, &first), second);
        assert!(shown.contains("src/a.rs") && shown.contains("read it with recall_read"), "{shown}");
        assert!(shown.contains("-    let value_40 = ") && shown.contains("+    let value_40 = "), "{shown}");
        assert_valid(format, &before);
        let entry = harness.session.explain().unwrap().pop().unwrap();
        assert_eq!((entry.fate, entry.basis), (Fate::Offloaded, Some(2)));
        assert_eq!(harness.read(&entry.reference.unwrap()), second);
        assert!(harness.prepare().edits.is_empty(), "done once");
        // The same again; another file.
        harness.append(&[assistant("again")]);
        harness.append(&read(format, "call_3", "src/a.rs", &first));
        let shown = last_result(format, &harness.sent());
        assert!(shown.starts_with("[Unchanged since the last result of "), "{shown}");
        assert_eq!(told(&shown, &first), first);
        harness.append(&read(format, "call_4", "src/b.rs", &file("b", 80, &[])));
        let sent = harness.sent();
        assert_eq!(last_result(format, &sent), file("b", 80, &[]));
        assert_eq!(sent[..before.len()], before, "what was sent stays as it was sent");
        // Another tab reads the same, and so does who opens it later.
        let mut other = Harness::over(harness.memory.clone(), "b", json!({ "preset": "balanced" }));
        assert_eq!(other.sent(), sent);
        harness.stored();
    }
}

#[test]
fn x1_lines_that_another_call_showed_are_left_out_and_the_store_has_them() {
    for format in FORMATS {
        let mut harness = rereads(json!({}));
        harness.append(&[user("look at it")]);
        let all = file("a", 120, &[]);
        let lines: Vec<&str> = all.lines().collect();
        let (first, second) = (lines[..80].join("\n"), lines[50..].join("\n"));
        harness.append(&read(format, "call_1", "src/a.rs", &first));
        harness.prepare();
        // By another name, as another tool or another range would have it.
        harness.append(&read(format, "call_2", "src/a.rs:50-120", &second));
        let sent = harness.sent();
        let shown = last_result(format, &sent);
        let (head, rest) = shown.split_once('\n').unwrap();
        let expected = "[Lines that are left out here stand word for word in a result of read_file src/a.rs above; all of this one is at: ";
        assert!(head.starts_with(expected) && head.ends_with(" (read it with recall_read)]"), "{head}");
        let tail = lines[79..].join("\n");
        assert_eq!(rest, format!("{}\n[… 28 lines …]\n{tail}", lines[50]));
        assert_valid(format, &sent);
        let entry = harness.session.explain().unwrap().pop().unwrap();
        assert_eq!((entry.fate, entry.basis), (Fate::Offloaded, Some(2)));
        assert_eq!(harness.read(&entry.reference.unwrap()), second);
        assert!(harness.prepare().edits.is_empty(), "done once");
        harness.stored();
    }
}

#[test]
fn x1_a_result_that_is_too_large_has_a_preview_whatever_of_it_was_shown() {
    for format in FORMATS {
        for preset in ["balanced", "layered"] {
            let over = json!({ "preset": preset, "toolPolicies": { "read_file": { "maxTokens": 900 } } });
            let mut harness = rereads(over);
            let first = file("a", 80, &[]);
            harness.append(&[user("look at it")]);
            harness.append(&read(format, "call_1", "src/a.rs", &first));
            harness.prepare();
            let all = file("a", 200, &[]);
            harness.append(&read(format, "call_2", "src/a.rs:1-200", &all));
            let sent = harness.sent();
            let shown = last_result(format, &sent);
            assert!(shown.starts_with("Output too large. Saved to: off_"), "{shown}");
            let entry = harness.session.explain().unwrap().pop().unwrap();
            assert_eq!(harness.read(&entry.reference.unwrap()), all);
            assert_valid(format, &sent);
            harness.stored();
        }
    }
}

#[test]
fn x1_what_was_sent_what_is_short_pinned_or_failed_and_what_has_little_in_common_stays_whole() {
    for format in FORMATS {
        let text = file("a", 80, &[]);
        let shown = |harness: &mut Harness, text: &str| {
            harness.append(&read(format, "call_2", "src/a.rs", text));
            last_result(format, &harness.sent())
        };
        let begun = |over: Value| {
            let mut harness = rereads(over);
            harness.append(&[user("look at it")]);
            harness.append(&read(format, "call_1", "src/a.rs", &text));
            harness.prepare();
            harness
        };
        let other = file("b", 80, &[]);
        assert_eq!(shown(&mut begun(json!({})), &other), other);
        let mut off = begun(json!({ "admit": { "rereads": false } }));
        assert_eq!(shown(&mut off, &text), text, "off");
        let mut pinned = begun(json!({ "pins": { "match": true } }));
        pinned.host.pinned = Box::new(|_| true);
        assert_eq!(shown(&mut pinned, &text), text, "pinned");
        // An answer behind it says that it was sent.
        let mut late = begun(json!({}));
        late.append(&read(format, "call_2", "src/a.rs", &text));
        late.append(&[assistant("I see")]);
        assert_eq!(last_result(format, &late.sent()), text);
        let mut short = rereads(json!({}));
        short.append(&[user("look at it")]);
        short.append(&read(format, "call_1", "src/a.rs", "a\nb"));
        short.append(&read(format, "call_2", "src/a.rs", "a\nb"));
        assert_eq!(last_result(format, &short.sent()), "a\nb");
    }
}

#[test]
fn x1_what_a_call_is_named_by_says_which_result_is_meant() {
    let format = Format::Anthropic;
    let run = |harness: &mut Harness, id: &str, command: &str, text: &str| {
        let input = json!({ "command": command, "description": format!("step {id}") });
        let call = json!({ "type": "tool_use", "id": id, "name": "Bash", "input": input });
        harness.append(&[Body::from(json!({ "role": "assistant", "content": [call] }).to_string())]);
        harness.append(&results(format, &[(id, text)]));
        last_result(format, &harness.sent())
    };
    let text = file("a", 60, &[]);
    // Long commands have a name in common.
    let long = |end: &str| {
        format!("cargo test --workspace --all-features --no-fail-fast {} {end}", "--quiet ".repeat(20))
    };
    // Where it could be another one, no "last result" is told of, and the lines that stay say where the others stand.
    for (other, told_as) in
        [("ls", "[Unchanged since the last"), (&*long("two"), "[Lines that are left out here")]
    {
        let mut harness = rereads(json!({}));
        harness.append(&[user("test it")]);
        assert_eq!(run(&mut harness, "1", &long("one"), &text), text);
        let of_other = file("b", 60, &[]);
        assert_eq!(run(&mut harness, "2", other, &of_other), of_other);
        let shown = run(&mut harness, "3", &long("one"), &text);
        assert!(shown.starts_with(told_as), "{shown}");
    }
}

#[test]
fn x1_of_two_results_of_a_source_side_by_side_the_second_is_whole_where_the_first_is() {
    for format in FORMATS {
        let mut harness = rereads(json!({}));
        harness.append(&[user("work on it")]);
        let text = file("a", 60, &[]);
        harness.append(&read(format, "one", "src/a.rs", &text));
        harness.prepare();
        harness.append(&calls(format, &[("two", "src/a.rs"), ("three", "src/a.rs")]));
        let other = file("b", 60, &[]);
        harness.append(&results(format, &[("two", &other), ("three", &text)]));
        let sent = harness.sent();
        let all = serde_json::to_string(&sent).unwrap();
        assert!(!all.contains("[Unchanged since"), "the last that is whole is another one");
    }
}

#[test]
fn x1_a_result_with_a_picture_is_more_than_its_text() {
    let format = Format::Anthropic;
    let mut harness = rereads(json!({}));
    harness.append(&[user("look at it")]);
    let text = file("a", 60, &[]);
    for nth in 0..2 {
        let source = json!({ "type": "base64", "media_type": "image/png", "data": format!("{nth}AAA") });
        let content = json!([{ "type": "text", "text": text }, { "type": "image", "source": source }]);
        harness.append(&calls(format, &[("shot", "page")]));
        let result = json!({ "type": "tool_result", "tool_use_id": "shot", "content": content });
        harness.append(&[Body::from(json!({ "role": "user", "content": [result] }).to_string())]);
        assert_eq!(last_result(format, &harness.sent()), text);
    }
}

#[test]
fn x1_four_lean_on_one_and_the_next_is_whole() {
    let format = Format::OpenaiChat;
    let mut harness = rereads(json!({}));
    harness.append(&[user("work on it")]);
    let mut wholes = Vec::new();
    for nth in 0..11 {
        let text = file("a", 60, &[(nth, 1)]);
        harness.append(&read(format, "call", "src/a.rs", &text));
        wholes.push(last_result(format, &harness.sent()) == text);
    }
    let expected = [true, false, false, false, false, true, false, false, false, false, true];
    assert_eq!(wholes, expected);
}

#[test]
fn x1_a_file_of_400_lines_read_six_times_with_one_line_changed_each_takes_less_than_10_000_tokens() {
    for format in FORMATS {
        let mut harness = rereads(json!({}));
        harness.append(&[user("work on it")]);
        let (mut changed, mut whole, mut prompts) = (Vec::new(), 0, Vec::<Vec<Value>>::new());
        for nth in 0..6 {
            let text = file("a", 400, &changed);
            let alone = context_compactor_core::tokens::Estimator::default().text(&text);
            whole += alone;
            harness.append(&read(format, &format!("call_{nth}"), "src/a.rs", &text));
            let sent = harness.sent();
            if let Some(before) = prompts.last() {
                assert_eq!(sent[..before.len()], before[..], "no prefix was changed");
            }
            prompts.push(sent);
            changed.push((60 * nth + 20, nth + 1));
        }
        let tokens: usize =
            look(&harness.session).unwrap().context.items().iter().map(|item| item.size.tokens).sum();
        println!("six reads: {whole} tokens of results, {tokens} in the context");
        assert!(whole > 20_000 && tokens <= 10_000, "{tokens} of {whole}");
    }
}

#[test]
fn x1_an_edit_that_is_made_from_the_difference_alone_applies_to_the_file() {
    let format = Format::Anthropic;
    let mut harness = rereads(json!({}));
    harness.append(&[user("work on it")]);
    harness.append(&read(format, "call_1", "src/a.rs", &file("a", 120, &[])));
    harness.prepare();
    let now = file("a", 120, &[(70, 3)]);
    harness.append(&read(format, "call_2", "src/a.rs", &now));
    let shown = last_result(format, &harness.sent());
    // What the model sees of the file as it is: an edit names such lines as they stand there, once.
    let seen: Vec<&str> = shown.lines().skip(1).filter_map(|line| line.strip_prefix(['+', ' '])).collect();
    assert_eq!(seen.len(), 5);
    let old = seen.join("\n");
    assert_eq!(now.matches(&old).count(), 1, "{old}");
    let header = shown.lines().nth(1).unwrap();
    assert_eq!(header, "@@ -69,5 +69,5 @@");
    assert_eq!(now.lines().nth(68), Some(seen[0]), "and the numbers are those of the file");
}

/// A session in which a file was read three times, and then something was said.
fn read_thrice(over: Value, format: Format) -> (Harness, [String; 3]) {
    read_behind(&[], over, format)
}

/// The same behind other messages.
fn read_behind(before: &[Body], over: Value, format: Format) -> (Harness, [String; 3]) {
    let mut harness = rereads(over);
    harness.append(before);
    harness.append(&[user("work on it")]);
    let texts = [file("a", 60, &[]), file("a", 60, &[(10, 1)]), file("a", 60, &[(10, 1), (40, 2)])];
    for (nth, text) in texts.iter().enumerate() {
        harness.append(&read(format, &format!("call_{nth}"), "src/a.rs", text));
        harness.prepare();
        harness.append(&[assistant("I see"), user("go on")]);
    }
    (harness, texts)
}

/// What stands for the results, in order.
fn stand(harness: &mut Harness, format: Format) -> Vec<String> {
    let sent = harness.sent();
    assert_valid(format, &sent);
    sent.iter().filter_map(|message| result_text(format, message)).collect()
}

#[test]
fn x2_when_the_basis_is_summarised_the_newest_that_leans_on_it_is_whole_and_the_others_are_references() {
    for format in FORMATS {
        let options = json!({ "keep": { "messages": 9 } });
        let (mut harness, texts) = read_behind(&talk(2, 1_500), options.clone(), format);
        let before = stand(&mut harness, format);
        assert!(before[0] == texts[0] && before[1].starts_with('[') && before[2].starts_with('['));
        assert!(harness.compact().success);
        let after = stand(&mut harness, format);
        assert_eq!((after.len(), &after[1]), (2, &texts[2]), "how things stand is whole");
        assert!(
            after[0].starts_with("Tool result is at: off_") && after[0].contains("src/a.rs"),
            "{}",
            after[0]
        );
        let fates = harness.session.explain().unwrap();
        assert!(fates.iter().all(|entry| entry.basis.is_none()));
        assert_eq!(harness.read(fates[10].reference.as_ref().unwrap()), texts[1]);
        harness.stored();
        // Undone, it is as it was.
        harness.host.run(harness.session.undo()).unwrap();
        assert_eq!(stand(&mut harness, format), before);
        // What is whole again is not to take what a summary frees.
        let (mut harness, _) = read_thrice(options, format);
        harness.compact();
        assert!(stand(&mut harness, format).iter().all(|text| text.starts_with("Tool result is at: off_")));
    }
}

#[test]
fn x2_when_the_basis_is_removed_or_erased_what_leaned_on_it_stands_by_itself() {
    for format in FORMATS {
        let (mut harness, texts) = read_thrice(json!({}), format);
        harness.host.run(harness.session.remove_messages(vec![2])).unwrap();
        let after = stand(&mut harness, format);
        assert_eq!((after.len(), &after[1]), (2, &texts[2]));
        assert!(after[0].starts_with("Tool result is at: off_"), "{}", after[0]);
        harness.stored();
        let (mut harness, texts) = read_thrice(json!({}), format);
        harness.host.run(harness.session.erase(2, "asked".into())).unwrap();
        let after = stand(&mut harness, format);
        assert_eq!(after[after.len() - 2..], texts[1..], "no view quotes what was erased");
        let rows = harness.memory.rows();
        let line = texts[0].lines().nth(10).unwrap().trim();
        let is_there = |value: &[u8]| String::from_utf8_lossy(value).contains(&line.replace('"', "\\\""));
        assert!(!rows.iter().any(|(_, value)| is_there(value)), "{line}");
        harness.stored();
    }
}

#[test]
fn x2_old_results_leave_the_context_together_and_one_that_is_leaned_on_is_as_new_as_what_leans_on_it() {
    for format in FORMATS {
        let clear = json!({ "preset": "layered", "clear": { "keepRecent": 1, "minTokens": 10 } });
        let (mut harness, texts) = read_thrice(clear.clone(), format);
        assert_eq!(stand(&mut harness, format)[0], texts[0], "the newest leans on it");
        harness.append(&read(format, "other", "src/b.rs", &file("b", 60, &[])));
        let after = stand(&mut harness, format);
        assert_eq!(after[0], "[Output compacted - re-read if needed]");
        assert!(after[1].starts_with("Tool result is at: ") && after[2].starts_with("Tool result is at: "));
        harness.stored();
        let offload =
            json!({ "preset": "offload", "compactAt": { "tokens": 1_500 }, "offload": { "minChars": 500 } });
        let (mut harness, texts) = read_thrice(offload, format);
        let shown = stand(&mut harness, format);
        assert!(
            shown[0] == texts[0] || shown.iter().all(|text| !text.starts_with("[A unified")),
            "{shown:?}"
        );
        harness.stored();
    }
}

#[test]
fn x2_what_is_not_sent_is_no_basis() {
    for format in FORMATS {
        let mut harness = rereads(json!({}));
        let text = file("a", 60, &[]);
        harness.append(&[user("work on it")]);
        // The result comes when the exchange is over, and is left out.
        harness.append(&calls(format, &[("one", "src/a.rs")]));
        harness.append(&[user("hurry")]);
        harness.append(&results(format, &[("one", &text)]));
        harness.append(&[assistant("well"), user("once more")]);
        harness.append(&read(format, "again", "src/a.rs", &text));
        assert_eq!(stand(&mut harness, format).last(), Some(&text));
        assert!(harness.session.explain().unwrap().iter().all(|entry| entry.basis.is_none()));
        assert!(harness.prepare().edits.iter().all(|edit| edit.kind == "repair"), "and that is all");
        harness.stored();
    }
}

#[test]
fn x2_a_fork_and_a_session_without_its_basis_row_stand_by_themselves() {
    for format in FORMATS {
        let (mut harness, texts) = read_thrice(json!({}), format);
        let before = stand(&mut harness, format);
        let (session, _) = harness.host.run(harness.session.fork(Some("child".into()))).unwrap();
        let mut child = Harness::over(harness.memory.clone(), "child", json!({}));
        child.session = session;
        assert_eq!(stand(&mut child, format), before);
        child.host.run(child.session.rewind(4)).unwrap();
        assert_eq!(stand(&mut child, format), before[..1]);
        // The store loses the row that the basis is in; or that of its call, without which it cannot be sent.
        for seq in [2, 1] {
            let (harness, _) = read_thrice(json!({}), format);
            let is_it = |key: &str| key.starts_with("log/") && key.ends_with(&format!("/{seq}"));
            let rows = harness.memory.rows();
            let lost = rows.iter().map(|(key, _)| key.clone()).find(|key| is_it(&key.to_string()));
            harness.memory.damage(&lost.unwrap(), None);
            let mut again = Harness::over(harness.memory.clone(), "again", json!({ "preset": "balanced" }));
            let after = stand(&mut again, format);
            assert_eq!(after.last(), Some(&texts[2]), "{seq}");
            assert!(after.iter().all(|text| !text.starts_with("[A unified")), "{after:?}");
            assert_eq!(stand(&mut again, format), after);
        }
    }
}

#[test]
fn x2_a_view_in_which_a_message_leans_on_another_is_of_a_hundred_that_releases_before_it_refuse() {
    let (harness, _) = read_thrice(json!({}), Format::Anthropic);
    let versions: Vec<u64> = harness
        .memory
        .rows()
        .iter()
        .filter(|(key, _)| key.to_string().starts_with("views/"))
        .map(|(_, value)| serde_json::from_slice::<Value>(&view_text(value)).unwrap()["v"].as_u64().unwrap())
        .collect();
    assert_eq!(versions, [301, 301]);
}
