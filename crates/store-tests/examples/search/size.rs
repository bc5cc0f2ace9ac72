//! What pages of terms take and save: bytes, and time with the store in memory.

use crate::open;
use context_compactor_core::error::Result;
use context_compactor_core::keys::batch::{Batch, Key, KeyPart};
use context_compactor_core::session::Session;
use context_compactor_core::step::Scan;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, assistant, user};
use context_compactor_store_tests::{Host, MemoryStore, Store};
use serde_json::{Value, json};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

/// Messages of the log that is searched.
const MESSAGES: usize = 100_000;
/// Messages of one append, of about 2 KB each: every second one fills a page.
const APPEND: usize = 16;
/// What is searched: a word, words that may stand somewhere as they are, and a question.
const QUERIES: [(&str, &str); 3] = [
    ("a word", "wcccc"),
    ("words", "where did wab of wzz fail with wcccc"),
    ("a question", "where did wab of wzz fail with wcccc?"),
];

/// Rows of the bench.
pub(crate) fn rows() -> Vec<Value> {
    let store: Rc<Counted> = Rc::default();
    let memory = &store.memory;
    let (mut host, session) = open(Rc::clone(&store) as Rc<dyn Store>, Format::Anthropic);
    let mut rng = fastrand::Rng::with_seed(1);
    // Words are as often as in texts: the nth is n times rarer than the first.
    let mut text = |bytes: usize| {
        let mut text = String::new();
        while text.len() < bytes {
            text.push_str(&format!("{} ", base(40_000_f64.powf(rng.f64()) as usize)));
        }
        text
    };
    let mut times = [Vec::new(), Vec::new()];
    for nth in 0..MESSAGES / APPEND {
        let bodies: Vec<Body> = (0..APPEND)
            .map(|at| if at % 2 == 0 { user(&text(2_000)) } else { assistant(&text(2_000)) })
            .collect();
        let from = Instant::now();
        host.run(session.append(bodies)).expect("it is appended");
        times[nth % 2].push(from.elapsed());
        host.seen.commits.clear();
    }
    let [plain, paged] = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1e3
    });
    let bytes = |wanted: fn(&Key) -> bool| -> usize {
        memory.rows().iter().filter(|(key, _)| wanted(key)).map(|(_, row)| row.len()).sum()
    };
    let is_page = |key: &Key| key.0.get(2) == Some(&KeyPart::Text("terms".into()));
    let (log, pages) = (bytes(is_log), bytes(is_page));
    let searches = QUERIES.map(|(case, query)| {
        store.read.take();
        let ms = search(&mut host, &session, query);
        let [reads, rows, bytes] = store.read.take();
        let case = format!("{case} over {MESSAGES} messages");
        json!({ "case": case, "ms": ms, "reads": reads, "rows read": rows, "read (KB)": bytes as f64 / 1e3 })
    });
    let rows = memory.rows();
    for (key, _) in rows.iter().filter(|(key, _)| is_page(key)) {
        memory.damage(key, None);
    }
    drop(rows);
    let without = search(&mut host, &session, QUERIES[0].1);
    let append = [
        json!({ "case": format!("append of {APPEND} messages of 2 KB"), "ms": plain }),
        json!({ "case": "the same, when it fills a page", "ms": paged }),
        json!({ "case": format!("{MESSAGES} messages"), "log (MB)": log as f64 / 1e6, "pages (MB)": pages as f64 / 1e6 }),
    ];
    let made = json!({ "case": "the first of them without pages, which it makes", "ms": without });
    append.into_iter().chain(searches).chain([made]).collect()
}

/// A store that counts what is read of the log.
#[derive(Default)]
struct Counted {
    memory: MemoryStore,
    /// Reads, rows of the log in them, and their bytes.
    read: Cell<[usize; 3]>,
}

impl Store for Counted {
    fn read(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>> {
        let values = self.memory.read(keys)?;
        let [reads, rows, bytes] = self.read.get();
        let log = keys.iter().zip(&values).filter(|(key, _)| is_log(key));
        let read: usize = log.clone().map(|(_, value)| value.as_ref().map_or(0, Vec::len)).sum();
        self.read.set([reads + 1, rows + log.count(), bytes + read]);
        Ok(values)
    }

    fn scan(&self, scan: &Scan) -> Result<Vec<(Key, Vec<u8>)>> {
        self.memory.scan(scan)
    }

    fn commit(&self, batch: &Batch) -> Result<()> {
        self.memory.commit(batch)
    }
}

fn is_log(key: &Key) -> bool {
    key.0.first() == Some(&KeyPart::Text("log".into()))
}

fn search(host: &mut Host, session: &Session, query: &str) -> f64 {
    let from = Instant::now();
    let hits = host.run(session.search(query.into(), 10));
    assert!(!hits.expect("it can be searched").is_empty());
    from.elapsed().as_secs_f64() * 1e3
}

/// A word for a number.
fn base(mut number: usize) -> String {
    let mut word = String::from("w");
    while number > 0 {
        word.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
    }
    word
}
