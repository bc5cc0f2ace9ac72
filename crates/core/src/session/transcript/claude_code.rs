//! Transcripts of Claude Code: messages of the Messages API in pieces. A line holds one block of what the model said, the
//! blocks of one response share their message's id, each tool result has a line of its own, and lines name the line that
//! they follow, so that a conversation that was rewound has branches.

use super::foreign::{ForeignEntry, ForeignSaid, Reader, Skipped, skip, unreadable};
use crate::clock::from_iso8601;
use crate::error::Result;
use crate::wire::Format;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;

/// Reads it, and puts the pieces together as the model was sent them: the response whole, then its results in one
/// message, results first.
#[derive(Default)]
pub(super) struct ClaudeCode {
    turns: Vec<ClaudeTurn>,
    /// Turns there were when a line had been read, by its id.
    places: HashMap<String, usize>,
    /// The turn of a response, by its message's id.
    responses: HashMap<String, usize>,
    /// The turn that made a tool call, by the call's id.
    calls: HashMap<String, usize>,
    skipped: Skipped,
}

struct ClaudeTurn {
    line: usize,
    at: Option<u64>,
    said: Utterance,
}

enum Utterance {
    /// Content of the user, JSON text.
    User(String),
    /// Blocks of a response, and what came back for its calls.
    Response { blocks: Vec<String>, results: Vec<String>, beside: Vec<String> },
    /// What the agent's own compaction wrote: content of the user.
    Summary(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaudeLine<'a> {
    #[serde(rename = "type")]
    kind: String,
    uuid: Option<String>,
    parent_uuid: Option<String>,
    timestamp: Option<String>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(default)]
    is_api_error_message: bool,
    #[serde(default)]
    is_compact_summary: bool,
}

#[derive(Deserialize)]
struct ClaudeMessage<'a> {
    id: Option<String>,
    #[serde(borrow)]
    content: &'a RawValue,
}

#[derive(Deserialize)]
struct ContentBlock {
    #[serde(rename = "type")]
    kind: Option<String>,
    id: Option<String>,
    tool_use_id: Option<String>,
}

impl Reader for ClaudeCode {
    fn format(&self) -> Format {
        Format::Anthropic
    }

    fn line(&mut self, number: usize, text: &str) -> Result<()> {
        let wrong = |error: serde_json::Error| unreadable(number, "Claude Code", &error);
        let line: ClaudeLine<'_> = crate::wire::objects::from_str(text).map_err(wrong)?;
        let at = line.timestamp.as_deref().and_then(from_iso8601);
        let left_out = match line.kind.as_str() {
            // A sub-agent's conversation is its own.
            _ if line.is_sidechain => Some("sidechain"),
            _ if line.is_api_error_message => Some("api_error"),
            "user" | "assistant" => None,
            other => Some(other),
        };
        match (left_out, line.message) {
            (None, Some(message)) => {
                let ClaudeMessage { id, content } =
                    crate::wire::objects::from_str(message.get()).map_err(wrong)?;
                if line.kind == "assistant" {
                    self.respond(number, at, id, content).map_err(wrong)?;
                } else if line.is_compact_summary {
                    self.turns.push(ClaudeTurn {
                        line: number,
                        at,
                        said: Utterance::Summary(content.get().into()),
                    });
                } else {
                    self.hear(number, at, line.parent_uuid.as_deref(), content).map_err(wrong)?;
                }
            }
            (what, _) => skip(&mut self.skipped, what.unwrap_or(&line.kind)),
        }
        if let Some(uuid) = line.uuid {
            self.places.insert(uuid, self.turns.len());
        }
        Ok(())
    }

    fn end(self: Box<Self>) -> Result<(Vec<ForeignEntry>, Skipped)> {
        let mut entries = Vec::with_capacity(self.turns.len());
        for ClaudeTurn { line, at, said } in self.turns {
            let mut add = |said| entries.push(ForeignEntry { line, at, said });
            match said {
                Utterance::User(content) => add(ForeignSaid::Message(message("user", &content))),
                Utterance::Summary(content) => add(ForeignSaid::Summary(message("user", &content))),
                Utterance::Response { blocks, mut results, beside } => {
                    add(ForeignSaid::Message(message("assistant", &array(&blocks))));
                    results.extend(beside);
                    if !results.is_empty() {
                        add(ForeignSaid::Message(message("user", &array(&results))));
                    }
                }
            }
        }
        Ok((entries, self.skipped))
    }
}

impl ClaudeCode {
    fn respond(
        &mut self,
        number: usize,
        at: Option<u64>,
        id: Option<String>,
        content: &RawValue,
    ) -> serde_json::Result<()> {
        let more = blocks(content)?;
        let place = id.as_ref().and_then(|id| self.responses.get(id)).copied().unwrap_or(self.turns.len());
        for (block, _) in &more {
            if let Some(id) = &block.id {
                self.calls.insert(id.clone(), place);
            }
        }
        let more = more.into_iter().map(|(_, text)| text);
        match self.turns.get_mut(place) {
            Some(ClaudeTurn { said: Utterance::Response { blocks, .. }, .. }) => blocks.extend(more),
            _ => {
                if let Some(id) = id {
                    self.responses.insert(id, place);
                }
                let said =
                    Utterance::Response { blocks: more.collect(), results: Vec::new(), beside: Vec::new() };
                self.turns.push(ClaudeTurn { line: number, at, said });
            }
        }
        Ok(())
    }

    fn hear(
        &mut self,
        number: usize,
        at: Option<u64>,
        parent: Option<&str>,
        content: &RawValue,
    ) -> serde_json::Result<()> {
        let heard = blocks(content)?;
        let is_result = |block: &ContentBlock| block.kind.as_deref() == Some("tool_result");
        let call = heard
            .iter()
            .find(|(block, _)| is_result(block))
            .and_then(|(block, _)| block.tool_use_id.as_ref());
        let place = call.and_then(|id| self.calls.get(id)).copied();
        if let Some(ClaudeTurn { said: Utterance::Response { results, beside, .. }, .. }) =
            place.and_then(|place| self.turns.get_mut(place))
        {
            for (block, text) in heard {
                if is_result(&block) { &mut *results } else { &mut *beside }.push(text);
            }
            return Ok(());
        }
        if call.is_none() {
            self.rewind(parent);
        }
        self.turns.push(ClaudeTurn { line: number, at, said: Utterance::User(content.get().into()) });
        Ok(())
    }

    /// Drops what followed the line that the user goes on from.
    fn rewind(&mut self, parent: Option<&str>) {
        let Some(&place) = parent.and_then(|parent| self.places.get(parent)) else { return };
        if place >= self.turns.len() {
            return;
        }
        for _ in self.turns.drain(place..) {
            skip(&mut self.skipped, "abandoned");
        }
        self.places.retain(|_, at| *at <= place);
        self.calls.retain(|_, at| *at < place);
        self.responses.retain(|_, at| *at < place);
    }
}

/// The blocks of a content, which may be a text.
fn blocks(content: &RawValue) -> serde_json::Result<Vec<(ContentBlock, String)>> {
    if !content.get().starts_with('[') {
        let block = ContentBlock { kind: Some("text".into()), id: None, tool_use_id: None };
        return Ok(vec![(block, format!(r#"{{"type":"text","text":{}}}"#, content.get()))]);
    }
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get())?;
    blocks
        .into_iter()
        .map(|raw| Ok((crate::wire::objects::from_str(raw.get())?, raw.get().to_owned())))
        .collect()
}

fn message(role: &str, content: &str) -> String {
    format!(r#"{{"role":"{role}","content":{content}}}"#)
}

fn array(blocks: &[String]) -> String {
    format!("[{}]", blocks.join(","))
}
