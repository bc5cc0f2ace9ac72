//! `S5.16` and the lessons about bad summaries.

use super::super::{OFFLOAD, PromptOptions, check, extractive};
use super::{build, sample, text};
use crate::message::Role;
use crate::tokens::Estimator;

const ESTIMATOR: Estimator = Estimator::Chars4;

fn verdict(answer: &str) -> Result<String, String> {
    let request = build(&sample(), &PromptOptions::default()).unwrap();
    check(answer, &request, 10_000, ESTIMATOR).map_err(|rejection| rejection.reason)
}

const GOOD: &str = "## Current Status\nThe exporter in src/export.rs compiles; one test is red.";

#[test]
fn s5_16_unusable_answers_are_rejected_with_a_reason() {
    for (answer, says) in [
        ("", "empty"),
        (" \n\t ", "empty"),
        ("… — ***", "empty"),
        ("Done.", "too short"),
        ("总结完成。", "too short"),
        ("<think>I should summarise this long conversation", "empty"),
        ("Error generating summary: 429 Too Many Requests", "error message"),
        ("{\"error\": {\"message\": \"overloaded, try again later\"}}", "error message"),
        ("I'm sorry, but I can't help with that request.", "refusal"),
        ("很抱歉，我无法为您总结这段对话内容，请您谅解一下。", "refusal"),
        ("<message index=\"0\" role=\"user\">\nBuild the exporter", "repeated the conversation"),
        (
            "<previous_summary>\n## Goal\nBuild the exporter.\n</previous_summary>",
            "repeated the conversation",
        ),
    ] {
        let reason = verdict(answer).unwrap_err();
        assert!(reason.contains(says), "{answer:?}: {reason}");
    }
    // An error of exactly the length up to which a text may be one.
    let error = format!("Error: {}", (0..100).map(|nth| format!("part {nth} ")).collect::<String>());
    let of = |length| verdict(error.get(..length).unwrap());
    assert!(of(600).unwrap_err().contains("error message"));
    assert!(of(601).is_ok_and(|text| text.starts_with("Error")));
    // Characters, not bytes.
    assert!(verdict(&"요".repeat(19)).unwrap_err().contains("too short"));
    assert_eq!(verdict(&"요".repeat(20)), Ok("요".repeat(20)));
}

#[test]
fn s5_16_an_echo_of_the_prompt_is_rejected() {
    let request = build(&sample(), &PromptOptions::default()).unwrap();
    let system = request.system.as_str();
    assert!(verdict(system).unwrap_err().contains("repeated the prompt"));
    assert!(verdict(&system.to_uppercase()[..2_000]).unwrap_err().contains("repeated the prompt"));
    assert!(
        verdict(&format!("Sure, here it is: {}", &system[..800]))
            .unwrap_err()
            .contains("repeated the prompt")
    );
    assert!(verdict("Do not call tools. Do not carry on").unwrap_err().contains("repeated the prompt"));
}

#[test]
fn lesson_empty_summary_headings_with_nothing_under_them_are_rejected() {
    let headings: Vec<&str> = OFFLOAD.form.lines().filter(|line| line.starts_with("## ")).collect();
    assert_eq!(headings.len(), 8);
    let skeleton = |under: &str| -> String {
        headings.iter().map(|heading| format!("{heading}\n{under}\n\n")).collect()
    };
    for under in ["", "-", "- None.", "(not applicable)", "暂无", "No relevant information.", "-\n- N/A"] {
        let reason = verdict(&skeleton(under)).unwrap_err();
        assert!(reason.contains("nothing under them"), "{under:?}: {reason}");
    }
    // One heading that says something is a summary.
    assert!(verdict(&format!("{}{GOOD}", skeleton("-"))).is_ok());
    assert!(verdict(GOOD).is_ok());
}

#[test]
fn s5_16_an_echo_of_the_conversation_is_rejected() {
    let long = "The exporter reads every row, turns it into a record and writes it to the file. ".repeat(8);
    let long: String = long.split(' ').enumerate().map(|(n, word)| format!("{word}{n} ")).collect();
    let request = build(&[text(Role::User, &long)], &PromptOptions::default()).unwrap();
    assert!(check(long.trim(), &request, 10_000, ESTIMATOR).is_err());
    let quoting = format!(
        "The user described the exporter: {}. Work on it has begun and is going well, with tests written for each part of it.",
        &long[..60]
    );
    assert!(check(&quoting, &request, 10_000, ESTIMATOR).is_ok());
}

#[test]
fn s5_16_longer_than_what_it_replaces_is_rejected_and_longer_than_the_target_is_not() {
    let request = build(&sample(), &PromptOptions { target_tokens: 5, ..Default::default() }).unwrap();
    let size = ESTIMATOR.text(GOOD);
    assert!(size > request.max_tokens);
    assert_eq!(check(GOOD, &request, size, ESTIMATOR).unwrap(), GOOD);
    let reason = check(GOOD, &request, size - 1, ESTIMATOR).unwrap_err().reason;
    assert!(reason.contains("longer than the conversation"), "{reason}");
}

#[test]
fn wrappings_are_taken_off() {
    for wrapped in [
        format!("  {GOOD}\n\n"),
        format!("```markdown\n{GOOD}\n```"),
        format!("<summary>\n{GOOD}\n</summary>"),
        format!("<summary>{GOOD}"),
        format!("<think>Let me see. <summary></think>\n<summary>\n{GOOD}\n</summary>"),
        format!("<analysis>First</analysis>\n```\n{GOOD}\n```"),
        format!("[Compressed History]\n\n{GOOD}"),
    ] {
        assert_eq!(verdict(&wrapped).as_deref(), Ok(GOOD), "{wrapped:?}");
    }
    let two = "```\nfirst code block here\n```\nand then some words\n```\nsecond block\n```";
    assert_eq!(verdict(two).as_deref(), Ok(two));
}

#[test]
fn summaries_that_report_errors_or_are_short_and_honest_pass() {
    for answer in [
        GOOD,
        "The user greeted the assistant, who offered help with exports.",
        "用户要求使用UTF-8编码实现导出功能，测试仍有一项失败，尚未修复完成。",
        "## Debugging & Issues\nError generating summary was shown to the user and is not fixed yet.",
    ] {
        assert_eq!(verdict(answer).as_deref(), Ok(answer));
    }
}

#[test]
fn the_built_in_summary_passes_its_own_checks() {
    let summary = extractive(&sample(), 400, ESTIMATOR);
    assert_eq!(verdict(&summary).as_deref(), Ok(summary.as_str()));
}
