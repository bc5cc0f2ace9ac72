//! The active context by its parts (`S5.1`): what is looked at, and never changed through.

use super::operations::{OutItem, Session, out};
use crate::context::Origin;
use crate::error::Result;
use crate::log::State;
use crate::message::Role;
use serde::Serialize;

/// What the model sees.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActiveContext {
    /// The whole context, in the order of the prompt.
    pub items: Vec<OutItem>,
    /// Which of them are neither the system's nor a checkpoint's.
    pub recent: Vec<usize>,
    /// Tokens of each part.
    pub token_count: PartTokens,
}

/// Tokens by part of the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PartTokens {
    /// The system prompt, with tools and goal, messages of the system, and what the provider adds.
    pub system: usize,
    /// Checkpoints, and what keeps the roles alternating around them.
    pub checkpoints: usize,
    /// All other messages.
    pub recent: usize,
    /// Their sum.
    pub total: usize,
}

impl PartTokens {
    fn of(state: &State) -> Self {
        let totals = state.context.totals();
        let total = state.tokens();
        let share = state.shares();
        let (checkpoints, recent) =
            (share(totals.summary), share(totals.user + totals.assistant + totals.tool));
        PartTokens { system: total.saturating_sub(checkpoints + recent), checkpoints, recent, total }
    }
}

impl Session {
    /// The active context by its parts.
    pub fn active(&self) -> Result<ActiveContext> {
        self.slot.look(|state| {
            let items = state.context.items();
            let is_recent = |item: &crate::context::Item| {
                matches!(item.origin, Origin::Message(_) | Origin::Edited { .. })
                    && item.size.role != Role::System
            };
            let recent = items.iter().enumerate().filter(|(_, item)| is_recent(item)).map(|(at, _)| at);
            ActiveContext { items: out(items), recent: recent.collect(), token_count: PartTokens::of(state) }
        })
    }

    /// Tokens that the next messages may take: what is left of the window after the answer's share; never below 0.
    pub fn available_tokens(&self) -> Result<usize> {
        self.slot.look(|state| state.settings.hard_limit.saturating_sub(state.tokens()))
    }
}
