//! Before a text goes to a summariser, and before it is written in the place of messages, its secrets are replaced, and
//! then the app's own `redact` is asked. Messages are redacted as they are read, so that no secret is
//! cut in two before it is looked for.

use crate::error::Result;
use crate::log::View;
use crate::message::Message;
use crate::step::Io;
use crate::summary::SummaryRequest;

/// A text without secrets, as a summariser may see it.
pub(super) async fn redact(io: &Io, view: &View, text: String) -> Result<String> {
    let text = without_secrets(view, text);
    if view.settings.app_redacts { io.redact(text).await } else { Ok(text) }
}

/// A text without secrets that have a known shape.
pub(super) fn without_secrets(view: &View, text: String) -> String {
    if !view.settings.redacts_secrets {
        return text;
    }
    view.secrets.borrow_mut().redact(&text).into_owned()
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
        message.content = redact(io, view, std::mem::take(&mut message.content)).await?;
    }
    for fact in &mut request.facts {
        fact.text = redact(io, view, std::mem::take(&mut fact.text)).await?;
    }
    Ok(request)
}

/// Messages without secrets that have a known shape; true when there were any. The app's `redact` sees what is made of them.
pub(super) fn messages_without_secrets(view: &View, messages: &mut [Message<'_>]) -> bool {
    view.settings.redacts_secrets && view.secrets.borrow_mut().redact_messages(messages)
}
