//! The store as the engine sees it, natively.

use context_compactor_core::keys::batch::{Batch, Key};
use context_compactor_core::step::Scan;
use context_compactor_core::{Code, Error, Result};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};

/// Ordered rows under keys, written in batches that take place whole or not at all.
pub trait Store {
    /// Values in the order of the keys.
    fn read(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>>;
    /// Entries under a prefix, in order.
    fn scan(&self, scan: &Scan) -> Result<Vec<(Key, Vec<u8>)>>;
    /// Writes a batch.
    ///
    /// Errors: [`Code::Conflict`] when an expectation does not hold, [`Code::InvalidOption`] when a key is written twice.
    fn commit(&self, batch: &Batch) -> Result<()>;
    /// Why the value of a row is not what was written, where the store knows that.
    fn damaged(&self, _key: &Key) -> Option<String> {
        None
    }
}

/// A store in memory.
#[derive(Debug, Default, Clone)]
pub struct MemoryStore {
    rows: RefCell<BTreeMap<Key, Row>>,
}

#[derive(Debug, Clone)]
struct Row {
    /// Commits that put it, from 1.
    version: u64,
    value: Vec<u8>,
    /// The store knows that the value is not what was written.
    is_damaged: bool,
}

impl Row {
    fn new(version: u64, value: Vec<u8>) -> Self {
        Row { version, value, is_damaged: false }
    }
}

impl MemoryStore {
    /// Every row, in order.
    pub fn rows(&self) -> Vec<(Key, Vec<u8>)> {
        self.rows.borrow().iter().map(|(key, row)| (key.clone(), row.value.clone())).collect()
    }

    /// Becomes what `other` is: a database that is put back as it was.
    pub fn replace(&self, other: &MemoryStore) {
        let rows = other.rows.borrow().clone();
        *self.rows.borrow_mut() = rows;
    }

    /// One row becomes what it is in `other`, its version too.
    pub fn put_back(&self, key: &Key, other: &MemoryStore) {
        let row = other.rows.borrow().get(key).cloned();
        let mut rows = self.rows.borrow_mut();
        match row {
            Some(row) => drop(rows.insert(key.clone(), row)),
            None => drop(rows.remove(key)),
        }
    }

    /// Replaces a value behind the engine's back, or removes the row: damage.
    pub fn damage(&self, key: &Key, value: Option<Vec<u8>>) {
        let mut rows = self.rows.borrow_mut();
        match (value, rows.get_mut(key)) {
            (Some(value), Some(row)) => row.value = value,
            (None, _) => drop(rows.remove(key)),
            (Some(value), None) => drop(rows.insert(key.clone(), Row::new(1, value))),
        }
    }

    /// A row that was written so often is in the place of another: damage.
    pub fn count(&self, key: &Key, version: u64) {
        if let Some(row) = self.rows.borrow_mut().get_mut(key) {
            row.version = version;
        }
    }

    /// From now on the store answers that a row is damaged, until it is written again.
    pub fn report_damage(&self, key: &Key) {
        if let Some(row) = self.rows.borrow_mut().get_mut(key) {
            row.is_damaged = true;
        }
    }
}

impl Store for MemoryStore {
    fn read(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        let rows = self.rows.borrow();
        Ok(keys.iter().map(|key| rows.get(key).map(|row| row.value.clone())).collect())
    }

    fn scan(&self, scan: &Scan) -> Result<Vec<(Key, Vec<u8>)>> {
        let rows = self.rows.borrow();
        // Keys under a prefix are neighbours, the prefix itself first.
        let under =
            rows.range(scan.prefix.clone()..).take_while(|(key, _)| key.0.starts_with(&scan.prefix.0));
        let behind = |key: &Key| match &scan.after {
            None => true,
            Some(after) if scan.reverse => key < after,
            Some(after) => key > after,
        };
        let mut found: Vec<(&Key, &Row)> = under.filter(|(key, _)| behind(key)).collect();
        if scan.reverse {
            found.reverse();
        }
        let (mut page, mut bytes) = (Vec::new(), 0);
        for (key, row) in found.into_iter().take(scan.limit) {
            bytes += row.value.len();
            if bytes > scan.max_bytes && !page.is_empty() {
                break;
            }
            page.push((key.clone(), row.value.clone()));
        }
        Ok(page)
    }

    fn commit(&self, batch: &Batch) -> Result<()> {
        let mut rows = self.rows.borrow_mut();
        let mut written = HashSet::new();
        for key in batch.puts.iter().map(|(key, _)| key).chain(&batch.deletes) {
            if !written.insert(key) {
                return Err(Error::option("batch", format!("{key} is written twice")));
            }
        }
        for (key, version) in &batch.expect {
            let found = rows.get(key).map(|row| row.version);
            if found != *version {
                let what = format!("{key} is at version {found:?}, not {version:?}");
                return Err(Error::new(Code::Conflict, what));
            }
        }
        for (key, value) in &batch.puts {
            let version = rows.get(key).map_or(1, |row| row.version + 1);
            rows.insert(key.clone(), Row::new(version, value.clone()));
        }
        for key in &batch.deletes {
            rows.remove(key);
        }
        Ok(())
    }

    fn damaged(&self, key: &Key) -> Option<String> {
        let rows = self.rows.borrow();
        rows.get(key).filter(|row| row.is_damaged).map(|_| "its checksum differs".into())
    }
}
