//! The context of a session: what stands in it, and whose it is.

use serde::{Deserialize, Serialize};

/// Whose message is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The nth of the messages that this operation was given.
    New(usize),
    /// The app's, at this position of the log.
    Logged(u64),
    /// One of ours.
    Ours,
}

/// What stays at the end of the history.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Keep {
    /// This many messages.
    Messages(usize),
    /// As many messages as fit this many tokens.
    Tokens(usize),
    /// As many messages as fit this share of the tokens.
    Fraction(f64),
}

/// A message of the user that states constraints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinProposal {
    /// Its index among the app's messages.
    pub index: usize,
    /// The sentences that require, limit or forbid something, to the letter.
    pub constraints: Vec<String>,
    /// What the whole message costs: that much stays in the context with the pin.
    pub tokens: usize,
}
