//! What agents needed next, on recorded sessions of theirs ([`crate::trials`]).

use crate::bm25::Bm25;
use crate::trials::{Intent, Texts, Transcript, Trial, texts, transcripts};
use crate::{Counts, OURS, TEXTBOOK, half, open};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::MemoryStore;
use serde_json::Value;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A need that stands in so few messages is one that few compactions keep.
const RARE: usize = 3;

/// Rows of the bench.
pub(crate) fn rows() -> Vec<Value> {
    let mut found: BTreeMap<(&str, &str, &str), [Counts; 2]> = BTreeMap::new();
    for transcript in transcripts() {
        let half = half(&transcript.id);
        for (trial, places) in search(&transcript) {
            let intent = if trial.intent == Intent::Prose { "prose" } else { "prose and arguments" };
            let needs = ["all", "rare"];
            for needs in needs.iter().take(if trial.sources <= RARE { 2 } else { 1 }) {
                let counts = found.entry((half, intent, needs)).or_default();
                for (counts, place) in counts.iter_mut().zip(places) {
                    counts.add(place.as_slice(), 1);
                }
            }
        }
    }
    let rows = found.into_iter().flat_map(|((half, intent, needs), counts)| {
        let case = format!("{intent}, {needs} needs, sessions {half}");
        [(OURS, counts[0]), (TEXTBOOK, counts[1])].map(|(ranking, counts)| counts.row(&case, ranking))
    });
    rows.collect()
}

/// The place of the first hit that has what each trial needs, of ours and of BM25.
fn search(transcript: &Transcript) -> Vec<(&Trial, [Option<usize>; 2])> {
    let texts: Vec<Texts> = texts(Format::Anthropic, &transcript.bodies);
    let (mut host, session) = open(Rc::new(MemoryStore::default()), Format::Anthropic);
    let mut bm25 = Bm25::default();
    let mut appended = 0;
    let mut places = Vec::with_capacity(transcript.trials.len());
    for trial in &transcript.trials {
        if trial.cut > appended {
            for body in &transcript.bodies[appended..trial.cut] {
                host.run(session.append(vec![Rc::clone(body)])).expect("a recorded message is appended");
            }
            bm25.add(&texts[appended..trial.cut]);
            appended = trial.cut;
        }
        let hits = host.run(session.search(trial.query.clone(), 10)).expect("it can be searched");
        let has_it = |at: usize| texts.get(at).is_some_and(|texts| texts.have(&trial.need));
        let ours = hits.iter().position(|hit| has_it(hit.index));
        let textbook = bm25.best(&trial.query, 10).into_iter().position(has_it);
        places.push((trial, [ours, textbook]));
    }
    places
}
