//! Pages of terms: of some messages in a row, which terms stand in which of their texts and how often. A search reads them
//! in place of the log, a third of its size or less. They are derived: a page that is missing, damaged, of another version
//! or of messages read in another format is made again of the log (`recall/index.rs`).
//!
//! They stand in the table of blobs: a table of their own would be a new version of every database, which releases before
//! could not open; these pass over keys that are no references, and delete them with the session.

use super::offloads::PART;
use super::said::said;
use crate::context::Item;
use crate::context::is_recall;
use crate::error::Result;
use crate::keys::batch::{Key, keys};
use crate::keys::ids;
use crate::keys::varint::{read, write};
use crate::message::Role;
use crate::order;
use crate::wire::{self, Format};
use context_compactor_scan::terms::{self, terms};
use std::collections::HashMap;
use std::rc::Rc;

/// Bytes of messages that make a page.
pub(crate) const FULL: usize = 64 << 10;
/// Larger messages are left to the first search: an append is not to wait for their terms.
const LARGE: usize = 256 << 10;
/// Of the bytes of a page and of what counts as a term.
const VERSION: u8 = 2;
/// Bytes of a page's hash, at its end.
const SEAL: usize = 16;
/// Terms of a draft are added up when they are so many.
const MANY: usize = 1 << 16;

/// What is derived, with the beginning of its hash at the end.
pub(super) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let seal = ids::hash(&[&bytes]);
    bytes.extend(seal.iter().take(SEAL));
    bytes
}

/// What was sealed; `None` where it is not what was stored.
pub(super) fn unsealed(stored: &[u8]) -> Option<&[u8]> {
    let (bytes, seal) = stored.split_at_checked(stored.len().checked_sub(SEAL)?)?;
    ids::hash(&[bytes]).starts_with(seal).then_some(bytes)
}

/// What stands for a term in pages. Of 10^5 terms a pair or so share one, and are found for each other.
pub(crate) fn hash(term: &str) -> u32 {
    term.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// A page being made.
#[derive(Debug)]
pub(crate) struct Draft {
    format: Format,
    first: usize,
    messages: usize,
    /// Bytes of the messages so far.
    pub(crate) bytes: usize,
    /// What they consist of, as it is stored.
    listed: Vec<u8>,
    seq: u64,
    texts: u64,
    /// Hash and text, the hash above: how often.
    counts: Vec<(u64, usize)>,
    /// From where on they are not added up.
    added: usize,
}

impl Draft {
    /// A page that begins with message `first`.
    pub(crate) fn new(format: Format, first: usize) -> Self {
        let (listed, counts) = (Vec::new(), Vec::new());
        Draft { format, first, messages: 0, bytes: 0, listed, seq: 0, texts: 0, counts, added: 0 }
    }

    /// Adds the next message, which stands at log position `seq`.
    pub(crate) fn add(&mut self, seq: u64, body: &str) -> Result<()> {
        let index = self.first + self.messages;
        let value = wire::parse(index, body)?;
        let message = self.format.wire().read(index, &value)?;
        write(&mut self.listed, (seq - self.seq) << 1 | u64::from(message.role == Role::User));
        let calls = message.calls();
        write(&mut self.listed, message.calls().count() as u64);
        for call in calls {
            write(&mut self.listed, u64::from(hash(&call.id)) << 1 | u64::from(is_recall(&call.name)));
        }
        self.text(&said(&message));
        write(&mut self.listed, message.results().count() as u64);
        for result in message.results() {
            write(&mut self.listed, hash(&result.call_id).into());
            self.text(&result.text);
        }
        (self.seq, self.messages) = (seq, self.messages + 1);
        self.bytes += body.len();
        Ok(())
    }

    fn text(&mut self, text: &str) {
        let (mut words, number) = (0, self.texts);
        self.texts += 1;
        terms(text, &mut |term, _, kind| {
            words += u64::from(kind == terms::Kind::Word);
            self.counts.push((u64::from(hash(term)) << 32 | number, 1));
        });
        write(&mut self.listed, words);
        if self.counts.len() - self.added > MANY {
            self.add_up();
        }
    }

    fn add_up(&mut self) {
        order::pairs(&mut self.counts);
        self.counts.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            kept.1 += if is_same { next.1 } else { 0 };
            is_same
        });
        self.added = self.counts.len();
    }

    /// The page as it is stored.
    pub(crate) fn encode(mut self) -> Vec<u8> {
        self.add_up();
        let mut page = vec![VERSION];
        write(&mut page, self.format.as_str().len() as u64);
        page.extend_from_slice(self.format.as_str().as_bytes());
        write(&mut page, self.first as u64);
        write(&mut page, self.messages as u64);
        page.append(&mut self.listed);
        let term = |pair: &(u64, usize)| pair.0 >> 32;
        let mut before = 0;
        for of_term in self.counts.chunk_by(|a, b| term(a) == term(b)) {
            let here = of_term.first().map_or(0, term);
            write(&mut page, here - before);
            write(&mut page, of_term.len() as u64);
            before = here;
            let mut last = 0;
            for (key, count) in of_term {
                let text = key & u64::from(u32::MAX);
                write(&mut page, (text - last) << 1 | u64::from(*count > 1));
                if *count > 1 {
                    write(&mut page, *count as u64);
                }
                last = text;
            }
        }
        sealed(page)
    }
}

/// What a message consists of, in order.
#[derive(Debug)]
pub(crate) enum Entry {
    /// It begins: its position in the log, and whether it is a user's.
    Message(u64, bool),
    /// A call: its id, and whether it is of a recall tool.
    Call(u32, bool),
    /// What it says: words.
    Said(usize),
    /// A result: the call's id, and words.
    Result(u32, usize),
}

/// A page as it was stored.
#[derive(Debug)]
pub(crate) struct Page<'b> {
    /// Index of its first message.
    pub(crate) first: usize,
    /// How many messages.
    pub(crate) messages: usize,
    /// Positions in the log, of the first and the last.
    pub(crate) seqs: (u64, u64),
    pub(crate) entries: Vec<Entry>,
    /// As it was stored.
    pub(crate) stored: &'b [u8],
    postings: &'b [u8],
}

impl<'b> Page<'b> {
    /// Reads a page of messages in `format`; `None` when it is none, or not what was stored.
    pub(crate) fn read(stored: &'b [u8], format: Format) -> Option<Page<'b>> {
        let mut rest = unsealed(stored)?.strip_prefix(&[VERSION])?;
        let named = usize::try_from(read(&mut rest)?).ok()?;
        let (name, mut rest) = rest.split_at_checked(named)?;
        if name != format.as_str().as_bytes() {
            return None;
        }
        let size = |number: u64| usize::try_from(number).ok();
        let (first, messages) = (size(read(&mut rest)?)?, size(read(&mut rest)?)?);
        let (mut entries, mut seq, mut first_seq) = (Vec::new(), 0, 0);
        for nth in 0..messages {
            let message = read(&mut rest)?;
            seq += message >> 1;
            first_seq = if nth == 0 { seq } else { first_seq };
            entries.push(Entry::Message(seq, message & 1 == 1));
            for _ in 0..read(&mut rest)? {
                // One bit more than a `usize` may have.
                let call = read(&mut rest)?;
                entries.push(Entry::Call((call >> 1) as u32, call & 1 == 1));
            }
            entries.push(Entry::Said(size(read(&mut rest)?)?));
            for _ in 0..read(&mut rest)? {
                entries.push(Entry::Result(read(&mut rest)? as u32, size(read(&mut rest)?)?));
            }
        }
        Some(Page { first, messages, seqs: (first_seq, seq), entries, stored, postings: rest })
    }

    /// Index of the first message behind it.
    pub(crate) fn end(&self) -> usize {
        self.first + self.messages
    }

    /// Calls `found` with the number of each wanted term, the number of a text that it stands in, and how often.
    pub(crate) fn find(
        &self,
        wanted: &HashMap<u32, usize>,
        found: &mut dyn FnMut(usize, usize, u32),
    ) -> Option<()> {
        let (mut bytes, mut term) = (self.postings, 0);
        while !bytes.is_empty() {
            term += read(&mut bytes)? as u32;
            let number = wanted.get(&term);
            let mut text = 0;
            for _ in 0..read(&mut bytes)? {
                let posting = read(&mut bytes)?;
                text += (posting >> 1) as usize;
                let count = if posting & 1 == 1 { read(&mut bytes)? } else { 1 };
                if let Some(number) = number {
                    found(*number, text, count as u32);
                }
            }
        }
        Some(())
    }
}

/// Pages and where they stand.
type PageRows = Vec<(Key, Vec<u8>)>;

/// The latest messages of this process that no page has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unindexed {
    first: usize,
    messages: Vec<(u64, Rc<str>)>,
    bytes: usize,
}

impl Unindexed {
    /// The pages that are full once `items` are appended, at most `room` of them, and what is left then.
    pub(crate) fn append(
        &self,
        sid: &str,
        format: Format,
        items: &[Item],
        room: usize,
    ) -> Result<(PageRows, Unindexed)> {
        let (mut pages, mut left) = (Vec::new(), self.clone());
        for item in items {
            let Some(place) = item.origin.place() else { continue };
            // What others appended in between, and what is large, is for the first search.
            if left.first + left.messages.len() != place.index || item.body.len() > LARGE {
                left = Unindexed { first: place.index, ..Unindexed::default() };
            }
            if item.body.len() > LARGE {
                continue;
            }
            left.bytes += item.body.len();
            left.messages.push((place.seq, Rc::clone(&item.body)));
            if left.bytes >= FULL {
                let full = std::mem::take(&mut left);
                if pages.len() < room {
                    pages.push((keys::terms(sid, full.first), full.encode(format)?));
                }
            }
        }
        pages.retain(|(_, page)| page.len() <= PART);
        Ok((pages, left))
    }

    fn encode(&self, format: Format) -> Result<Vec<u8>> {
        encode(format, self.first, self.messages.iter().map(|(seq, body)| (*seq, &**body)))
    }
}

/// The page of messages from the one with index `first` on, given by their positions in the log and their texts.
pub(crate) fn encode<'m>(
    format: Format,
    first: usize,
    messages: impl Iterator<Item = (u64, &'m str)>,
) -> Result<Vec<u8>> {
    let mut draft = Draft::new(format, first);
    for (seq, body) in messages {
        draft.add(seq, body)?;
    }
    Ok(draft.encode())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(bodies: &[&str]) -> Vec<u8> {
        let mut draft = Draft::new(Format::OpenaiChat, 7);
        for (seq, body) in (20..).step_by(2).zip(bodies) {
            draft.add(seq, body).unwrap();
        }
        draft.encode()
    }

    #[test]
    fn a_page_says_which_term_stands_where_and_how_often() {
        let bodies = [
            r#"{"role":"user","content":"red red blue 数据"}"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"recall_read","arguments":"{\"ref\":\"x\"}"}}]}"#,
            r#"{"role":"tool","tool_call_id":"a","content":"blue"}"#,
        ];
        let stored = page(&bodies);
        let page = Page::read(&stored, Format::OpenaiChat).unwrap();
        assert_eq!((page.first, page.end(), page.seqs), (7, 10, (20, 24)));
        let entries = format!("{:?}", page.entries);
        let id = hash("a");
        let expected = format!(
            "[Message(20, true), Said(4), Message(22, false), Call({id}, true), Said(0), Message(24, false), Said(0), Result({id}, 1)]"
        );
        assert_eq!(entries, expected);
        let wanted =
            HashMap::from([(hash("red"), 0), (hash("blue"), 1), (hash("数据"), 2), (hash("green"), 3)]);
        let mut found = Vec::new();
        page.find(&wanted, &mut |term, text, count| found.push((term, text, count))).unwrap();
        found.sort_unstable();
        assert_eq!(found, [(0, 0, 2), (1, 0, 1), (1, 3, 1), (2, 0, 1)]);
    }

    #[test]
    fn a_page_that_is_not_what_was_stored_is_none() {
        let stored = page(&[r#"{"role":"user","content":"red"}"#]);
        assert!(Page::read(&stored, Format::Anthropic).is_none());
        for at in 0..stored.len() {
            let mut damaged = stored.clone();
            damaged[at] ^= 1;
            assert!(Page::read(&damaged, Format::OpenaiChat).is_none(), "byte {at}");
            assert!(Page::read(&stored[..at], Format::OpenaiChat).is_none());
        }
    }

    #[test]
    fn terms_are_added_up_the_same_however_many_there_are() {
        let words: Vec<String> = (0..200_000).map(|n| format!("w{}", n % 1_000)).collect();
        let body = format!(r#"{{"role":"user","content":"{}"}}"#, words.join(" "));
        let stored = page(&[&body, &body]);
        assert!(stored.len() < 40_000);
        let page = Page::read(&stored, Format::OpenaiChat).unwrap();
        let mut found = Vec::new();
        let wanted = HashMap::from([(hash("w999"), 0)]);
        page.find(&wanted, &mut |_, text, count| found.push((text, count))).unwrap();
        assert_eq!(found, [(0, 200), (1, 200)]);
    }
}
