//! Ids and hashes: SHA-256 in hex, 128-bit ids in base32.

use crate::wire::work::{self, WorkDone};
use base32ct::{Base32Unpadded, Encoding};
use base64ct::{Base64UrlUnpadded, Encoding as _};
use sha2::{Digest, Sha256};

/// SHA-256 of the parts, each preceded by its length so that no two lists of parts collide.
pub(crate) fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
        work::note(WorkDone::Hashed, part.len());
    }
    hasher.finalize().into()
}

/// SHA-256 of some bytes, in lower-case hex.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    sha256_hex_of(&[bytes])
}

/// SHA-256 of some bytes that are in several places, in lower-case hex.
pub(crate) fn sha256_hex_of(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
        work::note(WorkDone::Hashed, part.len());
    }
    hex(&hasher.finalize())
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    base16ct::lower::encode_string(bytes)
}

/// A hash as records have it that are written often: in base64. Anything else stays as it is.
pub(crate) fn short(hash: &str) -> String {
    let is_hash = hash.len() == 64 || hash.len() == 32;
    let bytes = is_hash.then(|| base16ct::lower::decode_vec(hash).ok()).flatten();
    bytes.map_or_else(|| hash.into(), |bytes| Base64UrlUnpadded::encode_string(&bytes))
}

/// The same as all else has it.
pub(crate) fn long(hash: &str) -> String {
    // 43 and 22 letters are as many bytes as no hex has.
    let is_short = hash.len() == 43 || hash.len() == 22;
    let bytes = is_short.then(|| Base64UrlUnpadded::decode_vec(hash).ok()).flatten();
    bytes.map_or_else(|| hash.into(), |bytes| hex(&bytes))
}

/// 26 characters of base32 (128 bits), lower case, from the parts.
pub(crate) fn id(parts: &[&[u8]]) -> String {
    let digest = hash(parts);
    let half = digest.first_chunk::<16>().copied().unwrap_or_default();
    Base32Unpadded::encode_string(&half)
}

/// The name of a session that the app gave none.
pub(crate) fn session(secret: &str) -> String {
    format!("session_{}", id(&[b"session", secret.as_bytes()]))
}

/// Prefix of a reference to an offload (`S1.1`).
pub(crate) const REFERENCE_PREFIX: &str = "off_";

/// The reference of the `nth` text of a kind in message `index`; results are of the kind without a name. It depends on the
/// session's secret, so it cannot be guessed from the content, and on nothing that changes when a commit is tried again.
pub(crate) fn reference(secret: &str, index: usize, kind: &str, nth: usize) -> String {
    let place = format!("{index}/{kind}{nth}");
    format!("{REFERENCE_PREFIX}{}", id(&[b"offload", secret.as_bytes(), place.as_bytes()]))
}

/// True for text that has the shape of a reference; whether it *is* one only the session's table can say.
pub(crate) fn looks_like_reference(text: &str) -> bool {
    text.strip_prefix(REFERENCE_PREFIX).is_some_and(|id| {
        id.len() == 26 && id.bytes().all(|byte| byte.is_ascii_lowercase() || (b'2'..=b'7').contains(&byte))
    })
}

/// The reference of message `index`: the letter m, the index, and a letter that tells slips apart. A model pays three
/// tokens for it. It says nothing that the session does not have: whoever guesses one reads a message of this session.
pub(crate) fn message_reference(secret: &str, index: usize) -> String {
    let [check, ..] = hash(&[b"message", secret.as_bytes(), &index.to_le_bytes()]);
    format!("m{index}{}", char::from(b'a' + check % 26))
}

/// What stands before a reference that is read from another session of the store: it names the session that gave it out.
pub(crate) fn session_tag(secret: &str) -> String {
    let mut tag = id(&[b"tag", secret.as_bytes()]);
    tag.truncate(TAG);
    tag
}

/// True for text that has the shape of a tag; whether it *is* one only the secrets of sessions can say.
pub(crate) fn looks_like_tag(text: &str) -> bool {
    text.len() == TAG && text.bytes().all(|byte| byte.is_ascii_lowercase() || (b'2'..=b'7').contains(&byte))
}

/// Letters of a tag: of ten thousand sessions hardly two have the same.
const TAG: usize = 8;

/// The index of a message's reference, when this session may have given it out.
pub(crate) fn message_index(secret: &str, reference: &str) -> Option<usize> {
    let digits = reference.strip_prefix('m')?.strip_suffix(|c: char| c.is_ascii_lowercase())?;
    let index = digits.parse().ok()?;
    (message_reference(secret, index) == reference).then_some(index)
}
