//! Secrets are replaced in what a model is to summarise, and in what is written into a context in its place; what is
//! stored and what is kept of the app's messages stays as it is.
//!
//! Found are the shapes of well-known keys and tokens ([`Kind`]), without a model, so that nothing has to be asked not to
//! repeat them. A placeholder says the kind and a number: the same secret has the same one in a session for ever, so that
//! a summary can distinguish two of them and refer to each.
//!
//! [`erasure`] takes out of texts what only one message says, which is erased.

mod erasure;
mod searched;
#[cfg(test)]
mod tests;

pub(crate) use erasure::{Erasure, Own};
pub(crate) use searched::SearchedTexts;

use crate::keys::ids;
use crate::message::{Message, Part};
use crate::wire::work::{self, WorkDone};
use context_compactor_scan::secrets::{Kind, secrets_outside};
use std::borrow::Cow;
use std::ops::Range;

/// Secrets of a session that have numbers: a session's row stays small. Later ones are distinguished by
/// their kind alone.
const MOST: usize = 100;

/// A text is searched so often at most, until nothing is found in it.
const PASSES: usize = 8;

/// The secrets that have numbers, without the secrets: a mark of each that says its kind and half a hash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Secrets {
    /// What the hashes begin with.
    key: String,
    /// In the order in which they were found.
    marks: Vec<String>,
}

crate::wire::record!(Secrets {
    key = "key",
    marks = "marks",
} nothing if is_empty);

impl Secrets {
    /// None so far; their marks will depend on `key`.
    pub(crate) fn new(key: &str) -> Self {
        Secrets { key: ids::id(&[b"secrets", key.as_bytes()]), marks: Vec::new() }
    }

    /// True when none was found.
    pub(crate) fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// True when it has all of `other`, with the same numbers.
    pub(crate) fn continues(&self, other: &Secrets) -> bool {
        other.is_empty() || self.key == other.key && self.marks.starts_with(&other.marks)
    }

    /// `text` with a placeholder for each secret in it.
    pub(crate) fn redact<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        self.redact_outside(text, &[])
    }

    /// The same where some ranges, in order and apart, are all lines of texts that were searched, and that hold none.
    pub(crate) fn redact_outside<'t>(&mut self, text: &'t str, searched: &[Range<usize>]) -> Cow<'t, str> {
        let Some(mut redacted) = self.redact_once(text, searched) else { return Cow::Borrowed(text) };
        // What follows a secret may be one only when that is gone: `token: … mysql -p…`.
        for _ in 1..PASSES {
            let Some(again) = self.redact_once(&redacted, &[]) else { break };
            redacted = again;
        }
        Cow::Owned(redacted)
    }

    fn redact_once(&mut self, text: &str, searched: &[Range<usize>]) -> Option<String> {
        let mut out = String::new();
        let mut behind = 0;
        let looked = secrets_outside(text, searched, &mut |kind, range| {
            let placeholder = self.placeholder(kind, text.get(range.clone()).unwrap_or_default());
            out.push_str(text.get(behind..range.start).unwrap_or_default());
            out.push_str(&placeholder);
            behind = range.end;
        });
        work::note(WorkDone::Searched, looked);
        (behind > 0).then(|| out + text.get(behind..).unwrap_or_default())
    }

    /// Redacts what a summary is made from; true when there was anything to.
    pub(crate) fn redact_messages(
        &mut self,
        messages: &mut [Message<'_>],
        searched: &mut SearchedTexts,
    ) -> bool {
        let mut found = false;
        for part in messages.iter_mut().flat_map(|message| &mut message.parts) {
            let text = match part {
                Part::Text(text) | Part::Reasoning { text, .. } => text,
                Part::ToolCall(call) => &mut call.arguments,
                Part::ToolResult(result) => &mut result.text,
                Part::Media(_) | Part::Opaque { .. } | Part::Compaction { .. } => continue,
            };
            let mut redacted = None;
            let search = || {
                if let Cow::Owned(other) = self.redact(text) {
                    redacted = Some(other);
                }
                redacted.is_none()
            };
            if !searched.is_clean(text, search) {
                found = true;
            }
            if let Some(redacted) = redacted {
                *text = Cow::Owned(redacted);
            }
        }
        found
    }

    fn placeholder(&mut self, kind: Kind, secret: &str) -> String {
        let kind = kind.as_str();
        let hash = ids::hex(&ids::hash(&[self.key.as_bytes(), secret.as_bytes()]));
        let mark = format!("{kind} {}", hash.get(..16).unwrap_or_default());
        let is_alike = |other: &&String| other.split(' ').next() == Some(kind);
        let number = match self.marks.iter().position(|known| *known == mark) {
            Some(at) => self.marks.iter().take(at + 1).filter(is_alike).count(),
            None if self.marks.len() >= MOST => return format!("[redacted: {kind}]"),
            None => {
                self.marks.push(mark);
                self.marks.iter().filter(is_alike).count()
            }
        };
        format!("[redacted: {kind} {number}]")
    }
}
