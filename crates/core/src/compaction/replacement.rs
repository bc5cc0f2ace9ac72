//! One text that leaves its message, and what stands where it was.

use super::replace::{begins, mark, reference_of};
use crate::context::{Item, Offload, Place, Placeholder};
use crate::error::Result;
use crate::keys::ids;
use crate::log::{NewBlob, View};
use crate::wire;
use serde_json_borrow::Value;
use std::cell::OnceCell;

/// One message with results or inputs to replace.
#[derive(Debug, Clone)]
pub(super) struct Move {
    /// Position in the context.
    pub(crate) at: usize,
    /// The message.
    pub(crate) item: Item,
    /// The results.
    pub(crate) blobs: Vec<Replacement>,
}

/// A result or an input on its way to the store, and what stands where it was.
#[derive(Debug, Clone)]
pub(super) struct Replacement {
    /// The result.
    pub(crate) blob: NewBlob,
    /// What stands there now.
    pub(crate) text: String,
    /// Tokens of the result, where they were estimated.
    pub(crate) tokens: Option<usize>,
}

/// A text of the context that may be replaced.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replaceable<'a> {
    /// Its message.
    pub(super) item: &'a Item,
    /// Where that is.
    pub(super) place: Place,
    /// Which of its kind in the message, from 0.
    pub(super) nth: usize,
    /// The text.
    pub(super) text: &'a str,
    /// What it takes, once that was asked for.
    pub(super) tokens: &'a OnceCell<usize>,
}

impl Replaceable<'_> {
    /// Tokens of the text, by the estimate.
    pub(super) fn tokens(&self, view: &View) -> usize {
        *self.tokens.get_or_init(|| view.settings.estimator.text(self.text))
    }
}

impl Move {
    /// Tokens that it frees, by the estimate.
    pub(super) fn frees(&self, view: &View) -> Result<usize> {
        self.blobs.iter().map(|new| new.frees(view, &self.item)).sum()
    }
}

impl Replacement {
    /// With what `write` makes of its reference in its place.
    pub(super) fn new(
        view: &View,
        Replaceable { place, nth, text, tokens, .. }: Replaceable<'_>,
        how: Placeholder,
        write: impl FnOnce(&str) -> String,
    ) -> Self {
        let references = &view.references;
        let reference = reference_of(&references.secret, place.index, how, nth);
        let stands = write(&reference);
        let sha256 = ids::sha256_hex(text.as_bytes());
        let offload = Offload { nth, reference, sha256, chars: text.chars().count(), how, basis: None };
        let logged = references.logged.then_some(place.seq);
        let blob = NewBlob::new(place.index, offload, text, logged);
        Replacement { blob, text: stands, tokens: tokens.get().copied() }
    }

    /// With what tells a model whether to read it again: what it is the result of, what became of that since (`since`), its length,
    /// what reads it, how it began.
    pub(super) fn stub(view: &View, piece: Replaceable<'_>, since: Option<&str>) -> Self {
        let mut stub = Replacement::new(view, piece, Placeholder::Preview, |_| String::new());
        let Offload { chars, reference, .. } = &stub.blob.offload;
        stub.text = begins(mark(view, piece, since, *chars, reference), piece.text);
        stub
    }

    /// The input of a call, with a reference in place of its long texts; nothing when it has none.
    pub(super) fn input(view: &View, piece: Replaceable<'_>) -> Option<Self> {
        let mut value: Value<'_> = serde_json::from_str(piece.text).ok().filter(Value::is_object)?;
        let mut new = Replacement::new(view, piece, Placeholder::Input, |_| String::new());
        let reference = &new.blob.offload.reference;
        let write = |text: &str| {
            let chars = text.chars().count();
            let told = match view.references.named {
                true => format!("Tool input is at: {reference} ({chars} characters)"),
                false => format!("Tool input of {chars} characters, left out"),
            };
            (chars > LONG_TEXT).then(|| begins(told, text))
        };
        if !replace_texts(&mut value, &write) {
            return None;
        }
        new.text = crate::wire::ordered_json(&value);
        Some(new)
    }

    /// Tokens that it frees in its message, by the estimate.
    pub(super) fn frees(&self, view: &View, item: &Item) -> Result<usize> {
        Ok(self.stands_for(view, item)?.saturating_sub(view.settings.estimator.text(&self.text)))
    }

    /// Tokens of the text of its message that it stands for, by the estimate.
    pub(super) fn stands_for(&self, view: &View, item: &Item) -> Result<usize> {
        if let Some(tokens) = self.tokens {
            return Ok(tokens);
        }
        let value = wire::parse(self.blob.index, &item.body)?;
        let message = view.format.wire().read(self.blob.index, &value)?;
        let text = self.blob.offload.text_in(&message);
        Ok(view.settings.estimator.text(text.unwrap_or_default()))
    }
}

/// Replaces the texts in a value for which `write` has something else; true when there was one.
fn replace_texts(value: &mut Value<'_>, write: &impl Fn(&str) -> Option<String>) -> bool {
    match value {
        Value::Str(text) => {
            let Some(stands) = write(text) else { return false };
            *text = stands.into();
            true
        }
        // Every value is visited: `any` would stop at the first that was replaced.
        Value::Array(values) => {
            values.iter_mut().map(|value| replace_texts(value, write)).filter(|replaced| *replaced).count()
                > 0
        }
        Value::Object(fields) => {
            let keys: Vec<String> = fields.keys().map(str::to_string).collect();
            let replaced =
                |key: &&String| fields.get_mut(key).is_some_and(|value| replace_texts(value, write));
            keys.iter().filter(replaced).count() > 0
        }
        _ => false,
    }
}

/// Texts of an input that are no longer than this stay in it, in characters.
const LONG_TEXT: usize = 300;
