//! Instructions in the midst of a history, messages of the system behind the leading ones: a newer one of its kind replaces
//! an older one, and the newest of each kind stands word for word behind a summary.

use crate::context::{Item, Origin};
use crate::error::Result;
use crate::log::View;
use crate::message::Role;
use crate::order;
use crate::summary;
use crate::wire;
use std::collections::HashSet;

/// What is quoted of them takes at most one part in so many of the window.
const QUOTES_PART: usize = 10;

/// The instructions of a context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct InForce {
    /// Indices of those that an earlier summary quotes.
    pub(super) were_quoted: HashSet<usize>,
    /// Indices of those that summaries quote from now on.
    pub(super) quoted: HashSet<usize>,
}

/// One of them.
struct InstructionInForce {
    index: usize,
    /// Its first line: what has the same one is of the same kind.
    kind: String,
    tokens: usize,
    /// It leaves the context, or has left it.
    goes: bool,
}

impl InForce {
    /// Of a context whose messages behind the leading ones are `history`, and stay from item `boundary` on.
    pub(super) fn of(view: &View, history: &[Item], boundary: usize) -> Result<InForce> {
        let mut found = Vec::new();
        let mut were_quoted = HashSet::new();
        let text = |item: &Item| -> Result<String> {
            let value = wire::parse(0, &item.body)?;
            Ok(view.format.wire().read(0, &value)?.text())
        };
        for (at, item) in history.iter().enumerate() {
            if let Some(place) = item.origin.place().filter(|_| item.size.role == Role::System) {
                let (kind, tokens) = (summary::kind_of(&text(item)?), item.size.tokens);
                found.push(InstructionInForce { index: place.index, kind, tokens, goes: at < boundary });
            }
            if let Origin::Summary { prose, .. } = &item.origin
                && !item.origin.quotes().is_empty()
            {
                let text = text(item)?;
                for quote in summary::quotes_of_system(text.get(*prose..).unwrap_or("")) {
                    let tokens = view.settings.estimator.text(&quote.text);
                    were_quoted.insert(quote.index);
                    found.push(InstructionInForce {
                        index: quote.index,
                        kind: quote.kind,
                        tokens,
                        goes: true,
                    });
                }
            }
        }
        let mut room = view.settings.window / QUOTES_PART;
        let (mut kinds, mut quoted) = (HashSet::new(), HashSet::new());
        for instruction in order::by_key(found, |instruction| instruction.index as u64).into_iter().rev() {
            let InstructionInForce { index, kind, tokens, goes } = instruction;
            let is_text = !kind.is_empty();
            if kinds.insert(kind) && is_text && goes && tokens <= room {
                room -= tokens;
                quoted.insert(index);
            }
        }
        Ok(InForce { were_quoted, quoted })
    }
}
