//! What a session knows, and the batches that its changes make. Every batch expects the session's row as it was read.

mod change;
mod pending;

pub(crate) use change::{ContextChange, Restored, Summarised};
pub(crate) use pending::{FormatDecision, PendingMessage};

use super::bill::{Bill, Spending};
use super::keyed;
use super::known::KnownMessages;
use super::limits::LimitsTold;
use super::price::Paid;
use super::record::{
    self, Cause, LogRow, NameRow, RowKind, SCHEMA, SessionRow, ViewNote, ViewRow, WholeView,
};
use super::said::offers_recall;
use super::seal;
use super::sent::{HandedOut, MendedPrompt, OmittedMessage};
use super::staging::rows_of;
use super::terms::Unindexed;
use super::unstored::{Unstored, Version};
use super::view::References;
use crate::checkpoint::{Reliability, model_size, reliability};
use crate::context::{Context, Item, MessageSource, Origin, Place, SessionLog, Size};
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Batch, Durability, Key, keys};
use crate::keys::ids;
use crate::message::Message;
use crate::policy::{Settings, clearable};
use crate::redact::{SearchedTexts, Secrets};
use crate::step::Io;
use crate::summary::keep::Collected;
use crate::tokens::{Calibrations, Sent};
use crate::wire::{self, Format, Past};
use serde_json::value::RawValue;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// What a batch that appends does besides log rows: the session's row and its name, each expected and put, and what of the
/// row changes seldom.
pub(crate) const APPEND_OVERHEAD_OPS: usize = 5;

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
    /// What a history that is handed over is recognized by.
    pub(super) known: KnownMessages,
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
}

impl State {
    /// A session that is nowhere but in memory.
    pub(crate) fn new(id: String, secret: String, settings: Rc<Settings>, now: u64) -> Self {
        let sid = ids::id(&[b"sid", secret.as_bytes()]);
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
            known: KnownMessages::default(),
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

    /// The row as it is after a commit.
    pub(super) fn next_row(&self, now: u64) -> SessionRow {
        let v = self.row.v.max(SCHEMA);
        let (calibrations, secrets) = (self.calibrations.clone(), self.secrets.borrow().clone());
        let (ver, spent) = (self.row.ver + 1, self.spent());
        SessionRow { v, ver, updated_at: now, calibrations, secrets, spent, ..self.row.clone() }
    }

    pub(super) fn batch(&self, row: &mut SessionRow, mut puts: Vec<(Key, Vec<u8>)>) -> Result<Batch> {
        puts.extend(seal::write(&self.sid, row));
        let mut expect = vec![(keys::session(&self.sid), (self.row.ver > 0).then_some(self.row.ver))];
        if self.row.ver == 0 {
            // The first commit takes the name.
            let name = keys::name(&self.row.id);
            let row = NameRow::new(&self.row.id, &self.sid);
            puts.push((name.clone(), seal::write_name(&row)?));
            expect.push((name, None));
        } else {
            // A row that the platform took and that was made again of the log counts its versions anew, so that a handle of
            // before may hold one that is given a second time. It does not know of what was appended since. A store
            // that went back and on to the same version and length is known by its last hash alone: prepares compare that.
            expect.push((keys::log(&self.sid, self.row.next_seq), None));
        }
        Ok(Batch { expect, puts, deletes: Vec::new(), durability: Durability::Strict })
    }

    /// The batch that appends messages (T1), with the row, the items and the messages in no page of terms after it.
    pub(crate) fn append_batch(
        &self,
        settled: &FormatDecision,
        bodies: &[PendingMessage],
        batch_id: &str,
        now: u64,
    ) -> Result<(Batch, SessionRow, Vec<Item>, Unindexed)> {
        let mut row = self.next_row(now);
        if settled.sure {
            row.format = Some(settled.format);
        }
        row.pending_step = true;
        // Who appends has opened the session, and was told.
        row.losses.clear();
        let mut puts = Vec::with_capacity(bodies.len());
        let mut items = Vec::with_capacity(bodies.len());
        for (nth, PendingMessage { body, size, pinned, .. }) in bodies.iter().enumerate() {
            if *pinned {
                row.pin(row.messages, size.tokens);
            }
            let place = Place { seq: row.next_seq, index: row.messages };
            row.chain = record::chain(&row.chain, body);
            if self.durable {
                puts.push(self.log_row(&mut row, record_id(batch_id, nth), RowKind::Message, now, body)?);
            } else {
                row.next_seq += 1;
            }
            row.messages += 1;
            row.tokens += size.tokens;
            items.push(Item::new(Rc::clone(body), *size, Origin::Message(place)));
        }
        let known: Vec<_> = bodies.iter().map(|message| message.known).collect();
        self.append_keys(&mut row, settled.format, &known);
        let mut unindexed = Unindexed::default();
        if self.durable {
            let taken =
                bodies.iter().map(|message| rows_of(&message.body)).sum::<usize>() + APPEND_OVERHEAD_OPS;
            let room = self.max_batch_ops.saturating_sub(taken);
            let (pages, left) = self.unindexed.append(&self.sid, settled.format, &items, room)?;
            puts.extend(pages);
            unindexed = left;
        }
        let batch = self.batch(&mut row, puts)?;
        Ok((batch, row, items, unindexed))
    }

    /// Serialises a log row and moves `row` behind it.
    pub(crate) fn log_row(
        &self,
        row: &mut SessionRow,
        id: String,
        kind: RowKind,
        at: u64,
        body: &str,
    ) -> Result<(Key, Vec<u8>)> {
        let body: &RawValue = serde_json::from_str(body)
            .map_err(|error| Error::new(Code::Poisoned, format!("a record's body is not JSON: {error}")))?;
        let (bytes, hash) = record::write_row(&LogRow {
            v: SCHEMA,
            seq: row.next_seq,
            n: row.messages,
            id,
            kind,
            at,
            prev: std::mem::take(&mut row.head),
            chain: row.chain.clone(),
            body,
        });
        let keyed = keyed::row(&self.sid, row.next_seq, bytes);
        row.head = hash;
        row.next_seq += 1;
        Ok(keyed)
    }

    /// The batch that changes the context (T3) and the row after it: view, log row, offloads, job and pointer.
    /// `commit_id` is new for every change, so that two that are alike are told apart.
    pub(crate) fn change_batch(
        &self,
        change: &ContextChange,
        commit_id: &str,
        now: u64,
    ) -> Result<(Batch, SessionRow)> {
        let mut row = self.next_row(now);
        row.generation += 1;
        change.note(&mut row, now);
        if let Some(left) = &change.left {
            self.change_keys(&mut row, left);
        }
        let generation = row.generation;
        row.tail_from = row.next_seq + 1;
        let base = self.row.whole.filter(|known| known.stands(generation));
        let (whole, splices) = record::store_change(&self.context, &change.splices, base.is_none());
        let base = base.filter(|_| whole.is_none());
        let view = ViewRow {
            v: record::version_of(whole.as_deref(), &splices),
            generation,
            to: row.tail_from,
            messages: row.messages,
            appended: self.appended(),
            base: base.map(|known| known.view),
            whole,
            splices,
            left: change.left.clone().unwrap_or_else(|| self.context.left().to_vec()),
            cause: Cause { input: self.row.head.clone(), ..change.cause.clone() },
        };
        let view = record::encode(&view);
        row.whole = Some(WholeView::after(base, generation, view.len()));
        let Cause { rung, snapshot, undoes_to, .. } = change.cause.clone();
        let sha256 = Some(ids::sha256_hex(&view));
        let note = ViewNote { view: generation, rung, snapshot, undoes_to, sha256 };
        let note = String::from_utf8_lossy(&record::encode(&note)).into_owned();
        let id = view_id(commit_id, &row.head);
        let mut puts = vec![self.log_row(&mut row, id, RowKind::View, now, &note)?];
        puts.push((keys::view(&self.sid, generation), view));
        for blob in change.blobs.iter().filter(|blob| !blob.is_big()) {
            puts.extend(blob.rows_of(&self.sid)?);
        }
        let mut batch = self.batch(&mut row, puts)?;
        if let Some(job) = &change.job {
            let room = self.max_batch_ops.saturating_sub(batch.expect.len() + batch.puts.len());
            job.close(&self.sid, generation, room, &mut batch)?;
        }
        Ok((batch, row))
    }

    /// The batch that changes nothing but the session's row, and the row after it. As long as the row was mended and nothing
    /// was appended since, the log moves on with it: a handle of before may hold a version that is given a second time, and
    /// would write over the change.
    pub(crate) fn row_batch(
        &self,
        now: u64,
        update: impl Fn(&mut SessionRow, u64) -> Result<()>,
    ) -> Result<(Batch, SessionRow)> {
        let mut row = self.next_row(now);
        update(&mut row, now)?;
        let mut puts = Vec::new();
        if !row.losses.is_empty() {
            puts.push(self.note_mended(&mut row, now)?);
        }
        let batch = self.batch(&mut row, puts)?;
        Ok((batch, row))
    }

    /// The batch that writes `puts` beside the session's row, and the row after it.
    pub(crate) fn row_batch_with(&self, now: u64, puts: Vec<(Key, Vec<u8>)>) -> Result<(Batch, SessionRow)> {
        let mut row = self.next_row(now);
        let batch = self.batch(&mut row, puts)?;
        Ok((batch, row))
    }

    /// What the system prompt says about the goal, as long as it is worked on (`S5.13`).
    pub(crate) fn goal_text(&self) -> Option<String> {
        self.row.goal.as_ref()?.prompt()
    }

    /// How far the context can be trusted (`S5.11`).
    pub(crate) fn reliability(&self) -> Reliability {
        reliability(model_size(self.settings.summariser_model().unwrap_or_default()), self.row.compressions)
    }

    /// Runs of messages behind the current view: first position, first index, count.
    fn appended(&self) -> Vec<(u64, usize, usize)> {
        let mut runs: Vec<(u64, usize, usize)> = Vec::new();
        let places = self.context.items().iter().filter_map(|item| item.origin.place());
        for place in places.filter(|place| place.seq >= self.row.tail_from) {
            match runs.last_mut() {
                Some((seq, index, count))
                    if *seq + *count as u64 == place.seq && *index + *count == place.index =>
                {
                    *count += 1;
                }
                _ => runs.push((place.seq, place.index, 1)),
            }
        }
        runs
    }
}

/// The id of the nth record of a batch.
/// The id of the log row of a view that follows the row with hash `head`: the same at each attempt there.
pub(super) fn view_id(commit_id: &str, head: &str) -> String {
    format!("view_{}", ids::id(&[commit_id.as_bytes(), head.as_bytes()]))
}

pub(crate) fn record_id(batch_id: &str, nth: usize) -> String {
    format!("msg_{}", ids::id(&[batch_id.as_bytes(), &nth.to_le_bytes()]))
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
    Size {
        tokens: settings.estimator.message(message),
        role: message.role,
        calls: message.calls().count(),
        results: message.results().count(),
        clearable: clearable(settings, message),
    }
}
