//! Rows as they are read: [`read`] and [`scan`] take off what only the store needs. Rows that are too large for one value
//! are whole again: their bytes are parts in the table of blobs, and what stands in their place says which. Log rows are
//! held against their keys. Views are the text that was packed.

use super::keyed;
use super::offloads::PART;
use super::packed;
use super::record::{self, WrittenRow};
use super::staging::BIG;
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

/// True for a row of so many bytes that no store need take as one value.
pub(crate) fn is_wide(key: &Key, bytes: usize) -> bool {
    may_be_wide(key) && bytes > PART
}

/// True for what is written once, and by the engine alone.
fn may_be_wide(key: &Key) -> bool {
    is_in(key, "log") || is_in(key, "views")
}

fn is_in(key: &Key, table: &str) -> bool {
    matches!(key.0.first(), Some(KeyPart::Text(of)) if of == table)
}

/// A row that no store need take as one value, on its way there: it is never in one piece.
#[derive(Debug)]
pub(crate) struct LargeRow<'b> {
    key: Key,
    wide: Wide,
    row: WrittenRow<'b>,
}

impl<'b> LargeRow<'b> {
    pub(crate) fn new(key: Key, row: WrittenRow<'b>) -> LargeRow<'b> {
        LargeRow { wide: Wide::of(&row), key, row }
    }

    /// Names the parts.
    pub(crate) fn id(&self) -> &str {
        &self.wide.id
    }

    /// Too large for the batch that it is written in.
    pub(crate) fn is_big(&self) -> bool {
        self.wide.bytes > BIG
    }

    /// Operations that its parts take in that batch.
    pub(crate) fn operations(&self) -> usize {
        if self.is_big() { 2 } else { self.wide.parts as usize }
    }

    /// What is put in its place.
    pub(crate) fn stands(&self) -> (Key, Vec<u8>) {
        (self.key.clone(), record::encode(&self.wide))
    }

    /// Its parts with their keys, each made when it is asked for.
    pub(crate) fn parts<'r>(&'r self, sid: &'r str) -> impl Iterator<Item = (Key, Vec<u8>)> + use<'r, 'b> {
        let part = |nth: u64| (keys::blob(sid, &self.wide.id, nth + 1), part(&self.row, nth as usize * PART));
        (0..self.wide.parts).map(part)
    }
}

/// What of a row stands in the part that begins at this byte.
fn part(row: &WrittenRow<'_>, from: usize) -> Vec<u8> {
    let mut part = Vec::with_capacity(PART.min(row.bytes().saturating_sub(from)));
    let mut begins = 0;
    for piece in row.pieces() {
        let at = |byte: usize| byte.saturating_sub(begins).min(piece.len());
        part.extend_from_slice(piece.get(at(from)..at(from + PART)).unwrap_or_default());
        begins += piece.len();
    }
    part
}

impl Wide {
    /// What stands in the place of a row.
    fn of(row: &WrittenRow<'_>) -> Wide {
        let (bytes, sha256) = (row.bytes(), ids::sha256_hex_of(&row.pieces()));
        let id = format!("row_{}", ids::id(&[b"row", sha256.as_bytes()]));
        Wide { wide: 1, v: LATER, id, parts: bytes.div_ceil(PART) as u64, bytes, sha256 }
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

/// What is put, each with the row that it stands for where that is too large. `large` are those rows of which `puts` has
/// nothing but what stands in their places, in order.
pub(crate) fn apart<'b>(
    puts: Vec<(Key, Vec<u8>)>,
    large: Vec<LargeRow<'b>>,
) -> impl Iterator<Item = (Option<LargeRow<'b>>, (Key, Vec<u8>))> {
    let mut large = large.into_iter().peekable();
    puts.into_iter().map(move |(key, value)| {
        if let Some(row) = large.next_if(|row| row.key == key) {
            return (Some(row), (key, value));
        }
        if !is_wide(&key, value.len()) {
            return (None, (key, value));
        }
        let row = LargeRow::new(key, WrittenRow::of(value));
        let stands = row.stands();
        (Some(row), stands)
    })
}

/// What is put with the parts of rows that are too large beside it, for what nothing leads to yet.
pub(crate) fn beside(sid: &str, puts: Vec<(Key, Vec<u8>)>, large: Vec<LargeRow<'_>>) -> Vec<(Key, Vec<u8>)> {
    let mut all = Vec::with_capacity(puts.len());
    for (row, put) in apart(puts, large) {
        all.extend(row.iter().flat_map(|row| row.parts(sid)));
        all.push(put);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::keyed;
    use crate::log::record::{LogRow, RowKind, SCHEMA, chain, write_row};
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    /// A log row under its key, with a body of so many bytes in which every place is told from every other.
    fn with_row<T>(id: &str, bytes: usize, look: impl FnOnce(Key, WrittenRow<'_>) -> T) -> T {
        let numbers = (0..).map(|number: u32| format!("{number} "));
        let text: String =
            numbers.take(bytes / 2).flat_map(String::into_bytes).map(char::from).take(bytes - 2).collect();
        let body: Box<RawValue> = RawValue::from_string(format!("\"{text}\"")).unwrap();
        let (prev, chain) = (ids::sha256_hex(b"before"), chain("", body.get()));
        let (kind, id) = (RowKind::Message, id.to_owned());
        let (row, _) =
            write_row(&LogRow { v: SCHEMA, seq: 7, n: 5, id, kind, at: 9, prev, chain, body: &body });
        let (key, row) = keyed::row("s", 7, row);
        look(key, row)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn p14_a_row_in_pieces_is_stored_byte_for_byte_as_one_in_one_piece(
            parts in prop::sample::select(vec![1, 2, 3, 7, 8, 9]),
            less in 0..600_usize,
            packed: bool,
        ) {
            let id = if packed { format!("msg_{}", ids::id(&[b"a"])) } else { "a".to_owned() };
            // The end of the body, of what stands behind it and of what stands before it fall into every place around the end
            // of a part.
            with_row(&id, parts * PART + 100 - less, |key, row| {
                let whole = row.whole();
                prop_assert_eq!(row.bytes(), whole.len());
                if !is_wide(&key, row.bytes()) {
                    return Ok(());
                }
                let large = LargeRow::new(key.clone(), row);
                let stored = beside("s", vec![large.stands()], vec![large]);
                let sha256 = ids::sha256_hex(&whole);
                let id = format!("row_{}", ids::id(&[b"row", sha256.as_bytes()]));
                let count = whole.len().div_ceil(PART);
                let place = format!(
                    r#"{{"wide":1,"v":200,"id":"{id}","parts":{count},"bytes":{},"sha256":"{sha256}"}}"#,
                    whole.len()
                );
                let each = whole.chunks(PART).enumerate();
                let mut expected: Vec<(Key, Vec<u8>)> =
                    each.map(|(nth, part)| (keys::blob("s", &id, nth as u64 + 1), part.to_vec())).collect();
                expected.push((key.clone(), place.into_bytes()));
                prop_assert!(stored == expected);
                // One in one piece has its parts beside it, too.
                prop_assert!(beside("s", vec![(key, whole)], Vec::new()) == expected);
                Ok(())
            })?;
        }
    }
}
