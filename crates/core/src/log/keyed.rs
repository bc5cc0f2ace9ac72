//! Log rows know their keys: each ends with a mark of the key that it was written under. A disk may put a sound row in the
//! place of another, of this session or of another one, and no hash in the row tells that apart.
//!
//! The mark is of the place and not of the row: the copy of a session that an archive makes has the same rows and hashes.

use crate::keys::batch::{Key, KeyPart, keys};
use crate::keys::ids;

const BEGIN: &[u8] = b",\"key\":\"";
const END: &[u8] = b"\"}";
const LETTERS: usize = 8;
const LENGTH: usize = BEGIN.len() + LETTERS + END.len();

/// A log row under its key.
pub(crate) fn row(sid: &str, seq: u64, mut bytes: Vec<u8>) -> (Key, Vec<u8>) {
    bytes.pop();
    for part in [BEGIN, &mark(sid, seq), END] {
        bytes.extend_from_slice(part);
    }
    (keys::log(sid, seq), bytes)
}

/// Takes the mark off a row that was read at `key`. One that belongs elsewhere becomes empty, like any that cannot be read.
/// Rows of earlier releases have none.
pub(crate) fn unmark(key: &Key, bytes: &mut Vec<u8>) {
    let [KeyPart::Text(table), KeyPart::Text(sid), KeyPart::Number(seq)] = key.0.as_slice() else { return };
    let Some(at) = bytes.len().checked_sub(LENGTH).filter(|_| table == "log") else { return };
    let (_, end) = bytes.split_at(at);
    let Some(end) = end.strip_prefix(BEGIN) else { return };
    if end.strip_suffix(END) == Some(&mark(sid, *seq)) {
        bytes.truncate(at);
        bytes.push(b'}');
    } else {
        bytes.clear();
    }
}

/// Letters that are another key's by chance once in 2^37.
fn mark(sid: &str, seq: u64) -> [u8; LETTERS] {
    let digest = ids::hash(&[sid.as_bytes(), &seq.to_le_bytes()]);
    digest.first_chunk().copied().unwrap_or_default().map(|byte: u8| b'a' + byte % 26)
}
