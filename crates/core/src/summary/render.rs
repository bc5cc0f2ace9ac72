//! The transcript as a summariser reads it: one fenced block for each message, with a fence that content cannot forge.
//!
//! Grammar (the line break after each text belongs to the fence, not to the text):
//!
//! ```text
//! <message index="0" role="assistant">
//! prose, as it is
//! <reasoning>
//! visible reasoning, shortened
//! </reasoning>
//! <tool_call name="read_file">
//! {"path": "src/lib.rs"}
//! </tool_call>
//! </message>
//! <message index="1" role="tool">
//! <tool_result name="read_file" error="true">
//! the result
//! [image]
//! </tool_result>
//! </message>
//! ```
//!
//! A message that is not the app's own, as an earlier summary, has no index.
//!
//! Escaping touches nothing but the names of our own tags, so that code stays readable. `<`, blanks, `/` and one of
//! [`TAGS`] in any letter case, ended by something that can end a tag's name, becomes `&lt;` and the rest. Content that
//! holds such an escape already gets one `amp;` more, so that unescaping is exact.

use super::facts::Fact;
use super::message_facts::NamedFacts;
use super::prompt::PromptOptions;
use super::text::{first_words, head, last_words, tail};
use crate::message::{Media, MediaKind, Message, Part, Role};
use crate::tokens::Estimator;
use context_compactor_scan::base64;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

/// The names of our tags.
pub(super) const TAGS: [&str; 9] = [
    "conversation",
    "message",
    "tool_call",
    "tool_result",
    "reasoning",
    "omitted",
    "previous_summary",
    "file",
    "goal",
];

/// From this many characters on, a run of base64 characters is taken for encoded bytes.
const BASE64_RUN: usize = 512;

/// Visible reasoning is context, not record: more than this many tokens of one block are never shown.
const REASONING_TOKENS: usize = 300;

/// Names in attributes are cut at this many bytes.
const NAME_BYTES: usize = 128;

/// What a piece is, which decides when it is shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Tool arguments, tool results, reasoning: shortened first.
    Tool,
    /// What the model or the app said.
    Prose,
    /// What the user said, and an earlier summary: shortened last.
    User,
    /// Our own placeholder: never shortened.
    Placeholder,
}

/// One text of a message with the tags around it.
#[derive(Debug)]
pub(super) struct Piece<'a> {
    /// Opening tag, or nothing.
    pub(super) before: String,
    /// The text, encoded bytes replaced, not yet escaped.
    pub(super) text: Cow<'a, str>,
    /// Closing tag, or nothing.
    pub(super) after: String,
    /// What it is.
    pub(super) class: Class,
    /// The text is that of its message.
    pub(super) is_whole: bool,
}

/// One message: its opening tag and its pieces. [`CLOSE`] ends it.
#[derive(Debug)]
pub(super) struct MessageBlock<'a> {
    /// The opening tag.
    pub(super) open: String,
    /// Its contents, in order.
    pub(super) pieces: Vec<Piece<'a>>,
    /// Its texts were searched for secrets, and hold none.
    pub(super) clean: bool,
}

/// Messages that a request shows.
#[derive(Debug)]
pub(crate) struct ShownMessages<'a> {
    pub(crate) messages: &'a [Message<'a>],
    /// Which of them.
    pub(crate) of: Range<usize>,
    /// What all messages name.
    pub(crate) named: &'a NamedFacts,
    /// Which of all messages were searched for secrets, and hold none; not known of those that are missing here.
    pub(crate) clean: &'a [bool],
}

impl ShownMessages<'_> {
    /// Their facts, best first.
    pub(super) fn facts(&self) -> Vec<Fact> {
        self.named.facts(self.messages, self.of.clone())
    }
}

/// What closes a message.
pub(super) const CLOSE: &str = "</message>\n";

/// Reads messages into blocks, borrowing their texts. A result says the name of its tool, though its call may be before them.
pub(super) fn blocks_of<'a>(shown: &ShownMessages<'a>, options: &PromptOptions<'_>) -> Vec<MessageBlock<'a>> {
    let (messages, of) = (shown.messages, &shown.of);
    let mut waiting: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut blocks = Vec::with_capacity(of.len());
    for (position, message) in messages.iter().enumerate().take(of.end) {
        let mut pieces = Vec::with_capacity(message.parts.len());
        for part in &message.parts {
            let name = match part {
                // Calls and results are paired by order, because ids repeat across turns.
                Part::ToolResult(result) => waiting.get_mut(result.call_id.as_ref()).and_then(Vec::pop),
                _ => None,
            };
            if of.contains(&position)
                && let Some(piece) = piece(part, message.role, name, options.estimator)
            {
                add(&mut pieces, piece);
            }
            if let Part::ToolCall(call) = part {
                waiting.entry(&call.id).or_default().push(&call.name);
            }
        }
        if of.contains(&position) {
            let index =
                options.index(position).map(|index| format!(" index=\"{index}\"")).unwrap_or_default();
            let open = format!("<message{index} role=\"{}\">\n", message.role.as_str());
            let clean = shown.clean.get(position).copied().unwrap_or(false);
            blocks.push(MessageBlock { open, pieces, clean });
        }
    }
    blocks
}

/// Adds a piece. Prose that follows prose becomes one piece with it: each escaped alone, two halves of a tag would
/// meet in the transcript.
fn add<'a>(pieces: &mut Vec<Piece<'a>>, piece: Piece<'a>) {
    let is_prose = |piece: &Piece<'_>| matches!(piece.class, Class::User | Class::Prose);
    match pieces.last_mut() {
        Some(last) if is_prose(last) && is_prose(&piece) => {
            let text = last.text.to_mut();
            text.push('\n');
            text.push_str(&piece.text);
            last.is_whole &= piece.is_whole;
        }
        _ => pieces.push(piece),
    }
}

/// A part of a message as a piece; `name` is that of a result's tool.
fn piece<'a>(part: &'a Part<'_>, role: Role, name: Option<&str>, estimator: Estimator) -> Option<Piece<'a>> {
    let piece = |before: String, text: Cow<'a, str>, after: String, class| {
        let is_whole = matches!(text, Cow::Borrowed(_));
        Piece { before, text, after, class, is_whole }
    };
    let bare = |text, class| piece(String::new(), text, String::new(), class);
    Some(match part {
        Part::Text(text) => {
            bare(without_base64(text), if role == Role::User { Class::User } else { Class::Prose })
        }
        // Signed reasoning is the provider's: it means something only where it is.
        Part::Reasoning { text, signed } if *signed || text.trim().is_empty() => return None,
        Part::Reasoning { text, .. } => {
            let text = without_base64(text);
            let text = match clip_raw(&text, estimator.text(&text), REASONING_TOKENS, ClipAt::Anywhere) {
                Some((start, marker, end)) => Cow::Owned(format!("{start}{marker}{end}")),
                None => text,
            };
            piece("<reasoning>\n".into(), text, "</reasoning>\n".into(), Class::Tool)
        }
        Part::ToolCall(call) => piece(
            format!("<tool_call name=\"{}\">\n", attribute(&call.name)),
            without_base64(&call.arguments),
            "</tool_call>\n".into(),
            Class::Tool,
        ),
        Part::ToolResult(result) => {
            let mut before = "<tool_result".to_string();
            if let Some(name) = name {
                let _ = write!(before, " name=\"{}\"", attribute(name));
            }
            before.push_str(if result.is_error { " error=\"true\">\n" } else { ">\n" });
            let mut after = String::new();
            for item in &result.media {
                after.push_str(&placeholder(item));
                after.push('\n');
            }
            after.push_str("</tool_result>\n");
            piece(before, without_base64(&result.text), after, Class::Tool)
        }
        Part::Media(item) => bare(Cow::Owned(placeholder(item)), Class::Placeholder),
        Part::Opaque { kind, .. } => {
            let kind: String = head(kind, NAME_BYTES)
                .chars()
                .filter(|c| c.is_alphanumeric() || "_-. ".contains(*c))
                .collect();
            bare(Cow::Owned(format!("[block: {kind}]")), Class::Placeholder)
        }
        Part::Compaction { .. } => bare(Cow::Owned("[block: compaction]".into()), Class::Placeholder),
    })
}

/// The placeholder of a picture, a document or a sound.
pub(super) fn placeholder(item: &Media) -> String {
    let name = match item.kind {
        MediaKind::Image => "image",
        MediaKind::Document => "document",
        MediaKind::Audio => "audio",
        MediaKind::Video => "video",
    };
    match item.bytes {
        0 => format!("[{name}]"),
        bytes => format!("[{name}, {} KB]", bytes.div_ceil(1000)),
    }
}

/// `text` with the names of our tags made harmless; borrowed when there are none.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut done, mut at) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        let opener = match byte {
            b'<' => 1,
            b'&' => escaped_bracket(bytes, at),
            _ => 0,
        };
        if opener > 0 && names_tag(bytes, at + opener) {
            out.push_str(text.get(done..at).unwrap_or(""));
            out.push_str(if byte == b'<' { "&lt;" } else { "&amp;" });
            done = at + 1;
        }
        at += opener.max(1);
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(done..).unwrap_or(""));
    Cow::Owned(out)
}

/// Length of `&lt;`, `&amp;lt;`, `&amp;amp;lt;` … at `at`, or 0.
fn escaped_bracket(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while bytes.get(end..).is_some_and(|rest| rest.starts_with(b"amp;")) {
        end += 4;
    }
    if bytes.get(end..).is_some_and(|rest| rest.starts_with(b"lt;")) { end + 3 - at } else { 0 }
}

/// True when the text from `at` on reads as the inside of one of our tags.
fn names_tag(bytes: &[u8], at: usize) -> bool {
    names_one_of(bytes, at, &[&TAGS])
}

/// True when the text from `at` on reads as the inside of a tag of one of these names. Generous: models are.
pub(super) fn names_one_of(bytes: &[u8], mut at: usize, names: &[&[&str]]) -> bool {
    while bytes.get(at).is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b'/') {
        at += 1;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    // A namespace before the name.
    let rest = rest.strip_prefix(b"antml:").unwrap_or(rest);
    names.iter().copied().flatten().any(|tag| {
        rest.get(..tag.len()).is_some_and(|name| name.eq_ignore_ascii_case(tag.as_bytes()))
            && rest.get(tag.len()).is_none_or(|next| next.is_ascii_whitespace() || b">/".contains(next))
    })
}

/// A value for between the quotes of an attribute.
pub(super) fn attribute(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for character in head(value, NAME_BYTES).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            control if control.is_control() => {
                let _ = write!(out, "&#{};", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out
}

/// `text` with long base64 runs replaced by `[base64, N characters]`; borrowed when there are none.
pub(super) fn without_base64(text: &str) -> Cow<'_, str> {
    let (mut out, mut done) = (String::new(), 0);
    base64::runs(text, BASE64_RUN, &mut |run| {
        out.push_str(text.get(done..run.start).unwrap_or(""));
        let _ = write!(out, "[base64, {} characters]", run.len());
        done = run.end;
    });
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(done..).unwrap_or(""));
    Cow::Owned(out)
}

/// Where a text may be cut: a page keeps its words and numbers whole, a request fills its room.
#[derive(Debug, Clone, Copy)]
pub(super) enum ClipAt {
    Anywhere,
    BetweenWords,
}

/// `text`, made safe by `safe` and at most `cap` tokens long: its start, a marker that counts what is missing, its end
/// (2 : 1). A cap below [`MARKER_TOKENS`] leaves the marker.
pub(super) fn clip(
    text: &str,
    tokens: usize,
    cap: usize,
    estimator: Estimator,
    at: ClipAt,
    safe: impl Fn(&str) -> Cow<'_, str>,
) -> String {
    let mut aim = cap;
    for _ in 0..8 {
        let Some((start, marker, end)) = clip_raw(text, tokens, aim, at) else { break };
        let clipped = format!("{}{marker}{}", safe(start), safe(end));
        let size = estimator.text(&clipped);
        if size <= cap {
            return clipped;
        }
        // Unevenly dense text: the ratio of the whole misjudges its ends.
        aim = (aim * cap / size.max(1)).min(aim * 7 / 8);
    }
    format!("[… {} characters left out …]", text.chars().count())
}

/// Start, marker and end of `text` (of `tokens` tokens) for about `cap` tokens; `None` when it fits as it is.
fn clip_raw(text: &str, tokens: usize, cap: usize, at: ClipAt) -> Option<(&str, String, &str)> {
    if tokens <= cap {
        return None;
    }
    let room = cap.saturating_sub(MARKER_TOKENS);
    // u128: the product of two lengths may pass 32 bits on wasm32.
    let bytes = usize::try_from(text.len() as u128 * room as u128 / tokens.max(1) as u128).unwrap_or(0);
    let start = match at {
        ClipAt::Anywhere => head(text, bytes - bytes / 3),
        ClipAt::BetweenWords => first_words(text, bytes - bytes / 3),
    };
    let rest = text.get(start.len()..).unwrap_or("");
    let end = match at {
        ClipAt::Anywhere => tail(rest, bytes / 3),
        ClipAt::BetweenWords => last_words(rest, bytes / 3),
    };
    let missing = rest.get(..rest.len() - end.len()).unwrap_or("").chars().count();
    Some((start, format!("[… {missing} characters left out …]"), end))
}

/// What the marker costs, generously.
pub(super) const MARKER_TOKENS: usize = 16;
