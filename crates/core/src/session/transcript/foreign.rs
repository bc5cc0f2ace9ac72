//! Transcripts that other agents keep: which lines say what the model was sent.

use super::claude_code::ClaudeCode;
use super::codex::Codex;
use super::import::TranscriptKind;
use crate::error::{Error, Result};
use crate::wire::Format;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Something of a foreign transcript that belongs to the conversation.
pub(super) struct ForeignEntry {
    /// The line that it begins in.
    pub(super) line: usize,
    /// ms since 1970, when the line says.
    pub(super) at: Option<u64>,
    /// A message of the conversation, or what the agent's own compaction put in the place of all before it: JSON text.
    pub(super) said: ForeignSaid,
}

pub(super) enum ForeignSaid {
    Message(String),
    Summary(String),
}

/// What lines were left out, by what they are.
pub(super) type Skipped = BTreeMap<String, usize>;

/// Reads the lines of one kind of transcript.
pub(super) trait Reader {
    /// The format of its messages.
    fn format(&self) -> Format;

    /// Takes a line, counted from 1.
    ///
    /// Errors: [`crate::Code::InvalidMessage`] when it is no line of such a transcript.
    fn line(&mut self, number: usize, text: &str) -> Result<()>;

    /// Whether its lines, all of which were taken, are a conversation.
    fn check(&mut self) -> Result<()> {
        Ok(())
    }

    /// The conversation, and what was left out.
    fn end(self: Box<Self>) -> Result<(Vec<ForeignEntry>, Skipped)>;
}

/// The reader for a transcript that begins with this line, when it is one that we know.
pub(super) fn reader(first: &str) -> Option<(TranscriptKind, Box<dyn Reader>)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct First<'a> {
        #[serde(rename = "type")]
        kind: Option<String>,
        #[serde(borrow)]
        payload: Option<&'a serde_json::value::RawValue>,
        #[serde(rename = "record_type")]
        record_type: Option<String>,
        id: Option<String>,
        timestamp: Option<String>,
        session_id: Option<String>,
        uuid: Option<String>,
        leaf_uuid: Option<String>,
        message_id: Option<String>,
    }
    let line: First<'_> = crate::wire::objects::from_str(first).ok()?;
    let of_codex = match &line.kind {
        Some(_) => line.payload.is_some(),
        // Its first release began with the session's own data.
        None => line.record_type.is_some() || line.id.is_some() && line.timestamp.is_some(),
    };
    if of_codex {
        return Some((TranscriptKind::Codex, Box::new(Codex::default())));
    }
    let ids = [&line.session_id, &line.uuid, &line.leaf_uuid, &line.message_id];
    let of_claude = line.kind.is_some() && ids.into_iter().any(Option::is_some);
    of_claude.then(|| (TranscriptKind::ClaudeCode, Box::new(ClaudeCode::default()) as Box<dyn Reader>))
}

/// Counts a line that is left out. What it says it is may be anything.
pub(super) fn skip(skipped: &mut Skipped, what: &str) {
    let what = what.chars().take(64).collect();
    *skipped.entry(what).or_default() += 1;
}

/// A line that cannot be read as what it is.
pub(super) fn unreadable(number: usize, of: &str, error: &serde_json::Error) -> Error {
    let what = format!(
        "it is no line of a transcript of {of}: {}; remove it to import the rest",
        crate::Error::of_json(error)
    );
    super::wrong_line(number, crate::Code::InvalidMessage, what)
}
