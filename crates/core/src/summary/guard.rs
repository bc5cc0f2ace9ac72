//! What a text of a model may be in a context (`S5.16`): nothing in it can pose as a turn, a tag, a template of a chat, a
//! marker of this library or a reference. What it says stays; what it could be taken for goes.

use super::extractive::escape_markers;
use super::render::{TAGS, names_one_of};
use std::borrow::Cow;

/// Names of tags that a model or its host takes for structure, beside those of our own frames.
const TAGS_OF_OTHERS: [&str; 20] = [
    "summary",
    "system",
    "system-reminder",
    "user",
    "assistant",
    "human",
    "think",
    "thinking",
    "function_call",
    "function_calls",
    "function_results",
    "invoke",
    "tool_calls",
    "tool_use",
    "start_of_turn",
    "end_of_turn",
    "bos",
    "eos",
    "sys",
    "s",
];

/// Tokens of chat templates in square brackets.
const BRACKETS: [&str; 6] =
    ["[INST]", "[/INST]", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"];

/// Who speaks in a transcript, lower case.
const SPEAKERS: [&str; 9] =
    ["human", "user", "assistant", "ai", "system", "developer", "tool", "function", "instruction"];

/// The placeholder of a reference that is not of the messages.
const NO_REFERENCE: &str = "[unknown reference]";
/// Characters of the id in a reference.
const ID: usize = 26;

/// `text` with nothing in it that could be taken for more than text. `is_known` knows the references of the messages
/// that it replaces; others are taken out. Guarding it again changes nothing.
pub(crate) fn guarded(text: &str, is_known: &dyn Fn(&str) -> bool) -> String {
    let text = without_controls(text);
    let text = without_references(&text, is_known);
    let text = escape_markers(Cow::Borrowed(&text));
    let mut out = String::with_capacity(text.len());
    for (nth, line) in text.split('\n').enumerate() {
        if nth > 0 {
            out.push('\n');
        }
        let said = line.trim_start();
        if is_head(said) {
            out.push_str(line.get(..line.len() - said.len()).unwrap_or_default());
            out.push_str("> ");
            push_escaped(&mut out, said);
        } else {
            push_escaped(&mut out, line);
        }
    }
    out
}

/// Without characters that are not seen and change what is: controls, and marks of the direction of a text.
fn without_controls(text: &str) -> Cow<'_, str> {
    let is_control = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n").replace(is_control, ""))
}

/// Opens a turn, as transcripts do: a speaker and a colon, whatever emphasis there is around it.
fn is_head(line: &str) -> bool {
    let is_mark = |c: char| matches!(c, '#' | '*' | '_' | '`' | ' ' | '\t');
    let name = line.trim_start_matches(is_mark);
    SPEAKERS.iter().any(|speaker| {
        let is_named = name.get(..speaker.len()).is_some_and(|start| start.eq_ignore_ascii_case(speaker));
        let rest = name.get(speaker.len()..).unwrap_or_default().trim_start_matches(is_mark);
        is_named && rest.starts_with([':', '：'])
    })
}

/// A line with its tags and tokens of templates made text.
fn push_escaped(out: &mut String, line: &str) {
    let bytes = line.as_bytes();
    let mut done = 0;
    for (at, mark) in line.match_indices(['<', '[']) {
        let rest = line.get(at..).unwrap_or_default();
        let entity = match mark {
            "<" if rest.starts_with("<|") || rest.starts_with("<｜") => "&lt;",
            "<" if names_one_of(bytes, at + 1, &[&TAGS[..], &TAGS_OF_OTHERS[..]]) => "&lt;",
            "[" if BRACKETS.iter().any(|token| rest.starts_with(token)) => "&#91;",
            _ => continue,
        };
        out.push_str(line.get(done..at).unwrap_or_default());
        out.push_str(entity);
        done = at + 1;
    }
    out.push_str(line.get(done..).unwrap_or_default());
}

/// References that are not known taken out.
fn without_references<'t>(text: &'t str, is_known: &dyn Fn(&str) -> bool) -> Cow<'t, str> {
    let (mut out, mut done) = (String::new(), 0);
    for (at, reference) in references(text) {
        if !is_known(reference) {
            out.push_str(text.get(done..at).unwrap_or_default());
            out.push_str(NO_REFERENCE);
            done = at + reference.len();
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(out)
}

/// What has the shape of a reference, to a result or in brackets to a message, with its position.
fn references(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let offloads = text.match_indices("off_").filter_map(|(at, _)| Some((at, reference(text, at)?)));
    let messages = text.match_indices("[m").filter_map(|(at, _)| Some((at + 1, of_message(text, at + 1)?)));
    let found: Vec<(usize, &str)> = offloads.chain(messages).collect();
    crate::order::by_key(found, |(at, _)| *at as u64).into_iter()
}

/// Without brackets it may be the name of something: of a file type, or of a machine.
fn of_message(text: &str, at: usize) -> Option<&str> {
    let (word, _) = text.get(at..)?.split_once(']')?;
    let digits = word.strip_prefix('m')?.strip_suffix(|c: char| c.is_ascii_lowercase())?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(word)
}

fn reference(text: &str, at: usize) -> Option<&str> {
    let is_in_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if text.get(..at)?.ends_with(is_in_word) {
        return None;
    }
    let rest = text.get(at..)?;
    let word = rest.split(|c| !is_in_word(c)).next()?;
    let id = word.rsplit('_').next()?;
    let is_id =
        id.len() == ID && id.bytes().all(|byte| byte.is_ascii_lowercase() || (b'2'..=b'7').contains(&byte));
    is_id.then_some(word)
}
