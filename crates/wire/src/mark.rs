//! What an app says of a single result, where its format keeps notes for others: how long the result stays. It is never read from a
//! text.

use crate::message::Mark;
use crate::tagged;
use serde_json_borrow::Value;

/// The name of our notes.
const OURS: &str = "contextCompactor";

/// The mark among notes by their owners' names: `{ contextCompactor: { keep: "always" } }`.
pub(crate) fn mark(notes: Option<&Value<'_>>) -> Option<Mark> {
    let keep = tagged::given(tagged::given(notes?, OURS)?, "keep")?;
    Some(match tagged::text(keep).as_deref() {
        Some("always") => Mark::Always,
        Some("disposable") => Mark::Disposable,
        _ => Mark::Unknown,
    })
}
