//! What an import writes: messages, and the views which some of them are not in.

use super::{Import, Restore, at_line};
use crate::context::{CoveredRange, Departed, MessageSource, SummaryMeta, Why};
use crate::error::{Error, Result};
use crate::keys::ids;
use crate::log::record::{self, RowKind, StoredItem, ViewNote, ViewRow, WholeView};
use crate::log::state::{record_id, size_of};
use crate::log::stored::PAGE;
use crate::log::{Cause, SCHEMA, packed};
use crate::message::limits;
use crate::policy::Trigger;
use crate::session::transcript::foreign::{self, ForeignEntry, ForeignSaid};
use crate::step::Io;
use crate::wire;
use crate::wire::record::Raw;
use serde_json::value::RawValue;
use std::rc::Rc;

impl Import {
    /// Writes the conversation of a foreign transcript.
    pub(super) async fn write(&mut self, io: &Io, entries: Vec<ForeignEntry>) -> Result<()> {
        let mut at = self.row.created_at;
        if let Some(first) = entries.iter().find_map(|entry| entry.at) {
            (at, self.row.created_at) = (first, first);
        }
        for ForeignEntry { line, at: said_at, said } in entries {
            at = said_at.unwrap_or(at);
            let before = self.puts.len();
            match said {
                ForeignSaid::Message(json) => {
                    self.write_message(io, json, at).await.map_err(|error| at_line(line, error))?
                }
                ForeignSaid::Summary(json) if self.restore == Restore::Context && self.row.messages > 0 => {
                    self.write_summary(json, at).map_err(|error| at_line(line, error))?;
                }
                ForeignSaid::Summary(_) => foreign::skip(&mut self.skipped, "summary"),
            }
            self.count_from(before);
            self.flush(io, PAGE).await?;
        }
        self.row.updated_at = at;
        self.row.pending_step = self.row.messages > 0;
        Ok(())
    }

    async fn write_message(&mut self, io: &Io, json: String, at: u64) -> Result<()> {
        let index = self.row.messages;
        let body: Rc<str> = wire::as_kept(index, json)?.into();
        let mut tokens = self.tokens(&body, index)?;
        let whose = MessageSource::Logged(self.row.next_seq);
        if self.settings.app_counts {
            tokens = io.count(whose, &body).await?;
        }
        if self.settings.app_pins && io.pin(whose, index, &body).await? {
            self.row.pin(index, tokens);
        }
        self.row.tokens += tokens;
        let id = record_id(&self.state.row.secret, index);
        self.add_message(id, at, &body)
    }

    fn tokens(&self, body: &str, index: usize) -> Result<usize> {
        limits::check_bytes(index, body.len())?;
        let value = wire::parse(index, body)?;
        let format = self.row.format.unwrap_or(self.state.format());
        let message = format.wire().read(index, &value)?;
        limits::check(index, &value, &message)?;
        Ok(size_of(&self.settings, &message).tokens)
    }

    /// A view in which the agent's own summary replaces all before it.
    fn write_summary(&mut self, json: String, at: u64) -> Result<()> {
        let index = self.row.messages;
        let body = wire::as_kept(index, json)?;
        let tokens = self.tokens(&body, index)?;
        let prose = {
            let value = wire::parse(index, &body)?;
            let format = self.row.format.unwrap_or(self.state.format());
            format.wire().read(index, &value)?.text().len()
        };
        let generation = self.row.generation + 1;
        let secret = self.state.row.secret.as_bytes();
        let checkpoint = format!("cp_{}", ids::id(&[b"imported", secret, &generation.to_le_bytes()]));
        let made = SummaryMeta {
            number: self.row.compressions,
            created_at: at,
            original_tokens: self.row.tokens,
            tokens,
            ..SummaryMeta::default()
        };
        self.row.compressions += 1;
        let body = RawValue::from_string(body)
            .map_err(|error| Error::message(index, "", format!("not readable as JSON: {error}")))?;
        let body = Raw(body.get().into());
        let covers = vec![CoveredRange { from: 0, to: index, offloads: Vec::new() }];
        let item = StoredItem::Summary {
            checkpoint,
            body,
            covers,
            inherits: false,
            quotes: Vec::new(),
            prose,
            made: Some(Box::new(made)),
        };
        self.write_view(vec![item], Vec::new(), tokens, at)
    }

    /// A view in which messages that were left behind are no part of the context.
    pub(super) fn write_left(&mut self, left: &[Departed]) -> Result<()> {
        let messages = self.row.messages;
        let behind = left.iter().filter(|run| run.why != Why::Removed && run.to <= messages).copied();
        let behind: Vec<Departed> = behind.collect();
        if behind.is_empty() {
            return Ok(());
        }
        let ends = behind.iter().map(|run| run.from).chain([messages]);
        let begins = [0].into_iter().chain(behind.iter().map(|run| run.to));
        let runs = begins.zip(ends).filter(|(from, to)| from < to);
        // The log has nothing but the messages here.
        let whole = runs.map(|(from, to)| StoredItem::Messages(from as u64, from, to - from)).collect();
        let (tokens, at) = (self.row.tokens, self.row.updated_at);
        self.write_view(whole, behind, tokens, at)
    }

    fn write_view(
        &mut self,
        whole: Vec<StoredItem>,
        left: Vec<Departed>,
        tokens_after: usize,
        at: u64,
    ) -> Result<()> {
        self.row.generation += 1;
        let (generation, messages) = (self.row.generation, self.row.messages);
        let tokens_before = self.row.tokens;
        let of = Cause::of(&self.state.view(), "import", tokens_after);
        let cause = Cause { trigger: Trigger::Auto.as_str().into(), tokens_before, ..of };
        let to = self.row.next_seq + 1;
        self.row.tail_from = to;
        let rung = cause.rung.clone();
        let (appended, splices) = (Vec::new(), Vec::new());
        let view = ViewRow {
            v: SCHEMA,
            generation,
            to,
            messages,
            appended,
            base: None,
            whole: Some(whole),
            splices,
            left,
            cause,
        };
        let view = record::encode(&view);
        let sha256 = Some(ids::sha256_hex(&view));
        let note =
            record::encode(&ViewNote { view: generation, rung, snapshot: None, undoes_to: None, sha256 });
        let secret = self.state.row.secret.as_bytes();
        let id = format!("view_{}", ids::id(&[secret, &generation.to_le_bytes()]));
        let note = String::from_utf8_lossy(&note).into_owned();
        self.puts.push(self.state.log_row(&mut self.row, id, RowKind::View, at, &note)?);
        let view = packed::row(&self.state.sid, generation, view);
        self.row.whole = Some(WholeView::after(None, generation, view.1.len()));
        self.puts.push(view);
        Ok(())
    }
}
