//! Ranking by meaning: the app's `recall.embed` makes vectors of passages and of the query, and the nearest are found. What has
//! no vectors yet gets them when it is searched, in batches, and they are stored ([`crate::log::vectors`]). Words rank beside
//! it and are never needed less: both lists become one by the places that a message has in each (reciprocal rank).

use super::archive::Archive;
use super::search::{Query, Searcher};
use crate::error::{Code, Error, Result};
use crate::keys::batch::{Batch, Durability, Key, keys};
use crate::log::offloads::PART;
use crate::log::record::RowKind;
use crate::log::said::said;
use crate::log::stored::{PAGE, place_among, session_row};
use crate::log::vectors::{MOST_NUMBERS, Vector, VectorPage, VectorPassage, direction, likeness};
use crate::log::{Walk, wide};
use crate::message::Message;
use crate::step::{Effect, Io, LogLevel, Notice, Scan};
use crate::summary::text::head;
use crate::wire;
use std::collections::{HashMap, HashSet};

/// Texts of one call of `recall.embed`, and of one page.
const BATCH: usize = 64;
/// Texts that one search has embedded at most; the next goes on.
const MOST: usize = 4_096;
/// Bytes of a passage, and passages of a text from its beginning on: a long text is a listing that words find.
const BYTES: usize = 1_000;
const PASSAGES: usize = 8;
/// Passages of a message.
const OF_MESSAGE: usize = 64;
/// What each model is known by.
const SAMPLE: &str = "The model that made a vector is known by the vector that it makes of this sentence.";
/// The same model need not make the same numbers each time.
const SAME: f64 = 0.98;

/// A text that is near a query, by its nearest passage.
#[derive(Debug, Clone)]
pub(super) struct Near {
    pub(super) index: usize,
    pub(super) result: Option<usize>,
    pub(super) span: (usize, usize),
    likeness: f64,
}

/// The nearest messages, the nearest first, each with its nearest text; `None` where `recall.embed` failed, which the app is
/// told.
pub(super) async fn nearest(reader: &Searcher<'_>, query: &Query, limit: usize) -> Result<Option<Vec<Near>>> {
    let Searcher { io, archive, .. } = reader;
    let mut search = match Meaning::new(io, archive, query).await {
        Ok(search) => search,
        Err(failure) => return failure.told(io).map(|()| None),
    };
    match search.all().await {
        Ok(()) => {}
        Err(failure) => return failure.told(io).map(|()| None),
    }
    let mut found: Vec<Near> = search.best.into_values().filter(|near| reader.shows(near.index)).collect();
    found.sort_by(|one, other| other.likeness.total_cmp(&one.likeness).then(other.index.cmp(&one.index)));
    found.truncate(limit);
    Ok(Some(found))
}

/// Why there is no ranking by meaning.
enum NotEmbedded {
    /// Of the store, or the caller's.
    Fatal(Error),
    /// Of the app's function.
    Embed(Code, String),
}

impl From<Error> for NotEmbedded {
    fn from(error: Error) -> NotEmbedded {
        NotEmbedded::Fatal(error)
    }
}

impl NotEmbedded {
    fn shape(what: String) -> NotEmbedded {
        NotEmbedded::Embed(
            Code::InvalidOption,
            format!("recall.embed must resolve to a list with one vector for each text: {what}"),
        )
    }

    /// Words answer alone, and the app is told why.
    fn told(self, io: &Io) -> Result<()> {
        match self {
            NotEmbedded::Fatal(error) => Err(error),
            NotEmbedded::Embed(code, what) => {
                let message = format!("{what}; the search was answered by words alone");
                io.log(LogLevel::Warn, message.clone());
                io.tell(Effect::Notify(Notice::Warning { code, message }));
                Ok(())
            }
        }
    }
}

struct Meaning<'a> {
    io: &'a Io,
    archive: &'a Archive,
    query: Vector,
    model: Vector,
    /// Passages of a page: its row is no longer than a part of an offload.
    full: usize,
    /// The nearest passage of each message so far.
    best: HashMap<usize, Near>,
}

impl<'a> Meaning<'a> {
    async fn new(io: &'a Io, archive: &'a Archive, query: &Query) -> Result<Meaning<'a>, NotEmbedded> {
        let texts = vec![query.text.clone(), SAMPLE.to_owned()];
        let [query, model] = <[Vector; 2]>::try_from(vectors(io, texts, None).await?)
            .map_err(|_| NotEmbedded::shape("two texts were given".to_owned()))?;
        let full = (PART / 2 / model.len().max(1)).clamp(1, BATCH);
        Ok(Meaning { io, archive, query, model, full, best: HashMap::new() })
    }

    /// Sees all passages: those that are stored, and those of messages that have none, which are stored then.
    async fn all(&mut self) -> Result<(), NotEmbedded> {
        let (mut known, mut last, mut strays) = (HashSet::new(), None, Vec::new());
        let mut after = None;
        loop {
            let prefix = keys::all_vectors(&self.archive.sid);
            let scan = Scan { prefix, after, limit: 100, max_bytes: PAGE, reverse: false, keys_only: false };
            let rows = wide::scan(self.io, scan).await?;
            let Some((key, _)) = rows.last() else { break };
            after = Some(key.clone());
            for (key, bytes) in rows {
                let page = VectorPage::read(&bytes).filter(|page| likeness(&page.model, &self.model) >= SAME);
                let Some(page) = page.filter(|page| page.messages.iter().all(|at| !known.contains(at)))
                else {
                    strays.push(key);
                    continue;
                };
                known.extend(page.messages.iter().copied());
                page.passages.iter().for_each(|passage| self.see(passage));
                last = Some((key, page));
            }
        }
        let missing = (0..self.archive.messages).find(|index| !known.contains(index));
        let Some(first) = missing else { return self.write(strays, None).await };
        // The last page grows until it is full.
        let page = last.filter(|(_, page)| page.passages.len() < self.full);
        let page = match page {
            Some((key, page)) if page.messages.iter().all(|index| *index < first) => {
                strays.push(key);
                page
            }
            _ => VectorPage { model: self.model.clone(), ..VectorPage::default() },
        };
        self.make(first, &known, page, strays).await
    }

    fn see(&mut self, passage: &VectorPassage) {
        let VectorPassage { index, result, span, vector } = passage;
        let near =
            Near { index: *index, result: *result, span: *span, likeness: likeness(vector, &self.query) };
        let best = self.best.entry(*index).or_insert_with(|| near.clone());
        if near.likeness > best.likeness {
            *best = near;
        }
    }

    /// Makes the vectors of messages from `first` on that are not `known`.
    async fn make(
        &mut self,
        first: usize,
        known: &HashSet<usize>,
        mut page: VectorPage,
        mut strays: Vec<Key>,
    ) -> Result<(), NotEmbedded> {
        let (io, archive) = (self.io, self.archive);
        let mut walk = match place_among(io, &archive.sid, archive.rows, first).await {
            Ok(place) => Walk::at(place.seq, place.index),
            Err(error) if error.code == Code::StoreCorrupt => Walk::at(0, 0),
            Err(error) => return Err(error.into()),
        };
        let (mut texts, mut made, mut left) = (Vec::new(), 0, 0);
        while let Some(rows) = walk.page(io, &archive.sid, archive.rows).await? {
            for (seq, bytes) in rows {
                let Some((_, row)) = walk.row(seq, &bytes)? else { continue };
                if row.kind != RowKind::Message || row.n >= archive.messages || known.contains(&row.n) {
                    continue;
                }
                if made >= MOST {
                    left += 1;
                    continue;
                }
                let value = wire::parse(row.n, row.body.get())?;
                let message = archive.format.wire().read(row.n, &value)?;
                page.messages.push(row.n);
                for (passage, text) in passages(row.n, &message) {
                    page.passages.push(passage);
                    texts.push(text);
                    made += 1;
                }
                if page.passages.len() >= self.full {
                    let full = std::mem::replace(
                        &mut page,
                        VectorPage { model: self.model.clone(), ..VectorPage::default() },
                    );
                    self.fill(full, std::mem::take(&mut texts), std::mem::take(&mut strays)).await?;
                }
            }
        }
        if left > 0 {
            io.log(
                LogLevel::Info,
                format!("{left} messages have no vectors yet; the next search makes more"),
            );
        }
        self.fill(page, texts, strays).await
    }

    /// Has the last passages of a page embedded, and stores it.
    async fn fill(
        &mut self,
        mut page: VectorPage,
        texts: Vec<String>,
        strays: Vec<Key>,
    ) -> Result<(), NotEmbedded> {
        let from = page.passages.len() - texts.len();
        let mut made = Vec::with_capacity(texts.len());
        for texts in texts.chunks(BATCH) {
            made.extend(vectors(self.io, texts.to_vec(), Some(self.model.len())).await?);
        }
        for (passage, vector) in page.passages.iter_mut().skip(from).zip(made) {
            passage.vector = vector;
        }
        page.passages.iter().skip(from).for_each(|passage| self.see(passage));
        self.write(strays, (!page.messages.is_empty()).then_some(page)).await
    }

    /// Writes a page, unless others change the session just now: then the next search does. Nothing depends on it.
    async fn write(&self, strays: Vec<Key>, page: Option<VectorPage>) -> Result<(), NotEmbedded> {
        let sid = &self.archive.sid;
        let put = page.and_then(|page| {
            let bytes = page.encode();
            (bytes.len() <= PART)
                .then(|| (keys::vectors(sid, page.messages.first().copied().unwrap_or(0)), bytes))
        });
        let (puts, deletes): (Vec<_>, Vec<Key>) = (put.into_iter().collect(), strays);
        if puts.is_empty() && deletes.is_empty() {
            return Ok(());
        }
        // Messages may have been appended while the app's function worked. What it worked for must be there still.
        let Ok(Some(row)) = session_row(self.io, sid).await else { return Ok(()) };
        let deletes: Vec<Key> =
            deletes.into_iter().filter(|key| puts.iter().all(|(put, _)| put != key)).collect();
        let expect = vec![(keys::session(sid), Some(row.ver))];
        let batch = Batch { expect, puts, deletes, durability: Durability::Relaxed };
        if let Err(error) = self.io.commit(batch).await {
            self.io.log(
                LogLevel::Info,
                format!("vectors were not stored; the next search makes them again: {error}"),
            );
        }
        Ok(())
    }
}

/// The vectors of texts, each of `numbers` numbers where that is known.
async fn vectors(io: &Io, texts: Vec<String>, numbers: Option<usize>) -> Result<Vec<Vector>, NotEmbedded> {
    let wanted = texts.len();
    let made = io.embed(texts).await.map_err(|failure| match failure.code {
        Some(Code::Aborted) => NotEmbedded::Fatal(failure.into_error(Code::Aborted)),
        code => NotEmbedded::Embed(
            code.unwrap_or(Code::InvalidOption),
            format!("recall.embed failed: {}", failure.message),
        ),
    })?;
    if made.len() != wanted {
        return Err(NotEmbedded::shape(format!("it resolved to {} for {wanted} texts", made.len())));
    }
    let numbers = numbers.or(made.first().map(Vec::len)).unwrap_or_default();
    if numbers == 0 || numbers > MOST_NUMBERS {
        return Err(NotEmbedded::shape(format!(
            "a vector must have 1 to {MOST_NUMBERS} numbers, not {numbers}"
        )));
    }
    let vector = |(nth, vector): (usize, &Vec<f64>)| {
        if vector.len() != numbers {
            let what = format!(
                "vector {nth} has {} numbers, another one {numbers}: use one model for all texts",
                vector.len()
            );
            return Err(NotEmbedded::shape(what));
        }
        direction(vector).ok_or_else(|| {
            NotEmbedded::shape(format!("vector {nth} must have finite numbers, one of them other than 0"))
        })
    };
    made.iter().enumerate().map(vector).collect()
}

/// The passages of a message, each with its text.
fn passages(index: usize, message: &Message<'_>) -> Vec<(VectorPassage, String)> {
    let own = (None, said(message));
    let results = message.results().enumerate().map(|(nth, result)| (Some(nth), result.text.to_string()));
    let mut found = Vec::new();
    for (result, text) in std::iter::once(own).chain(results) {
        let mut from = 0;
        for _ in 0..PASSAGES {
            let rest = text.get(from..).unwrap_or_default();
            let passage = head(rest, BYTES);
            let to = from + passage.len();
            if passage.is_empty() {
                break;
            }
            if passage.chars().any(char::is_alphanumeric) {
                found.push((
                    VectorPassage { index, result, span: (from, to), vector: Vector::new() },
                    passage.to_owned(),
                ));
            }
            from = to;
        }
    }
    found.truncate(OF_MESSAGE);
    found
}
