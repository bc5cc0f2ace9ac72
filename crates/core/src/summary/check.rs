//! Which answers are summaries (`S5.16`). A rejected answer changes nothing; the next attempt is given its reason.

use super::prompt::{REQUEST, SummaryRequest};
use super::verify::goes_on;
use crate::tokens::Estimator;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Shorter answers are not summaries (`S5.16`), in characters.
const LEAST_CHARS: usize = 20;

/// Error texts and refusals are looked for in answers up to this long, in characters; a summary may *report* an error.
const SHORT: usize = 600;

/// Words in one shingle of the comparison with the prompt.
const SHINGLE: usize = 8;

/// Why an answer was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// A sentence or two that can be said to the model: what was wrong, what to write instead.
    pub reason: String,
}

/// The text of `answer` to use: without the fence, tags or thinking around it.
///
/// `replaced_tokens` is what the summary takes the place of. Longer than the *target* is accepted (`S1.7`).
///
/// # Errors
///
/// The answer is empty, shorter than 20 characters, headings with nothing under them, an error message, a refusal, the
/// next turn of the conversation, a copy of the prompt or of the transcript, or longer than what it replaces.
pub fn check(
    answer: &str,
    request: &SummaryRequest,
    replaced_tokens: usize,
    estimator: Estimator,
) -> Result<String, Rejection> {
    let text = unwrap(answer);
    let reject = |reason: &str| Err(Rejection { reason: reason.to_string() });
    if !text.chars().any(char::is_alphanumeric) {
        return reject("The answer was empty. Write the summary as text.");
    }
    let chars = text.chars().count();
    if chars < LEAST_CHARS {
        return reject("The answer was too short to be a summary. Write the whole summary.");
    }
    if is_skeleton(text) {
        return reject(
            "The answer had headings and nothing under them. Write under each what the conversation says.",
        );
    }
    let structured = text.lines().any(|line| line.starts_with("## "));
    if !structured && chars <= SHORT {
        let start = text.trim_start_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        if ERRORS.iter().any(|error| start.starts_with(error)) {
            return reject("The answer was an error message. Write the summary of the conversation.");
        }
        if REFUSALS.iter().any(|refusal| start.starts_with(refusal)) {
            return reject(
                "The answer was a refusal. Only a description of the conversation is asked for: write the summary.",
            );
        }
    }
    let content = request.messages.iter().map(|message| message.content.as_str());
    // Our own transcript is made of calls as text; JSON of calls is something that a conversation may be about.
    let shown = |call: &str| {
        call.starts_with('"')
            && (request.messages.is_empty() || content.clone().any(|content| content.contains(call)))
    };
    if let Some(reason) = goes_on(text, shown) {
        return Err(Rejection { reason });
    }
    if echoes_prompt(text, request) {
        return reject("The answer repeated the prompt. Write the summary that the prompt describes.");
    }
    if echoes_fence(text) || (!structured && content.into_iter().any(|content| echoes(text, content))) {
        return reject("The answer repeated the conversation. Summarize it in your own words.");
    }
    let tokens = estimator.text(text);
    if tokens > replaced_tokens {
        return Err(Rejection {
            reason: format!(
                "The summary ({tokens} tokens) was longer than the conversation that it replaces ({replaced_tokens} tokens). Write a much shorter one."
            ),
        });
    }
    Ok(text.to_string())
}

/// What models write under a heading that they have nothing for, lower case.
const NOTHING: [&str; 14] = [
    "none",
    "n/a",
    "na",
    "nil",
    "nothing",
    "nothing yet",
    "not applicable",
    "unknown",
    "empty",
    "tbd",
    "无",
    "暂无",
    "なし",
    "없음",
];

/// Headings, and under every one of them nothing, or the same few words.
fn is_skeleton(text: &str) -> bool {
    let (headings, lines): (Vec<&str>, Vec<&str>) =
        text.lines().map(str::trim).partition(|line| line.starts_with('#'));
    let mut times: HashMap<String, usize> = HashMap::new();
    for line in lines {
        let said = line.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        if !said.is_empty() && !NOTHING.contains(&said.as_str()) {
            *times.entry(said).or_default() += 1;
        }
    }
    let everywhere = |times: usize| headings.len() > 1 && times >= headings.len();
    !headings.is_empty() && times.values().all(|&times| everywhere(times))
}

/// Openings of error texts that other systems have put into a history, lower case.
const ERRORS: [&str; 11] = [
    "error generating summary",
    "error:",
    "error\":",
    "an error occurred",
    "failed to generate",
    "failed to summari",
    "unable to generate",
    "internal server error",
    "rate limit exceeded",
    "too many requests",
    "service unavailable",
];

/// Openings of refusals, lower case.
const REFUSALS: [&str; 19] = [
    "i'm sorry",
    "i’m sorry",
    "i am sorry",
    "sorry,",
    "i can't",
    "i can’t",
    "i cannot",
    "i'm unable",
    "i am unable",
    "as an ai",
    "抱歉",
    "很抱歉",
    "对不起",
    "我无法",
    "申し訳",
    "죄송",
    "es tut mir leid",
    "je suis désolé",
    "lo siento",
];

/// Takes away what models put around a summary: thinking, a tag, a code fence, our own marker.
fn unwrap(answer: &str) -> &str {
    let mut text = answer.trim();
    loop {
        let inside = ["think", "thinking", "analysis"].iter().find_map(|tag| after_element(text, tag));
        let next = inside
            .or_else(|| inside_tag(text, "summary"))
            .or_else(|| inside_fence(text))
            .or_else(|| text.strip_prefix("[Compressed History]"))
            .map(str::trim);
        match next {
            Some(inner) => text = inner,
            None => return text,
        }
    }
}

/// What follows a leading `<tag>…</tag>`; nothing when it is never closed.
fn after_element<'t>(text: &'t str, tag: &str) -> Option<&'t str> {
    let rest = text.strip_prefix('<')?.strip_prefix(tag)?.strip_prefix('>')?;
    Some(rest.split_once(&format!("</{tag}>")).map_or("", |(_, after)| after))
}

/// What a leading `<tag>` holds, up to its closing tag or the end.
fn inside_tag<'t>(text: &'t str, tag: &str) -> Option<&'t str> {
    let rest = text.strip_prefix('<')?.strip_prefix(tag)?.strip_prefix('>')?;
    Some(rest.rsplit_once(&format!("</{tag}>")).map_or(rest, |(inside, _)| inside))
}

/// What a code fence around the whole text holds.
fn inside_fence(text: &str) -> Option<&str> {
    let (_, rest) = text.strip_prefix("```")?.split_once('\n')?;
    let inside = rest.strip_suffix("```")?;
    let mut open = false;
    for mark in inside.lines().filter_map(|line| line.trim_start().strip_prefix("```")) {
        // A bare mark that closes nothing inside closes the first fence: the text is not one block.
        if mark.trim().is_empty() && !open {
            return None;
        }
        open = !mark.trim().is_empty();
    }
    Some(inside)
}

/// More than half of the answer's word sequences are in the prompt's own text.
fn echoes_prompt(text: &str, request: &SummaryRequest) -> bool {
    let asked = request.thread.as_ref().map_or("", |thread| &thread.instruction);
    let own: HashSet<u64> =
        shingles(&request.system).chain(shingles(REQUEST)).chain(shingles(asked)).collect();
    let (mut all, mut known) = (0_usize, 0_usize);
    for shingle in shingles(text) {
        all += 1;
        known += usize::from(own.contains(&shingle));
    }
    // Too short for a sequence: the prompt may hold it whole.
    known * 2 > all || (all == 0 && (request.system.contains(text) || REQUEST.contains(text)))
}

/// Hashes of the sequences of [`SHINGLE`] words; in scripts without blanks a character is a word.
fn shingles(text: &str) -> impl Iterator<Item = u64> {
    let mut words: Vec<u64> = Vec::new();
    let mut word = String::new();
    let close = |word: &mut String, words: &mut Vec<u64>| {
        if !word.is_empty() {
            words.push(hash(word.as_str()));
            word.clear();
        }
    };
    for character in text.chars() {
        if character.is_ascii_alphanumeric() {
            word.push(character.to_ascii_lowercase());
        } else if character.is_alphanumeric() {
            if character > '\u{2E7F}' {
                close(&mut word, &mut words);
                words.push(hash(character));
            } else {
                word.extend(character.to_lowercase());
            }
        } else {
            close(&mut word, &mut words);
        }
    }
    close(&mut word, &mut words);
    let count = (words.len() + 1).saturating_sub(SHINGLE);
    (0..count).filter_map(move |at| words.get(at..at + SHINGLE).map(hash))
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The answer holds blocks of our transcript, or of the checkpoints that it was to take the place of.
fn echoes_fence(text: &str) -> bool {
    text.lines().any(|line| {
        line.starts_with("<message index=\"")
            || line.starts_with("<conversation messages=")
            || line.trim_end() == "<previous_summary>"
    })
}

/// At least three of five equal stretches of the answer are in `content` verbatim. Quotations in a summary are
/// shorter; the stretches of a short answer would be mere words, so that it is compared only from 200 bytes on.
fn echoes(text: &str, content: &str) -> bool {
    let fifth = text.len() / 5;
    if fifth < 40 {
        return false;
    }
    let copied = (0..5).filter(|part| {
        let from = super::text::head(text, part * fifth).len();
        let rest = text.get(from..).unwrap_or("");
        content.contains(super::text::head(rest, fifth))
    });
    copied.count() >= 3
}
