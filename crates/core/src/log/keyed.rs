//! Log rows know their keys: each ends with a mark of the key that it was written under. A disk may put a sound row in the
//! place of another, of this session or of another one, and no hash in the row tells that apart.
//!
//! The mark is of the place and not of the row: the copy of a session that an archive makes has the same rows and hashes.

use super::record::{PACKED, WrittenRow};
use crate::keys::batch::{Key, KeyPart, keys};
use crate::keys::ids;

const BEGIN: &[u8] = b",\"key\":\"";
const END: &[u8] = b"\"}";
const LETTERS: usize = 8;
const LENGTH: usize = BEGIN.len() + LETTERS + END.len();

/// Bytes of the mark of a row that is packed.
const PACKED_MARK: usize = 5;

/// A log row under its key.
pub(crate) fn row<'b>(sid: &str, seq: u64, mut row: WrittenRow<'b>) -> (Key, WrittenRow<'b>) {
    let mark = mark(sid, seq);
    let around = &mut row.around;
    if is_packed(around) {
        around.extend(mark.iter().take(PACKED_MARK));
    } else {
        around.pop();
        for part in [BEGIN, &letters(mark), END] {
            around.extend_from_slice(part);
        }
    }
    (keys::log(sid, seq), row)
}

fn is_packed(bytes: &[u8]) -> bool {
    bytes.first() == Some(&PACKED)
}

/// Takes the mark off a row that was read at `key`. One that belongs elsewhere becomes empty, like any that cannot be read.
/// Rows of earlier releases have none.
pub(crate) fn unmark(key: &Key, bytes: &mut Vec<u8>) {
    let [KeyPart::Text(table), KeyPart::Text(sid), KeyPart::Number(seq)] = key.0.as_slice() else { return };
    if table != "log" {
        return;
    }
    if is_packed(bytes) {
        let at = bytes.len().saturating_sub(PACKED_MARK);
        let (_, end) = bytes.split_at(at);
        let is_here = mark(sid, *seq).starts_with(end);
        bytes.truncate(if is_here { at } else { 0 });
        return;
    }
    let Some(at) = bytes.len().checked_sub(LENGTH) else { return };
    let (_, end) = bytes.split_at(at);
    let Some(end) = end.strip_prefix(BEGIN) else { return };
    if end.strip_suffix(END) == Some(&letters(mark(sid, *seq))) {
        bytes.truncate(at);
        bytes.push(b'}');
    } else {
        bytes.clear();
    }
}

/// What is another key's by chance once in 2^40.
fn mark(sid: &str, seq: u64) -> [u8; LETTERS] {
    let digest = ids::hash(&[sid.as_bytes(), &seq.to_le_bytes()]);
    digest.first_chunk().copied().unwrap_or_default()
}

/// The same in JSON.
fn letters(mark: [u8; LETTERS]) -> [u8; LETTERS] {
    mark.map(|byte| b'a' + byte % 26)
}
