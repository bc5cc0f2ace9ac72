//! Schema 100 did not count the summaries of a session (`S5.8`): the views say how many there were.

use super::Fields;
use crate::error::{Code, Error, Result};
use crate::session::batch::keys;
use crate::session::record::{self, ViewRow};
use crate::step::Io;
use serde_json::Value;

/// Views that are read at once.
const PAGE: u64 = 64;

pub(super) async fn migrate(io: &Io, sid: &str, fields: &mut Fields) -> Result<()> {
    let corrupt = |what: &str| Error::new(Code::StoreCorrupt, what);
    let generation = fields.get("generation").and_then(Value::as_u64);
    let generation = generation.ok_or_else(|| corrupt("the session's row does not name its view"))?;
    let (mut compressions, mut next) = (0_u64, 1);
    while next <= generation {
        let last = (next + PAGE - 1).min(generation);
        for bytes in io.read((next..=last).map(|number| keys::view(sid, number)).collect()).await? {
            let bytes = bytes.ok_or_else(|| corrupt("a view of the session is missing"))?;
            let view: ViewRow = record::decode(&bytes, "view")?;
            compressions += u64::from(view.cause.rung == "summarise");
        }
        next = last + 1;
    }
    fields.insert("compressions".into(), compressions.into());
    Ok(())
}
