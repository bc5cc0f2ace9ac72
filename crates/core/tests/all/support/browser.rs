//! A browser whose store is broken, and what its sessions say of it.

use super::*;
use context_compactor_core::keys::batch::Key;
use context_compactor_core::session::audit::look;
use context_compactor_core::step::{Loss, LossKind, Notice};
use context_compactor_store_tests::How;
use context_compactor_store_tests::host::Marks;
use context_compactor_store_tests::options::merge;

pub fn options() -> Value {
    json!({
        "compactAt": { "tokens": 400 }, "keep": { "messages": 4 },
        "advanced": { "minOffloadGain": 1, "watermark": true },
    })
}

/// A browser: a store that the platform can break, and what is kept beside it.
pub struct Browser {
    pub memory: Rc<MemoryStore>,
    pub marks: Marks,
    pub tabs: usize,
}

pub type Opened = context_compactor_core::Result<Harness>;

impl Browser {
    pub fn new() -> Self {
        Browser { memory: Rc::default(), marks: Rc::default(), tabs: 0 }
    }

    pub fn host(&mut self) -> Host {
        self.tabs += 1;
        let mut host = Host::new(Rc::clone(&self.memory) as _, &format!("tab {}", self.tabs));
        host.marks = Rc::clone(&self.marks);
        host.summarise = Box::new(|_, _| summary(SUMMARY));
        host
    }

    pub fn open_with(&mut self, over: Value) -> Opened {
        let mut host = self.host();
        let mut given = options();
        merge(&mut given, &over);
        let (session, _) = host.run(Session::open(settings(given), Some("s".into()), 10_000))?;
        Ok(Harness { memory: Rc::clone(&self.memory), host, session })
    }

    pub fn open(&mut self) -> Harness {
        self.open_with(json!({})).unwrap()
    }

    /// A session with offloads, two summaries and a tail.
    pub fn rich(&mut self) -> Harness {
        let mut harness = self.open();
        for nth in 0..3 {
            harness.append(&turn(Format::OpenaiChat, nth, 150));
            harness.prepare();
        }
        harness.compact();
        harness.append(&turn(Format::OpenaiChat, 3, 300));
        harness.append(&talk(3, 40));
        harness.prepare();
        harness.append(&[user("and now?"), assistant("Now we go on.")]);
        harness
    }

    pub fn keys(&self, table: &str) -> Vec<Key> {
        let prefix = format!("{table}/");
        let rows = self.memory.rows().into_iter().map(|(key, _)| key);
        rows.filter(|key| key.to_string().starts_with(&prefix)).collect()
    }

    pub fn remove(&self, key: &Key) {
        self.memory.damage(key, None);
    }

    pub fn flip(&self, key: &Key) {
        let mut bytes = self.memory.rows().into_iter().find(|(known, _)| known == key).unwrap().1;
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        self.memory.damage(key, Some(bytes));
    }

    /// The store as it was, with what is kept beside it.
    pub fn copy(&self) -> Browser {
        let memory = MemoryStore::default();
        memory.replace(&self.memory);
        let marks = Rc::new(std::cell::RefCell::new(self.marks.borrow().clone()));
        Browser { memory: Rc::new(memory), marks, tabs: self.tabs + 100 }
    }
}

pub fn losses(harness: &Harness) -> Vec<Loss> {
    let loss = |notice: &Notice| match notice {
        Notice::DataLoss { loss } => Some(loss.clone()),
        _ => None,
    };
    harness.host.seen.notices.iter().filter_map(loss).collect()
}

pub fn kinds(harness: &Harness) -> Vec<(LossKind, Option<u64>)> {
    losses(harness).into_iter().map(|loss| (loss.kind, loss.lost_records)).collect()
}

/// The messages of the log, as the session hands them out.
pub fn history(harness: &mut Harness) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = harness.host.run(harness.session.history(cursor)).unwrap();
        found.extend(page.messages.iter().map(|message| message.body.to_string()));
        match page.next {
            Some(next) => cursor = Some(next),
            None => return found,
        }
    }
}

pub fn problems(harness: &mut Harness) -> Vec<String> {
    harness.host.run(harness.session.verify()).unwrap().problems
}

/// What is broken is mended also when every opening dies at a step, one later each time; then it is as `is_mended` says,
/// and writable.
pub fn survives_every_kill(broken: &Browser, is_mended: impl Fn(&mut Harness)) {
    for how in [How::CrashBefore, How::CrashAfter, How::Lost] {
        for nth in 1.. {
            let mut browser = broken.copy();
            let mut host = browser.host();
            host.fault(nth, is_commit, how);
            let opening = Session::open(settings(options()), Some("s".into()), 10_000);
            let ended = host.try_run(opening);
            // The kill may have come anywhere; whoever comes next finishes, and hears of it.
            let mut harness = browser.open();
            if ended.is_none() || how == How::Lost {
                is_mended(&mut harness);
            }
            harness.append(&[user("go on")]);
            let again = browser.open();
            assert!(
                losses(&again).is_empty(),
                "{how:?} {nth}: told again after an append: {:?}",
                losses(&again)
            );
            let seen = |harness: &Harness| look(&harness.session).unwrap().context.items().to_vec();
            assert_eq!(seen(&again), seen(&harness), "{how:?} {nth}");
            if host.seen.commits.len() < nth {
                break;
            }
        }
    }
}
