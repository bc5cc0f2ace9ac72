//! Before a text goes to a summariser, and before it is written in the place of messages, its secrets are replaced, and
//! then the app's own `redact` is asked. Messages are redacted as they are read, so that no secret is
//! cut in two before it is looked for.

use crate::error::Result;
use crate::log::View;
use crate::message::Message;
use crate::step::Io;
use crate::summary::SummaryRequest;
use std::borrow::Cow;
use std::ops::Range;

/// A text without secrets, as a summariser may see it.
pub(super) async fn redact(io: &Io, view: &View, text: String) -> Result<String> {
    redact_own(io, view, without_secrets(view, text)).await
}

/// A text as the app redacts it.
async fn redact_own(io: &Io, view: &View, text: String) -> Result<String> {
    if view.settings.app_redacts { io.redact(text).await } else { Ok(text) }
}

/// A text without secrets that have a known shape.
pub(super) fn without_secrets(view: &View, text: String) -> String {
    without_secrets_outside(view, text, &[])
}

/// The same for a text of which some ranges are all lines of texts that were searched, and that hold none.
fn without_secrets_outside(view: &View, text: String, searched: &[Range<usize>]) -> String {
    if !view.settings.redacts_secrets {
        return text;
    }
    let redacted = match view.secrets.borrow_mut().redact_outside(&text, searched) {
        Cow::Borrowed(_) => None,
        Cow::Owned(redacted) => Some(redacted),
    };
    redacted.unwrap_or(text)
}

/// A request as a summariser may see it.
pub(super) async fn redact_request(
    io: &Io,
    view: &View,
    mut request: SummaryRequest,
) -> Result<SummaryRequest> {
    // Guidance of the user, a goal that a model's markers wrote.
    request.system = without_secrets(view, request.system);
    for message in &mut request.messages {
        let searched = std::mem::take(&mut message.searched);
        let text = without_secrets_outside(view, std::mem::take(&mut message.content), &searched);
        message.content = redact_own(io, view, text).await?;
    }
    for fact in &mut request.facts {
        fact.text = redact(io, view, std::mem::take(&mut fact.text)).await?;
    }
    Ok(request)
}

/// Messages without secrets that have a known shape; true when there were any. The app's `redact` sees what is made of them.
pub(super) fn messages_without_secrets(view: &View, messages: &mut [Message<'_>]) -> bool {
    let (mut secrets, mut searched) = (view.secrets.borrow_mut(), view.searched.borrow_mut());
    view.settings.redacts_secrets && secrets.redact_messages(messages, &mut searched)
}

/// True for a text with a secret that has a known shape.
pub(super) fn holds_secret(view: &View, text: &str) -> bool {
    let (mut secrets, mut searched) = (view.secrets.borrow_mut(), view.searched.borrow_mut());
    !searched.is_clean(text, || matches!(secrets.redact(text), Cow::Borrowed(_)))
}
