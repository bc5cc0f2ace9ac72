//! What was moved to the store, and what stands in its place.

use super::basis::Basis;
use crate::keys::ids::{self, REFERENCE_PREFIX};
use crate::message::Message;
use crate::wire::read_fields;
use crate::wire::record::{Json, ReadJson, Unreadable, WriteJson};

/// A tool result in the store, or the input of a call, or a text of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offload {
    /// Which result of its message, from 0; which call, when it is the input of one. Of media, how many left the message before.
    pub nth: usize,
    /// `off_` + 26 characters.
    pub reference: String,
    /// Of its UTF-8 text, in hex; of media, of the JSON text of their block. Nothing once a summary stands for its message
    /// ([`Offload::retired`]).
    pub sha256: String,
    /// Characters; 0 of media.
    pub chars: usize,
    /// What replaces it.
    pub how: Placeholder,
    /// The result that what stands there leans on (`X2`): without it, it says nothing.
    pub basis: Option<Basis>,
}

// A view has one for each message that it shortens, and a whole one for each that its summaries cover: so it is short.
impl WriteJson for Offload {
    fn write(&self, out: &mut Vec<u8>) {
        let Offload { nth, reference, sha256, chars, how, basis } = self;
        let id = reference.strip_prefix(REFERENCE_PREFIX).unwrap_or(reference);
        (*nth, id.to_owned(), ids::short(sha256), *chars, *how, *basis).write(out);
    }
}

impl ReadJson<'_> for Offload {
    fn read(json: &mut Json<'_>) -> Result<Self, Unreadable> {
        if json.is_object() {
            // As releases up to schema 101 wrote it.
            return read_fields!(
                json,
                Offload,
                [
                    nth = "nth",
                    reference = "reference",
                    sha256 = "sha256",
                    chars = "chars",
                    how = "how" or nothing,
                    basis = "basis" or nothing
                ]
            );
        }
        let (nth, id, hash, chars, how, basis) =
            <(usize, String, String, usize, Placeholder, Option<Basis>)>::read(json)?;
        let reference = format!("{REFERENCE_PREFIX}{id}");
        Ok(Offload { nth, reference, sha256: ids::long(&hash), chars, how, basis })
    }
}

/// What replaces a tool result that was moved to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placeholder {
    /// Its reference (`S1.1`).
    #[default]
    Reference,
    /// Its reference and how it begins (`S3.8`).
    Preview,
    /// A mark that it was there (`S3.1`).
    Cleared,
    /// What a model made of it (`S2.1`, `S2.4`), or its own content (`S2.11`).
    Compressed,
    /// Its reference and what matters of it by the type of its tool (`S4.5`).
    Processed,
    /// It is the input of a call: its long texts are the reference, the rest of it is still there.
    Input,
    /// It is a text of the user: its reference, how it begins and how it ends.
    Text,
    /// Its reference and what differs from an earlier result, which stands in the context (`X1`).
    Difference,
    /// It is a picture, a document or the like: its reference, and what it was (`X5`). The log alone has it: nothing of it is
    /// stored a second time.
    Media,
}

crate::wire::named!(Placeholder {
    Reference = "reference",
    Preview = "preview",
    Cleared = "cleared",
    Compressed = "compressed",
    Processed = "processed",
    Input = "input",
    Text = "text",
    Difference = "difference",
    Media = "media",
});

impl Placeholder {
    /// What it stands for: a result, the input of a call, a text of the user, or media.
    pub(super) fn kind(self) -> u64 {
        match self {
            Placeholder::Input => 1,
            Placeholder::Text => 2,
            Placeholder::Media => 3,
            _ => 0,
        }
    }

    /// The texts of a message that it may stand for.
    pub(crate) fn texts<'a>(self, message: &'a Message<'_>) -> Vec<&'a str> {
        match self {
            Placeholder::Input => message.calls().map(|call| call.arguments.as_ref()).collect(),
            Placeholder::Text => message.texts().collect(),
            Placeholder::Media => Vec::new(),
            _ => message.results().map(|result| result.text.as_ref()).collect(),
        }
    }

    /// True when the reference itself is in the context.
    pub(crate) fn refers(self) -> bool {
        matches!(
            self,
            Placeholder::Reference
                | Placeholder::Preview
                | Placeholder::Processed
                | Placeholder::Input
                | Placeholder::Text
                | Placeholder::Difference
                | Placeholder::Media
        )
    }
}

impl Offload {
    /// True for a picture, a document or the like, which the log alone has.
    pub fn is_media(&self) -> bool {
        self.how == Placeholder::Media
    }

    /// True for a result; else it is the input of a call, a text of the user, or media.
    pub fn is_result(&self) -> bool {
        self.how.kind() == 0
    }

    /// Where it was in its message, in order: results, then inputs, then texts, then media.
    pub(crate) fn order(&self) -> u64 {
        (self.how.kind() << 32) | self.nth as u64
    }

    /// What it is in its message, whatever stands there now: the plainest placeholder of its kind.
    pub(crate) fn kind(&self) -> Placeholder {
        match self.how {
            how @ (Placeholder::Input | Placeholder::Text) => how,
            _ => Placeholder::Reference,
        }
    }

    /// As a summary has it that stands for its message. The session has them all for ever, so they are short: the hash is in the
    /// offload's own row, and in the view that moved its text.
    pub(crate) fn retired(&self) -> Offload {
        let sha256 = if self.is_media() { self.sha256.clone() } else { String::new() };
        Offload { sha256, ..self.clone() }
    }

    /// A text with this hash may be its own.
    pub(crate) fn is_of(&self, sha256: &str) -> bool {
        self.sha256.is_empty() || self.sha256 == sha256
    }

    /// Its text in the message as it was appended.
    pub fn text_in<'a>(&self, message: &'a Message<'_>) -> Option<&'a str> {
        self.how.texts(message).get(self.nth).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::record;
    use proptest::prelude::*;

    #[test]
    fn p4_an_offload_of_an_earlier_release_reads_as_one_of_this() {
        let hash = ids::sha256_hex(b"x");
        let long = format!(
            r#"{{"nth":1,"reference":"off_a","sha256":"{hash}","chars":5,"how":"difference","basis":{{"seq":7,"index":4,"nth":0}}}}"#
        );
        let offload: Offload = record::from_str(&long).unwrap();
        assert_eq!(offload.basis, Some(Basis { seq: 7, index: 4, nth: 0 }));
        let short = record::to_vec(&offload);
        assert!(short.len() < long.len() * 2 / 3, "{}", String::from_utf8(short).unwrap());
        assert_eq!(record::from_str::<Offload>(std::str::from_utf8(&short).unwrap()).unwrap(), offload);
    }

    proptest! {
        #[test]
        fn p4_an_offload_reads_as_it_was_written(nth: usize, id in "[a-z2-7]{26}", text: String, chars: usize, at in 0..9_usize, basis: Option<(u64, usize, usize)>) {
            use Placeholder::*;
            let how = [Reference, Preview, Cleared, Compressed, Processed, Input, Text, Difference, Media][at];
            let basis = basis.map(|(seq, index, nth)| Basis { seq, index, nth });
            let sha256 = ids::sha256_hex(text.as_bytes());
            let offload = Offload { nth, reference: format!("off_{id}"), sha256, chars, how, basis };
            let written = record::to_vec(&offload);
            prop_assert_eq!(record::from_str::<Offload>(std::str::from_utf8(&written).unwrap()).unwrap(), offload);
        }
    }
}
