//! Answers to questions about the conversation itself ([`super::inquiry`]): what was said, required, changed, run or reported, in
//! the order in which it was. The pages of terms say which messages are whose and have calls; those are read, and what they
//! say of themselves counts: calls by their arguments, failures by their results, rules by the user's own sentences.

use super::index;
use super::inquiry::{Inquiry, Subject};
use super::label::{CallLabel, find_call};
use super::search::{Query, Searcher, ranked};
use super::shown::ShownText;
use super::snippet::beginning;
use crate::error::{Code, Result};
use crate::log::said::said;
use crate::log::terms::Entry;
use crate::log::{Gap, Page};
use crate::message::{Message, Role, ToolCall};
use crate::summary::keep::{command_of, failure, shows, touched};
use crate::summary::{constraints, text::head};
use std::collections::{HashMap, HashSet};

/// Words of messages that are read at once, and at most for one answer.
const AT_ONCE: usize = 50_000;
const WORDS: usize = 1_000_000;
/// Bytes of a fact that are shown.
const FACT: usize = 500;
/// Words that say that somebody wants something, where no sentence is a rule by itself.
const WISHES: &[&str] = &[
    "never", "dont", "not", "always", "must", "only", "sure", "should", "shouldnt", "want", "instead",
    "avoid", "without", "ensure", "keep", "prefer", "prefere", "stop", "no", "need", "like", "lets",
];
/// Longer messages were pasted, or say much else.
const LONG: usize = 400;
/// What a rule counts, beside wishes.
const RULE: f64 = 10.0;
/// What counts a word of the question that a rule has.
const TOPIC: f64 = 5.0;

/// What the pages say of a message.
#[derive(Clone, Copy)]
struct Outline {
    seq: u64,
    index: usize,
    is_user: bool,
    /// It says something, calls tools, has results.
    says: bool,
    calls: bool,
    results: bool,
    words: usize,
    /// It has a word of what is asked about.
    matches: bool,
}

/// Something that happened.
struct Incident {
    /// The same again is the same fact.
    key: String,
    shown: ShownText,
    score: f64,
}

/// What answers a question, in its order; nothing where nothing of that kind is in the log.
pub(super) async fn answer(reader: &Searcher<'_>, ask: &Inquiry, limit: usize) -> Result<Vec<ShownText>> {
    let mut found = match (ask.subject, ask.topics.as_slice()) {
        (Subject::Said, topics @ [_, ..]) => by_topic(reader, ask, topics, limit).await?,
        (_, topics) => {
            let outlines = outlines(reader, topics.first()).await?;
            let about: Vec<Outline> = outlines.iter().copied().filter(|one| one.matches).collect();
            let is_rules = ask.subject == Subject::Rules;
            match topics {
                [_, ..] if !is_rules && !about.is_empty() => {
                    let found = facts(reader, ask, about, limit).await?;
                    if found.is_empty() { facts(reader, ask, outlines, limit).await? } else { found }
                }
                _ => facts(reader, ask, outlines, limit).await?,
            }
        }
    };
    found.sort_by_key(|shown| shown.index);
    if ask.newest_first {
        found.reverse();
    }
    Ok(found)
}

/// What was said about each of several things, by whom it is asked of.
async fn by_topic(
    reader: &Searcher<'_>,
    ask: &Inquiry,
    topics: &[Query],
    limit: usize,
) -> Result<Vec<ShownText>> {
    let mut lists = Vec::with_capacity(topics.len());
    for topic in topics {
        let is_theirs = |candidate: &super::rank::Candidate| {
            candidate.result.is_none() && ask.by_user.is_none_or(|by_user| candidate.is_user == by_user)
        };
        let found = ranked(reader, topic, limit, is_theirs).await?;
        lists.push(found.into_iter().map(|find| find.shown));
    }
    let (mut taken, mut found) = (HashSet::new(), Vec::new());
    // One of each in turn, so that none takes the places of another.
    loop {
        let before = found.len();
        for list in &mut lists {
            if found.len() < limit
                && let Some(shown) = list.find(|shown| !taken.contains(&shown.index))
            {
                taken.insert(shown.index);
                found.push(shown);
            }
        }
        if found.len() == before {
            return Ok(found);
        }
    }
}

/// The messages of the log, in order.
async fn outlines(reader: &Searcher<'_>, topic: Option<&Query>) -> Result<Vec<Outline>> {
    let wanted = topic.map(Query::hashes).unwrap_or_default();
    let (mut found, rows) = (Vec::new(), reader.archive.rows);
    index::pages(reader.io, reader.archive, &mut |page, from| outline(page, from, rows, &wanted, &mut found))
        .await?;
    found.retain(|one| reader.shows(one.index));
    Ok(found)
}

fn outline(page: &Page<'_>, from: usize, rows: u64, wanted: &HashMap<u32, usize>, found: &mut Vec<Outline>) {
    let mut matching = HashSet::new();
    if !wanted.is_empty() {
        let _whole = page.find(wanted, &mut |_, text, _| {
            matching.insert(text);
        });
    }
    let (mut text, mut next, begin) = (0, page.first, found.len());
    for entry in &page.entries {
        match entry {
            Entry::Message(seq, is_user) => {
                let (seq, is_user) = (*seq, *is_user);
                let one = Outline {
                    seq,
                    index: next,
                    is_user,
                    says: false,
                    calls: false,
                    results: false,
                    words: 0,
                    matches: false,
                };
                found.push(one);
                next += 1;
            }
            Entry::Call(_, is_recall) => {
                if let Some(last) = found.last_mut() {
                    last.calls |= !is_recall;
                }
            }
            Entry::Said(words) | Entry::Result(_, words) => {
                if let Some(last) = found.last_mut() {
                    let is_said = matches!(entry, Entry::Said(_));
                    last.says |= is_said && *words > 0;
                    last.results |= !is_said;
                    last.words += words;
                    last.matches |= matching.contains(&text);
                }
                text += 1;
            }
        }
    }
    // Of a page only what was in the log, and is new.
    let mut at = 0;
    found.retain(|one| {
        at += 1;
        at <= begin || (one.index >= from && one.seq < rows)
    });
}

/// The first facts that are asked for, of messages in order; the last, where those are asked for. Rules: those that are most
/// likely meant.
async fn facts(
    reader: &Searcher<'_>,
    ask: &Inquiry,
    mut outlines: Vec<Outline>,
    limit: usize,
) -> Result<Vec<ShownText>> {
    let is_rules = ask.subject == Subject::Rules;
    outlines.retain(|one| match ask.subject {
        Subject::Said => one.says && ask.by_user.is_none_or(|by_user| by_user == one.is_user),
        Subject::Rules => one.says && one.is_user && one.words <= LONG,
        Subject::Files { .. } | Subject::Commands | Subject::Commits => one.calls,
        Subject::Errors => one.results,
    });
    // Where not all can be read, the newest rules hold.
    if ask.newest_first || is_rules {
        outlines.reverse();
    }
    let (mut found, mut known, mut words) = (Vec::new(), HashSet::new(), 0);
    let mut rest = outlines.into_iter().peekable();
    while rest.peek().is_some() && words < WORDS && (is_rules || found.len() < limit) {
        let mut at_once = 0;
        let mut batch: Vec<Outline> = Vec::new();
        while let Some(one) = rest.next_if(|_| at_once < AT_ONCE && (is_rules || batch.len() < 64)) {
            at_once += one.words;
            batch.push(one);
        }
        words += at_once;
        let seqs: Vec<u64> = batch.iter().map(|one| one.seq).collect();
        let rows = reader.archive.rows_at(reader.io, &seqs).await?;
        for (one, row) in batch.into_iter().zip(rows) {
            let of_message =
                match reader.archive.look_at(one.seq, row, |message| of_message(ask, one, message)) {
                    Ok(facts) => facts,
                    Err(error) if matches!(error.code, Code::StoreCorrupt | Code::NotFound) => {
                        Gap::new(one.seq, 1, one.index, 1).tell(reader.io);
                        continue;
                    }
                    Err(error) => return Err(error),
                };
            for mut fact in of_message {
                if ask.subject == Subject::Errors && !is_failure(reader, &mut fact).await? {
                    continue;
                }
                if known.insert(fact.key.clone()) {
                    found.push(fact);
                    break;
                }
            }
        }
    }
    if is_rules {
        found.sort_by(|one, other| other.score.total_cmp(&one.score));
    }
    found.truncate(limit);
    Ok(found.into_iter().map(|fact| fact.shown).collect())
}

/// What a message has of what is asked for.
fn of_message(ask: &Inquiry, one: Outline, message: &Message<'_>) -> Vec<Incident> {
    let fact = |key: String, snippet: String, own: Option<CallLabel>| Incident {
        key,
        score: 0.0,
        shown: ShownText {
            seq: one.seq,
            index: one.index,
            result: None,
            role: message.role,
            snippet,
            own,
            call_id: None,
        },
    };
    let each = || one.index.to_string();
    match ask.subject {
        Subject::Said => vec![fact(each(), beginning(&said(message)), CallLabel::in_message(message))],
        Subject::Rules => {
            let rules = constraints(message).join("\n");
            let text = message.text();
            let score = wishes(&text) + if rules.is_empty() { 0.0 } else { RULE };
            if score <= 0.0 {
                return Vec::new();
            }
            let about = ask.topics.first().map_or(0.0, |topic| topic.count_in(&text) as f64);
            let snippet = if rules.is_empty() { beginning(&text) } else { head(&rules, FACT).to_owned() };
            vec![Incident { score: score + TOPIC * about, ..fact(text.trim().to_owned(), snippet, None) }]
        }
        Subject::Files { read } => {
            let calls = message.calls().flat_map(|call| {
                let files =
                    touched(&call.name, &call.arguments).into_iter().filter(|file| file.changes != read);
                files.map(|file| (file.path, CallLabel::of(call)))
            });
            calls.map(|(path, label)| fact(path.clone(), head(&path, FACT).to_owned(), Some(label))).collect()
        }
        Subject::Commands | Subject::Commits => {
            let is_wanted = |command: &String| ask.subject == Subject::Commands || commits(command);
            let calls = message.calls().filter_map(|call| {
                let command = command_of(&call.arguments).filter(is_wanted)?;
                Some((command, CallLabel::of(call)))
            });
            calls
                .map(|(command, label)| fact(command.clone(), head(&command, FACT).to_owned(), Some(label)))
                .collect()
        }
        Subject::Errors => {
            let results = message.results().enumerate().map(|(nth, result)| {
                let mut fact = fact(format!("{} {nth}", one.index), String::new(), None);
                // What a tool says itself to be a failure is one whatever was called.
                fact.score = if result.is_error { 1.0 } else { 0.0 };
                fact.shown.snippet = failure(result.is_error, Some(""), &result.text).unwrap_or_default();
                (fact.shown.result, fact.shown.role) = (Some(nth), Role::Tool);
                fact.shown.call_id = Some(result.call_id.to_string());
                fact
            });
            results.filter(|fact| !fact.shown.snippet.is_empty()).collect()
        }
    }
}

/// Whether what looks like a failure is one: what a command shows of files may look like any.
async fn is_failure(reader: &Searcher<'_>, fact: &mut Incident) -> Result<bool> {
    let Some(call_id) = fact.shown.call_id.clone() else { return Ok(false) };
    if fact.score > 0.0 {
        return Ok(true);
    }
    let command_of = |call: &ToolCall<'_>| command_of(&call.arguments);
    let command = find_call(reader.io, reader.archive, fact.shown.seq, &call_id, command_of).await?.flatten();
    Ok(command.is_some_and(|command| !shows(&command)))
}

/// True for a command line that commits.
fn commits(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let at = |at: usize| words.get(at).copied().unwrap_or_default();
    (0..words.len()).any(|from| {
        let is_tool = matches!(at(from), "git" | "hg" | "jj");
        is_tool && (at(from + 1) == "commit" || (at(from + 1) == "-C" && at(from + 3) == "commit"))
    })
}

/// How much a text of the user wants things to be some way: words for that, less the longer it is.
fn wishes(text: &str) -> f64 {
    let (mut words, mut wishes) = (0, 0);
    for sentence in text.split_inclusive(['.', '?', '!', '\n']) {
        let asks = sentence.trim_end().ends_with('?');
        let plain = sentence.to_lowercase().replace(['\'', '’'], "");
        for word in plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            words += 1;
            wishes += usize::from(!asks && WISHES.contains(&word));
        }
    }
    wishes as f64 / (1.0 + words as f64 / 40.0)
}
