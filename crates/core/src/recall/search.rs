//! Search over what every message of the log says and over each of its tool results: by their terms, which are in pages
//! ([`crate::log::terms`]). Of the log only what is shown is read; of a question, and of a query that may stand somewhere as
//! it is, the texts that match best.

use super::archive::{Archive, HitPlace, LogIndex};
use super::index;
use super::inquiry::Inquiry;
use super::label::CallLabel;
use super::meaning::{Near, nearest};
use super::others::{self, OthersFound};
use super::rank::{Candidate, Corpus, WeighedTerms};
use super::shown::{Find, Hit, ShownText, look, text_of};
use super::snippet::beginning;
use super::structure;
use crate::error::{Code, Error, Result};
use crate::log::Page;
use crate::log::stored::place_among;
use crate::log::terms::hash;
use crate::message::Message;
use crate::order;
use crate::step::Io;
use context_compactor_scan::terms::{self, terms};
use std::collections::{HashMap, HashSet};
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
/// Texts that are read, those that match best.
pub(super) const LOOKED_AT: usize = 128;
/// Places of a list that count where two lists become one, and what lessens the weight of its first ones.
const FUSED: usize = 50;
const RANK_OFFSET: f64 = 60.0;

/// What is looked for.
#[derive(Debug)]
pub(crate) struct Query {
    /// It asks for something. What it asks for may be old.
    pub(super) is_question: bool,
    /// Terms, numbered in the order of the query.
    pub(super) terms: HashMap<String, usize>,
    /// It, as it was given.
    pub(super) text: String,
    /// All of it, where it may stand somewhere word for word: the label of a value, a line of an output.
    phrase: Option<String>,
    /// It asks about the conversation itself.
    ask: Option<Inquiry>,
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
        Ok(Query { ask: Inquiry::of(text, query.is_question), ..query })
    }

    /// What a question is about, less the words of its form; `None` where nothing is left.
    pub(super) fn about(text: &str, is_form: impl Fn(&str) -> bool) -> Option<Query> {
        let query = Query::of(text, |term| !SMALL.contains(&format!(" {term} ")) && !is_form(term));
        (!query.terms.is_empty()).then_some(Query { is_question: true, phrase: None, ..query })
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
        let is_question =
            text.trim_end_matches([' ', '\n', '"', '\'', '”', '」', ')']).ends_with(['?', '？', '؟']);
        let phrase = text.trim().trim_matches(['"', '\'', '`', '.', ':', ',']);
        let words = phrase.split_whitespace().count();
        let is_phrase = !is_question && (2..=PHRASE_WORDS).contains(&words) && phrase.len() <= PHRASE;
        Query {
            is_question,
            terms: found,
            text: text.to_owned(),
            phrase: is_phrase.then(|| phrase.to_owned()),
            ask: None,
        }
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

    /// How many of its terms a text has.
    pub(super) fn count_in(&self, text: &str) -> usize {
        let mut found: HashSet<usize> = HashSet::new();
        terms(text, &mut |term, _, _| found.extend(self.terms.get(term)));
        found.len()
    }

    /// The numbers of its terms by their hashes.
    pub(super) fn hashes(&self) -> HashMap<u32, usize> {
        self.terms.iter().map(|(term, number)| (hash(term), *number)).collect()
    }
}

/// What a search found.
#[derive(Debug)]
pub(crate) struct SearchHits {
    pub(crate) hits: Vec<Hit>,
    pub(crate) order: HitOrder,
    /// Other sessions that were searched, and those that were not.
    pub(crate) others: Option<(usize, usize)>,
}

/// How hits are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HitOrder {
    Best,
    Oldest,
    Newest,
}

/// What a search looks at, and for whom.
pub(super) struct Searcher<'a> {
    pub(super) io: &'a Io,
    pub(super) archive: &'a Archive,
    pub(super) log_index: &'a LogIndex,
    pub(super) for_model: bool,
}

impl Searcher<'_> {
    /// The texts of the log that have a term of the query.
    async fn corpus(&self, query: &Query) -> Result<Corpus> {
        let mut corpus = Corpus::new(query);
        let add = &mut |page: &Page<'_>, from| corpus.add(page, from, self.archive.rows);
        index::pages(self.io, self.archive, add).await?;
        Ok(corpus)
    }

    /// False for a message that who asks is not to have.
    pub(super) fn shows(&self, index: usize) -> bool {
        !(self.for_model && self.log_index.is_behind(index))
    }

    /// None to leave out what the candidate says, else whether it comes after all others.
    fn is_last(&self, Candidate { index, result, .. }: &Candidate) -> Option<bool> {
        self.shows(*index).then_some(self.is_seen(*index, *result))
    }

    /// What the model has before it is no find.
    fn is_seen(&self, index: usize, result: Option<usize>) -> bool {
        self.for_model && self.log_index.whereabouts(index, result) == HitPlace::Context
    }
}

/// The messages that match best, best first; of a question about the conversation what answers it, in its order. For a
/// model, those that it may have: of what matches, what its context has comes last.
pub(crate) async fn search(
    io: &Io,
    archive: &Archive,
    log_index: &LogIndex,
    query: &Query,
    limit: usize,
    for_model: bool,
) -> Result<SearchHits> {
    let reader = Searcher { io, archive, log_index, for_model };
    let (mut shown, mut order) = (Vec::new(), HitOrder::Best);
    if let Some(ask) = &query.ask {
        shown = structure::answer(&reader, ask, limit).await?;
        order = if ask.newest_first { HitOrder::Newest } else { HitOrder::Oldest };
    }
    if !shown.is_empty() {
        let mut hits = Vec::with_capacity(shown.len());
        for one in shown {
            hits.push(one.hit(&reader).await?);
        }
        return Ok(SearchHits { hits, order, others: None });
    }
    let corpus = reader.corpus(query).await?;
    let twins = archive.others.as_ref().map(|_| corpus.twins());
    let own = best(&reader, query, corpus, limit).await?;
    let elsewhere = match twins {
        Some(twins) => Some(others::found(&reader, query, limit, &twins).await?),
        None => None,
    };
    let others = elsewhere.as_ref().map(|found| (found.searched, found.left));
    let OthersFound { sessions, shown, .. } = elsewhere.unwrap_or_default();
    let mut hits = Vec::with_capacity(limit.min(FUSED));
    for (of, one) in fused(own, shown, limit) {
        let other = of.and_then(|of| sessions.get(of));
        let (archive, log_index) = other.map_or((archive, log_index), |(archive, index)| (archive, index));
        hits.push(one.hit(&Searcher { io, archive, log_index, for_model }).await?);
    }
    Ok(SearchHits { hits, order: HitOrder::Best, others })
}

/// Hits of this session and those of others, each with its number, by their places in the two lists; of equal places the own
/// comes first. What the model has before it stays behind all others.
fn fused(
    own: Vec<(ShownText, bool)>,
    others: Vec<(usize, ShownText)>,
    limit: usize,
) -> Vec<(Option<usize>, ShownText)> {
    let own = own.into_iter().enumerate().map(|(at, (shown, is_last))| (at, is_last, None, shown));
    let others = others.into_iter().enumerate().map(|(at, (of, shown))| (at, false, Some(of), shown));
    let mut all: Vec<_> = own.chain(others).collect();
    all.sort_by(|(at, is_last, ..), (other, is_others, ..)| {
        is_last.cmp(is_others).then(reciprocal(*other).total_cmp(&reciprocal(*at)))
    });
    all.truncate(limit);
    all.into_iter().map(|(.., of, shown)| (of, shown)).collect()
}

/// The messages that match best by their words, and by their meaning where the app makes vectors; each with whether it comes
/// after all others.
async fn best(
    reader: &Searcher<'_>,
    query: &Query,
    corpus: Corpus,
    limit: usize,
) -> Result<Vec<(ShownText, bool)>> {
    let of_words = if reader.archive.embeds { limit.max(FUSED) } else { limit };
    let found = ranked_in(reader, query, corpus, of_words, |_| true).await?;
    if !reader.archive.embeds {
        return Ok(found.into_iter().map(|find| (find.shown, find.is_last)).collect());
    }
    let near = nearest(reader, query, limit.max(FUSED)).await?.unwrap_or_default();
    let mut places: HashMap<usize, (f64, bool)> = HashMap::new();
    for (at, find) in found.iter().enumerate() {
        places.insert(find.shown.index, (reciprocal(at), find.is_last));
    }
    for (at, one) in near.iter().enumerate() {
        places.entry(one.index).or_insert((0.0, reader.is_seen(one.index, one.result))).0 += reciprocal(at);
    }
    let mut known: HashMap<usize, ShownText> =
        found.into_iter().map(|find| (find.shown.index, find.shown)).collect();
    let mut order: Vec<(usize, (f64, bool))> = places.into_iter().collect();
    order.sort_by(|(one, (score, is_last)), (other, (others, is_others))| {
        is_last.cmp(is_others).then(others.total_cmp(score)).then(other.cmp(one))
    });
    let mut shown = Vec::with_capacity(limit);
    for (index, (_, is_last)) in order {
        if shown.len() >= limit {
            break;
        }
        let one = match known.remove(&index) {
            Some(one) => Some(one),
            None => match near.iter().find(|near| near.index == index) {
                Some(near) => passage_of(reader, near).await?,
                None => None,
            },
        };
        shown.extend(one.map(|one| (one, is_last)));
    }
    Ok(shown)
}

/// What a place in one of several lists counts (reciprocal rank fusion).
fn reciprocal(place: usize) -> f64 {
    1.0 / (RANK_OFFSET + place as f64 + 1.0)
}

/// A message that only its meaning found; nothing where it cannot be read.
async fn passage_of(reader: &Searcher<'_>, near: &Near) -> Result<Option<ShownText>> {
    let Searcher { io, archive, .. } = reader;
    let place = match place_among(io, &archive.sid, archive.rows, near.index).await {
        Err(error) if matches!(error.code, Code::StoreCorrupt | Code::NotFound) => return Ok(None),
        place => place?,
    };
    let look = |message: &Message<'_>| {
        let result = near.result.and_then(|nth| message.results().nth(nth));
        let text = text_of(message, near.result);
        let passage = text.get(near.span.0..near.span.1).unwrap_or(&text);
        ShownText {
            seq: place.seq,
            index: near.index,
            result: near.result,
            role: message.role,
            snippet: beginning(passage),
            own: CallLabel::in_message(message),
            call_id: result.map(|result| result.call_id.to_string()),
        }
    };
    match archive.with_message(io, place.seq, look).await {
        Err(error) if matches!(error.code, Code::StoreCorrupt | Code::NotFound) => Ok(None),
        shown => shown.map(Some),
    }
}

/// The messages that match best among those that are `wanted`, best first.
pub(super) async fn ranked(
    reader: &Searcher<'_>,
    query: &Query,
    limit: usize,
    wanted: impl Fn(&Candidate) -> bool,
) -> Result<Vec<Find>> {
    let corpus = reader.corpus(query).await?;
    ranked_in(reader, query, corpus, limit, wanted).await
}

async fn ranked_in(
    reader: &Searcher<'_>,
    query: &Query,
    corpus: Corpus,
    limit: usize,
    wanted: impl Fn(&Candidate) -> bool,
) -> Result<Vec<Find>> {
    let Searcher { io, archive, .. } = reader;
    let terms = WeighedTerms::new(query, &corpus.figures);
    let is_last = |candidate: &Candidate| wanted(candidate).then(|| reader.is_last(candidate)).flatten();
    let is_read = query.is_question || query.phrase.is_some();
    let looked_at = if is_read { limit.max(LOOKED_AT) } else { limit };
    let best = corpus.best(looked_at, &terms, Some(archive.messages), is_last);
    let found = look(io, &[archive], &terms, best, limit).await?;
    let mut found = order::by_key(found, Find::place);
    found.truncate(limit);
    Ok(found)
}
