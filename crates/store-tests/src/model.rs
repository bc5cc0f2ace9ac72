//! What the simulation expects of the log: the least that every session owes its app.

use crate::conversation::Body;
use context_compactor_core::keys::batch::Key;
use std::collections::{HashMap, HashSet};

/// What apps handed over and what they were told about it.
#[derive(Default)]
pub(crate) struct Model {
    /// Every message that was ever handed over.
    given: HashSet<Body>,
    /// Messages whose append was acknowledged, in the order of the acknowledgements.
    acked: Vec<Body>,
    /// The log as it was last seen.
    log: Vec<Body>,
    /// Messages that somebody asked to erase, by index.
    doomed: HashSet<usize>,
    /// Messages that are erased, and where they stood.
    erased: HashMap<Body, usize>,
    /// Those of them whose erasure was acknowledged.
    gone: HashSet<usize>,
}

impl Model {
    /// A call begins that hands over `bodies`. Returns how many messages were acknowledged before it.
    pub(crate) fn begins(&mut self, bodies: &[Body]) -> usize {
        self.given.extend(bodies.iter().cloned());
        self.acked.len()
    }

    /// The log as it was last seen.
    pub(crate) fn log(&self) -> &[Body] {
        &self.log
    }

    /// A call begins that erases message `index`.
    pub(crate) fn dooms(&mut self, index: usize) {
        self.doomed.insert(index);
    }

    /// True for a message that is not to be read any more.
    pub(crate) fn is_erased(&self, index: usize) -> bool {
        self.erased.values().any(|at| *at == index)
    }

    /// True when any message was erased.
    pub(crate) fn has_blanks(&self) -> bool {
        !self.erased.is_empty()
    }

    /// The erasure of message `index` was acknowledged.
    pub(crate) fn is_gone(&mut self, index: usize) {
        self.gone.insert(index);
    }

    /// Nothing that an erased message alone says stands in any of the `rows`: of those whose erasure was acknowledged, or of
    /// `all`.
    pub(crate) fn nothing_is_left(&self, rows: &[(Key, Vec<u8>)], all: bool) -> Result<(), String> {
        let due = self.erased.iter().filter(|(_, index)| all || self.gone.contains(index));
        for (needle, index) in due.filter_map(|(body, index)| Some((own(body)?, index))) {
            let needle = needle.as_bytes();
            let is_hit =
                |(_, value): &&(Key, Vec<u8>)| value.windows(needle.len()).any(|part| part == needle);
            if let Some((key, _)) = rows.iter().find(is_hit) {
                let needle = String::from_utf8_lossy(needle);
                return Err(format!("message {index} was erased, and {needle:?} stands in {key}"));
            }
        }
        Ok(())
    }

    /// Something was committed: the log may only have grown, by messages that were handed over, each once. A message that
    /// somebody erases may have become another one.
    pub(crate) fn grew(&mut self, log: &[String]) -> Result<(), String> {
        for (index, is) in log.iter().enumerate() {
            let Some(was) = self.log.get_mut(index).filter(|was| ***was != **is) else { continue };
            if self.doomed.remove(&index) {
                self.erased.insert(std::mem::replace(was, Body::from(is.as_str())), index);
            }
        }
        let kept = self.log.iter().zip(log).all(|(was, is)| **was == **is) && log.len() >= self.log.len();
        if !kept {
            return Err("messages of the log were changed or removed".into());
        }
        let mut seen: HashSet<&str> = self.log.iter().map(|body| &**body).collect();
        for body in log.get(self.log.len()..).unwrap_or_default() {
            if !seen.insert(body) {
                return Err(format!("a message stands twice in the log: {body}"));
            }
            if !self.given.contains(body.as_str()) {
                return Err(format!("a message that nobody handed over: {body}"));
            }
        }
        self.log.extend(log.iter().skip(self.log.len()).map(|body| Body::from(body.as_str())));
        Ok(())
    }

    /// `bodies` were acknowledged: they are in the log, in order, behind the first `before` acknowledged ones.
    pub(crate) fn acked(&mut self, bodies: &[Body], before: usize) -> Result<(), String> {
        self.acked.extend(bodies.iter().cloned());
        let places = self.places();
        let Some(mine) = bodies.iter().map(|body| places.get(&**body)).collect::<Option<Vec<_>>>() else {
            return Err("an acknowledged message is not in the log".into());
        };
        if !mine.is_sorted() {
            return Err("acknowledged messages are out of order".into());
        }
        let earlier = self.acked.iter().take(before).filter_map(|body| places.get(&**body)).max();
        match (earlier, mine.first()) {
            (Some(earlier), Some(first)) if *first < earlier => {
                Err("a message stands before one that was acknowledged earlier".into())
            }
            _ => Ok(()),
        }
    }

    /// A whole history was taken over: the log begins with it.
    pub(crate) fn synced(&self, history: &[Body]) -> Result<(), String> {
        if self.log.starts_with(history) {
            Ok(())
        } else {
            Err("the log is not the history that was synced".into())
        }
    }

    /// True when any message was acknowledged.
    pub(crate) fn has_acked(&self) -> bool {
        !self.acked.is_empty()
    }

    /// How many acknowledged messages stand in none of the `rows`.
    pub(crate) fn missing(&self, rows: &[String]) -> usize {
        let acked: HashSet<&Body> = self.acked.iter().collect();
        acked.into_iter().filter(|body| !rows.iter().any(|row| row.contains(&***body))).count()
    }

    /// Every acknowledged message is still there.
    pub(crate) fn holds(&self) -> Result<(), String> {
        let places = self.places();
        match self.acked.iter().find(|body| !places.contains_key(&***body)) {
            Some(body) => Err(format!("an acknowledged message is gone: {body}")),
            None => Ok(()),
        }
    }

    fn places(&self) -> HashMap<&str, usize> {
        let there = self.log.iter().enumerate().map(|(at, body)| (&**body, at));
        there.chain(self.erased.iter().map(|(body, at)| (&**body, *at))).collect()
    }
}

/// What a message of the simulation begins with, as no other one does; none for a call, which has its tool's words alone.
pub(crate) fn own(body: &str) -> Option<&str> {
    ["question ", "answer ", "call_"].iter().find_map(|word| {
        body.match_indices(word).find_map(|(at, _)| {
            let from = body.get(at..)?;
            let end = from.find(": ")?;
            let number = from.get(word.len()..end)?;
            let is_number =
                !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
            is_number.then(|| from.get(..end + 2)).flatten()
        })
    })
}
