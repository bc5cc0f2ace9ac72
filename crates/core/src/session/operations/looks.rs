//! What can be looked up of a session: nothing here changes it.

use super::Session;
use crate::checkpoint::{Goal, Parts, Reliability, Validation, validate};
use crate::compaction::{self, ReactStats, Trajectory, TrajectoryMetadata};
use crate::context::{Item, LedgerEntry, Origin, PinProposal};
use crate::error::{Code, Result};
use crate::log::State;
use crate::log::guard::SessionCell;
use crate::log::record::SessionRow;
use crate::recall::{self, Archive, Hit, LogIndex, Query};
use crate::session::checkpoints::CheckpointRecord;
use crate::session::sendable;
use crate::session::usage::{ContextUsage, usage};
use crate::step::{Io, LogLevel, Machine};
use crate::text;
use crate::wire::Format;
use serde::Serialize;
use serde_json_borrow::Value;
use std::rc::Rc;

/// The tools with which a model recalls.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolSet {
    /// The format that they are defined in.
    pub format: Format,
    /// Their definitions, as the format's provider is sent them.
    pub definitions: Vec<Value<'static>>,
}

impl Session {
    /// Characters `offset .. offset + limit` of the text of a reference, an offload's or one that a search found,
    /// moved inwards to whole grapheme clusters at the end.
    pub fn read(&self, reference: String, offset: usize, limit: Option<usize>) -> Machine<String> {
        let slot = self.slot.clone();
        Machine::new(move |io| async move {
            let find = async |io: Io| {
                let (archive, is_new) = slot.look(|state| (Archive::of(state), state.row.ver == 0))?;
                let archive = if is_new { archive_of(&io, &slot).await?.0 } else { archive };
                match recall::text(&io, &archive, &reference).await {
                    // Another handle may have rewritten the session's rows.
                    Err(error) if error.code == Code::NotFound => {
                        let archive = archive_of(&io, &slot).await?.0;
                        recall::text(&io, &archive, &reference).await
                    }
                    text => text,
                }
            };
            // What is found is whole: it has a hash.
            let text = slot.try_on_rows(&io, find).await?;
            if let Some(checkpoint) = slot.look(|state| state.retired_by(&reference))? {
                io.log(
                    LogLevel::Info,
                    format!("{reference} is retired: checkpoint {checkpoint} stands for it"),
                );
            }
            Ok(text::range(&text, offset, limit))
        })
    }

    /// What the session is for.
    pub fn goal(&self) -> Result<Option<Goal>> {
        self.slot.look(|state| state.row.goal.clone())
    }

    /// How far the context can be trusted (`S5.11`).
    pub fn reliability(&self) -> Result<Reliability> {
        self.slot.look(State::reliability)
    }

    /// The pins that are proposed and not answered, in the order of their messages; `since` a position of the log, those of
    /// messages from there on.
    pub fn pin_proposals(&self, since: Option<u64>) -> Result<Vec<PinProposal>> {
        self.slot.look(|state| {
            let items = state.context.items();
            let is_new = |item: &&Item| since <= item.origin.place().map(|place| place.seq);
            let new = items.iter().rev().take_while(is_new).count();
            state.view().unanswered(items.get(items.len() - new..).unwrap_or_default())
        })?
    }

    /// What every summary saved, as Markdown; empty when there is none yet (`S4.4`).
    pub fn session_log(&self) -> Result<String> {
        self.slot.look(|state| state.row.log.text())
    }

    /// Whether the context fits as it is (`S5.1`, `S5.12`).
    pub fn validate(&self) -> Result<Validation> {
        self.slot.look(|state| {
            let totals = state.context.totals();
            let parts = Parts {
                prompt: totals.system + state.before_tokens().saturating_sub(state.tool_tokens),
                tools: state.tool_tokens,
                messages: totals.user + totals.assistant + totals.tool,
                summaries: totals.summary,
            };
            validate(state.tokens(), state.settings.hard_limit, parts)
        })
    }

    /// The checkpoints of the context, oldest first (`S5.3`).
    pub fn checkpoints(&self) -> Result<Vec<CheckpointRecord>> {
        let records = |state: &State| {
            let origins = state.context.items().iter().map(|item| &item.origin);
            origins.filter_map(CheckpointRecord::of).collect()
        };
        self.slot.look(records)
    }

    /// The passages of the whole transcript, of offloads too, that match a query best (BM25), best first.
    ///
    /// Errors: [`Code::InvalidOption`] when the query has no term.
    pub fn search(&self, query: String, limit: usize) -> Machine<Vec<Hit>> {
        let slot = self.slot.clone();
        Machine::new(move |io| async move {
            let query = Query::new(&query)?;
            let look = async |io: Io| {
                let (archive, log_index) = archive_of(&io, &slot).await?;
                Ok(recall::search(&io, &archive, &log_index, &query, limit, false).await?.hits)
            };
            slot.look_at_rows(&io, look).await
        })
    }

    /// The definitions of the [`recall::TOOLS`] in `format`, else in the session's own, and of the one that begins anew where the
    /// options have that.
    pub fn tools(&self, format: Option<Format>) -> Result<ToolSet> {
        let look = |state: &State| (state.format(), state.hands_off(), state.settings.recalls_all);
        let (own, hands_off, searches_all) = self.slot.look(look)?;
        let format = format.unwrap_or(own);
        Ok(ToolSet { format, definitions: recall::definitions(format, hands_off, searches_all) })
    }

    /// Answers a model's call of one of the [`recall::TOOLS`]: the message, JSON text. What the model got wrong is part
    /// of the answer.
    ///
    /// Errors: [`Code::InvalidMessage`] when it is no tool call of that format; those of the store.
    pub fn answer(&self, call: String, format: Format) -> Machine<String> {
        let slot = self.slot.clone();
        Machine::new(move |io| async move {
            let look = async |io: Io| {
                let (archive, log_index) = archive_of(&io, &slot).await?;
                let hands_off = slot.look(State::hands_off)?;
                recall::answer(&io, &archive, &log_index, (format, hands_off), &call).await
            };
            slot.look_at_rows(&io, look).await
        })
    }

    /// How full the context is.
    pub fn usage(&self) -> Result<ContextUsage> {
        self.slot.look(usage)
    }

    /// How full the context is, in characters (`S2.9`).
    pub fn stats(&self) -> Result<ReactStats> {
        self.slot.look(|state| compaction::stats(&state.view()))?
    }

    /// The context as a trajectory of thoughts, actions and results (`S2.9`).
    pub fn trajectory(&self) -> Result<Trajectory> {
        self.slot.look(|state| {
            let SessionRow { id, created_at, updated_at, messages, .. } = state.row.clone();
            let metadata = TrajectoryMetadata { session: id, created_at, updated_at, messages };
            compaction::trajectory(&state.view(), metadata)
        })?
    }

    /// The fate of every message, with what the last `prepare` did not send.
    pub fn explain(&self) -> Result<Vec<LedgerEntry>> {
        self.slot.look(sendable::ledger)
    }

    /// JSON text of the app's message at log position `seq`, when it is in the context verbatim.
    pub fn body(&self, seq: u64) -> Result<Option<Rc<str>>> {
        self.slot.look(|state| state.context.message(seq).map(|item| Rc::clone(&item.body)))
    }

    /// The same of all of them, each with its index among the app's messages.
    pub fn bodies(&self) -> Result<Vec<(usize, Rc<str>)>> {
        self.slot.look(|state| {
            let verbatim = |item: &Item| match item.origin {
                Origin::Message(place) => Some((place.index, Rc::clone(&item.body))),
                _ => item.origin.server().map(|place| (place.index, Rc::clone(&item.body))),
            };
            state.context.items().iter().filter_map(verbatim).collect()
        })
    }
}

/// What reading and searching need, as the store has it now.
pub(super) async fn archive_of(io: &Io, slot: &SessionCell) -> Result<(Archive, LogIndex)> {
    let look = |state: &State| (Archive::of(state), LogIndex::of(state), state.row.clone());
    let (archive, log_index, row) = slot.look(look)?;
    Ok((archive.latest(io, row).await?, log_index))
}
