//! Search over what every message of the log says and over each of its tool results: by their terms, which are in pages
//! ([`crate::log::terms`]). Of the log only what is shown is read.

use super::archive::{Archive, HitPlace, LogIndex};
use super::index;
use super::label::{CallLabel, call_of};
use super::rank::{Candidate, Corpus};
use super::snippet::snippet;
use crate::error::{Code, Error, Result};
use crate::log::Gap;
use crate::log::said::said;
use crate::log::terms::hash;
use crate::message::Role;
use crate::step::Io;
use context_compactor_scan::terms::{self, terms};
use serde::Serialize;
use std::collections::HashMap;
use std::ops::Range;

/// Different terms of a query that are looked for.
const MOST_TERMS: usize = 64;
/// Words that say how something is said and not what about. A query of nothing else is taken as it is.
const SMALL: &str = " a about after all also an and any are as at be been before but by can could d did do does don each \
                     for from had has have here how i if in into is it its just let ll m me more my need no not now of on \
                     only or our out re s should so some still t than that the their them then there these they this \
                     those to up us use ve was we were what when where which will with would you your ";

/// A query of more words, or bytes, stands nowhere as it is.
const PHRASE_WORDS: usize = 10;
const PHRASE: usize = 120;
/// Texts that are looked at for all of the query, those that match best.
const LOOKED_AT: usize = 128;

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
}

/// What is looked for.
#[derive(Debug)]
pub(crate) struct Query {
    /// It asks for something. What it asks for may be old.
    pub(super) is_question: bool,
    /// Terms, numbered in the order of the query.
    pub(super) terms: HashMap<String, usize>,
    /// All of it, where it may stand somewhere word for word: the label of a value, a line of an output.
    phrase: Option<String>,
}

impl Query {
    /// The terms of a query.
    ///
    /// Errors: [`crate::Code::InvalidOption`] when it has none.
    pub(crate) fn new(text: &str) -> Result<Query> {
        let telling = Query::of(text, |term| !SMALL.contains(&format!(" {term} ")));
        let query = if telling.terms.is_empty() { Query::of(text, |_| true) } else { telling };
        if query.terms.is_empty() {
            return Err(Error::option("query", "must have a word, a name or a number to look for"));
        }
        Ok(query)
    }

    fn of(text: &str, is_wanted: impl Fn(&str) -> bool) -> Query {
        let mut found = HashMap::new();
        terms(text, &mut |term, _, kind| {
            let number = found.len();
            let is_new = kind != terms::Kind::Single && number < MOST_TERMS && !found.contains_key(term);
            if is_new && is_wanted(term) {
                found.insert(term.to_owned(), number);
            }
        });
        let is_question = text.trim_end().ends_with(['?', '？', '؟']);
        let phrase = text.trim().trim_matches(['"', '\'', '`', '.', ':', ',']);
        let words = phrase.split_whitespace().count();
        let is_phrase = !is_question && (2..=PHRASE_WORDS).contains(&words) && phrase.len() <= PHRASE;
        Query { is_question, terms: found, phrase: is_phrase.then(|| phrase.to_owned()) }
    }

    /// Where the text has all of the query, whatever the case of its letters, and not as a part of longer words.
    pub(super) fn phrase_in(&self, text: &str) -> Option<Range<usize>> {
        let phrase = self.phrase.as_deref()?.as_bytes();
        let (bytes, first) = (text.as_bytes(), phrase.first()?.to_ascii_lowercase());
        let in_word = |at: Option<usize>| {
            let byte = at.and_then(|at| bytes.get(at));
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        };
        let is_here = |at: usize| {
            let end = at + phrase.len();
            bytes.get(at..end).is_some_and(|here| here.eq_ignore_ascii_case(phrase))
                && !in_word(at.checked_sub(1))
                && !in_word(Some(end))
        };
        let starts = bytes.iter().enumerate().filter(|(_, byte)| byte.to_ascii_lowercase() == first);
        starts.map(|(at, _)| at).find(|at| is_here(*at)).map(|at| at..at + phrase.len())
    }

    /// The numbers of its terms by their hashes.
    pub(super) fn hashes(&self) -> HashMap<u32, usize> {
        self.terms.iter().map(|(term, number)| (hash(term), *number)).collect()
    }
}

/// The messages that match best, best first. For a model, those that it may have: what its context has comes last.
pub(crate) async fn search(
    io: &Io,
    archive: &Archive,
    log_index: &LogIndex,
    query: &Query,
    limit: usize,
    for_model: bool,
) -> Result<Vec<Hit>> {
    let mut corpus = Corpus::new(query);
    index::pages(io, archive, &mut |page, from| corpus.add(page, from, archive.rows)).await?;
    let weights = corpus.weights();
    let looked_at = if query.phrase.is_some() { limit.max(LOOKED_AT) } else { limit };
    let best = corpus.best(
        looked_at,
        query.is_question,
        archive.messages,
        &weights,
        |Candidate { index, result, .. }| match for_model {
            true if log_index.is_behind(*index) => None,
            true => Some(log_index.whereabouts(*index, *result) == HitPlace::Context),
            false => Some(false),
        },
    );
    // What the model has before it is no find.
    let is_seen = |candidate: &Candidate| {
        for_model && log_index.whereabouts(candidate.index, candidate.result) == HitPlace::Context
    };
    let best = phrases_first(io, archive, query, best, limit, is_seen).await?;
    let mut hits = Vec::with_capacity(best.len());
    for Candidate { seq, index, result, .. } in best {
        let found = archive.with_message(io, seq, |message| {
            let result = result.and_then(|nth| message.results().nth(nth));
            let text = result.map_or_else(|| said(message), |result| result.text.to_string());
            let call_id = result.map(|result| result.call_id.to_string());
            (snippet(&text, query, &weights), message.role, CallLabel::in_message(message), call_id)
        });
        let (snippet, role, own, call_id) = match found.await {
            Ok(found) => found,
            // Its terms are there, and it is not: nothing of it can be shown.
            Err(error) if matches!(error.code, Code::StoreCorrupt | Code::NotFound) => {
                Gap::new(seq, 1, index, 1).tell(io);
                continue;
            }
            Err(error) => return Err(error),
        };
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
        hits.push(Hit { reference, seq, index, role, tool, target, place, snippet });
    }
    Ok(hits)
}

/// The first `limit` of the candidates, those that have all of the query as it is before the others, unless the model sees
/// them.
async fn phrases_first(
    io: &Io,
    archive: &Archive,
    query: &Query,
    best: Vec<Candidate>,
    limit: usize,
    is_seen: impl Fn(&Candidate) -> bool,
) -> Result<Vec<Candidate>> {
    let (mut having, mut others) = (Vec::new(), Vec::new());
    for candidate in best {
        let is_phrase = query.phrase.is_some() && having.len() < limit && !is_seen(&candidate) && {
            let found = archive.with_message(io, candidate.seq, |message| {
                let result = candidate.result.and_then(|nth| message.results().nth(nth));
                let text = result.map_or_else(|| said(message), |result| result.text.to_string());
                query.phrase_in(&text).is_some()
            });
            match found.await {
                Ok(found) => found,
                // It is told where it would be shown.
                Err(error) if matches!(error.code, Code::StoreCorrupt | Code::NotFound) => false,
                Err(error) => return Err(error),
            }
        };
        if is_phrase { having.push(candidate) } else { others.push(candidate) }
    }
    having.extend(others);
    having.truncate(limit);
    Ok(having)
}
