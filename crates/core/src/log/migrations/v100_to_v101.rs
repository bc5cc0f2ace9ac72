//! Schema 100 counted neither the summaries of a session (`S5.8`) nor the tokens of its messages (`S5.3`): the views and
//! the log say how many there were, as far as they can be read.

use super::Fields;
use crate::error::{Code, Error, Result};
use crate::keys::batch::keys;
use crate::log::measure;
use crate::log::record;
use crate::log::stored::readable_items;
use crate::log::wide;
use crate::policy::Settings;
use crate::step::{Io, LogLevel};
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
        for bytes in wide::read(io, (next..=last).map(|number| keys::view(sid, number)).collect()).await? {
            match record::decode_view(&bytes.unwrap_or_default()) {
                Ok(view) => compressions += u64::from(view.cause.rung == "summarise"),
                Err(error) if error.code == Code::StoreCorrupt && settings.accept_data_loss => {
                    io.log(
                        LogLevel::Warn,
                        "A view cannot be read, and is not among the summaries that are counted",
                    );
                }
                // How many summaries there were is counted here once and for all.
                Err(error) if error.code == Code::StoreCorrupt => {
                    return Err(corrupt(
                        "a view of the session is missing or damaged: open it with `acceptDataLoss: true` to go on without \
                         it, or take out what can be read with salvage(store)",
                    ));
                }
                Err(error) => return Err(error),
            }
        }
        next = last + 1;
    }
    fields.insert("compressions".into(), compressions.into());
    fields.insert("tokens".into(), tokens(io, sid, settings, fields).await?.into());
    Ok(())
}

/// Tokens of all messages of the log that can be read.
async fn tokens(io: &Io, sid: &str, settings: &Settings, fields: &Fields) -> Result<usize> {
    let format: Option<Format> =
        fields.get("format").and_then(|name| serde_json::from_str(&name.to_string()).ok());
    let format = format.or(settings.format).unwrap_or(Format::OpenaiChat);
    let rows = fields.get("nextSeq").and_then(Value::as_u64).unwrap_or(0);
    let mut tokens = 0;
    for (origin, body) in readable_items(io, sid, 0, rows).await? {
        let Some(body) = body else { continue };
        tokens += measure(io, settings, format, origin.whose(), &body).await?.tokens;
    }
    Ok(tokens)
}
