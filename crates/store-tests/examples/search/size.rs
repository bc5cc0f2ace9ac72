//! What pages of terms take and save: bytes, and time with the store in memory.

use crate::open;
use context_compactor_core::keys::batch::{Key, KeyPart};
use context_compactor_core::session::Session;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, assistant, user};
use context_compactor_store_tests::{Host, MemoryStore};
use serde_json::{Value, json};
use std::rc::Rc;
use std::time::Instant;

/// Messages of the log that is searched.
const MESSAGES: usize = 100_000;
/// Messages of one append, of about 2 KB each: every second one fills a page.
const APPEND: usize = 16;

/// Rows of the bench.
pub(crate) fn rows() -> Vec<Value> {
    let memory: Rc<MemoryStore> = Rc::default();
    let (mut host, session) = open(Rc::clone(&memory), Format::Anthropic);
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
    let is_log = |key: &Key| key.0.first() == Some(&KeyPart::Text("log".into()));
    let (log, pages) = (bytes(is_log), bytes(is_page));
    let with = search(&mut host, &session);
    let rows = memory.rows();
    for (key, _) in rows.iter().filter(|(key, _)| is_page(key)) {
        memory.damage(key, None);
    }
    drop(rows);
    let without = search(&mut host, &session);
    vec![
        json!({ "case": format!("append of {APPEND} messages of 2 KB"), "ms": plain }),
        json!({ "case": "the same, when it fills a page", "ms": paged }),
        json!({ "case": format!("search of {MESSAGES} messages"), "ms": with, "log (MB)": log as f64 / 1e6, "pages (MB)": pages as f64 / 1e6 }),
        json!({ "case": "the same without pages, which it makes", "ms": without }),
    ]
}

fn search(host: &mut Host, session: &Session) -> f64 {
    let from = Instant::now();
    let hits = host.run(session.search("where did wab of wzz fail with wcccc".into(), 10));
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
