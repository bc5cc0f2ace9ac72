//! What a session knows.

mod batches;
mod change;
mod pending;

pub(crate) use batches::{APPEND_OVERHEAD_OPS, AppendBatch, record_id};
pub(crate) use change::{ContextChange, Restored, Summarised};
pub(crate) use pending::{FormatDecision, PendingMessage};

pub(super) use batches::view_id;

use super::bill::{Bill, Spending};
use super::known::KnownMessages;
use super::limits::LimitsTold;
use super::price::Paid;
use super::record::{SCHEMA, SessionRow};
use super::said::offers_recall;
use super::sent::{HandedOut, MendedPrompt, OmittedMessage};
use super::sessions::OtherSessions;
use super::terms::Unindexed;
use super::unstored::{Unstored, Version};
use super::view::References;
use crate::checkpoint::{Reliability, model_size, reliability};
use crate::context::{Context, MessageSource, Origin, SessionLog, Size};
use crate::error::Result;
use crate::keys::batch::Key;
use crate::keys::ids;
use crate::message::{Message, Part};
use crate::policy::{Settings, clearable};
use crate::redact::{SearchedTexts, Secrets};
use crate::step::Io;
use crate::summary::keep::Collected;
use crate::tokens::{Bounds, Calibrations, Sent};
use crate::wire::{self, Format, Past};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// A session in memory.
#[derive(Debug, Clone)]
pub(crate) struct State {
    /// Names the session's rows. Drawn anew when a session begins, so that nothing of a deleted one under the same name
    /// can be taken for it.
    pub(crate) sid: String,
    /// The row as it was last read or written.
    pub(crate) row: SessionRow,
    /// The active context.
    pub(crate) context: Rc<Context>,
    /// Where a full store does not have the context: what it has.
    pub(super) unstored: Option<Unstored>,
    /// How often what stood in memory alone was given up for what someone else stored.
    pub(crate) given_up: u64,
    /// Options.
    pub(crate) settings: Rc<Settings>,
    /// False for a one-shot compaction and for a dry run: nothing is stored.
    pub(crate) durable: bool,
    /// What makes references.
    pub(crate) references: References,
    /// Where nothing is stored: messages that left the context, by their index. A summary may still quote them.
    pub(crate) unlogged: Rc<HashMap<usize, Rc<str>>>,
    /// Secrets that have numbers; the row has them since the last commit.
    pub(crate) secrets: Rc<RefCell<Secrets>>,
    /// Texts that hold none.
    pub(crate) searched: Rc<RefCell<SearchedTexts>>,
    /// Tokens of the system prompt and the tools of the last `prepare`.
    pub(crate) fixed_tokens: usize,
    /// Those of them that are the system prompt's, with the goal.
    pub(crate) prompt_tokens: usize,
    /// The tools' part of them.
    pub(crate) tool_tokens: usize,
    /// The part of the app's live facts, which stand behind the messages.
    pub(crate) live_tokens: usize,
    /// What the bounds of all of them depend on.
    pub(crate) fixed_texts: Bounds,
    /// The model was told how much room is left, and there was no more since.
    pub(crate) told_room: bool,
    /// The call with which the model asked to begin anew, once a prepare has done so: what is undone stays so (`X11`).
    pub(crate) began_anew: Option<u64>,
    /// The model was given the tool that reads what left the prompt.
    pub(crate) recalls: bool,
    /// Attempts at a summary that failed since one was made.
    pub(crate) failures: u32,
    /// The prices say that a compaction pays.
    pub(crate) pays: bool,
    /// Where they decide: calls until they will, about.
    pub(crate) calls_left: Option<u64>,
    /// What its calls cost that is in no row yet.
    pub(super) spending: Spending,
    /// What the app was told of its limits.
    pub(super) limits_told: LimitsTold,
    /// What reports of prompts taught; the row has it since the last commit.
    pub(crate) calibrations: Calibrations,
    /// The model that was reported last, where that is not the options'.
    pub(crate) reported_model: Option<String>,
    /// The prompt of the last `prepare`, until it is reported.
    pub(crate) sent: Option<Sent>,
    /// Formats that no message so far speaks against; only as long as none is sure.
    pub(crate) plausible: Vec<Format>,
    /// The most that the store takes in one batch.
    pub(crate) max_batch_ops: usize,
    /// Tells this process's jobs from those of others; drawn with the first.
    pub(crate) tab: String,
    /// Losses that its watermark had to be told for.
    pub(crate) told_losses: u64,
    /// Messages of the app that the last `prepare` did not send as they are (`S1.15`).
    pub(crate) omitted: Vec<OmittedMessage>,
    /// What is known of the beginning of the context, which breaks no rule of its format; as far as it is settled.
    pub(crate) past: Option<(Format, Past)>,
    /// What the last `prepare` handed out, where it was the context itself.
    pub(crate) handed_out: Option<HandedOut>,
    /// The same where it was mended.
    pub(crate) mended: Option<Rc<MendedPrompt>>,
    /// `prepare`s so far.
    pub(crate) prepared: u64,
    /// The view that the app was handed last.
    pub(super) handed: Version,
    /// The first message that was appended since the context became another one than the app was handed.
    pub(crate) unseen_from: Option<usize>,
    /// Messages before this position of the log were looked at for a compaction of the provider (`X10`).
    pub(crate) looked_at: u64,
    /// Messages whose terms are in no page.
    pub(crate) unindexed: Unindexed,
    /// What the last summary took in of the messages that it stands for.
    pub(crate) collected: Option<Rc<Collected>>,
    /// The row of it that the next change writes.
    pub(crate) facts: Option<(Key, Vec<u8>)>,
    /// What a history that is handed over is recognized by.
    pub(super) known: KnownMessages,
    /// The other sessions of the store, where searches look through them.
    pub(crate) others: Option<Rc<RefCell<OtherSessions>>>,
}

/// Tokens of what goes with the messages of a prompt.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fixed {
    /// All of them.
    pub(crate) tokens: usize,
    /// Of the system prompt and the goal.
    pub(crate) prompt: usize,
    /// Of the tools.
    pub(crate) tools: usize,
    /// Of live facts.
    pub(crate) live: usize,
    /// What their bounds depend on.
    pub(crate) texts: Bounds,
}

impl State {
    /// A session that is nowhere but in memory.
    pub(crate) fn new(id: String, secret: String, settings: Rc<Settings>, now: u64) -> Self {
        let sid = ids::id(&[b"sid", secret.as_bytes()]);
        let others = settings.recalls_all.then(Rc::default);
        let secrets = Secrets::new(&secret);
        let searched = Rc::new(RefCell::new(SearchedTexts::new(&secret)));
        let references = References {
            secret: secret.as_str().into(),
            recalls: true,
            by_model: false,
            named: true,
            logged: false,
        };
        let row = SessionRow {
            v: SCHEMA,
            ver: 0,
            id,
            format: settings.format,
            secret,
            next_seq: 0,
            messages: 0,
            generation: 0,
            tail_from: 0,
            whole: None,
            head: String::new(),
            chain: String::new(),
            steps: 0,
            attempted_at: None,
            pending_step: false,
            paid: Paid::default(),
            spent: Bill::default(),
            pins: Vec::new(),
            pinned_tokens: 0,
            rejected: Vec::new(),
            tokens: 0,
            compressions: 0,
            log: SessionLog::default(),
            goal: settings.goal.clone(),
            snapshots: Vec::new(),
            parent: None,
            secrets: Secrets::default(),
            calibrations: Calibrations::default(),
            losses: Vec::new(),
            erased: Vec::new(),
            formerly: Vec::new(),
            known: None,
            created_at: now,
            updated_at: now,
            notes: None,
            rest: serde_json::Map::new(),
        };
        State {
            sid,
            row,
            context: Rc::default(),
            unstored: None,
            given_up: 0,
            settings,
            durable: true,
            references,
            unlogged: Rc::default(),
            secrets: Rc::new(RefCell::new(secrets)),
            searched,
            fixed_tokens: 0,
            prompt_tokens: 0,
            tool_tokens: 0,
            live_tokens: 0,
            fixed_texts: Bounds::default(),
            told_room: false,
            began_anew: None,
            recalls: false,
            failures: 0,
            pays: false,
            calls_left: None,
            spending: Spending::default(),
            limits_told: LimitsTold::default(),
            calibrations: Calibrations::default(),
            reported_model: None,
            sent: None,
            plausible: Format::ALL.to_vec(),
            max_batch_ops: usize::MAX,
            tab: String::new(),
            told_losses: 0,
            omitted: Vec::new(),
            past: None,
            handed_out: None,
            mended: None,
            prepared: 0,
            handed: Version::default(),
            unseen_from: None,
            looked_at: 0,
            unindexed: Unindexed::default(),
            collected: None,
            facts: None,
            known: KnownMessages::default(),
            others,
        }
    }

    /// The app has the context as it is now: what it appends from now on was written with that before it.
    pub(crate) fn hand_out(&mut self) {
        self.handed = self.version();
    }

    /// The app has the context as it is.
    pub(crate) fn is_handed(&self) -> bool {
        self.handed == self.version()
    }

    /// Positions of the log that nobody looked at for a compaction of the provider: the first, and the one after the last.
    pub(crate) fn unlooked(&self) -> (u64, u64) {
        (self.row.tail_from.max(self.looked_at), self.row.next_seq)
    }

    /// A message was appended. Whoever wrote it saw the context that was handed out last.
    pub(crate) fn note_unseen(&mut self, index: usize) {
        if self.version() != self.handed {
            self.unseen_from.get_or_insert(index);
        }
    }

    /// The messages' format; the first that they could be in, as long as none is sure.
    pub(crate) fn format(&self) -> Format {
        self.row.format.or(self.plausible.first().copied()).unwrap_or(Format::OpenaiChat)
    }

    /// The formats that the messages may be in: one, once it is sure.
    pub(crate) fn may_be(&self) -> impl Iterator<Item = Format> + '_ {
        let sure = self.row.format;
        let open: &[Format] = if sure.is_none() { &self.plausible } else { &[] };
        sure.into_iter().chain(open.iter().copied())
    }

    /// All tokens of the next prompt.
    pub(crate) fn tokens(&self) -> usize {
        self.tokens_with(&self.context)
    }

    /// Notes what goes with the messages of the next prompt.
    pub(crate) fn set_fixed(&mut self, fixed: Fixed) {
        self.fixed_tokens = fixed.tokens;
        self.prompt_tokens = fixed.prompt;
        self.tool_tokens = fixed.tools;
        self.live_tokens = fixed.live;
        self.fixed_texts = fixed.texts;
    }

    /// Tokens of what stands before the messages of the next prompt.
    pub(crate) fn before_tokens(&self) -> usize {
        self.fixed_tokens.saturating_sub(self.live_tokens)
    }

    /// Notes whether the model has the tool that reads what left the prompt; without tools it has what it had.
    pub(crate) fn note_tools(&mut self, tools: &str) {
        self.recalls |= offers_recall(tools);
    }

    /// The checkpoint that retired an offload (`S1.9`).
    pub(crate) fn retired_by(&self, reference: &str) -> Option<Rc<str>> {
        self.context.items().iter().find_map(|item| match &item.origin {
            Origin::Summary { checkpoint, covers, .. } => {
                let mut offloads = covers.iter().flat_map(|cover| &cover.offloads);
                offloads.any(|(_, offload)| offload.reference == reference).then(|| Rc::clone(checkpoint))
            }
            _ => None,
        })
    }

    /// What the system prompt says about the goal, as long as it is worked on (`S5.13`).
    pub(crate) fn goal_text(&self) -> Option<String> {
        self.row.goal.as_ref()?.prompt()
    }

    /// How far the context can be trusted (`S5.11`).
    pub(crate) fn reliability(&self) -> Reliability {
        reliability(model_size(self.settings.summariser_model().unwrap_or_default()), self.row.compressions)
    }
}

/// What a message costs, by the session's one counter, and what it holds.
pub(crate) async fn measure(
    io: &Io,
    settings: &Settings,
    format: Format,
    whose: MessageSource,
    body: &Rc<str>,
) -> Result<Size> {
    let mut size = {
        let value = wire::parse(0, body)?;
        size_of(settings, &format.wire().read(0, &value)?)
    };
    if settings.app_counts {
        size.tokens = io.count(whose, body).await?;
    }
    Ok(size)
}

/// What a message costs by the estimator, and what it holds.
pub(crate) fn size_of(settings: &Settings, message: &Message<'_>) -> Size {
    let mut texts = Bounds::default();
    Size {
        tokens: settings.estimator.message_within(message, &mut texts),
        role: message.role,
        calls: message.calls().count(),
        results: message.results().count(),
        is_bound: !message.parts.iter().all(|part| matches!(part, Part::Text(_) | Part::Media(_))),
        clearable: clearable(settings, message),
        texts,
    }
}
