//! What the simulation expects of the log: the least that every session owes its app.

use crate::conversation::Body;
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

    /// Something was committed: the log may only have grown, by messages that were handed over, each once.
    pub(crate) fn grew(&mut self, log: &[String]) -> Result<(), String> {
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
        self.log.iter().enumerate().map(|(at, body)| (&**body, at)).collect()
    }
}
