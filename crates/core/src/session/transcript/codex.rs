//! Transcripts of Codex ("rollouts"): items of the Responses API, each in an envelope since its second release, among
//! events and settings.

use super::foreign::{ForeignEntry, ForeignSaid, Reader, Skipped, skip, unreadable};
use crate::clock::from_iso8601;
use crate::error::Result;
use crate::wire::{Author, Format};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Reads it. Items are kept byte for byte: they are what the model is sent.
#[derive(Default)]
pub(super) struct Codex {
    entries: Vec<ForeignEntry>,
    skipped: Skipped,
}

#[derive(Deserialize)]
struct CodexLine<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    timestamp: Option<String>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    record_type: Option<String>,
}

#[derive(Deserialize)]
struct ResponseItem {
    #[serde(rename = "type")]
    kind: String,
}

/// What the agent's own compaction wrote.
#[derive(Deserialize)]
struct CompactedLine {
    #[serde(default)]
    message: String,
}

/// Items that are for the agent itself.
const OWN_ITEMS: [&str; 2] = ["ghost_snapshot", "other"];

impl Reader for Codex {
    fn format(&self) -> Format {
        Format::OpenaiResponses
    }

    fn line(&mut self, number: usize, text: &str) -> Result<()> {
        let wrong = |error: serde_json::Error| unreadable(number, "Codex", &error);
        let line: CodexLine<'_> = crate::wire::objects::from_str(text).map_err(wrong)?;
        let at = line.timestamp.as_deref().and_then(from_iso8601);
        let (what, item) = match (line.kind.as_deref(), line.payload) {
            (Some("compacted"), Some(payload)) => {
                let CompactedLine { message } =
                    crate::wire::objects::from_str(payload.get()).map_err(wrong)?;
                if message.is_empty() {
                    // Only the provider can read what it wrote.
                    skip(&mut self.skipped, "compacted");
                    return Ok(());
                }
                let body = self.format().wire().text_message(Author::User, &message, "", None);
                self.entries.push(ForeignEntry { line: number, at, said: ForeignSaid::Summary(body) });
                return Ok(());
            }
            (Some("response_item"), Some(payload)) => ("response_item", payload.get()),
            (Some(other), Some(_)) => (other, ""),
            (Some(_), None) => ("", text),
            (None, _) => (line.record_type.as_deref().unwrap_or("session_meta"), ""),
        };
        if item.is_empty() {
            skip(&mut self.skipped, what);
            return Ok(());
        }
        let ResponseItem { kind } = crate::wire::objects::from_str(item).map_err(wrong)?;
        if OWN_ITEMS.contains(&kind.as_str()) {
            skip(&mut self.skipped, &kind);
        } else {
            self.entries.push(ForeignEntry { line: number, at, said: ForeignSaid::Message(item.to_owned()) });
        }
        Ok(())
    }

    fn end(self: Box<Self>) -> Result<(Vec<ForeignEntry>, Skipped)> {
        Ok((self.entries, self.skipped))
    }
}
