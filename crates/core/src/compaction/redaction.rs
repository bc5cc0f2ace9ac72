//! Before a text goes to a summariser, and before it is written in the place of messages, its secrets are replaced, and
//! then the app's own `redact` is asked. Messages are redacted as they are read, so that no secret is
//! cut in two before it is looked for.

use crate::error::Result;
use crate::log::SessionGuard;
use crate::message::Message;
use crate::step::Io;
use crate::summary::SummaryRequest;

/// A text without secrets, as a summariser may see it.
pub(super) async fn redact(io: &Io, held: &SessionGuard, text: String) -> Result<String> {
    let text = without_secrets(held, text);
    if held.settings().app_redacts { io.redact(text).await } else { Ok(text) }
}

/// A text without secrets that have a known shape.
pub(super) fn without_secrets(held: &SessionGuard, text: String) -> String {
    if !held.settings().redacts_secrets {
        return text;
    }
    held.state_mut().row.secrets.redact(&text).into_owned()
}

/// A request as a summariser may see it.
pub(super) async fn redact_request(
    io: &Io,
    held: &SessionGuard,
    mut request: SummaryRequest,
) -> Result<SummaryRequest> {
    // Guidance of the user, a goal that a model's markers wrote.
    request.system = without_secrets(held, request.system);
    for message in &mut request.messages {
        message.content = redact(io, held, std::mem::take(&mut message.content)).await?;
    }
    for fact in &mut request.facts {
        fact.text = redact(io, held, std::mem::take(&mut fact.text)).await?;
    }
    Ok(request)
}

/// Messages without secrets that have a known shape. The app's `redact` sees what is made of them.
pub(super) fn messages_without_secrets(held: &SessionGuard, messages: &mut [Message<'_>]) {
    if held.settings().redacts_secrets {
        held.state_mut().row.secrets.redact_messages(messages);
    }
}
