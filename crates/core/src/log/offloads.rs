//! Offloads in the store. Part 0 says what it is, and where its text is: in a message of the log, word for word, which it
//! names by the row and the part of the message; or, where the log does not have it so, in parts from 1 on, of at most
//! 1 MiB of its UTF-8 bytes each. Releases before this one wrote those alone, and find a text that has none in its message.
//! A reference is resolved by table only: the rows under this session and this id, or nothing.

use super::record::RowKind;
use super::staging::BIG;
use super::stored::{place_among, row_at};
use super::{record, wide};
use crate::context::{Offload, Placeholder};
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Key, KeyPart, keys};
use crate::keys::ids;
use crate::step::{Io, Scan};
use crate::wire::{self, Format, ShownMedia};
use serde_json_borrow::Value;
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

/// A text on its way into the store.
#[derive(Debug, Clone)]
pub(crate) struct NewBlob {
    /// Index of the message it comes from.
    pub(crate) index: usize,
    /// What it becomes.
    pub(crate) offload: Offload,
    /// Bytes of its text.
    pub(crate) bytes: usize,
    /// Its text; empty on the way into the store where the log has it: it may be large.
    pub(crate) text: Rc<str>,
    /// Position in the log of the message that has it, in a format that is sure; else its text is stored a second time.
    pub(crate) logged: Option<u64>,
}

impl NewBlob {
    /// One with this text, which is in the message at position `logged` of the log, if there is one.
    pub(crate) fn new(index: usize, offload: Offload, text: &str, logged: Option<u64>) -> Self {
        let kept = if logged.is_some() { "" } else { text };
        NewBlob { index, offload, bytes: text.len(), text: kept.into(), logged }
    }

    /// Rows that it takes in the batch that refers to it.
    pub(crate) fn rows(&self) -> usize {
        if self.offload.is_media() {
            return 0;
        }
        if self.is_big() { 2 } else { self.copied().div_ceil(PART) + 1 }
    }

    /// Too large for the batch that refers to it.
    pub(crate) fn is_big(&self) -> bool {
        self.copied() > BIG
    }

    /// Bytes of its text that are stored beside the log.
    fn copied(&self) -> usize {
        if self.logged.is_some() { 0 } else { self.bytes }
    }

    /// Its row, where that names a message of the log.
    pub(crate) fn logged_row(&self) -> Option<Vec<u8>> {
        self.logged.map(|_| record::encode(&self.head()))
    }

    fn head(&self) -> BlobHead {
        BlobHead {
            v: record::SCHEMA,
            chars: self.offload.chars,
            parts: self.copied().div_ceil(PART) as u64,
            sha256: self.offload.sha256.clone(),
            index: self.index,
            nth: self.offload.nth,
            bytes: self.bytes,
            row: self.logged,
            how: self.offload.kind(),
        }
    }

    /// Its rows in the store, one at a time.
    pub(crate) fn rows_of(&self, sid: &str) -> Result<impl Iterator<Item = (Key, Vec<u8>)>> {
        let bytes = self.text.as_bytes();
        let reference = &self.offload.reference;
        let head = (keys::blob(sid, reference, 0), record::encode(&self.head()));
        let parts = bytes.get(..self.copied()).unwrap_or_default().chunks(PART).enumerate();
        let key = move |part: usize| keys::blob(sid, reference, part as u64 + 1);
        Ok(std::iter::once(head).chain(parts.map(move |(part, bytes)| (key(part), bytes.to_vec()))))
    }
}

/// Bytes of one part.
pub(crate) const PART: usize = 1 << 20;

/// Part 0 of an offload.
#[derive(Debug)]
struct BlobHead {
    v: u32,
    bytes: usize,
    chars: usize,
    parts: u64,
    sha256: String,
    /// Message and result it comes from.
    index: usize,
    nth: usize,
    /// Position in the log of the message that has its text; else the text is in parts.
    row: Option<u64>,
    /// What it is in that message, as a placeholder: a result, an input or a text.
    how: Placeholder,
}

crate::wire::record!(BlobHead {
    v = "v",
    bytes = "bytes",
    chars = "chars",
    parts = "parts",
    sha256 = "sha256",
    index = "index",
    nth = "nth",
    row = "row" or nothing,
    how = "how" or nothing,
});

/// An offload from the values of its parts and the bodies of messages, by their indices, for who has them at hand.
///
/// Errors: [`Code::StoreCorrupt`].
pub(crate) fn assemble<'v>(
    reference: &str,
    format: Format,
    part: impl Fn(u64) -> Option<&'v [u8]>,
    body: impl Fn(usize) -> Option<&'v str>,
) -> Result<NewBlob> {
    let corrupt = || corrupt(reference);
    let head: BlobHead = record::decode(part(0).ok_or_else(corrupt)?, "offload")?;
    if head.row.is_some() {
        let body = body(head.index).ok_or_else(corrupt)?;
        let found = blob(reference, head, String::new());
        return found.in_message(format, body)?.ok_or_else(corrupt);
    }
    let parts = (1..=head.parts).map(|number| part(number).ok_or_else(corrupt));
    let text = whole(reference, &head, parts.collect::<Result<Vec<_>>>()?.concat())?;
    Ok(blob(reference, head, text))
}

fn whole(reference: &str, head: &BlobHead, bytes: Vec<u8>) -> Result<String> {
    if ids::sha256_hex(&bytes) != head.sha256 {
        return Err(corrupt(reference));
    }
    String::from_utf8(bytes).map_err(|_| corrupt(reference))
}

fn blob(reference: &str, head: BlobHead, text: String) -> NewBlob {
    let BlobHead { index, nth, bytes, chars, sha256, row, how, .. } = head;
    let (reference, basis) = (reference.into(), None);
    let offload = Offload { nth, reference, sha256, chars, how, basis };
    NewBlob { index, offload, bytes, text: text.into(), logged: row }
}

fn corrupt(reference: &str) -> Error {
    Error::new(Code::StoreCorrupt, format!("the offload {reference} is not what was stored"))
}

/// An offload of this session, whose messages are in `format`, as it was stored.
///
/// Errors: [`Code::NotFound`] for anything that this session did not issue, [`Code::StoreCorrupt`] when the bytes are
/// not those that were stored.
pub(crate) async fn load(io: &Io, sid: &str, format: Format, reference: &str) -> Result<NewBlob> {
    let not_found = || Error::new(Code::NotFound, "this session has no offload with this reference");
    if !ids::looks_like_reference(reference) {
        return Err(not_found());
    }
    let head = wide::read(io, vec![keys::blob(sid, reference, 0)]).await?.into_iter().next().flatten();
    let head: BlobHead = record::decode(&head.ok_or_else(not_found)?, "offload")?;
    if let Some(seq) = head.row {
        let found = blob(reference, head, String::new()).in_row(io, sid, format, seq).await?;
        return found.ok_or_else(|| corrupt(reference));
    }
    let mut bytes = Vec::with_capacity(head.bytes);
    let mut part = 1;
    while part <= head.parts {
        let to = (part + 3).min(head.parts);
        for value in
            wide::read(io, (part..=to).map(|part| keys::blob(sid, reference, part)).collect()).await?
        {
            bytes.extend_from_slice(&value.ok_or_else(|| corrupt(reference))?);
        }
        part = to + 1;
    }
    let text = whole(reference, &head, bytes)?;
    Ok(blob(reference, head, text))
}

/// Which message an offload of this session is of, and what it is, as far as its first row says, without its text; `None`
/// where that cannot be read.
pub(crate) async fn head(io: &Io, sid: &str, reference: &str) -> Result<Option<NewBlob>> {
    let head = wide::read(io, vec![keys::blob(sid, reference, 0)]).await?.into_iter().next().flatten();
    match record::decode::<BlobHead>(&head.unwrap_or_default(), "offload") {
        Ok(head) => Ok(Some(blob(reference, head, String::new()))),
        Err(error) if error.code == Code::StoreCorrupt => Ok(None),
        Err(error) => Err(error),
    }
}

/// An offload whose message is lost, from what [`NewBlob::logged_row`] made of it.
pub(crate) fn of_lost(reference: &str, row: &[u8]) -> Option<NewBlob> {
    let head: BlobHead = record::decode(row, "offload").ok()?;
    let is_one = ids::looks_like_reference(reference) && head.row.is_some();
    is_one.then(|| blob(reference, head, String::new()))
}

/// An offload whose own rows cannot be read, from the message that it was taken out of, in a log of `rows` rows; `None`
/// where that cannot be read either.
pub(crate) async fn from_log(
    io: &Io,
    sid: &str,
    rows: u64,
    format: Format,
    (index, offload): (usize, Offload),
) -> Result<Option<NewBlob>> {
    let found = async {
        let place = place_among(io, sid, rows, index).await?;
        NewBlob::new(index, offload, "", Some(place.seq)).in_row(io, sid, format, place.seq).await
    };
    match found.await {
        Err(error) if error.code == Code::StoreCorrupt => Ok(None),
        found => found,
    }
}

impl NewBlob {
    /// Its text, which may be in the log alone.
    ///
    /// Errors: [`Code::StoreCorrupt`] when that does not have it.
    pub(crate) async fn read(self, io: &Io, sid: &str, format: Format) -> Result<Rc<str>> {
        let Some(seq) = self.logged else { return Ok(self.text) };
        let reference = self.offload.reference.clone();
        let found = self.in_row(io, sid, format, seq).await?;
        found.map(|blob| blob.text).ok_or_else(|| corrupt(&reference))
    }

    /// With its text from the log row at position `seq`; `None` where the message there does not have it.
    async fn in_row(self, io: &Io, sid: &str, format: Format, seq: u64) -> Result<Option<NewBlob>> {
        let bytes = wide::read(io, vec![keys::log(sid, seq)]).await?.into_iter().next().flatten();
        let bytes = bytes.unwrap_or_default();
        let row = row_at(&bytes, seq)?;
        if (row.kind, row.n) == (RowKind::Message, self.index) {
            self.in_message(format, row.body.get())
        } else {
            Ok(None)
        }
    }

    /// With its text from its message; `None` where that does not have it.
    fn in_message(self, format: Format, body: &str) -> Result<Option<NewBlob>> {
        let value = wire::parse(self.index, body)?;
        if self.offload.is_media() {
            return Ok(block_of(format, &value, &self.offload).map(|text| NewBlob {
                bytes: text.len(),
                text: text.into(),
                ..self
            }));
        }
        let message = format.wire().read(self.index, &value)?;
        // A retired one is known by its place; its hash is that of the text there.
        let text = self.offload.text_in(&message).map(|text| (ids::sha256_hex(text.as_bytes()), text));
        let text = text.filter(|(sha256, _)| self.offload.is_of(sha256));
        Ok(text.map(|(sha256, text)| NewBlob {
            bytes: text.len(),
            text: text.into(),
            offload: Offload { sha256, ..self.offload },
            ..self
        }))
    }

    /// As a reference to the log, where the message at position `seq`, which has `body`, has its text, whatever it is there;
    /// else as it is.
    pub(crate) fn logged_in(self, format: Format, (seq, body): (u64, &str)) -> NewBlob {
        for how in [Placeholder::Reference, Placeholder::Input, Placeholder::Text] {
            let mut blob = self.clone();
            blob.offload.how = how;
            if let Ok(Some(found)) = blob.in_message(format, body) {
                return NewBlob { logged: Some(seq), ..found };
            }
        }
        self
    }
}

/// The block of a message, JSON text, that media which left it were.
pub(crate) fn block_of(format: Format, message: &Value<'_>, offload: &Offload) -> Option<String> {
    let media = wire::media_of(format, message);
    let mut blocks = media.iter().map(ShownMedia::json);
    blocks.find(|block| ids::sha256_hex(block.as_bytes()) == offload.sha256)
}

/// True when anything of an offload is in the store.
pub(crate) async fn has_rows(io: &Io, sid: &str, reference: &str) -> Result<bool> {
    let (prefix, after) = (keys::parts(sid, reference), None);
    let scan = Scan { prefix, after, limit: 1, max_bytes: PART, reverse: false, keys_only: true };
    Ok(!wide::scan(io, scan).await?.is_empty())
}

/// The reference of the offload behind `after` in the store, in the order of references.
pub(crate) async fn next(io: &Io, sid: &str, after: Option<&str>) -> Result<Option<String>> {
    let scan = Scan {
        prefix: keys::all("blobs", sid),
        after: after.map(|reference| keys::blob(sid, reference, LAST_PART)),
        limit: 1,
        max_bytes: PART,
        reverse: false,
        keys_only: true,
    };
    let found = wide::scan(io, scan).await?.into_iter().next();
    Ok(found.and_then(|(key, _)| match key.0.into_iter().nth(2) {
        // Behind all of them are the parts of large rows.
        Some(KeyPart::Text(reference)) if ids::looks_like_reference(&reference) => Some(reference),
        _ => None,
    }))
}

/// Those of the offloads, given by reference with the hash of their text, whose rows are all in the store. The texts are
/// not read.
pub(crate) async fn complete(
    io: &Io,
    sid: &str,
    wanted: &BTreeMap<String, String>,
) -> Result<HashSet<String>> {
    let mut missing: BTreeMap<&str, u64> = BTreeMap::new();
    let references: Vec<&String> = wanted.keys().collect();
    for page in references.chunks(256) {
        let heads =
            wide::read(io, page.iter().map(|reference| keys::blob(sid, reference, 0)).collect()).await?;
        for (reference, bytes) in page.iter().zip(heads) {
            let head = bytes.map(|bytes| record::decode::<BlobHead>(&bytes, "offload"));
            match head {
                // Of one that is retired the hash is not known.
                Some(Ok(head))
                    if wanted.get(*reference).is_some_and(|hash| hash.is_empty() || *hash == head.sha256) =>
                {
                    missing.insert(reference, head.parts);
                }
                _ => {}
            }
        }
    }
    let prefix = keys::all("blobs", sid);
    let mut after = None;
    loop {
        let scan = Scan {
            prefix: prefix.clone(),
            after,
            limit: 1_000,
            max_bytes: PART,
            reverse: false,
            keys_only: true,
        };
        let rows = wide::scan(io, scan).await?;
        let Some((last, _)) = rows.last() else { break };
        after = Some(last.clone());
        for (key, _) in &rows {
            if let [_, _, KeyPart::Text(reference), KeyPart::Number(1..)] = key.0.as_slice()
                && let Some(parts) = missing.get_mut(reference.as_str())
            {
                *parts = parts.saturating_sub(1);
            }
        }
    }
    Ok(missing.into_iter().filter(|(_, parts)| *parts == 0).map(|(reference, _)| reference.into()).collect())
}

/// Behind every part: the largest number that every store keeps.
const LAST_PART: u64 = (1 << 53) - 1;
