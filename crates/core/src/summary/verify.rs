//! What a summary of known messages must be beside a summary at all (`S5.16`): of some length, of these messages, and not
//! the next turn of the conversation.

use super::keep::MustKeep;
use super::text::head;
use std::fmt::Write as _;

/// A conversation of fewer tokens may be summarized in a sentence.
const LONG: usize = 10_000;
/// A summary of less than one part in so many of what it replaces has collapsed.
const COLLAPSED_PART: usize = 140;
/// But no summary of this many tokens has.
const COLLAPSED: usize = 150;
/// So many names that the conversation does not have are a slip: a path may be put together, an id shortened.
const SLIPS: usize = 2;
/// Names that the next attempt is given.
const TOLD: usize = 8;

/// How an answer to the user begins, lower case.
const ANSWERS: [&str; 20] = [
    "sure",
    "certainly",
    "of course",
    "absolutely",
    "you're welcome",
    "great question",
    "i'll ",
    "i’ll ",
    "i will ",
    "let me ",
    "let's ",
    "now i ",
    "next, i",
    "好的",
    "当然",
    "我来",
    "もちろん",
    "물론",
    "gerne",
    "bien sûr",
];

/// What a model writes that calls a tool as text.
const CALLS: [&str; 5] = ["<tool_call", "<function_call", "<invoke ", "<|tool", "\"tool_calls\""];

/// Why a text of `tokens` tokens is no summary of a conversation of `replaced` tokens that does not name `unsupported`.
/// A sentence or two that can be said to the model.
pub(crate) fn objection(
    summary: &str,
    tokens: usize,
    replaced: usize,
    unsupported: &[&str],
) -> Option<String> {
    if replaced >= LONG && tokens < COLLAPSED.min(replaced / COLLAPSED_PART) {
        return Some(format!(
            "The summary ({tokens} tokens) left out almost everything of {replaced} tokens. Write a fuller one."
        ));
    }
    // Of a few names one may be put together; of many a tenth.
    if unsupported.len() > SLIPS.max(names(summary) / 10) {
        let mut reason = String::from("The summary names what the conversation does not:");
        for name in unsupported.iter().take(TOLD) {
            let _ = write!(reason, " {}", head(name, 80));
        }
        return Some(reason + ". Say only what the conversation says.");
    }
    None
}

/// Why a text is no description of a conversation, whoever asked for it: it goes on with it. What it describes may have
/// `shown` it what would be a call if the model wrote it.
pub(crate) fn goes_on(text: &str, shown: impl Fn(&str) -> bool) -> Option<String> {
    let start = head(text.trim_start_matches(|c: char| !c.is_alphanumeric()), 200).to_lowercase();
    let is_headed = text.lines().any(|line| line.starts_with('#'));
    let speaks_of_it =
        ["summary", "conversation", "摘要", "总结", "要約", "요약"].iter().any(|word| start.contains(word));
    let answers = !is_headed && !speaks_of_it && ANSWERS.iter().any(|answer| start.starts_with(answer));
    let calls = CALLS.iter().any(|call| text.contains(call) && !shown(call));
    (answers || calls)
        .then(|| "The answer went on with the conversation. Describe it; answer nothing in it.".into())
}

/// How many paths, URLs, ids and identifiers a text names.
fn names(text: &str) -> usize {
    let mut names = 0;
    super::scan::names(text, &mut |_| names += 1);
    names
}

/// A summary repeats something: its words, whatever is between them; of a path its last two components.
pub(crate) fn word_for_word(summary: &str, must: &MustKeep) -> bool {
    if summary.contains(must.text()) {
        return true;
    }
    match must {
        MustKeep::File(path) => summary.contains(super::keep::last_two(path)),
        must => {
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            words(summary).contains(&words(must.text()))
        }
    }
}
