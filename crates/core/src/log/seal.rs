//! The session's row is the one that is written again and again, so no chain of hashes holds it: it carries the hash of
//! its own bytes, as that of its name does. Releases before this one wrote none; the seal says for which commit it is,
//! so that one that such a release kept from an earlier row says nothing.
//!
//! What of it changes seldom and grows with the session (pins, snapshots, the log of summaries …) is a row beside it, written
//! when it changes. The head has its hash, so that the two are of one commit, and both are read at once.

use super::record::{self, NameRow, SessionRow};
use super::wide;
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Key, keys};
use crate::keys::ids;
use crate::step::Io;

/// The name of the field, which is always the last.
const FIELD: &str = "seal";
const BEGIN: &[u8] = b",\"seal\":\"";
const END: &[u8] = b"\"}";

/// The rows of a session's row that a commit puts: its head, and what changes seldom where that is not what the store has.
pub(crate) fn write(sid: &str, row: &mut SessionRow) -> Vec<(Key, Vec<u8>)> {
    let mut puts = Vec::new();
    // What was noted and is not any more goes, too.
    let noted = row.noted().or_else(|| row.notes.is_some().then(|| b"{}".to_vec()));
    if let Some(noted) = noted {
        let hash = Some(hash_of(&noted));
        if row.notes != hash {
            row.notes = hash;
            puts.push((keys::notes(sid), noted));
        }
    }
    let head = row.head();
    let (end, chain) = (ids::short(&head.head), ids::short(&head.chain));
    let head = SessionRow { head: end, chain, ..head };
    puts.push((keys::session(sid), seal(record::encode(&head), row.ver)));
    puts
}

/// The same for rows that are in the store under no such key yet.
pub(crate) fn write_new(sid: &str, row: &mut SessionRow) -> Vec<(Key, Vec<u8>)> {
    row.notes = None;
    write(sid, row)
}

/// A row from its fields.
fn decode(bytes: &[u8]) -> Result<SessionRow> {
    let mut row: SessionRow = record::decode(bytes, "session")?;
    row.rest.remove(FIELD);
    (row.head, row.chain) = (ids::long(&row.head), ids::long(&row.chain));
    Ok(row)
}

fn hash_of(noted: &[u8]) -> String {
    let digest = ids::hash(&[b"notes", noted]);
    ids::hex(digest.first_chunk::<8>().map_or(&[][..], |part| &part[..]))
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

/// Reads the two rows of a session's row at once; the second where there is one.
pub(crate) async fn both(io: &Io, sid: &str) -> Result<Option<(Vec<u8>, Option<Vec<u8>>)>> {
    let mut rows = wide::read(io, vec![keys::session(sid), keys::notes(sid)]).await?.into_iter();
    let head = rows.next().flatten();
    Ok(head.map(|head| (head, rows.next().flatten())))
}

/// Reads a row.
///
/// Errors: [`Code::StoreCorrupt`] when it is not what was written, [`Code::SchemaTooNew`].
pub(crate) fn read(head: &[u8], noted: Option<&[u8]>) -> Result<SessionRow> {
    let row = read_head(head)?;
    if row.notes.is_none() {
        return Ok(row);
    }
    let whole = noted.and_then(|noted| with_notes(head, &row, noted));
    whole
        .ok_or_else(|| Error::new(Code::StoreCorrupt, "what the session's row notes is not what was written"))
}

/// Reads a row without what changes seldom.
///
/// Errors: as [`read`].
pub(crate) fn read_head(bytes: &[u8]) -> Result<SessionRow> {
    check(bytes)?;
    decode(bytes)
}

/// True for the row of commit `ver`, behind which the log ends with the row of hash `head`. Nothing else of it is read: it is
/// looked at before every prompt.
pub(crate) fn is_of(bytes: &[u8], ver: u64, head: &str) -> bool {
    // Inside a text its quotes would be escaped.
    let field = format!("\"head\":\"{}\"", ids::short(head));
    sealed(bytes).is_some_and(|(row, of, _)| {
        of == ver.to_string() && row.windows(field.len()).any(|part| part == field.as_bytes())
    })
}

/// Reads what can be read of a row, whatever its seal says.
pub(crate) fn read_broken(head: &[u8], noted: Option<&[u8]>) -> Option<SessionRow> {
    let row = decode(head).ok()?;
    Some(noted.and_then(|noted| with_notes(head, &row, noted)).unwrap_or(row))
}

/// A row with what it notes: the fields of both are those of one record. `None` where that is not what was written.
fn with_notes(head: &[u8], row: &SessionRow, noted: &[u8]) -> Option<SessionRow> {
    if row.notes.as_deref() != Some(&hash_of(noted)) {
        return None;
    }
    let fields = noted.strip_prefix(b"{")?;
    let mut whole = head.strip_suffix(b"}")?.to_vec();
    if fields != b"}" {
        whole.push(b',');
    }
    whole.extend_from_slice(fields);
    decode(&whole).ok()
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
        let newer = write_name(&NameRow { v: 301, ..name }).unwrap();
        assert_eq!(read_name(&newer).unwrap_err().code, Code::SchemaTooNew);
    }

    /// A row with something in all that grows.
    fn grown() -> SessionRow {
        const GROWN: &str = r#"{"v":201,"ver":7,"id":"a","secret":"s","nextSeq":9,"messages":8,"generation":1,"tailFrom":2,
            "head":"b22b143ba19016bd418c9943b213d03394b4fedccf34571a43a8d9078e956f0c",
            "chain":"32ffb252902fe85d402e7c74d100023d","steps":3,"pendingStep":true,"pins":[1,2],"pinnedTokens":40,"rejected":[3],"tokens":100,
            "log":[[1,2,3,4,5,6,7]],"snapshots":[{"id":"snap_a","seq":4}],"formerly":["b"],"createdAt":1,"updatedAt":2,
            "of a later release":{"x":1}}"#;
        crate::wire::record::from_str(GROWN).unwrap()
    }

    fn written(row: &mut SessionRow) -> (Vec<u8>, Option<Vec<u8>>) {
        let mut puts = write("s", row);
        let (key, head) = puts.pop().unwrap();
        assert_eq!(key, keys::session("s"));
        assert!(puts.iter().all(|(key, _)| *key == keys::notes("s")));
        (head, puts.pop().map(|(_, noted)| noted))
    }

    #[test]
    fn p5_a_row_is_read_as_it_was_written_and_what_did_not_change_is_not_written_again() {
        let mut row = grown();
        let (head, noted) = written(&mut row);
        assert_eq!(read(&head, noted.as_deref()).unwrap(), row);
        assert!(!String::from_utf8(head).unwrap().contains("pins"));
        row.ver += 1;
        row.next_seq += 1;
        let (head, again) = written(&mut row);
        assert_eq!(again, None);
        assert_eq!(read(&head, noted.as_deref()).unwrap(), row);
        row.pins.push(5);
        let (head, again) = written(&mut row);
        assert_eq!(read(&head, again.as_deref()).unwrap(), row);
        assert_eq!(read(&head, noted.as_deref()).unwrap_err().code, Code::StoreCorrupt, "of another commit");
        // What is gone is gone from the store.
        let mut less = SessionRow { notes: row.notes.clone(), ..grown().head() };
        let (head, noted) = written(&mut less);
        assert_eq!(noted.as_deref(), Some(&b"{}"[..]));
        assert_eq!(read(&head, noted.as_deref()).unwrap(), less);
        let (head, none) = written(&mut SessionRow { notes: None, ..less.clone() });
        assert_eq!((none, read(&head, None).unwrap().pins), (None, Vec::new()));
    }

    #[test]
    fn p5_notes_of_which_any_bit_changed_or_that_are_gone_are_damage_and_the_rest_is_read() {
        let mut row = grown();
        let (head, noted) = written(&mut row);
        let noted = noted.unwrap();
        for bit in 0..noted.len() * 8 {
            let mut broken = noted.clone();
            broken[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&head, Some(&broken)).unwrap_err().code, Code::StoreCorrupt, "bit {bit}");
        }
        assert_eq!(read(&head, None).unwrap_err().code, Code::StoreCorrupt);
        assert_eq!(read_head(&head).unwrap(), row.head());
        assert_eq!(read_broken(&head, None).unwrap(), row.head());
        assert_eq!(read_broken(&head, Some(&noted)).unwrap(), row);
    }
}
