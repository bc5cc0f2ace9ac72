//! Rows as they are read: [`read`] and [`scan`] take off what only the store needs. Rows that are too large for one value
//! are whole again: their bytes are parts in the table of blobs, and what stands in their place says which. Log rows are
//! held against their keys. Views are the text that was packed.

use super::keyed;
use super::offloads::PART;
use super::packed;
use super::record;
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Key, KeyPart, keys};
use crate::keys::ids;
use crate::step::{Io, Scan};

/// What stands in the place of a row. A release that knows no such rows takes it for one of a later schema, and says so.
#[derive(Debug)]
pub(crate) struct Wide {
    wide: u32,
    v: u32,
    /// Names the parts.
    id: String,
    parts: u64,
    bytes: usize,
    sha256: String,
}

crate::wire::record!(Wide {
    wide = "wide",
    v = "v",
    id = "id",
    parts = "parts",
    bytes = "bytes",
    sha256 = "sha256",
});

/// How [`Wide`] begins in the store; no other row does of the tables that have it. A part of a text may.
const MARK: &[u8] = b"{\"wide\":";
/// Parts of a large row that are read at once.
const PARTS: usize = 4;
/// The schema that a release without such rows takes it for.
const LATER: u32 = 200;

/// Reads values from the store.
pub(crate) async fn read(io: &Io, keys: Vec<Key>) -> Result<Vec<Option<Vec<u8>>>> {
    let mut values = io.read(keys.clone()).await?;
    for (key, value) in keys.iter().zip(&mut values) {
        if let Some(value) = value {
            unwrap(io, key, value).await?;
        }
    }
    Ok(values)
}

/// Reads a range of keys from the store.
pub(crate) async fn scan(io: &Io, scan: Scan) -> Result<Vec<(Key, Vec<u8>)>> {
    let most = scan.max_bytes;
    let mut entries = io.scan(scan).await?;
    let (mut bytes, mut whole) = (0, 0);
    for (key, value) in &mut entries {
        // What is stored in parts counts as what it is.
        if whole > 0 && bytes > most {
            break;
        }
        unwrap(io, key, value).await?;
        bytes += value.len();
        whole += 1;
    }
    entries.truncate(whole);
    Ok(entries)
}

/// The row at `key` as it was written there; empty where it cannot be read.
async fn unwrap(io: &Io, key: &Key, value: &mut Vec<u8>) -> Result<()> {
    widen(io, key, value).await?;
    bare(key, value);
    Ok(())
}

/// A row that is stored as one value, as it was written; empty where it cannot be read.
pub(crate) fn bare(key: &Key, value: &mut Vec<u8>) {
    keyed::unmark(key, value);
    if is_in(key, "views") {
        *value = packed::text(value);
    }
}

/// Puts a row that is stored in parts in the place of what says so.
async fn widen(io: &Io, key: &Key, value: &mut Vec<u8>) -> Result<()> {
    let wide = match Wide::read(key, value) {
        Ok(None) => return Ok(()),
        Ok(Some(wide)) => wide,
        Err(_) => {
            value.clear();
            return Ok(());
        }
    };
    let mut whole = wide.begin();
    for page in wide.keys(key).chunks(PARTS) {
        for part in io.read(page.to_vec()).await? {
            whole.extend_from_slice(&part.unwrap_or_default());
        }
    }
    *value = wide.check(whole).unwrap_or_default();
    Ok(())
}

/// True for a row that no store need take as one value.
pub(crate) fn is_wide(key: &Key, value: &[u8]) -> bool {
    may_be_wide(key) && value.len() > PART
}

/// True for what is written once, and by the engine alone.
fn may_be_wide(key: &Key) -> bool {
    is_in(key, "log") || is_in(key, "views")
}

fn is_in(key: &Key, table: &str) -> bool {
    matches!(key.0.first(), Some(KeyPart::Text(of)) if of == table)
}

impl Wide {
    /// What stands in the place of `value`.
    pub(crate) fn of(value: &[u8]) -> Wide {
        let sha256 = ids::sha256_hex(value);
        let id = format!("row_{}", ids::id(&[b"row", sha256.as_bytes()]));
        Wide { wide: 1, v: LATER, id, parts: value.len().div_ceil(PART) as u64, bytes: value.len(), sha256 }
    }

    /// Names the parts.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// As it is stored.
    pub(crate) fn encode(&self) -> Vec<u8> {
        record::encode(self)
    }

    /// What stands at `key`, when its value is elsewhere.
    ///
    /// Errors: [`Code::StoreCorrupt`].
    pub(crate) fn read(key: &Key, value: &[u8]) -> Result<Option<Wide>> {
        if !may_be_wide(key) || !value.starts_with(MARK) {
            return Ok(None);
        }
        let wide = crate::wire::record::from_str(&String::from_utf8_lossy(value)).map_err(|error| {
            Error::new(Code::StoreCorrupt, format!("the place of a large row cannot be read: {error}"))
        })?;
        Ok(Some(wide))
    }

    /// Where the parts of the row at `key` are, in order.
    pub(crate) fn keys(&self, key: &Key) -> Vec<Key> {
        let Some(KeyPart::Text(sid)) = key.0.get(1) else { return Vec::new() };
        (1..=self.parts).map(|part| keys::blob(sid, &self.id, part)).collect()
    }

    /// Whole again.
    ///
    /// Errors: [`Code::StoreCorrupt`] when it is not what was written.
    pub(crate) fn join<'p>(&self, parts: impl Iterator<Item = Option<&'p [u8]>>) -> Result<Vec<u8>> {
        let mut whole = self.begin();
        parts.for_each(|part| whole.extend_from_slice(part.unwrap_or_default()));
        self.check(whole)
    }

    /// Room for it.
    pub(crate) fn begin(&self) -> Vec<u8> {
        Vec::with_capacity(self.bytes.min(self.parts as usize * PART))
    }

    /// Nothing but what was written.
    ///
    /// Errors: [`Code::StoreCorrupt`].
    pub(crate) fn check(&self, whole: Vec<u8>) -> Result<Vec<u8>> {
        if ids::sha256_hex(&whole) == self.sha256 {
            return Ok(whole);
        }
        Err(Error::new(Code::StoreCorrupt, "a large row is not what was written"))
    }
}

/// The parts of `value`, with their keys, one at a time.
pub(crate) fn parts<'v>(sid: &'v str, id: &'v str, value: &'v [u8]) -> impl Iterator<Item = (Key, &'v [u8])> {
    value.chunks(PART).enumerate().map(move |(nth, part)| (keys::blob(sid, id, nth as u64 + 1), part))
}

/// Rows with those that are too large in parts beside them, for what nothing leads to yet.
pub(crate) fn beside(sid: &str, puts: Vec<(Key, Vec<u8>)>) -> Result<Vec<(Key, Vec<u8>)>> {
    let mut all = Vec::with_capacity(puts.len());
    for (key, value) in puts {
        if is_wide(&key, &value) {
            let wide = Wide::of(&value);
            all.extend(parts(sid, wide.id(), &value).map(|(key, part)| (key, part.to_vec())));
            all.push((key, wide.encode()));
        } else {
            all.push((key, value));
        }
    }
    Ok(all)
}
