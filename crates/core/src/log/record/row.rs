//! A log row: packed, a head of some 80 bytes before the body and a check behind it. Its hash is that of the same row as one
//! JSON object, which is what releases up to schema 101 stored, what archives hold, and what a row is stored as that cannot
//! be packed. So the chain of hashes goes on through rows of both kinds.
//!
//! | bytes | |
//! |---|---|
//! | 1 | [`PACKED`]: no JSON begins so |
//! | varint | schema |
//! | 1 | kind, what the id begins with, whether there are `prev` and `chain` |
//! | 3 varints | position, messages before, time |
//! | 16, 32, 16 | id, `prev` and `chain`, as far as they are there |
//! | the rest | the body |
//! | 8 | the beginning of the hash |

use super::check_version;
use crate::error::{Code, Error, Result};
use crate::keys::ids;
use crate::keys::varint;
use crate::wire::write_fields;
use base16ct::lower as hex;
use base32ct::{Base32Unpadded, Encoding};
use serde_json::value::RawValue;

/// Kinds of log row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// A message of the app.
    Message,
    /// The context changed: the row says to which view and why.
    View,
    /// The state of the session at this position, to be restored.
    Snapshot,
}

crate::wire::named!(RowKind { Message = "message", View = "view", Snapshot = "snapshot" });

/// A log row.
#[derive(Debug)]
pub(crate) struct LogRow<'a> {
    /// [`super::SCHEMA`].
    pub v: u32,
    /// Position in the log.
    pub seq: u64,
    /// Messages of the app before this row: the index of a message.
    pub n: usize,
    /// Unique; a batch that is written twice is recognised by it.
    pub id: String,
    /// What it is.
    pub kind: RowKind,
    /// ms since 1970.
    pub at: u64,
    /// Hash of the row before, in hex; empty for the first.
    pub prev: String,
    /// Chain over the contents of the messages so far, this one included, in hex.
    pub chain: String,
    /// The message, byte for byte as the codec wrote it, or a note about the view or the snapshot.
    pub body: &'a RawValue,
}

crate::wire::record!(LogRow<'a> {
    v = "v",
    seq = "seq",
    n = "n",
    id = "id",
    kind = "kind",
    at = "at",
    prev = "prev",
    chain = "chain",
    body = "body",
});

/// The chain value after a message with this content.
pub(crate) fn chain(before: &str, body: &str) -> String {
    let digest = ids::hash(&[before.as_bytes(), body.as_bytes()]);
    ids::hex(digest.first_chunk::<16>().map_or(&[][..], |half| &half[..]))
}

const HASH_TAIL: usize = ",\"hash\":\"\"}".len() + 64;
/// The first byte of a row that is packed.
pub(crate) const PACKED: u8 = 1;
/// Bytes of the hash that a packed row has: they tell damage; the next row has all of it.
const CHECK: usize = 8;
/// What packed ids begin with; 26 letters follow.
const IDS: [&str; 3] = ["msg_", "view_", "snap_"];
const KINDS: [RowKind; 3] = [RowKind::Message, RowKind::View, RowKind::Snapshot];
const HAS_PREV: u8 = 1 << 4;
const HAS_CHAIN: u8 = 1 << 5;

/// A row as it is stored. Its body may be large, so it is not copied before that has to be.
#[derive(Debug)]
pub(crate) struct WrittenRow<'a> {
    /// What stands before the body and behind it.
    pub(crate) around: Vec<u8>,
    /// Where the body stands in that.
    at: usize,
    body: &'a str,
}

impl<'a> WrittenRow<'a> {
    /// One that is in one piece.
    pub(crate) fn of(bytes: Vec<u8>) -> WrittenRow<'a> {
        WrittenRow { at: bytes.len(), around: bytes, body: "" }
    }

    /// How many bytes it has.
    pub(crate) fn bytes(&self) -> usize {
        self.around.len() + self.body.len()
    }

    /// Its bytes, in order.
    pub(crate) fn pieces(&self) -> [&[u8]; 3] {
        let (before, behind) = self.around.split_at(self.at);
        [before, self.body.as_bytes(), behind]
    }

    /// Its bytes in one piece.
    pub(crate) fn whole(&self) -> Vec<u8> {
        self.pieces().concat()
    }
}

/// Writes a log row; returns it and its hash in hex.
pub(crate) fn write_row<'a>(row: &LogRow<'a>) -> (WrittenRow<'a>, String) {
    let (mut around, hash) = hashed(row);
    let at = pack(row, &hash, &mut around).unwrap_or_else(|| {
        let at = around.len();
        around.extend_from_slice(format!(",\"hash\":\"{hash}\"}}").as_bytes());
        at
    });
    (WrittenRow { around, at, body: row.body.get() }, hash)
}

/// The row as JSON as far as its body, and its hash in hex.
fn hashed(row: &LogRow<'_>) -> (Vec<u8>, String) {
    let LogRow { v, seq, n, id, kind, at, prev, chain, body } = row;
    let mut line = Vec::with_capacity(512);
    write_fields!(
        &mut line,
        [v = "v", seq = "seq", n = "n", id = "id", kind = "kind", at = "at", prev = "prev", chain = "chain"]
    );
    line.pop();
    line.extend_from_slice(b",\"body\":");
    let hash = ids::sha256_hex_of(&[&line, body.get().as_bytes(), b"}"]);
    (line, hash)
}

/// Writes what stands around the body of a packed row in place of what `bytes` has: where the body stands in that. `None`, and
/// nothing is written, where something of the row is not as the engine makes it.
fn pack(row: &LogRow<'_>, hash: &str, bytes: &mut Vec<u8>) -> Option<usize> {
    let (begins, id) = IDS.iter().enumerate().find_map(|(nth, begins)| {
        let mut id = [0; 16];
        let letters = row.id.strip_prefix(begins)?;
        let is_whole = Base32Unpadded::decode(letters, &mut id).ok()?.len() == id.len();
        (is_whole && Base32Unpadded::encode_string(&id) == letters).then_some((nth, id))
    })?;
    let kind = KINDS.iter().position(|kind| *kind == row.kind)?;
    let (prev, chain) = (bytes_of::<32>(&row.prev)?, bytes_of::<16>(&row.chain)?);
    let check = check(hash)?;
    bytes.clear();
    bytes.push(PACKED);
    varint::write(bytes, row.v.into());
    let has = prev.map_or(0, |_| HAS_PREV) | chain.map_or(0, |_| HAS_CHAIN);
    bytes.push(kind as u8 | (begins as u8) << 2 | has);
    varint::write(bytes, row.seq);
    varint::write(bytes, row.n as u64);
    varint::write(bytes, row.at);
    bytes.extend_from_slice(&id);
    bytes.extend(prev.iter().flatten());
    bytes.extend(chain.iter().flatten());
    let at = bytes.len();
    bytes.extend_from_slice(&check);
    Some(at)
}

/// The bytes of hex of a length, or nothing of an empty text; `None` for any other.
fn bytes_of<const N: usize>(text: &str) -> Option<Option<[u8; N]>> {
    if text.is_empty() {
        return Some(None);
    }
    let mut bytes = [0; N];
    let is_whole = text.len() == 2 * N && hex::decode(text, &mut bytes).is_ok();
    is_whole.then_some(Some(bytes))
}

fn check(hash: &str) -> Option<[u8; CHECK]> {
    bytes_of::<32>(hash)?.as_ref()?.first_chunk().copied()
}

/// Reads a log row and checks its hash; returns the hash too.
///
/// Errors: [`Code::StoreCorrupt`] when it is not what was written, [`Code::SchemaTooNew`].
pub(crate) fn read_row(bytes: &[u8]) -> Result<(LogRow<'_>, String)> {
    let corrupt = || Error::new(Code::StoreCorrupt, "a row of the log is not what was written");
    if bytes.first() == Some(&PACKED) {
        let (row, hash) = unpack(bytes).ok_or_else(corrupt)?;
        check_version(row.v, "log row")?;
        return Ok((row, hash));
    }
    let split = bytes.len().checked_sub(HASH_TAIL).ok_or_else(corrupt)?;
    let (line, tail) = bytes.split_at(split);
    let hash = ids::sha256_hex_of(&[line, b"}"]);
    if tail != format!(",\"hash\":\"{hash}\"}}").as_bytes() {
        return Err(corrupt());
    }
    let row: LogRow<'_> = super::decode(bytes, "log row")?;
    Ok((row, hash))
}

/// A packed row and its hash; `None` where it is not what was written.
fn unpack(bytes: &[u8]) -> Option<(LogRow<'_>, String)> {
    let (mut rest, checked) = bytes.split_at(bytes.len().checked_sub(CHECK)?);
    rest = rest.strip_prefix(&[PACKED])?;
    let v = u32::try_from(varint::read(&mut rest)?).ok()?;
    let (what, after) = rest.split_first()?;
    rest = after;
    let kind = *KINDS.get(usize::from(what & 3))?;
    let begins = IDS.get(usize::from(what >> 2 & 3))?;
    let seq = varint::read(&mut rest)?;
    let n = usize::try_from(varint::read(&mut rest)?).ok()?;
    let at = varint::read(&mut rest)?;
    let id = format!("{begins}{}", Base32Unpadded::encode_string(take::<16>(&mut rest)?));
    let prev = if what & HAS_PREV == 0 { String::new() } else { ids::hex(take::<32>(&mut rest)?) };
    let chain = if what & HAS_CHAIN == 0 { String::new() } else { ids::hex(take::<16>(&mut rest)?) };
    let body = serde_json::from_str(std::str::from_utf8(rest).ok()?).ok()?;
    let row = LogRow { v, seq, n, id, kind, at, prev, chain, body };
    let (_, hash) = hashed(&row);
    // Byte for byte: nothing of it says the same in another way.
    let is_sound = checked == check(&hash)? && what >> 6 == 0 && rest.len() == body.get().len();
    is_sound.then_some((row, hash))
}

fn take<'b, const N: usize>(bytes: &mut &'b [u8]) -> Option<&'b [u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODIES: [&str; 3] =
        [r#"{"role":"user","content":"Größe 字 \ud800 \"x\""}"#, r#"{"view":1,"rung":"offload"}"#, "null"];

    /// One of many rows, the same for the same number.
    fn row(nth: usize, body: &RawValue) -> LogRow<'_> {
        let digest = ids::hash(&[&nth.to_le_bytes()]);
        let [a, b, c, d, ..] = digest.map(usize::from);
        let (begins, kind) = (IDS[a % 3], KINDS[b % 3]);
        let (seq, n) = ((nth as u64) << (c % 40), nth << (d % 20));
        let prev = if a > 200 { String::new() } else { ids::hex(&digest) };
        let chain = if b > 200 { String::new() } else { ids::hex(&digest[..16]) };
        let id = format!("{begins}{}", ids::id(&[&digest]));
        LogRow { v: super::super::SCHEMA, seq, n, id, kind, at: 1_800_000_000_000, prev, chain, body }
    }

    /// As releases up to schema 101 stored it.
    fn as_json(row: &LogRow<'_>) -> Vec<u8> {
        let mut line = crate::wire::record::to_vec(row);
        let hash = ids::sha256_hex(&line);
        line.pop();
        line.extend_from_slice(format!(",\"hash\":\"{hash}\"}}").as_bytes());
        line
    }

    #[test]
    fn p19_a_row_is_read_as_it_was_written_and_has_the_hash_of_its_json() {
        for nth in 0..2_000 {
            let body: &RawValue = serde_json::from_str(BODIES[nth % 3]).unwrap();
            let row = row(nth, body);
            let ((written, hash), json) = (write_row(&row), as_json(&row));
            let bytes = written.whole();
            assert_eq!(bytes[0], PACKED);
            let (found, again) = read_row(&bytes).unwrap();
            assert_eq!((format!("{found:?}"), &again), (format!("{row:?}"), &hash));
            let (found, again) = read_row(&json).unwrap();
            assert_eq!((format!("{found:?}"), again), (format!("{row:?}"), hash));
        }
    }

    #[test]
    fn p19_what_stands_beside_a_body_takes_at_most_100_bytes() {
        let body: &RawValue = serde_json::from_str("null").unwrap();
        let (prev, chain) = (ids::sha256_hex(b"before"), chain("", "null"));
        let (v, seq, n, at) = (super::super::SCHEMA, 10_000_000, 10_000_000, 1_800_000_000_000);
        let id = format!("msg_{}", ids::id(&[b"a"]));
        let (row, _) = write_row(&LogRow { v, seq, n, id, kind: RowKind::Message, at, prev, chain, body });
        let (_, row) = crate::log::keyed::row("s", seq, row);
        assert!(row.around.len() <= 100, "{}", row.around.len());
    }

    #[test]
    fn p19_a_row_of_which_any_bit_changed_or_that_is_cut_is_damage() {
        for (nth, body) in BODIES.into_iter().enumerate() {
            let body: &RawValue = serde_json::from_str(body).unwrap();
            let bytes = write_row(&row(nth, body)).0.whole();
            for bit in 0..bytes.len() * 8 {
                let mut broken = bytes.clone();
                broken[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(read_row(&broken).unwrap_err().code, Code::StoreCorrupt, "bit {bit}");
            }
            for length in 0..bytes.len() {
                assert_eq!(
                    read_row(&bytes[..length]).unwrap_err().code,
                    Code::StoreCorrupt,
                    "{length} bytes"
                );
            }
        }
    }

    #[test]
    fn p19_what_no_release_makes_is_stored_as_json() {
        let body: &RawValue = serde_json::from_str("null").unwrap();
        let id = |id: &str| LogRow { id: id.into(), ..row(1, body) };
        let odd = [
            id("a"),
            id("msg_AAAAAAAAAAAAAAAAAAAAAAAAAA"),
            id("msg_aaaaaaaaaaaaaaaaaaaaaaaaab"),
            LogRow { prev: "AB".repeat(32), ..id("a") },
            LogRow { chain: "ab".into(), ..row(2, body) },
        ];
        for row in odd {
            let (written, hash) = write_row(&row);
            let bytes = written.whole();
            assert_eq!(bytes, as_json(&row));
            let (found, again) = read_row(&bytes).unwrap();
            assert_eq!((format!("{found:?}"), again), (format!("{row:?}"), hash));
        }
    }

    #[test]
    fn p19_a_row_of_a_later_hundred_is_of_a_newer_schema() {
        let body: &RawValue = serde_json::from_str("null").unwrap();
        let row = LogRow { v: super::super::SCHEMA + 100, ..row(1, body) };
        assert_eq!(read_row(&write_row(&row).0.whole()).unwrap_err().code, Code::SchemaTooNew);
    }
}
