//! Questions asked over histories: how often one of the first hits is a message with the evidence.

use crate::bm25::Bm25;
use crate::sets::Set;
use crate::trials::texts;
use crate::{Counts, OURS, TEXTBOOK, half, open};
use context_compactor_store_tests::MemoryStore;
use serde_json::Value;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Rows of the bench, by halves of the questions.
pub(crate) fn rows(sets: &[Set]) -> Vec<Value> {
    sets.iter()
        .flat_map(|set| rows_by(set, |question| format!("{}, questions {}", set.name, half(question))))
        .collect()
}

/// Rows of one set.
pub(crate) fn of_set(set: &Set) -> Vec<Value> {
    rows_by(set, |_| set.name.clone())
}

/// Rows of the questions of a set, by what is said of each.
pub(crate) fn rows_by(set: &Set, case_of: impl Fn(&str) -> String) -> Vec<Value> {
    let mut found: BTreeMap<String, [Counts; 2]> = BTreeMap::new();
    for history in &set.histories {
        let mut bm25 = Bm25::default();
        bm25.add(&texts(history.format, &history.bodies));
        let (mut host, session) = open(Rc::new(MemoryStore::default()), history.format);
        for bodies in history.bodies.chunks(16) {
            host.run(session.append(bodies.to_vec())).expect("messages are appended");
        }
        for (question, evidence) in &history.questions {
            let hits = host.run(session.search(question.clone(), 10)).expect("it can be searched");
            let places = |found: &mut dyn Iterator<Item = usize>| -> Vec<usize> {
                found
                    .enumerate()
                    .filter(|(_, index)| evidence.contains(index))
                    .map(|(place, _)| place)
                    .collect()
            };
            let ours = places(&mut hits.iter().map(|hit| hit.index));
            let textbook = places(&mut bm25.best(question, 10).into_iter());
            let counts = found.entry(case_of(question)).or_default();
            for (counts, places) in counts.iter_mut().zip([ours, textbook]) {
                counts.add(&places, evidence.len().min(10));
            }
        }
    }
    let rows = found.into_iter().flat_map(|(case, counts)| {
        [(OURS, counts[0]), (TEXTBOOK, counts[1])].map(|(ranking, counts)| counts.recall_row(&case, ranking))
    });
    rows.collect()
}
