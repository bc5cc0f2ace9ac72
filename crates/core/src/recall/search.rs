//! Search over what every message of the log says and over each of its tool results: by their terms, which are in pages
//! ([`crate::log::terms`]). Of the log only what is shown is read.

use super::archive::{Archive, LogIndex};
use super::index;
use super::rank::{Candidate, Corpus};
use super::snippet::snippet;
use crate::error::{Code, Error, Result};
use crate::log::Gap;
use crate::log::said::said;
use crate::log::terms::hash;
use crate::step::Io;
use context_compactor_scan::terms::{self, terms};
use serde::Serialize;
use std::collections::HashMap;

/// Different terms of a query that are looked for.
const MOST_TERMS: usize = 64;
/// Words that say how something is said and not what about. A query of nothing else is taken as it is.
const SMALL: &str = " a about after all also an and any are as at be been before but by can could d did do does don each \
                     for from had has have here how i if in into is it its just let ll m me more my need no not now of on \
                     only or our out re s should so some still t than that the their them then there these they this \
                     those to up us use ve was we were what when where which will with would you your ";

/// A passage that a search found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// Reference of the whole text, for `read`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Position of its message in the log.
    pub seq: u64,
    /// The passage, in one line.
    pub snippet: String,
}

/// What is looked for.
#[derive(Debug)]
pub(crate) struct Query {
    /// Terms, numbered in the order of the query.
    pub(super) terms: HashMap<String, usize>,
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
        Query { terms: found }
    }

    /// The numbers of its terms by their hashes.
    pub(super) fn hashes(&self) -> HashMap<u32, usize> {
        self.terms.iter().map(|(term, number)| (hash(term), *number)).collect()
    }
}

/// The passages that match best, best first. With `only_hidden`, only of texts that the
/// model has not in its context.
pub(crate) async fn search(
    io: &Io,
    archive: &Archive,
    log_index: &LogIndex,
    query: &Query,
    limit: usize,
    only_hidden: bool,
) -> Result<Vec<Hit>> {
    let mut corpus = Corpus::new(query);
    index::pages(io, archive, &mut |page, from| corpus.add(page, from, archive.rows)).await?;
    let weights = corpus.weights();
    let best = corpus.best(limit, archive.messages, &weights, |candidate| {
        !only_hidden || !log_index.is_shown(candidate.index, candidate.result)
    });
    let mut hits = Vec::with_capacity(best.len());
    for Candidate { seq, index, result, .. } in best {
        let snippet = archive.with_message(io, seq, |message| match result {
            None => snippet(&said(message), query, &weights),
            Some(nth) => message
                .results()
                .nth(nth)
                .map_or(String::new(), |found| snippet(&found.text, query, &weights)),
        });
        let snippet = match snippet.await {
            Ok(snippet) => snippet,
            // Its terms are there, and it is not: nothing of it can be shown.
            Err(error) if matches!(error.code, Code::StoreCorrupt | Code::NotFound) => {
                Gap::new(seq, 1, index, 1).tell(io);
                continue;
            }
            Err(error) => return Err(error),
        };
        let offload = log_index.offload(index, result).map(str::to_owned);
        let reference = offload.unwrap_or_else(|| archive.message_reference(seq));
        hits.push(Hit { reference, seq, snippet });
    }
    Ok(hits)
}
