//! The other sessions of the store (`X9`): what they say is searched by their words, in pages of terms of their own, and read by
//! the references that they gave out. They are only read. What is found is ranked together, by figures of all of them.
//!
//! Their pages stay in memory as long as a session's row says that it is the same, so that the next search reads the list
//! of sessions and what is new.

use super::archive::{Archive, LogIndex};
use super::index;
use super::rank::{Candidate, Corpus, Figures, Ranked, Twin, WeighedTerms, place};
use super::search::{LOOKED_AT, Query, Searcher};
use super::shown::{Find, ShownText, TextHash, hash_of, look, text_of};
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::keys::batch::keys;
use crate::keys::ids;
use crate::log::Page;
use crate::log::record::SessionRow;
use crate::log::sessions::{KnownSession, ListedSession, format_of, sessions_page};
use crate::log::stored::view_row;
use crate::order;
use crate::step::{Io, LogLevel};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Bytes of pages that one search looks at, and that stay in memory: about three times as much in messages.
const MOST: usize = 16 << 20;

/// Own texts that are compared with one of another session.
const MOST_ALIKE: usize = 64;

/// What was found in other sessions.
#[derive(Default)]
pub(super) struct OthersFound {
    /// Sessions that were searched, and those that were not: the newer ones have too many words.
    pub(super) searched: usize,
    pub(super) left: usize,
    /// Those that have a word of the query.
    pub(super) sessions: Vec<(Archive, LogIndex)>,
    /// The best first, each with the number of its session.
    pub(super) shown: Vec<(usize, ShownText)>,
}

/// Texts of the own session, by what they have in common with those that say the same.
type Twins = HashMap<Twin, Vec<(u64, Option<usize>)>>;

/// The messages of other sessions that match best. Of those that several sessions have word for word the one that is placed best
/// stands for all, and none where this session has it: forks begin with messages of their parents.
pub(super) async fn found(
    reader: &Searcher<'_>,
    query: &Query,
    limit: usize,
    twins: &Twins,
) -> Result<OthersFound> {
    let Searcher { io, archive: own, for_model, .. } = reader;
    let rows = listed(io, own).await?;
    forget_gone(own, &rows);
    let (mut found, mut figures, mut corpora, mut bytes) =
        (OthersFound::default(), Figures::default(), Vec::new(), 0);
    for (sid, row) in rows {
        if bytes > MOST {
            found.left += 1;
            continue;
        }
        let name = row.id.clone();
        let mut corpus = Corpus::new(query);
        let (archive, session, size) = match look_through(io, own, sid, row, &mut corpus).await {
            Err(error) if is_of_session(&error) => {
                leave_out(io, own, &name, &error);
                continue;
            }
            looked => looked?,
        };
        bytes += size;
        io.breathe(size).await?;
        found.searched += 1;
        figures.add(&corpus.figures);
        if !corpus.candidates.is_empty() {
            found.sessions.push((archive, LogIndex::of_other(session.behind.clone())));
            corpora.push(corpus);
        }
    }
    if found.left > 0 {
        let what =
            format!("{} other sessions were not searched: those written to later have too much", found.left);
        io.log(LogLevel::Info, what);
    }
    let terms = WeighedTerms::new(query, &figures);
    let mut best: Vec<Ranked> = Vec::new();
    for (of, (corpus, (_, log_index))) in corpora.into_iter().zip(&found.sessions).enumerate() {
        let is_hidden = |candidate: &Candidate| *for_model && log_index.is_behind(candidate.index);
        let shows = |candidate: &Candidate| (!is_hidden(candidate)).then_some(false);
        // How old a message is counts in its own session alone.
        let of_it = corpus.best(LOOKED_AT.max(limit), &terms, None, shows);
        best.extend(of_it.into_iter().map(|ranked| Ranked { of, ..ranked }));
    }
    let mut best = order::by_key(best, |ranked| place(ranked.score, false));
    best.truncate(LOOKED_AT.max(limit));
    let sessions: Vec<&Archive> = found.sessions.iter().map(|(archive, _)| archive).collect();
    let finds = order::by_key(look(io, &sessions, &terms, best, limit).await?, Find::place);
    let mut known: HashSet<TextHash> = HashSet::new();
    for find in finds {
        if found.shown.len() >= limit {
            break;
        }
        if let Some((twin, hash)) = &find.twin
            && (!known.insert(*hash) || is_own(io, own, twins.get(twin), hash).await?)
        {
            continue;
        }
        found.shown.push((find.of, find.shown));
    }
    Ok(found)
}

/// True for a text that this session has too.
async fn is_own(
    io: &Io,
    own: &Archive,
    alike: Option<&Vec<(u64, Option<usize>)>>,
    wanted: &TextHash,
) -> Result<bool> {
    let Some(alike) = alike else { return Ok(false) };
    // Many texts that are alike are short, and the same.
    let alike = alike.get(alike.len().saturating_sub(MOST_ALIKE)..).unwrap_or_default();
    let seqs: Vec<u64> = alike.iter().map(|(seq, _)| *seq).collect();
    let rows = own.rows_at(io, &seqs).await?;
    Ok(alike.iter().zip(rows).any(|((seq, result), row)| {
        let same = own
            .look_at(*seq, row, |message| hash_of(message, *result, &text_of(message, *result)) == *wanted);
        // What cannot be read says nothing.
        same.unwrap_or(false)
    }))
}

/// The rows of the other sessions that have messages, with the names of their rows; the session that was written to last
/// comes first.
async fn listed(io: &Io, own: &Archive) -> Result<Vec<(String, SessionRow)>> {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page = sessions_page(io, after, false).await?;
        for (key, session) in page.sessions {
            let (name, row) = match session {
                Ok(ListedSession { name, row }) => (name, row),
                Err(error) if key != keys::name(&own.id) => {
                    leave_out(io, own, &key.to_string(), &error);
                    continue;
                }
                Err(_) => continue,
            };
            match row {
                _ if name.id == own.id => {}
                Ok(row) if row.messages > 0 => rows.push((name.sid, row)),
                Ok(_) => {}
                Err(error) => leave_out(io, own, &name.id, &error),
            }
        }
        after = page.last;
        if after.is_none() {
            break;
        }
    }
    rows.sort_by(|(_, one), (_, other)| {
        other.updated_at.cmp(&one.updated_at).then_with(|| one.id.cmp(&other.id))
    });
    Ok(rows)
}

/// What is wrong with one session, and stops no search.
fn is_of_session(error: &Error) -> bool {
    let codes = [Code::StoreCorrupt, Code::SchemaTooNew, Code::Closed, Code::NotFound, Code::InvalidMessage];
    codes.contains(&error.code)
}

/// Tells why a session is left out, unless it was deleted meanwhile.
fn leave_out(io: &Io, own: &Archive, name: &str, error: &Error) {
    if !matches!(error.code, Code::Closed | Code::NotFound) {
        own.tell_of(io, name, error.code, &error.to_string());
    }
}

/// Sessions that are no more need no memory.
fn forget_gone(own: &Archive, rows: &[(String, SessionRow)]) {
    if let Some(others) = &own.others {
        let there: HashSet<&String> = rows.iter().map(|(sid, _)| sid).collect();
        others.borrow_mut().known.retain(|sid, _| there.contains(sid));
    }
}

/// Counts the texts of a session: of its pages as they are known, or as they are read now. With it the bytes of those.
async fn look_through(
    io: &Io,
    own: &Archive,
    sid: String,
    row: SessionRow,
    corpus: &mut Corpus,
) -> Result<(Archive, Rc<KnownSession>, usize)> {
    let known = own.others.as_ref().and_then(|others| others.borrow().known.get(&sid).cloned());
    if let Some(known) = known.filter(|known| known.ver == row.ver && known.head == row.head) {
        let archive = own.of_other(sid, row, known.format);
        for (from, bytes) in &known.pages {
            if let Some(page) = Page::read(bytes, known.format) {
                corpus.add(&page, *from, archive.rows);
            }
        }
        let size = known.bytes();
        return Ok((archive, known, size));
    }
    let (ver, head) = (row.ver, row.head.clone());
    let format = format_of(io, &sid, &row, own.format).await?;
    let archive = own.of_other(sid, row, format);
    let behind = behind(io, &archive).await?;
    let (mut pages, mut size) = (Vec::new(), 0);
    let see = &mut |page: &Page<'_>, from| {
        corpus.add(page, from, archive.rows);
        size += page.stored.len();
        // More than that is not kept.
        if size <= MOST {
            pages.push((from, page.stored.to_vec()));
        }
    };
    index::pages(io, &archive, see).await?;
    let session = Rc::new(KnownSession { ver, head, format, pages, behind });
    if let Some(others) = &own.others {
        let known = &mut others.borrow_mut().known;
        known.remove(&archive.sid);
        let kept: usize = known.values().map(|known| known.bytes()).sum();
        if kept + size <= MOST {
            known.insert(archive.sid.clone(), Rc::clone(&session));
        }
    }
    Ok((archive, session, size))
}

/// Messages that the app of a session went back to before.
async fn behind(io: &Io, archive: &Archive) -> Result<Vec<(usize, usize)>> {
    if archive.generation == 0 {
        return Ok(Vec::new());
    }
    let view = view_row(io, &archive.sid, archive.generation).await?;
    Ok(Context::of(Vec::new(), view.left).behind())
}

/// A reference, and the session of the store that resolves it.
#[derive(Debug)]
pub(super) struct Resolved {
    /// The session, where that is another one.
    pub(super) other: Option<(Archive, LogIndex)>,
    /// What the reference is there.
    pub(super) reference: String,
}

/// The session that gave out a reference, which is told by the secrets of all of them, and never by what the reference says.
/// What none gave out, or where two might have, is as it is given.
pub(super) async fn resolve(io: &Io, own: &Archive, reference: &str) -> Result<Resolved> {
    let unresolved = Resolved { other: None, reference: reference.into() };
    let tag = reference.split_once('/').map(|(tag, _)| tag).filter(|tag| ids::looks_like_tag(tag));
    let Some(tag) = tag.filter(|_| own.others.is_some()) else { return Ok(unresolved) };
    let bare = reference.replace(&format!("{tag}/"), "");
    if own.is_tagged(tag) {
        return Ok(Resolved { other: None, reference: bare });
    }
    let mut given = Vec::new();
    for (sid, row) in listed(io, own).await? {
        if own.of_other(sid.clone(), row.clone(), own.format).is_tagged(tag) {
            given.push((sid, row));
        }
    }
    let Ok([(sid, row)]) = <[(String, SessionRow); 1]>::try_from(given) else { return Ok(unresolved) };
    let format = format_of(io, &sid, &row, own.format).await?;
    let archive = own.of_other(sid, row, format);
    let log_index = LogIndex::of_other(behind(io, &archive).await?);
    Ok(Resolved { other: Some((archive, log_index)), reference: bare })
}

/// The whole text of a reference.
///
/// Errors: [`Code::NotFound`] for anything that no session issued that may be read here, [`Code::StoreCorrupt`].
pub(crate) async fn text(io: &Io, own: &Archive, reference: &str) -> Result<String> {
    let Resolved { other, reference } = resolve(io, own, reference).await?;
    let Some((archive, _)) = other else { return own.text(io, &reference).await };
    match archive.text(io, &reference).await {
        Err(error) if error.code == Code::Closed => {
            Err(Error::new(Code::NotFound, "the session that issued this reference was deleted"))
        }
        text => text,
    }
}
