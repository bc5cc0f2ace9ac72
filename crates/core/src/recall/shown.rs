//! Texts that were found, as they are read and shown.

use super::archive::{Archive, HitPlace};
use super::label::{CallLabel, call_of};
use super::passage::{Matches, rescored};
use super::rank::{Candidate, Ranked, Twin, WeighedTerms, place};
use super::search::Searcher;
use super::snippet::snippet;
use crate::error::{Code, Result};
use crate::keys::batch::keys;
use crate::keys::ids;
use crate::log::said::said;
use crate::log::{Gap, wide};
use crate::message::{Message, Role};
use crate::step::Io;
use serde::Serialize;

/// Texts that are read together, those that match best: of so many words, unless they are fewer than are wanted.
const WORDS: usize = 200_000;
/// Words that are read at once.
const AT_ONCE: usize = 50_000;

/// A message that a search found, with its best passages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// Reference of the whole text, for `read`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Position of its message in the log.
    pub seq: u64,
    /// Index of its message.
    pub index: usize,
    /// Who says it.
    pub role: &'static str,
    /// The tool that was called, of a call or a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The file, the command or whatever else the call is about, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Where the text is for the model.
    pub place: HitPlace,
    /// The passages, line by line.
    pub snippet: String,
    /// The app's name of the session that it is of, where that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// A text as it is shown.
pub(super) struct ShownText {
    pub(super) seq: u64,
    pub(super) index: usize,
    /// Which result of its message, or what the message says itself.
    pub(super) result: Option<usize>,
    pub(super) role: Role,
    pub(super) snippet: String,
    /// The call that it makes.
    pub(super) own: Option<CallLabel>,
    /// The call that it is the result of.
    pub(super) call_id: Option<String>,
}

impl ShownText {
    pub(super) async fn hit(self, reader: &Searcher<'_>) -> Result<Hit> {
        let Searcher { io, archive, log_index, for_model } = reader;
        let ShownText { seq, index, result, role, snippet, own, call_id } = self;
        let call = match call_id {
            Some(call_id) => call_of(io, archive, seq, &call_id).await?,
            None => own,
        };
        let reference = match log_index.offload(index, result) {
            Some(offload) if !for_model => offload.to_owned(),
            _ => archive.message_reference(index),
        };
        let role = if result.is_some() { Role::Tool } else { role }.as_str();
        let (tool, target) = call.map_or((None, None), |call| (Some(call.tool), call.target));
        let place = log_index.whereabouts(index, result);
        let session = archive.tag.as_ref().map(|_| archive.id.clone());
        Ok(Hit { reference, seq, index, role, tool, target, place, snippet, session })
    }
}

/// A candidate that was read.
pub(super) struct Find {
    pub(super) shown: ShownText,
    /// Of which of several sessions it is.
    pub(super) of: usize,
    /// Of another session's: what it has in common with those that say the same, and what they say.
    pub(super) twin: Option<(Twin, TextHash)>,
    score: f64,
    has_phrase: bool,
    pub(super) is_last: bool,
}

/// The same for texts that are the same word for word, of the same role.
pub(super) type TextHash = [u8; 32];

/// What a message says itself, or one of its results.
pub(super) fn text_of(message: &Message<'_>, result: Option<usize>) -> String {
    let result = result.and_then(|nth| message.results().nth(nth));
    result.map_or_else(|| said(message), |result| result.text.to_string())
}

pub(super) fn hash_of(message: &Message<'_>, result: Option<usize>, text: &str) -> TextHash {
    let role = if result.is_some() { Role::Tool } else { message.role };
    ids::hash(&[role.as_str().as_bytes(), text.as_bytes()])
}

impl Find {
    fn new(message: &Message<'_>, ranked: Ranked, terms: &WeighedTerms<'_>, is_other: bool) -> Find {
        let WeighedTerms { query, weights, passage, .. } = terms;
        let result = ranked.candidate.result.and_then(|nth| message.results().nth(nth));
        let text = text_of(message, ranked.candidate.result);
        let twin = || (ranked.candidate.twin(), hash_of(message, ranked.candidate.result, &text));
        let twin = is_other.then(twin);
        let matches = Matches::new(&text, query);
        let (score, span) = if query.is_question {
            let is_user = message.role == Role::User && result.is_none();
            let passage = matches.best(weights, *passage, is_user);
            (rescored(&ranked, &passage), passage.span)
        } else {
            (ranked.score, 0..text.len())
        };
        let Candidate { seq, index, result: nth, .. } = ranked.candidate;
        let shown = ShownText {
            seq,
            index,
            result: nth,
            role: message.role,
            snippet: snippet(&text, &matches, query, weights, &span),
            own: CallLabel::in_message(message),
            call_id: result.map(|result| result.call_id.to_string()),
        };
        let has_phrase = query.phrase_in(&text).is_some();
        Find { shown, of: ranked.of, twin, score, has_phrase, is_last: ranked.is_last }
    }

    /// Those that have all of the query as it is come before the others, unless the model sees them.
    pub(super) fn place(&self) -> u64 {
        let is_first = self.has_phrase && !self.is_last;
        place(self.score, self.is_last) - (u64::from(is_first) << 61)
    }
}

/// Reads the candidates, which are of these sessions, as far as they are `limit` or few words.
pub(super) async fn look(
    io: &Io,
    sessions: &[&Archive],
    terms: &WeighedTerms<'_>,
    best: Vec<Ranked>,
    limit: usize,
) -> Result<Vec<Find>> {
    let (mut found, mut words, mut rest) = (Vec::with_capacity(best.len()), 0, best.into_iter().peekable());
    while rest.peek().is_some() {
        let (mut batch, mut at_once) = (Vec::new(), 0);
        while let Some(ranked) = rest.next_if(|_| at_once < AT_ONCE) {
            if found.len() + batch.len() >= limit && words + ranked.candidate.words > WORDS {
                continue;
            }
            at_once += ranked.candidate.words;
            words += ranked.candidate.words;
            batch.push(ranked);
        }
        // What is left is too much.
        if batch.is_empty() {
            break;
        }
        let batch: Vec<(&Archive, Ranked)> = batch
            .into_iter()
            .filter_map(|ranked: Ranked| Some((*sessions.get(ranked.of)?, ranked)))
            .collect();
        let log = batch.iter().map(|(archive, ranked)| keys::log(&archive.sid, ranked.candidate.seq));
        let rows = wide::read(io, log.collect()).await?;
        for ((archive, ranked), row) in batch.into_iter().zip(rows) {
            let Candidate { seq, index, .. } = ranked.candidate;
            let is_other = archive.tag.is_some();
            match archive.look_at(seq, row, |message| Find::new(message, ranked, terms, is_other)) {
                Ok(one) => found.push(one),
                // Its terms are there, and it is not: nothing of it can be shown.
                Err(error) if matches!(error.code, Code::StoreCorrupt | Code::NotFound) => {
                    archive.tell(io, &Gap::new(seq, 1, index, 1));
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(found)
}
