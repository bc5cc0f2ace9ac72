//! A store that a process can die at.

use crate::store::{MemoryStore, Store};
use context_compactor_core::keys::batch::{Batch, Key};
use context_compactor_core::step::Scan;
use context_compactor_core::{Code, Error, Result};
use std::cell::Cell;
use std::rc::Rc;

/// When a process dies: before a call takes place, or after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dies {
    /// Nothing of it takes place.
    Before,
    /// It takes place, and nobody hears of it.
    After,
}

/// The rows of a process that dies at a call: from then on nothing takes place.
#[derive(Debug)]
pub struct Fuse {
    memory: Rc<MemoryStore>,
    calls: Cell<usize>,
    dies: Cell<Option<(usize, Dies)>>,
    blown: Cell<bool>,
}

impl Fuse {
    /// A process that does not die.
    pub fn new(memory: Rc<MemoryStore>) -> Self {
        Fuse { memory, calls: Cell::new(0), dies: Cell::new(None), blown: Cell::new(false) }
    }

    /// It dies at the nth call from now on, from 0.
    pub fn dies(&self, dies: Option<(usize, Dies)>) {
        self.calls.set(0);
        self.dies.set(dies);
    }

    /// Calls since then.
    pub fn calls(&self) -> usize {
        self.calls.get()
    }

    /// The process has died.
    pub fn is_blown(&self) -> bool {
        self.blown.get()
    }

    fn call<T>(&self, take_place: impl FnOnce(&MemoryStore) -> Result<T>) -> Result<T> {
        let dead = || Error::new(Code::StoreUnavailable, "the process is dead");
        if self.blown.get() {
            return Err(dead());
        }
        let at = self.calls.replace(self.calls.get() + 1);
        let Some((_, dies)) = self.dies.get().filter(|(due, _)| *due == at) else {
            return take_place(&self.memory);
        };
        self.blown.set(true);
        if dies == Dies::After {
            take_place(&self.memory)?;
        }
        Err(dead())
    }
}

impl Store for Fuse {
    fn read(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        self.call(|memory| memory.read(keys))
    }

    fn scan(&self, scan: &Scan) -> Result<Vec<(Key, Vec<u8>)>> {
        self.call(|memory| memory.scan(scan))
    }

    fn commit(&self, batch: &Batch) -> Result<()> {
        self.call(|memory| memory.commit(batch))
    }
}
