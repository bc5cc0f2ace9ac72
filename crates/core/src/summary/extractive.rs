//! A summary without a model.

use crate::message::Message;
use crate::tokens::Estimator;

/// A summary of `messages` in at most `target_tokens` tokens.
pub fn extractive(messages: &[Message<'_>], target_tokens: usize, estimator: Estimator) -> String {
    let _ = (messages, target_tokens, estimator);
    String::new()
}
