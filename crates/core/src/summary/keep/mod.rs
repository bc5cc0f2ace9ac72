//! The keep-layer: what of a conversation must live on whatever a summary says, found without a model and from the
//! messages themselves, never from an earlier summary.
//!
//! * what the user said and laid down, verbatim within a budget;
//! * a ledger of files: created, modified, deleted or read, with the lines that were last looked at ([`files`]);
//! * errors that nothing has succeeded after, and tasks that are open ([`open`]), as the newest message leaves them
//!   ([`standing`]);
//! * what happened, turn by turn ([`happened`], [`turns`]);
//! * the passages that say most for their length ([`cover`]): those that name the most things ([`entities`]) that are not
//!   in the layer yet.
//!
//! Messages are added one by one, so that a log of any length can be read page by page; what is kept of them is bounded.

mod collect;
mod collected;
mod cover;
mod entities;
pub(crate) mod files;
#[rustfmt::skip]
mod generic;
mod happened;
mod headings;
mod layer;
mod noise;
mod open;
#[cfg(test)]
mod page_tests;
mod shell;
mod standing;
mod stored;
#[cfg(test)]
mod stored_tests;
#[cfg(test)]
mod tests;
mod turns;

pub use collect::{KeepLayerBuilder, MustKeep};
pub(crate) use collected::Collected;
pub(super) use entities::last_two;
pub(crate) use files::{command_of, touched};
pub(super) use headings::laid_down;
pub(crate) use layer::Labels;
pub use layer::{Beside, KeepLayer, Shares};
pub(crate) use open::{failure, shows};
pub(crate) use standing::{WorkState, called};

use crate::message::Message;
use crate::tokens::Estimator;

/// The keep-layer of a whole conversation in at most `budget_tokens` tokens: a summary that no model is needed for. Empty
/// when nothing fits.
pub fn text(messages: &[Message<'_>], budget_tokens: usize, estimator: Estimator) -> String {
    let mut collector = KeepLayerBuilder::default();
    for (position, message) in messages.iter().enumerate() {
        collector.add(position, message);
    }
    collector.layer(budget_tokens, Shares::ALONE, estimator).text
}
