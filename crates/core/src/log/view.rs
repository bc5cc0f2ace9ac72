//! What a compaction reads of a session.

use super::guard::SessionGuard;
use super::state::State;
use crate::context::{Context, Item};
use crate::policy::Settings;
use crate::redact::{SearchedTexts, Secrets};
use crate::tokens::Calibration;
use crate::wire::Format;
use std::cell::RefCell;
use std::rc::Rc;

/// The context of a session and what decides about it, as they were at one moment. It outlives an await, and changes nothing.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// The active context.
    pub(crate) context: Rc<Context>,
    /// Options.
    pub(crate) settings: Rc<Settings>,
    /// The messages' format.
    pub(crate) format: Format,
    /// How full the next prompt is.
    pub(crate) usage: PromptUsage,
    /// What makes references.
    pub(crate) references: References,
    /// Secrets that have numbers; it goes on to learn them with the session.
    pub(crate) secrets: Rc<RefCell<Secrets>>,
    /// Texts that hold none.
    pub(crate) searched: Rc<RefCell<SearchedTexts>>,
    /// Messages that stay word for word, in ascending order.
    pub(crate) pins: Vec<usize>,
    /// Their tokens.
    pub(crate) pinned_tokens: usize,
    /// Messages whose constraints the app rejected, in ascending order.
    pub(crate) rejected: Vec<usize>,
    /// Number of the stored view.
    pub(crate) generation: u64,
    /// Summaries so far.
    pub(crate) compressions: u64,
    /// A summary was tried so lately that the next one waits.
    pub(crate) rests: bool,
    /// The store has the context; nothing where nothing is ever stored.
    pub(crate) stored: Option<bool>,
    /// A model's message may begin the conversation in every format that this may be.
    pub(crate) model_may_begin: bool,
}

/// How full a prompt is.
#[derive(Debug, Clone)]
pub(crate) struct PromptUsage {
    /// All its tokens.
    pub(crate) tokens: usize,
    /// The estimate of what goes with the messages.
    pub(crate) fixed: usize,
    /// Tokens of the system prompt, wherever it is.
    pub(crate) system: usize,
    /// The session acts.
    pub(crate) is_due: bool,
    /// Where prices decide: calls until it pays, about.
    pub(crate) calls_left: Option<u64>,
    /// What leaves the prompt can be had back by the model, or the prompt is half as large as may be (`W1`).
    pub(crate) may_reduce: bool,
    estimated: usize,
    /// Number of the view that it is of.
    generation: u64,
    known: Option<Rc<Calibration>>,
}

/// What the references of a session are made of.
#[derive(Debug, Clone)]
pub(crate) struct References {
    pub(crate) secret: Rc<str>,
    /// Somebody can read them: where not, none may be in a text.
    pub(crate) recalls: bool,
    /// The model has the tools that read them.
    pub(crate) by_model: bool,
    /// A text names them. To a model that cannot read them they say nothing: a preset whose texts are its own then says
    /// that it can be looked up again; those of systems are their documents'.
    pub(crate) named: bool,
    /// The log has the texts, in a format that is sure: a reference is enough.
    pub(crate) logged: bool,
}

impl PromptUsage {
    /// An estimate of a whole prompt, corrected by what was reported.
    pub(crate) fn corrected(&self, estimated: usize) -> usize {
        self.known.as_ref().map_or(estimated, |known| known.correct(estimated))
    }

    /// Tokens that a provider counted of a prompt that is estimated at so many and goes on from the one that it saw last.
    pub(crate) fn counted(&self, estimated: usize) -> usize {
        self.known.as_ref().map_or(0, |known| known.counted(estimated, self.generation))
    }

    /// How many tokens of the estimate are so many corrected ones, in proportion.
    pub(crate) fn estimate_of(&self, tokens: usize) -> usize {
        (tokens as u64 * self.estimated as u64 / self.tokens.max(1) as u64) as usize
    }

    /// All tokens once the messages take `more` and `less`.
    pub(crate) fn after(&self, more: usize, less: usize) -> usize {
        self.corrected(self.estimated.saturating_add(more).saturating_sub(less))
    }
}

impl View {
    /// The items of the context, oldest first.
    pub(crate) fn items(&self) -> &[Item] {
        self.context.items()
    }

    /// True for a message that the app pinned.
    pub(crate) fn is_pinned(&self, index: usize) -> bool {
        self.pins.binary_search(&index).is_ok()
    }

    /// True for a message whose constraints the app rejected.
    pub(crate) fn is_rejected(&self, index: usize) -> bool {
        self.rejected.binary_search(&index).is_ok()
    }

    /// True when the prompt fits the window, with room for the answer.
    pub(crate) fn fits(&self) -> bool {
        self.usage.tokens <= self.settings.hard_limit
    }
}

impl State {
    fn references(&self) -> References {
        let by_model = self.model_recalls();
        let References { secret, recalls, .. } = self.references.clone();
        let named = by_model || (recalls && !self.settings.preset.stubs);
        References { secret, recalls, by_model, named, logged: self.row.format.is_some() }
    }

    /// What a compaction reads of it.
    pub(crate) fn view(&self) -> View {
        let estimated = self.estimated(&self.context);
        View {
            context: Rc::clone(&self.context),
            settings: Rc::clone(&self.settings),
            format: self.format(),
            usage: PromptUsage {
                tokens: self.corrected(estimated),
                fixed: self.fixed_tokens,
                system: self.prompt_tokens.saturating_add(self.context.totals().system),
                is_due: self.is_due(),
                calls_left: self.calls_left,
                may_reduce: self.may_reduce(),
                estimated,
                generation: self.generation(),
                known: self.calibration().cloned(),
            },
            references: self.references(),
            secrets: Rc::clone(&self.secrets),
            searched: Rc::clone(&self.searched),
            pins: self.row.pins.clone(),
            pinned_tokens: self.row.pinned_tokens,
            rejected: self.row.rejected.clone(),
            generation: self.row.generation,
            compressions: self.row.compressions,
            rests: self.rests(),
            stored: self.is_stored(),
            model_may_begin: self.may_be().all(|format| format.wire().assistant_may_begin()),
        }
    }
}

impl SessionGuard {
    /// What a compaction reads of the session, as it is now.
    pub(crate) fn view(&self) -> View {
        self.state().view()
    }
}
