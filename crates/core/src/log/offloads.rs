//! Offloads in the store: part 0 says what it is, parts from 1 hold at most 1 MiB of its UTF-8 bytes each.
//! A reference is resolved by table only: the rows under this session and this id, or nothing.

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
    /// Its text.
    pub(crate) text: Rc<str>,
}

impl NewBlob {
    /// Rows that it takes in the batch that refers to it.
    pub(crate) fn rows(&self) -> usize {
        if self.offload.is_media() {
            return 0;
        }
        if self.is_big() { 2 } else { self.text.len().div_ceil(PART) + 1 }
    }

    /// Too large for the batch that refers to it.
    pub(crate) fn is_big(&self) -> bool {
        self.text.len() > BIG
    }

    /// Its rows in the store, one at a time.
    pub(crate) fn rows_of(&self, sid: &str) -> Result<impl Iterator<Item = (Key, Vec<u8>)>> {
        let bytes = self.text.as_bytes();
        let head = BlobHead {
            v: record::SCHEMA,
            bytes: bytes.len(),
            chars: self.offload.chars,
            parts: bytes.len().div_ceil(PART) as u64,
            sha256: self.offload.sha256.clone(),
            index: self.index,
            nth: self.offload.nth,
        };
        let reference = &self.offload.reference;
        let head = (keys::blob(sid, reference, 0), record::encode(&head));
        let parts = bytes.chunks(PART).enumerate();
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
}

crate::wire::record!(BlobHead {
    v = "v",
    bytes = "bytes",
    chars = "chars",
    parts = "parts",
    sha256 = "sha256",
    index = "index",
    nth = "nth",
});

/// An offload from the values of its parts, for who has them at hand.
///
/// Errors: [`Code::StoreCorrupt`].
pub(crate) fn assemble<'v>(reference: &str, part: impl Fn(u64) -> Option<&'v [u8]>) -> Result<NewBlob> {
    let corrupt = || corrupt(reference);
    let head: BlobHead = record::decode(part(0).ok_or_else(corrupt)?, "offload")?;
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
    let BlobHead { index, nth, chars, sha256, .. } = head;
    let (reference, how, basis) = (reference.into(), Placeholder::Reference, None);
    let offload = Offload { nth, reference, sha256, chars, how, basis };
    NewBlob { index, offload, text: text.into() }
}

fn corrupt(reference: &str) -> Error {
    Error::new(Code::StoreCorrupt, format!("the offload {reference} is not what was stored"))
}

/// An offload of this session as it was stored.
///
/// Errors: [`Code::NotFound`] for anything that this session did not issue, [`Code::StoreCorrupt`] when the bytes are
/// not those that were stored.
pub(crate) async fn load(io: &Io, sid: &str, reference: &str) -> Result<NewBlob> {
    let (head, text) = fetch(io, sid, reference).await?;
    Ok(blob(reference, head, text))
}

async fn fetch(io: &Io, sid: &str, reference: &str) -> Result<(BlobHead, String)> {
    let not_found = || Error::new(Code::NotFound, "this session has no offload with this reference");
    if !ids::looks_like_reference(reference) {
        return Err(not_found());
    }
    let head = wide::read(io, vec![keys::blob(sid, reference, 0)]).await?.into_iter().next().flatten();
    let head: BlobHead = record::decode(&head.ok_or_else(not_found)?, "offload")?;
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
    Ok((head, text))
}

/// Which message an offload of this session is of, and what it is, as far as its first row says; `None` where that cannot be
/// read.
pub(crate) async fn head(io: &Io, sid: &str, reference: &str) -> Result<Option<(usize, Offload)>> {
    let head = wide::read(io, vec![keys::blob(sid, reference, 0)]).await?.into_iter().next().flatten();
    match record::decode::<BlobHead>(&head.unwrap_or_default(), "offload") {
        Ok(head) => {
            let NewBlob { index, offload, .. } = blob(reference, head, String::new());
            Ok(Some((index, offload)))
        }
        Err(error) if error.code == Code::StoreCorrupt => Ok(None),
        Err(error) => Err(error),
    }
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
    let text = async {
        let place = place_among(io, sid, rows, index).await?;
        let bytes = wide::read(io, vec![keys::log(sid, place.seq)]).await?.into_iter().next().flatten();
        let bytes = bytes.unwrap_or_default();
        let value = wire::parse(index, row_at(&bytes, place.seq)?.body.get())?;
        if offload.is_media() {
            return Ok(block_of(format, &value, &offload));
        }
        let message = format.wire().read(index, &value)?;
        Ok::<_, Error>(offload.text_in(&message).map(str::to_string))
    };
    match text.await {
        Ok(text) => {
            let text = text.filter(|text| ids::sha256_hex(text.as_bytes()) == offload.sha256);
            Ok(text.map(|text| NewBlob { index, offload, text: text.into() }))
        }
        Err(error) if error.code == Code::StoreCorrupt => Ok(None),
        Err(error) => Err(error),
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
                Some(Ok(head)) if wanted.get(*reference) == Some(&head.sha256) => {
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
