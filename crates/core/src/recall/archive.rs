//! The texts of references: an offload's, and a message's of the log. A reference is resolved by the session's own
//! table or secret only.

use crate::context::{Offload, Origin};
use crate::error::{Code, Error, Result};
use crate::keys::batch::keys;
use crate::keys::ids;
use crate::log::record::{RowKind, SessionRow};
use crate::log::said::{push_line, said};
use crate::log::sessions::OtherSessions;
use crate::log::stored::{latest, place_among, row_at};
use crate::log::{Gap, NewBlob, State, offloads, wide};
use crate::message::Message;
use crate::step::{Effect, Io, Notice};
use crate::wire::{self, Format};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// What reading and searching know of a session, as it was when they began.
#[derive(Debug)]
pub(crate) struct Archive {
    /// Names the session's rows.
    pub(crate) sid: String,
    /// The app's own name for the session.
    pub(super) id: String,
    /// The messages' format.
    pub(crate) format: Format,
    /// Log rows so far.
    pub(super) rows: u64,
    /// Messages of the app so far.
    pub(super) messages: usize,
    /// Commits of the session's row so far.
    pub(super) ver: u64,
    /// Views so far.
    pub(crate) generation: u64,
    /// The most that the store takes in one batch.
    pub(super) max_batch_ops: usize,
    /// Tokens of the context window.
    pub(super) window: usize,
    /// The app makes vectors of texts.
    pub(super) embeds: bool,
    /// The other sessions of the store, where they are searched too.
    pub(super) others: Option<Rc<RefCell<OtherSessions>>>,
    /// It is one of those: its references have this before them.
    pub(super) tag: Option<String>,
    secret: String,
    /// Offloads of the context, each with the index of its message.
    offloads: Vec<(usize, Offload)>,
    /// Offloads that the store does not have yet.
    unstored: Vec<NewBlob>,
}

impl Archive {
    pub(crate) fn of(state: &State) -> Self {
        Archive {
            sid: state.sid.clone(),
            id: state.row.id.clone(),
            format: state.format(),
            rows: state.row.next_seq,
            messages: state.row.messages,
            ver: state.row.ver,
            generation: state.row.generation,
            max_batch_ops: state.max_batch_ops,
            window: state.settings.window,
            embeds: state.settings.embeds,
            others: state.others.clone(),
            tag: None,
            secret: state.row.secret.clone(),
            offloads: state.context.offloads().map(|(index, offload)| (index, offload.clone())).collect(),
            unstored: state.unstored_blobs(),
        }
    }

    /// With what other handles on the session appended.
    pub(crate) async fn latest(self, io: &Io, known: SessionRow) -> Result<Self> {
        let (sid, row) = latest(io, self.sid, known).await?;
        let format = row.format.unwrap_or(self.format);
        let (rows, messages, ver, generation) = (row.next_seq, row.messages, row.ver, row.generation);
        Ok(Archive { sid, format, rows, messages, ver, generation, secret: row.secret, ..self })
    }

    /// Another session of the store, whose messages are in `format`, for who searches or reads it from this one.
    pub(super) fn of_other(&self, sid: String, row: SessionRow, format: Format) -> Archive {
        Archive {
            sid,
            id: row.id,
            format,
            rows: row.next_seq,
            messages: row.messages,
            ver: row.ver,
            generation: row.generation,
            max_batch_ops: self.max_batch_ops,
            window: self.window,
            embeds: false,
            others: self.others.clone(),
            tag: Some(ids::session_tag(&row.secret)),
            secret: row.secret,
            offloads: Vec::new(),
            unstored: Vec::new(),
        }
    }

    /// True for what stands before a reference of this session elsewhere.
    pub(super) fn is_tagged(&self, tag: &str) -> bool {
        ids::session_tag(&self.secret) == tag
    }

    /// Tells the app that messages cannot be read; of another session once, without a loss of this one.
    pub(super) fn tell(&self, io: &Io, gap: &Gap) {
        if self.tag.is_none() {
            gap.tell(io);
        } else if gap.messages > 0 {
            self.tell_of(io, &self.id, Code::StoreCorrupt, &gap.reason);
        }
    }

    /// Tells the app once what cannot be read of the other session called `name`.
    pub(super) fn tell_of(&self, io: &Io, name: &str, code: Code, what: &str) {
        let is_new = self.others.as_ref().is_some_and(|others| others.borrow_mut().told.insert(name.into()));
        if is_new {
            let message = format!("recall leaves out what it cannot read of session {name:?}: {what}");
            io.tell(Effect::Notify(Notice::Warning { code, message }));
        }
    }

    /// The reference of message `index`.
    pub(super) fn message_reference(&self, index: usize) -> String {
        let own = ids::message_reference(&self.secret, index);
        match &self.tag {
            Some(tag) => format!("{tag}/{own}"),
            None => own,
        }
    }

    /// The message that a reference is of, where it is one.
    pub(super) fn message_index(&self, reference: &str) -> Option<usize> {
        ids::message_index(&self.secret, reference).filter(|index| *index < self.messages)
    }

    /// The whole text of message `index`.
    ///
    /// Errors: [`Code::StoreCorrupt`] when its row cannot be read.
    pub(super) async fn message(&self, io: &Io, index: usize) -> Result<String> {
        let place = place_among(io, &self.sid, self.rows, index).await?;
        self.with_message(io, place.seq, whole).await
    }

    /// The whole text of a reference.
    ///
    /// Errors: [`Code::NotFound`] for anything that this session did not issue, [`Code::StoreCorrupt`].
    pub(crate) async fn text(&self, io: &Io, reference: &str) -> Result<String> {
        if let Some(blob) = self.unstored.iter().find(|blob| blob.offload.reference == reference) {
            return Ok(blob.clone().read(io, &self.sid, self.format).await?.to_string());
        }
        match self.message_index(reference) {
            Some(index) => self.message(io, index).await,
            None => self.offload(io, reference).await,
        }
    }

    /// The text of an offload: from its message in the log where its own rows are damaged or missing. Of media it is what they
    /// are and where they stand: a text cannot show them.
    async fn offload(&self, io: &Io, reference: &str) -> Result<String> {
        let media =
            self.offloads.iter().find(|(_, offload)| offload.is_media() && offload.reference == reference);
        if let Some((index, offload)) = media {
            let known = (*index, offload.clone());
            let found = offloads::from_log(io, &self.sid, self.rows, self.format, known).await?;
            let told = found.and_then(|blob| {
                wire::with_block(self.format, &blob.text, |media| {
                    format!(
                        "{} of message {index}, left out to keep the request small ({}). A text cannot show it: what can be looked at \
                         again, look at again, or ask for it.",
                        media.kind(),
                        media.facts()
                    )
                })
            });
            let lost =
                || Error::new(Code::StoreCorrupt, format!("what message {index} showed cannot be read"));
            return told.ok_or_else(lost);
        }
        let error = match offloads::load(io, &self.sid, self.format, reference).await {
            Ok(blob) => return Ok(blob.text.to_string()),
            Err(error) if !matches!(error.code, Code::StoreCorrupt | Code::NotFound) => return Err(error),
            Err(error) => error,
        };
        let known = self.offloads.iter().find(|(_, offload)| offload.reference == reference).cloned();
        let known = match known {
            None if error.code == Code::StoreCorrupt => {
                let head = offloads::head(io, &self.sid, reference).await?;
                head.map(|head| (head.index, head.offload))
            }
            known => known,
        };
        let Some(known) = known else { return Err(error) };
        let found = offloads::from_log(io, &self.sid, self.rows, self.format, known).await?;
        found.map(|blob| blob.text.to_string()).ok_or(error)
    }

    /// Looks at the message at log position `seq`.
    pub(super) async fn with_message<T>(
        &self,
        io: &Io,
        seq: u64,
        look: impl FnOnce(&Message<'_>) -> T,
    ) -> Result<T> {
        let bytes = self.rows_at(io, &[seq]).await?.into_iter().next().flatten();
        self.look_at(seq, bytes, look)
    }

    /// The rows at positions of the log.
    pub(super) async fn rows_at(&self, io: &Io, seqs: &[u64]) -> Result<Vec<Option<Vec<u8>>>> {
        wide::read(io, seqs.iter().map(|seq| keys::log(&self.sid, *seq)).collect()).await
    }

    /// Looks at the message that is stored in the row at log position `seq`.
    pub(super) fn look_at<T>(
        &self,
        seq: u64,
        bytes: Option<Vec<u8>>,
        look: impl FnOnce(&Message<'_>) -> T,
    ) -> Result<T> {
        let not_found = || Error::new(Code::NotFound, "this session has no message with this reference");
        let bytes = bytes.ok_or_else(not_found)?;
        let row = row_at(&bytes, seq)?;
        if row.kind != RowKind::Message {
            return Err(not_found());
        }
        let value = wire::parse(row.n, row.body.get())?;
        Ok(look(&self.format.wire().read(row.n, &value)?))
    }
}

/// Where a text is for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HitPlace {
    /// In the context, word for word.
    Context,
    /// A reference is in its place.
    Offloaded,
    /// A summary is in its place, or nothing.
    Summarized,
    /// In another session.
    Elsewhere,
}

/// Where messages are now: in the model's context or not, and which of their results are in the store.
#[derive(Debug, Default)]
pub(crate) struct LogIndex {
    known: HashMap<usize, Whereabout>,
    /// Left behind when the app went back to before them: a model is not to come upon them.
    behind: Vec<(usize, usize)>,
    /// Of another session: the model has nothing of it.
    is_elsewhere: bool,
}

#[derive(Debug, Default)]
struct Whereabout {
    is_in_context: bool,
    offloads: Vec<Offload>,
}

impl LogIndex {
    pub(crate) fn of(state: &State) -> Self {
        let mut found = LogIndex { behind: state.context.behind(), ..LogIndex::default() };
        for item in state.context.items() {
            if let Some(place) = item.origin.place() {
                let offloads = item.origin.offloads().to_vec();
                found.known.insert(place.index, Whereabout { is_in_context: true, offloads });
            }
            if let Origin::Summary { covers, .. } = &item.origin {
                for (index, offload) in covers.iter().flat_map(|cover| &cover.offloads) {
                    found.known.entry(*index).or_default().offloads.push(offload.clone());
                }
            }
        }
        found
    }

    /// Of another session, whose app went back to before some messages.
    pub(super) fn of_other(behind: Vec<(usize, usize)>) -> Self {
        LogIndex { behind, is_elsewhere: true, ..LogIndex::default() }
    }

    /// The reference of an offloaded result.
    pub(super) fn offload(&self, index: usize, result: Option<usize>) -> Option<&str> {
        let offloads = &self.known.get(&index)?.offloads;
        let mut results = offloads.iter().filter(|offload| offload.is_result());
        results.find(|offload| Some(offload.nth) == result).map(|offload| offload.reference.as_str())
    }

    /// True for a message that the model is not to have.
    pub(super) fn is_behind(&self, index: usize) -> bool {
        self.behind.iter().any(|(from, to)| (*from..*to).contains(&index))
    }

    /// Where a text is, what a message says itself or one of its results.
    pub(super) fn whereabouts(&self, index: usize, result: Option<usize>) -> HitPlace {
        if self.is_elsewhere {
            return HitPlace::Elsewhere;
        }
        let Some(found) = self.known.get(&index) else { return HitPlace::Summarized };
        // What it says is not all there when an input of its calls was moved.
        let is_moved = self.offload(index, result).is_some()
            || (result.is_none()
                && found.offloads.iter().any(|offload| !offload.is_result() && !offload.is_media()));
        match (is_moved, found.is_in_context) {
            (true, _) => HitPlace::Offloaded,
            (false, true) => HitPlace::Context,
            (false, false) => HitPlace::Summarized,
        }
    }
}

/// All of a message's text: what it says, and the results in it.
fn whole(message: &Message<'_>) -> String {
    let mut text = said(message);
    for result in message.results() {
        push_line(&mut text, "", &result.text);
    }
    text
}
