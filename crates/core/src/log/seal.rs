//! The session's row is the one that is written again and again, so no chain of hashes holds it: it carries the hash of
//! its own bytes, as that of its name does. Releases before this one wrote none; the seal says for which commit it is,
//! so that one that such a release kept from an earlier row says nothing.

use super::record::{self, NameRow, SessionRow};
use crate::error::{Code, Error, Result};
use crate::keys::ids;

/// The name of the field, which is always the last.
const FIELD: &str = "seal";
const BEGIN: &[u8] = b",\"seal\":\"";
const END: &[u8] = b"\"}";

/// The bytes of a row.
pub(crate) fn write(row: &SessionRow) -> Result<Vec<u8>> {
    Ok(seal(record::encode(row), row.ver))
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

/// The bytes of the row of a name.
pub(crate) fn write_name(row: &NameRow) -> Result<Vec<u8>> {
    Ok(seal(record::encode(row), row.ver))
}

/// Reads the row of a name. A release that seals nothing writes all of it anew, without a seal or anything that it does not
/// know.
///
/// Errors: [`Code::StoreCorrupt`] when it is not what was written, [`Code::SchemaTooNew`].
pub(crate) fn read_name(bytes: &[u8]) -> Result<NameRow> {
    let corrupt = || Error::new(Code::StoreCorrupt, "the row of the session's name is not what was written");
    let sealed = sealed(bytes);
    if sealed.is_some_and(|(row, _, hash)| !is_sealed(row, hash)) {
        return Err(corrupt());
    }
    let mut row: NameRow = record::decode(bytes, "session's name")?;
    let is_sound = sealed.map_or(row.rest.is_empty(), |(_, of, _)| of == row.ver.to_string());
    row.rest.clear();
    if is_sound { Ok(row) } else { Err(corrupt()) }
}

/// What is sealed but for its last byte, for which commit, and its hash; `None` for what is not.
fn sealed(bytes: &[u8]) -> Option<(&[u8], &str, &str)> {
    // Inside a text its quotes would be escaped.
    let at = bytes.windows(BEGIN.len()).rposition(|window| window == BEGIN)?;
    let (row, tail) = bytes.split_at(at);
    let tail = tail.get(BEGIN.len()..).and_then(|tail| tail.strip_suffix(END)).unwrap_or_default();
    let (of, hash) = std::str::from_utf8(tail).unwrap_or_default().split_once(':').unwrap_or_default();
    Some((row, of, hash))
}

fn is_sealed(row: &[u8], hash: &str) -> bool {
    ids::sha256_hex(&[row, b"}"].concat()) == hash
}

/// Errors: [`Code::StoreCorrupt`] for what no release wrote: it is not JSON, or not what was sealed.
pub(super) fn check(bytes: &[u8]) -> Result<()> {
    struct Counted {
        ver: u64,
    }
    crate::wire::record!(Counted { ver = "ver" });
    let corrupt = || Error::new(Code::StoreCorrupt, "the row of the session is not what was written");
    // As text, as all else is read: for bytes the parser would be there a second time. Damaged texts are not its business.
    let text = String::from_utf8_lossy(bytes);
    let Counted { ver } = crate::wire::record::from_str(&text).map_err(|_| corrupt())?;
    let Some((row, of, hash)) = sealed(bytes) else { return Ok(()) };
    let is_sound = match of.parse::<u64>() {
        // A release that seals nothing wrote it since. It would not have changed this number alone: then that is damaged,
        // and no commit would ever be of the row that is stored.
        Ok(of) if of != ver => {
            let counted = |ver: u64| format!("\"ver\":{ver}");
            let row = String::from_utf8_lossy(row).replacen(&counted(ver), &counted(of), 1);
            !is_sealed(row.as_bytes(), hash)
        }
        _ => is_sealed(row, hash),
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

    #[test]
    fn d15_a_name_of_which_any_bit_changed_is_damage_and_of_no_newer_schema() {
        let name = NameRow::new("a", "b");
        let sealed = write_name(&name).unwrap();
        assert_eq!(read_name(&sealed).unwrap(), name);
        for bit in 0..sealed.len() * 8 {
            let mut broken = sealed.clone();
            broken[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read_name(&broken).unwrap_err().code, Code::StoreCorrupt, "bit {bit}");
        }
        let unsealed = record::encode(&name);
        assert_eq!(read_name(&unsealed).unwrap(), name, "as earlier releases wrote it");
        let newer = write_name(&NameRow { v: 201, ..name }).unwrap();
        assert_eq!(read_name(&newer).unwrap_err().code, Code::SchemaTooNew);
    }
}
