//! When a session acts, and what may leave its prompt before (`W1`, `W2`).

use super::state::State;
use crate::context::{ExchangePart, Item};
use crate::error::Result;
use crate::message::Role;
use crate::policy::{Rung, Trigger, When};
use crate::text::grouped;
use crate::wire::{self, Format, server};

/// Attempts that failed make the next one wait twice as long each, but for no more of them than this.
const MOST_DOUBLINGS: u32 = 4;

impl State {
    /// True where the law of preset `balanced` holds.
    pub(crate) fn has_law(&self) -> bool {
        self.settings.preset.when == When::Window
    }

    /// True while the next attempt at a summary waits.
    pub(crate) fn rests(&self) -> bool {
        let cooldown = self.settings.numbers.compact_cooldown_steps;
        let steps = match self.failures {
            failures if failures > 0 && self.waits_longer() => {
                cooldown.max(1) << failures.min(MOST_DOUBLINGS)
            }
            _ => cooldown,
        };
        self.row.attempted_at.is_some_and(|at| self.row.steps.saturating_sub(at) < steps)
    }

    /// True where the next attempt waits longer after each that failed (`W22`), in the place of what a system waits after
    /// each attempt (`S1.4`).
    pub(crate) fn waits_longer(&self) -> bool {
        self.has_law() || self.settings.numbers.compact_cooldown_steps == 0
    }

    /// Tokens of a prompt at which the session acts: what does not fit is acted on whatever the preset says.
    pub(crate) fn threshold(&self) -> usize {
        self.settings.threshold.of(self.fixed_tokens).min(self.settings.hard_limit)
    }

    /// Refuses a provider that is to compact and does not, or not from so few tokens on (`X10`).
    ///
    /// Errors: [`crate::error::Code::InvalidOption`].
    pub(crate) fn check_server(&self, format: Format) -> Result<()> {
        if self.settings.is_server() { server::check(format, self.threshold()) } else { Ok(()) }
    }

    /// The fields of the next request by which the provider compacts: JSON text. Nothing where it is not to.
    ///
    /// Errors: as [`State::check_server`].
    pub(crate) fn server_request(&self) -> Result<Option<String>> {
        if !self.settings.is_server() {
            return Ok(None);
        }
        let format = self.format();
        self.check_server(format)?;
        let mut signed = false;
        if self.context.totals().by_server > 0 {
            for item in self.context.items().iter().filter(|item| item.origin.server().is_some()) {
                signed |= server::is_signed(&wire::parse(0, &item.body)?);
            }
        }
        Ok(server::request(format, self.threshold(), signed))
    }

    /// What the model is told once, when it is near the threshold (`X11`): how much room is left. Nothing where the prompt ends with what
    /// the model said, or its format has no place for it.
    pub(crate) fn notice_of_room(&mut self) -> Option<String> {
        let from = self.settings.handoff?;
        let (tokens, threshold) = (self.tokens(), self.threshold());
        if (tokens as f64) < threshold as f64 * from {
            self.told_room = false;
        }
        let is_near = tokens as f64 >= threshold as f64 * from && tokens < threshold;
        if !is_near
            || self.told_room
            || !self.format().wire().takes_summary()
            || !self.ends_with_room_for_text()
        {
            return None;
        }
        let left = threshold - tokens;
        let about = grouped(if left > 1_000 { left / 100 * 100 } else { left });
        Some(format!(
            "About {about} tokens are left until a summary takes the place of the older messages. What is written down before that, in a \
             file or in an answer, stays exact."
        ))
    }

    /// False where the prompt ends with what the model said, or with results of calls that its own code made: no text may follow them.
    fn ends_with_room_for_text(&self) -> bool {
        let ends = self.context.newest().next();
        let is_by_code = |item: &Item| {
            let calls =
                item.exchange(self.format()).unwrap_or_default().iter().filter_map(ExchangePart::call);
            calls.into_iter().any(|call| call.caller.is_some())
        };
        match ends {
            Some((_, last)) if last.size.role == Role::Assistant => false,
            Some((_, last)) if last.size.results > 0 => {
                let calling = self.context.newest().find(|(_, item)| item.size.calls > 0);
                calling.is_none_or(|(_, item)| !is_by_code(item))
            }
            _ => true,
        }
    }

    /// True where the model has a tool with which it begins anew (`X11`).
    pub(crate) fn hands_off(&self) -> bool {
        self.settings.handoff.is_some() && self.settings.rungs.contains(&Rung::Summarise)
    }

    /// What sets the next climb off: the model, where it asked to begin anew.
    pub(crate) fn wished(&self, trigger: Trigger) -> Trigger {
        let is_new = trigger == Trigger::Auto
            && self.hands_off()
            && self.model_call().is_some_and(|call| self.began_anew != Some(call));
        if is_new { Trigger::Model } else { trigger }
    }

    /// Position of the call with which the model asks to begin anew.
    pub(crate) fn model_call(&self) -> Option<u64> {
        Some(self.context.model_notes(self.format())?.call)
    }

    /// True when the session acts.
    pub(crate) fn is_due(&self) -> bool {
        self.pays || self.is_large()
    }

    /// True when the prompt is as large as the threshold, or above it where the preset acts only there (`S3.2`).
    fn is_large(&self) -> bool {
        let limit = self.threshold();
        if self.settings.threshold.strict { self.tokens() > limit } else { self.tokens() >= limit }
    }

    /// True when the model can read what left the prompt.
    pub(crate) fn model_recalls(&self) -> bool {
        self.settings.recall.unwrap_or(self.recalls) && self.references.recalls
    }

    /// True when results may leave the prompt: the model can have them back, or half of the tokens are there at which the
    /// session acts (`W1`). Presets without that law do as their documents say.
    pub(crate) fn may_reduce(&self) -> bool {
        !self.has_law() || self.model_recalls() || self.tokens() >= self.threshold() / 2
    }

    /// True when it acts because that pays, and not because of its size.
    pub(crate) fn is_due_by_price(&self) -> bool {
        self.pays && !self.is_large()
    }
}
