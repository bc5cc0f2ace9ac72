//! How good a search of the archive is, on recorded sessions: how often one of the first five or ten passages is of a
//! message that has what the agent needed ([`trials`] says what is asked). Prints rows for `npm run bench -- search`, JSON,
//! a line each. What is tuned is tuned on the even sessions; the odd ones are what counts.
//!
//! `cargo run --profile soak -p context-compactor-store-tests --example search`, with `CC_DATA_SET=full` for all sessions.

mod questions;
mod size;
mod trials;

use context_compactor_core::policy::Settings;
use context_compactor_core::session::Session;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::{Host, MemoryStore};
use serde_json::{Map, json};
use std::collections::BTreeMap;
use std::rc::Rc;
use trials::{Intent, Texts, Transcript, Trial};

/// A need that stands in so few messages is one that few compactions keep.
const RARE: usize = 3;

/// Trials, and how many found what they looked for among the first five and the first ten.
type Found = [usize; 3];

fn main() {
    let mut found: BTreeMap<(&str, &str, &str), Found> = BTreeMap::new();
    for transcript in trials::transcripts() {
        let half = if is_even(&transcript.id) { "tuned on" } else { "not tuned on" };
        for (trial, at) in search(&transcript) {
            let intent = if trial.intent == Intent::Prose { "prose" } else { "prose and arguments" };
            let needs = ["all", "rare"];
            for needs in needs.iter().take(if trial.sources <= RARE { 2 } else { 1 }) {
                let counts = found.entry((half, intent, needs)).or_default();
                counts[0] += 1;
                counts[1] += usize::from(at.is_some_and(|at| at < 5));
                counts[2] += usize::from(at.is_some());
            }
        }
    }
    for ((half, intent, needs), [trials, first, all]) in found {
        let share = |count: usize| (count as f64 / trials as f64 * 1e3).round() / 1e3;
        let mut row = Map::new();
        row.insert("case".into(), json!(format!("{intent}, {needs} needs, sessions {half}")));
        row.insert("trials".into(), json!(trials));
        row.insert("hit@5".into(), json!(share(first)));
        row.insert("hit@10".into(), json!(share(all)));
        println!("{}", json!(row));
    }
    questions::rows().iter().for_each(|row| println!("{row}"));
    size::rows().iter().for_each(|row| println!("{row}"));
}

/// A session in a store.
fn open(store: Rc<MemoryStore>, format: Format) -> (Host, Session) {
    let mut host = Host::new(store, "bench");
    let options = json!({ "format": format, "contextWindow": 1_000_000_000 }).to_string();
    let options = serde_json::from_str(&options).expect("this is JSON");
    let settings = Rc::new(Settings::read(&options).expect("these are options"));
    let opened = host.run(Session::open(settings, Some("bench".into()), 10_000));
    (host, opened.expect("a session opens in an empty store").0)
}

fn is_even(id: &str) -> bool {
    id.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % 2 == 0
}

/// The place of the first passage that has what each trial needs.
fn search(transcript: &Transcript) -> Vec<(&Trial, Option<usize>)> {
    let texts: Vec<Texts> = trials::texts(Format::Anthropic, &transcript.bodies);
    let (mut host, session) = open(Rc::default(), Format::Anthropic);
    let mut appended = 0;
    let mut places = Vec::with_capacity(transcript.trials.len());
    for trial in &transcript.trials {
        for body in &transcript.bodies[appended..trial.cut] {
            host.run(session.append(vec![Rc::clone(body)])).expect("a recorded message is appended");
        }
        appended = appended.max(trial.cut);
        let hits = host.run(session.search(trial.query.clone(), 10)).expect("it can be searched");
        let has_it = |seq: u64| texts.get(seq as usize).is_some_and(|texts| texts.have(&trial.need));
        places.push((trial, hits.iter().position(|hit| has_it(hit.seq))));
    }
    places
}
