//! How many tokens a prompt has: by the estimate, and by what providers counted.

use super::state::State;
use crate::context::Context;
use crate::message::Role;
use crate::tokens::{Calibration, Corrected, Sent};
use crate::wire::provider::Usage;
use std::rc::Rc;

impl State {
    /// All tokens of a prompt with this context.
    pub(crate) fn tokens_with(&self, context: &Context) -> usize {
        self.corrected(self.estimated(context))
    }

    /// The estimate of a prompt, uncorrected.
    pub(crate) fn estimated(&self, context: &Context) -> usize {
        context.totals().tokens.saturating_add(self.fixed_tokens)
    }

    /// An estimate of a whole prompt, corrected by what was reported. The app's own counter is not corrected.
    pub(crate) fn corrected(&self, estimated: usize) -> usize {
        self.calibration().map_or(estimated, |known| known.correct(estimated))
    }

    /// What parts of the context take of its corrected tokens: theirs, or less in proportion.
    pub(crate) fn shares(&self) -> impl Fn(usize) -> usize + use<> {
        self.shares_of(&self.context)
    }

    /// The same of another context.
    pub(crate) fn shares_of(&self, context: &Context) -> impl Fn(usize) -> usize + use<> {
        let estimated = self.estimated(context);
        let used = self.corrected(estimated).min(estimated);
        move |tokens| (tokens as u64 * used as u64 / estimated.max(1) as u64) as usize
    }

    /// How estimates are corrected, when they are.
    pub(crate) fn correction(&self) -> Option<Corrected> {
        self.calibration().map(|known| known.explain(self.generation()))
    }

    /// What was learned of the model, where that is used.
    pub(super) fn calibration(&self) -> Option<&Rc<Calibration>> {
        self.calibrations.of(self.model()).filter(|_| !self.settings.app_counts)
    }

    /// The model that prompts are counted for; empty where nobody named one.
    fn model(&self) -> &str {
        self.reported_model.as_deref().or(self.settings.model.as_deref()).unwrap_or_default()
    }

    /// A prompt goes out that is estimated at so many tokens, uncorrected.
    pub(crate) fn note_sent(&mut self, estimated: usize) {
        self.sent = Some(Sent { estimated, generation: self.generation() });
    }

    /// Learns what the provider counted for the last prompt, and what it cost; false when the count cannot be that prompt's.
    pub(crate) fn report(&mut self, usage: &Usage, model: Option<String>) -> bool {
        self.charge(usage);
        if let Some(model) = model {
            self.reported_model = Some(model);
        }
        let sent = self.sent.take().unwrap_or_else(|| {
            // Where the app sends the messages as it has them: all but the answer, when that was appended already.
            let answer =
                self.context.items().iter().rev().take_while(|item| item.size.role == Role::Assistant);
            let answer: usize = answer.map(|item| item.size.tokens).sum();
            let estimated = self.estimated(&self.context).saturating_sub(answer);
            Sent { estimated, generation: self.generation() }
        });
        let model = self.model().to_string();
        self.calibrations.report(&model, sent, usage.input)
    }
}
