//! Transcripts that are nothing but messages, one in a line, in whatever format they are.

use super::foreign::{ForeignEntry, ForeignSaid, Reader, Skipped};
use super::import::TranscriptKind;
use super::{line_name, wrong_line};
use crate::error::{Code, Error, Result};
use crate::wire::{self, Format};

/// Reads them. They are kept byte for byte.
struct Messages {
    /// What the app says, or all of them show.
    format: Format,
    is_given: bool,
    entries: Vec<ForeignEntry>,
}

/// The reader of messages, when a transcript begins with one.
pub(super) fn reader(first: &str, given: Option<Format>) -> Option<(TranscriptKind, Box<dyn Reader>)> {
    let value = wire::parse(0, first).ok()?;
    let format = match given {
        Some(format) => format.wire().read(0, &value).ok().map(|_| format)?,
        None => wire::detect(std::slice::from_ref(&value)).ok()?,
    };
    Some((
        TranscriptKind::Messages,
        Box::new(Messages { format, is_given: given.is_some(), entries: Vec::new() }),
    ))
}

impl Reader for Messages {
    fn format(&self) -> Format {
        self.format
    }

    fn line(&mut self, number: usize, text: &str) -> Result<()> {
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
            let what = format!("it is no message: {}; remove it to import the rest", Error::of_json(&error));
            return Err(wrong_line(number, Code::InvalidMessage, what));
        }
        self.entries.push(ForeignEntry {
            line: number,
            at: None,
            said: ForeignSaid::Message(text.to_owned()),
        });
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        if self.is_given {
            return Ok(());
        }
        let said = self.entries.iter().map(|entry| match &entry.said {
            ForeignSaid::Message(json) | ForeignSaid::Summary(json) => wire::parse(0, json),
        });
        let values = said.collect::<Result<Vec<_>>>()?;
        self.format = wire::detect(&values).map_err(|mut error| {
            let line =
                error.index.and_then(|index| self.entries.get(index)).map(|entry| line_name(entry.line));
            error.field = line.or(error.field.take());
            error.index = None;
            error
        })?;
        Ok(())
    }

    fn end(self: Box<Self>) -> Result<(Vec<ForeignEntry>, Skipped)> {
        Ok((self.entries, Skipped::new()))
    }
}
