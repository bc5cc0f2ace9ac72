//! What the engine asks a store to do: keys, and batches that are written whole or not at all.

use serde::Serialize;
use std::fmt;

/// One part of a key. Numbers sort before texts, numbers by value, texts by code unit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(untagged)]
pub enum KeyPart {
    /// A position.
    Number(u64),
    /// The name of a table or an id; always made by the engine, never from user text.
    Text(String),
}

/// A key: the table's name first, then what names the row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Key(pub Vec<KeyPart>);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.0.iter().enumerate() {
            let slash = if at == 0 { "" } else { "/" };
            match part {
                KeyPart::Number(number) => write!(f, "{slash}{number}")?,
                KeyPart::Text(text) => write!(f, "{slash}{text}")?,
            }
        }
        Ok(())
    }
}

/// How sure a write is when it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Handed to the disk.
    Strict,
    /// Handed to the platform.
    Relaxed,
}

/// A state change: all of it or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// What must hold, or the batch is refused with [`crate::Code::Conflict`]. A version counts the commits that put
    /// the key, from 1; `None` means that the key must not exist.
    pub expect: Vec<(Key, Option<u64>)>,
    /// What is written.
    pub puts: Vec<(Key, Vec<u8>)>,
    /// What is removed.
    pub deletes: Vec<Key>,
    /// How sure it must be.
    pub durability: Durability,
}

/// The tables. `sid` and `blob` are 128-bit ids in base32.
pub mod keys {
    use super::{Key, KeyPart};
    use crate::keys::ids;

    fn key(table: &str, sid: &str) -> Vec<KeyPart> {
        vec![KeyPart::Text(table.into()), KeyPart::Text(sid.into())]
    }

    fn with(mut parts: Vec<KeyPart>, part: KeyPart) -> Vec<KeyPart> {
        parts.push(part);
        parts
    }

    /// Which session the app's name `id` means.
    pub fn name(id: &str) -> Key {
        Key(with(key("meta", "session"), KeyPart::Text(ids::id(&[b"name", id.as_bytes()]))))
    }

    /// All of those.
    pub fn all_names() -> Key {
        Key(key("meta", "session"))
    }

    /// A session that is being made of another one.
    pub fn staging(sid: &str) -> Key {
        Key(with(key("meta", "staging"), KeyPart::Text(sid.into())))
    }

    /// All of those.
    pub fn all_staging() -> Key {
        Key(key("meta", "staging"))
    }

    /// The one row of a session that changes.
    pub fn session(sid: &str) -> Key {
        Key(key("sessions", sid))
    }

    /// What of it changes seldom.
    pub fn notes(sid: &str) -> Key {
        Key(with(key("sessions", sid), KeyPart::Text("notes".into())))
    }

    /// That row as an older schema wrote it, from before it was migrated.
    pub fn backup(sid: &str, schema: u32) -> Key {
        Key(with(with(key("sessions", sid), KeyPart::Text("backup".into())), KeyPart::Number(schema.into())))
    }

    /// An immutable record of the log.
    pub fn log(sid: &str, seq: u64) -> Key {
        Key(with(key("log", sid), KeyPart::Number(seq)))
    }

    /// An immutable view of the log.
    pub fn view(sid: &str, generation: u64) -> Key {
        Key(with(key("views", sid), KeyPart::Number(generation)))
    }

    /// Part 0 of an offload says what it is, parts from 1 hold its bytes.
    pub fn blob(sid: &str, blob: &str, part: u64) -> Key {
        Key(with(with(key("blobs", sid), KeyPart::Text(blob.into())), KeyPart::Number(part)))
    }

    /// The terms of messages from the one with index `first` on: beside the offloads, after them in order.
    pub fn terms(sid: &str, first: usize) -> Key {
        blob(sid, "terms", first as u64)
    }

    /// All of those.
    pub fn all_terms(sid: &str) -> Key {
        parts(sid, "terms")
    }

    /// The vectors of messages, of which the one with index `first` is the first.
    pub fn vectors(sid: &str, first: usize) -> Key {
        blob(sid, "vectors", first as u64)
    }

    /// All of those.
    pub fn all_vectors(sid: &str) -> Key {
        parts(sid, "vectors")
    }

    /// What summaries took in of the log.
    pub fn facts(sid: &str) -> Key {
        blob(sid, "facts", 0)
    }

    /// Everything of one offload.
    pub fn parts(sid: &str, blob: &str) -> Key {
        Key(with(key("blobs", sid), KeyPart::Text(blob.into())))
    }

    /// The id in the key of a job.
    pub fn job_of(key: &Key) -> Option<&str> {
        match key.0.get(2) {
            Some(KeyPart::Text(job)) => Some(job),
            _ => None,
        }
    }

    /// A compaction under way.
    pub fn job(sid: &str, job: &str) -> Key {
        Key(with(key("jobs", sid), KeyPart::Text(job.into())))
    }

    /// What a model answered on the way to it.
    pub fn answer(sid: &str, job: &str, question: &str) -> Key {
        Key(with(with(key("jobs", sid), KeyPart::Text(job.into())), KeyPart::Text(question.into())))
    }

    /// The question of an answer's key; nothing for that of a job.
    pub fn answer_of(key: &Key) -> Option<&str> {
        match key.0.get(3) {
            Some(KeyPart::Text(question)) => Some(question),
            _ => None,
        }
    }

    /// Everything of one session in one table.
    pub fn all(table: &str, sid: &str) -> Key {
        Key(key(table, sid))
    }

    /// The tables that hold rows of sessions.
    pub const TABLES: [&str; 5] = ["sessions", "log", "blobs", "views", "jobs"];
}
