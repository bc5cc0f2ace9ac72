//! What options say, resolved against the preset and the window.

use super::cost::{Prices, Rule};
use super::digest::Digest;
use super::limits::SessionLimits;
use super::numbers::Threshold;
use super::presets::{Fallback, Numbers, Preset, When};
use super::rung::Rung;
use super::tools::ToolPolicies;
use crate::checkpoint::{Goal, Level, Mode, Range};
use crate::context::Keep;
use crate::summary::Focus;
use crate::tokens::Estimator;
use crate::wire::Format;
use crate::wire::provider::Provider;

/// A summary takes at most one part in so many of a summariser's window that the app names.
const SUMMARY_PART: usize = 8;

/// Where the law of preset `balanced` holds, a summary that a model writes takes one part in so many of what it replaces,
/// from the preset's length up to twice that: a long piece of work has more to say (`W8`).
const TARGET_PART: usize = 8;

/// Who writes summaries.
#[derive(Debug, Clone, PartialEq)]
pub enum Summariser {
    /// The app's `summarize`.
    App,
    /// A provider's endpoint, called through the app's `fetch` or the global one.
    Provider(Provider),
    /// The provider, in the course of the app's own requests; the built-in one stands by (`X10`).
    Server,
    /// The built-in one; no model is called.
    Extractive,
}

/// What the provider does with signed reasoning after an edit, as the app's requests have it
/// (`thinking.block_binding.prefix_mismatch_behavior` of Anthropic, AN8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrefixMismatch {
    /// It refuses the request: the reasoning must go.
    Error,
    /// It leaves the reasoning out itself: taking it out would only rewrite a prefix that is cached.
    DropBlock,
}

/// What becomes of a message that states constraints (`S4.3`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinProposals {
    /// A pin is proposed, and the constraints follow every summary until they are rejected.
    Keep,
    /// A pin is proposed, and summaries are asked to keep the constraints.
    Ask,
    /// Nothing is looked for.
    Off,
}

/// Which tools are of which type (`S4.6`), in lower case.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessTools {
    /// They search the web.
    pub search: Vec<String>,
    /// They read files.
    pub files: Vec<String>,
    /// They ask a database.
    pub queries: Vec<String>,
    /// They call an API.
    pub apis: Vec<String>,
}

impl ProcessTools {
    /// The type of a tool, whatever the letter case of its name.
    pub(crate) fn kind(&self, tool: &str) -> Option<Digest> {
        let tool = tool.to_lowercase();
        let lists = [
            (&self.search, Digest::Search),
            (&self.files, Digest::File),
            (&self.queries, Digest::Query),
            (&self.apis, Digest::Api),
        ];
        lists.into_iter().find(|(names, _)| names.contains(&tool)).map(|(_, kind)| kind)
    }
}

/// Options, checked and resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The preset.
    pub preset: &'static Preset,
    /// Its rungs, with those that options add.
    pub rungs: Vec<Rung>,
    /// When the session acts.
    pub threshold: Threshold,
    /// It acts before that when this rule says that it pays.
    pub price_rule: Option<Rule>,
    /// What the model's tokens cost, where that is known.
    pub prices: Option<Prices>,
    /// Its numbers with the options' over them, scaled to the window.
    pub numbers: Numbers,
    /// Tools whose old results are cleared (`S3.1`), in lower case; all when there are none of them.
    pub compactable_tools: Option<Vec<String>>,
    /// Tools that read a file (`S3.6`), in lower case.
    pub read_tools: Vec<String>,
    /// Tools whose results are processed when they arrive (`S4.5`).
    pub process_tools: ProcessTools,
    /// What the app says of single tools.
    pub tool_policies: ToolPolicies,
    /// What the session may not exceed.
    pub limits: SessionLimits,
    /// From this fraction of the threshold on the model is told how much room is left.
    pub handoff: Option<f64>,
    /// The app's `readFile` has the content of files.
    pub app_reads_files: bool,
    /// The messages' format, when the app says it.
    pub format: Option<Format>,
    /// The estimator.
    pub estimator: Estimator,
    /// The conversation's model, as the app names it.
    pub model: Option<String>,
    /// The app's `tokenCounter` counts instead.
    pub app_counts: bool,
    /// The app's `pinned` is asked about every message.
    pub app_pins: bool,
    /// What becomes of other messages that state constraints.
    pub pin_proposals: PinProposals,
    /// Secrets are replaced in what a summariser sees and in what is written in the place of messages.
    pub redacts_secrets: bool,
    /// The app's `redact` is applied to what a summariser sees, after that.
    pub app_redacts: bool,
    /// Context window.
    pub window: usize,
    /// Nobody said how large it is: neither the app, nor a catalogue, nor profiles.
    pub is_window_assumed: bool,
    /// No prompt is ever larger: the window less the answer and the reserve.
    pub hard_limit: usize,
    /// Who writes summaries.
    pub summariser: Summariser,
    /// The summariser's model, else the conversation's, as the app named it.
    pub summary_model: Option<String>,
    /// Their requests may continue the conversation's own prompt (`W7`): they go to the same model, and where an endpoint is
    /// asked, the app said what else is in its requests to that.
    pub continues_prompts: bool,
    /// The app says how long they are to be.
    pub is_target_given: bool,
    /// What happens when that fails for good.
    pub fallback: Fallback,
    /// What stays at the end.
    pub keep: Keep,
    /// Where it is not that which decides: tokens of the prompt that a compaction leaves.
    pub leaves: Option<usize>,
    /// The app says which results are too large for a prompt: they leave it whatever its size.
    pub admits_at_once: bool,
    /// A result that was read before is told as what changed since (`X1`).
    pub rereads: bool,
    /// The app says whether the model can recall; else its tools say it.
    pub recall: Option<bool>,
    /// The app makes vectors of texts, for searches by meaning.
    pub embeds: bool,
    /// Searches look through the other sessions of the store, too (`X9`).
    pub recalls_all: bool,
    /// The app's `summarizeResult` shortens single results (`S2.8`).
    pub app_shortens: bool,
    /// Calls of a model that may be under way at once (`S2.12`).
    pub concurrency: usize,
    /// A history that is longer than the summariser's window is summarised in parts; else its texts are shortened.
    pub by_parts: bool,
    /// The summariser's window, when that is another one.
    pub summary_window: Option<usize>,
    /// What becomes of signed reasoning after an edit.
    pub prefix_mismatch: PrefixMismatch,
    /// A prepare does not wait for a summary that can wait.
    pub background: bool,
    /// Of one attempt, in ms.
    pub timeout_ms: u64,
    /// The app's guidance for summaries.
    pub instructions: Option<String>,
    /// What the app is used for (`S5.10`).
    pub mode: Mode,
    /// The level of new checkpoints; by their tokens when it is not given (`S5.7`).
    pub level: Option<Level>,
    /// What the session is for, when it begins (`S5.13`).
    pub goal: Option<Goal>,
    /// The session that a new one is begun from (`S3.10`).
    pub parent: Option<String>,
    /// The host keeps watermarks of sessions, or knows when the platform removed some.
    pub has_watermark: bool,
    /// A session that is lost may be begun again.
    pub accept_data_loss: bool,
    /// The session is in the store: where it is not, it was lost.
    pub must_exist: bool,
    /// A history that is another one is refused, and no branch (`E2`).
    pub refuses_diverged: bool,
    /// A compaction that goes on from a state acts whether or not it is due (`E4`).
    pub carries_now: bool,
    /// Bytes of the state that it returns.
    pub carried_bytes: usize,
}

impl Settings {
    /// How detailed a summary of `tokens` tokens is to be, where the preset or the app says that, and how long.
    pub(crate) fn target(&self, tokens: usize) -> (Option<Level>, usize) {
        let levels = self.numbers.checkpoint.levels;
        let of_tokens = self.preset.checkpoints.then(|| levels.of(tokens));
        match self.level.or(of_tokens) {
            Some(level) if self.is_target_given => (Some(level), self.numbers.target_tokens),
            Some(level) => (Some(level), levels.target(level, self.window).high),
            None => {
                // No longer than a small summariser can write and read again.
                let most = self.summary_window.map_or(usize::MAX, |window| window / SUMMARY_PART);
                let target = self.numbers.target_tokens;
                let grows = self.preset.when == When::Window && !self.is_target_given && self.asks_a_model();
                let target = if grows { (tokens / TARGET_PART).clamp(target, target * 2) } else { target };
                (None, target.min(most))
            }
        }
    }

    /// How long a checkpoint of this level is, at most about.
    pub(crate) fn checkpoint_tokens(&self, level: Level) -> usize {
        self.numbers.checkpoint.levels.target(level, self.window).high
    }

    /// A model writes the summaries, not the built-in summariser.
    pub(crate) fn asks_a_model(&self) -> bool {
        matches!(self.summariser, Summariser::App | Summariser::Provider(_))
    }

    /// The provider compacts, in the course of the app's own requests.
    pub(crate) fn is_server(&self) -> bool {
        self.summariser == Summariser::Server
    }

    /// A model or the app's `summarizeResult` shortens single results.
    pub(crate) fn asks_for_results(&self) -> bool {
        self.asks_a_model() || self.app_shortens
    }

    /// What a summary of this level is to stress.
    pub(crate) fn focus(&self, level: Option<Level>) -> Option<Focus> {
        let level = level?;
        let target = self.numbers.target_tokens;
        let range = match self.is_target_given {
            true => Range { low: target / 2, high: target },
            false => self.numbers.checkpoint.levels.target(level, self.window),
        };
        Some(Focus { level, range, mode: self.mode })
    }

    /// Name of the model that writes summaries, when it is known.
    pub(crate) fn summariser_model(&self) -> Option<&str> {
        self.provider().map(|provider| provider.model.as_str()).or(self.summary_model.as_deref())
    }

    /// The endpoint that writes summaries, when one does.
    pub(crate) fn provider(&self) -> Option<&Provider> {
        match &self.summariser {
            Summariser::Provider(provider) => Some(provider),
            _ => None,
        }
    }
}
