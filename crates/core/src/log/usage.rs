//! How many tokens a prompt has: by the estimate, and by what providers counted.

use super::state::State;
use crate::context::{Context, Size};
use crate::message::Role;
use crate::tokens::{Bounds, Calibration, Corrected, Sent};
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

    /// Bounds of all tokens of a prompt with this context, of which the session knows all: those of what came after the prompt that
    /// was reported last, where it goes on from that. The app's own counter is taken at its word.
    pub(crate) fn bounds_with(&self, context: &Context) -> (usize, usize) {
        let estimated = self.estimated(context);
        let used = self.corrected(estimated);
        if self.settings.app_counts {
            return (used, used);
        }
        let texts = self.texts_with(context);
        let (below, above) = match self.calibration() {
            Some(known) => known.off(estimated, self.generation(), &texts, self.settings.estimator),
            None => texts.off(estimated, self.settings.estimator),
        };
        (used.saturating_sub(below), used.saturating_add(above))
    }

    fn texts_with(&self, context: &Context) -> Bounds {
        context.totals().texts.and(&self.fixed_texts)
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
        let texts = self.texts_with(&self.context);
        self.sent = Some(Sent { estimated, generation: self.generation(), texts });
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
            let mut texts = self.texts_with(&self.context);
            let mut estimated = self.estimated(&self.context);
            for Size { tokens, texts: own, .. } in answer.map(|item| item.size) {
                texts = texts.without(&own);
                estimated = estimated.saturating_sub(tokens);
            }
            Sent { estimated, generation: self.generation(), texts }
        });
        let model = self.model().to_string();
        self.calibrations.report(&model, sent, usage.input, self.settings.estimator)
    }
}
