//! The session's row is the one that is written again and again, so no chain of hashes holds it: it carries the hash of
//! its own bytes. Releases before this one wrote none; the seal says for which commit it is, so that one that such a
//! release kept from an earlier row says nothing.

use super::record::{self, SessionRow};
use crate::error::{Code, Error, Result};
use crate::keys::ids;
use serde::Deserialize;

/// The name of the field, which is always the last.
const FIELD: &str = "seal";
const BEGIN: &[u8] = b",\"seal\":\"";
const END: &[u8] = b"\"}";

/// The bytes of a row.
pub(crate) fn write(row: &SessionRow) -> Result<Vec<u8>> {
    Ok(seal(record::encode(row)?, row.ver))
}

/// Seals the bytes of a row, which has been written `ver` times with this commit.
pub(super) fn seal(mut bytes: Vec<u8>, ver: u64) -> Vec<u8> {
    let hash = ids::sha256_hex(&bytes);
    bytes.pop();
    bytes.extend_from_slice(BEGIN);
    bytes.extend_from_slice(format!("{ver}:{hash}").as_bytes());
    bytes.extend_from_slice(END);
    bytes
}

/// Reads a row.
///
/// Errors: [`Code::StoreCorrupt`] when it is not what was written, [`Code::SchemaTooNew`].
pub(crate) fn read(bytes: &[u8]) -> Result<SessionRow> {
    check(bytes)?;
    let mut row: SessionRow = record::decode(bytes, "session")?;
    row.rest.remove(FIELD);
    Ok(row)
}

/// Reads what can be read of a row, whatever its seal says.
pub(crate) fn read_broken(bytes: &[u8]) -> Option<SessionRow> {
    let mut row: SessionRow = record::decode(bytes, "session").ok()?;
    row.rest.remove(FIELD);
    Some(row)
}

/// Errors: [`Code::StoreCorrupt`] for what no release wrote: it is not JSON, or not what was sealed.
pub(super) fn check(bytes: &[u8]) -> Result<()> {
    #[derive(Deserialize)]
    struct Counted {
        ver: u64,
    }
    let corrupt = || Error::new(Code::StoreCorrupt, "the row of the session is not what was written");
    let Counted { ver } = serde_json::from_slice(bytes).map_err(|_| corrupt())?;
    // Inside a text its quotes would be escaped.
    let Some(at) = bytes.windows(BEGIN.len()).rposition(|window| window == BEGIN) else { return Ok(()) };
    let (row, tail) = bytes.split_at(at);
    let tail = tail.get(BEGIN.len()..).and_then(|tail| tail.strip_suffix(END)).unwrap_or_default();
    let tail = std::str::from_utf8(tail).unwrap_or_default();
    let (of, hash) = tail.split_once(':').unwrap_or_default();
    let is_sealed = |row: &[u8]| ids::sha256_hex(&[row, b"}"].concat()) == hash;
    let is_sound = match of.parse::<u64>() {
        // A release that seals nothing wrote it since. It would not have changed this number alone: then that is damaged,
        // and no commit would ever be of the row that is stored.
        Ok(of) if of != ver => {
            let counted = |ver: u64| format!("\"ver\":{ver}");
            let row = String::from_utf8_lossy(row).replacen(&counted(ver), &counted(of), 1);
            !is_sealed(row.as_bytes())
        }
        _ => is_sealed(row),
    };
    if is_sound { Ok(()) } else { Err(corrupt()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = r#"{"v":101,"ver":7,"id":"a,\"seal\":\"b"}"#;

    #[test]
    fn i5_a_row_of_which_any_byte_changed_is_not_what_was_sealed() {
        let sealed = seal(ROW.as_bytes().to_vec(), 7);
        assert!(check(&sealed).is_ok());
        for at in 0..sealed.len() {
            let mut broken = sealed.clone();
            broken[at] ^= 1;
            let text = String::from_utf8_lossy(&broken).into_owned();
            // Whose seal it is, is what the row is held against.
            let is_unsealed = !text.contains(",\"seal\":\"7:");
            assert!(check(&broken).is_err() || is_unsealed, "{text}");
        }
    }

    #[test]
    fn i5_a_row_of_a_release_that_seals_nothing_is_read_as_it_is() {
        assert!(check(ROW.as_bytes()).is_ok());
        let kept = String::from_utf8(seal(ROW.as_bytes().to_vec(), 7)).unwrap();
        let written = kept.replace("\"ver\":7", "\"ver\":8").replace("\"id\":\"a", "\"id\":\"b");
        assert!(check(written.as_bytes()).is_ok());
        assert!(check(b"{\"v\":101").is_err());
    }
}
