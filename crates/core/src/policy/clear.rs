//! What of a message may be cleared.

use super::Rung;
use super::settings::Settings;
use crate::message::Message;

/// Tokens of a message's results and inputs that are long enough to be cleared.
pub(crate) fn clearable(settings: &Settings, message: &Message<'_>) -> usize {
    if !settings.rungs.contains(&Rung::Clear) {
        return 0;
    }
    let numbers = settings.numbers.layered;
    let long =
        |text: &str| Some(settings.estimator.text(text)).filter(|tokens| *tokens > numbers.clear_min_tokens);
    let results = message.results().filter_map(|result| long(&result.text));
    let inputs = message.calls().filter(|_| numbers.clear_inputs).filter_map(|call| long(&call.arguments));
    results.chain(inputs).sum()
}
