//! How good a search of the archive is, beside textbook BM25: how often one of the first five or ten hits is a message that
//! has what was asked for. Asked is what agents needed next, on recorded sessions ([`trials`]), and what users said, over
//! histories with questions ([`sets`]) or those of a file (`--data FILE`, [`given`]). Prints rows for
//! `npm run bench -- search`, JSON, a line each. What is tuned is tuned on the even sessions and questions; the odd ones are
//! what counts.
//!
//! `cargo run --profile soak -p context-compactor-store-tests --example search`, with `CC_DATA_SET=full` for all sessions.

mod bm25;
mod given;
mod questions;
mod sessions;
mod sets;
mod size;
mod structure;
mod trials;

use context_compactor_core::policy::Settings;
use context_compactor_core::session::Session;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::{Host, Store};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::rc::Rc;

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    let rows = match asked.as_slice() {
        [] => [sessions::rows(), questions::rows(&sets::sets()), structure(), size::rows()].concat(),
        ["sessions"] => sessions::rows(),
        ["questions"] => questions::rows(&sets::sets()),
        ["structure"] => structure(),
        ["size"] => size::rows(),
        ["--data", file] => match given::read(file) {
            Ok(set) => questions::of_set(&set),
            Err(error) => return refused(&error),
        },
        _ => return refused("usage: search [sessions | questions | structure | size | --data FILE]"),
    };
    rows.iter().for_each(|row| println!("{row}"));
    ExitCode::SUCCESS
}

/// Rows of the questions about the conversation itself.
fn structure() -> Vec<Value> {
    structure::rows(&sets::numbered())
}

fn refused(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::FAILURE
}

/// A session in a store.
fn open(store: Rc<dyn Store>, format: Format) -> (Host, Session) {
    let mut host = Host::new(store, "bench");
    let options = json!({ "format": format, "contextWindow": 1_000_000_000 }).to_string();
    let options = serde_json::from_str(&options).expect("this is JSON");
    let settings = Rc::new(Settings::read(&options).expect("these are options"));
    let opened = host.run(Session::open(settings, Some("bench".into()), 10_000));
    (host, opened.expect("a session opens in an empty store").0)
}

/// True for one half of all ids: what is tuned is tuned on it.
fn is_even(id: &str) -> bool {
    id.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % 2 == 0
}

/// How a half is called.
fn half(id: &str) -> &'static str {
    if is_even(id) { "tuned on" } else { "not tuned on" }
}

/// Questions, how many found what they ask for among the first five and ten, and which share of it.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    trials: usize,
    hits: [usize; 2],
    shares: [f64; 2],
}

impl Counts {
    /// Counts a question: the places of the hits that have what it asks for, and how many messages have it.
    fn add(&mut self, places: &[usize], messages: usize) {
        self.trials += 1;
        for (nth, among) in [5, 10].into_iter().enumerate() {
            let found = places.iter().filter(|place| **place < among).count();
            self.hits[nth] += usize::from(found > 0);
            self.shares[nth] += found as f64 / messages.max(1) as f64;
        }
    }

    fn row(&self, case: &str, ranking: &str) -> Value {
        let share = |count: f64| (count / self.trials.max(1) as f64 * 1e3).round() / 1e3;
        let [five, ten] = self.hits.map(|hits| share(hits as f64));
        json!({ "case": case, "ranking": ranking, "trials": self.trials, "hit@5": five, "hit@10": ten })
    }

    /// With the share of the evidence that was found: what is asked for may stand in several messages, each of them needed.
    fn recall_row(&self, case: &str, ranking: &str) -> Value {
        let share = |sum: f64| (sum / self.trials.max(1) as f64 * 1e3).round() / 1e3;
        let mut row = self.row(case, ranking);
        row["recall@5"] = json!(share(self.shares[0]));
        row["recall@10"] = json!(share(self.shares[1]));
        row
    }
}

/// Names of the rankings in the rows.
const OURS: &str = "recall.search";
const TEXTBOOK: &str = "BM25";
