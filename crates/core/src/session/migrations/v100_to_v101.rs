//! Schema 100 counted neither the summaries of a session (`S5.8`) nor the tokens of its messages (`S5.3`): the views and
//! the log say how many there were.

use super::Fields;
use crate::error::{Code, Error, Result};
use crate::plan::Settings;
use crate::session::batch::keys;
use crate::session::record::{self, ViewRow};
use crate::session::state::measure;
use crate::session::stored::log_items;
use crate::step::Io;
use crate::wire::Format;
use serde_json::Value;

/// Views that are read at once.
const PAGE: u64 = 64;

pub(super) async fn migrate(io: &Io, sid: &str, settings: &Settings, fields: &mut Fields) -> Result<()> {
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
    fields.insert("tokens".into(), tokens(io, sid, settings, fields).await?.into());
    Ok(())
}

/// Tokens of all messages of the log.
async fn tokens(io: &Io, sid: &str, settings: &Settings, fields: &Fields) -> Result<usize> {
    let format: Option<Format> =
        fields.get("format").and_then(|name| serde_json::from_value(name.clone()).ok());
    let format = format.or(settings.format).unwrap_or(Format::OpenaiChat);
    let rows = fields.get("nextSeq").and_then(Value::as_u64).unwrap_or(0);
    let mut tokens = 0;
    for (origin, body) in log_items(io, sid, 0, rows).await? {
        let Some(body) = body else { continue };
        tokens += measure(io, settings, format, origin.whose(), &body).await?.tokens;
    }
    Ok(tokens)
}
