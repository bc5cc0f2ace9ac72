//! What summaries took in of the log, as a row: so that the first one after an opening reads on from there, and not from
//! the beginning. It is derived: one that is missing, damaged, of another release or of other options is made again.
//!
//! It stands in the table of blobs, as the pages of terms do, and leaves with the session's rows: a fork, an archive and what
//! an erasure leaves have none. It comes with the commit of what was made of it, and so with the numbers of the secrets
//! that its texts have in their places.
//!
//! | bytes | |
//! |---|---|
//! | 1 | [`VERSION`] |
//! | the rest | of each part ([`Collected::parts`]) the number of its pieces, and of each piece its bytes and, packed, itself |
//! | 16 | the beginning of a hash of all that |

use super::offloads::PART;
use super::packed;
use super::terms::{sealed, unsealed};
use crate::error::{Code, Result};
use crate::keys::batch::{Key, keys};
use crate::keys::varint;
use crate::step::{Breath, Io};
use crate::summary::keep::Collected;

const VERSION: u8 = 1;
/// Bytes of a part that are packed at once. That takes as long as going through four times as many of messages; the way
/// back, half of it.
const PIECE: usize = 64 << 10;
/// What stands before a piece: what begins so is none that was packed.
const UNPACKED: u8 = 0;
/// Bytes of messages after which the row is written again: it takes a tenth of them.
const EVERY: usize = 4 << 20;

/// The row, where so much was taken in since it was written last; `None` too where no store need take it as one value.
pub(crate) async fn row(io: &Io, collected: &mut Collected) -> Result<Option<(Key, Vec<u8>)>> {
    if collected.fresh < EVERY {
        return Ok(None);
    }
    collected.fresh = 0;
    let (mut row, mut breath) = (vec![VERSION], Breath::default());
    for part in collected.parts() {
        varint::write(&mut row, part.len().div_ceil(PIECE) as u64);
        for piece in part.chunks(PIECE) {
            breath.after(io, 4 * piece.len()).await?;
            let piece = packed::pack([&[UNPACKED], piece].concat());
            varint::write(&mut row, piece.len() as u64);
            row.extend(piece);
        }
    }
    let row = sealed(row);
    Ok((row.len() <= PART).then(|| (keys::facts(&collected.sid), row)))
}

/// What the row has of the session whose rows are called `sid`.
///
/// Errors: those of the store.
pub(crate) async fn read(io: &Io, sid: &str) -> Result<Option<Collected>> {
    let row = match io.read(vec![keys::facts(sid)]).await {
        Err(error) if error.code == Code::StoreCorrupt => return Ok(None),
        rows => rows?.into_iter().next().flatten(),
    };
    let Some(mut rest) = row.as_deref().and_then(unsealed).and_then(|row| row.strip_prefix(&[VERSION]))
    else {
        return Ok(None);
    };
    let (mut collected, mut breath) = (None, Breath::default());
    while !rest.is_empty() {
        let Some(part) = part(&mut rest) else { return Ok(None) };
        breath.after(io, 2 * part.len()).await?;
        collected = Collected::read(collected, &part);
        if collected.is_none() {
            return Ok(None);
        }
    }
    Ok(collected)
}

/// Takes a part off the beginning; `None` where there is none.
fn part(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let mut part = Vec::new();
    for _ in 0..varint::read(rest)? {
        let length = usize::try_from(varint::read(rest)?).ok()?;
        let piece;
        (piece, *rest) = rest.split_at_checked(length)?;
        part.extend_from_slice(packed::text(piece).strip_prefix(&[UNPACKED])?);
    }
    Some(part)
}
