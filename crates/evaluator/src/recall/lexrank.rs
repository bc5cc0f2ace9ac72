//! Lines as vectors of TF-IDF, and their centrality: Erkan and Radev, "LexRank", 2004.

use super::search::terms;
use std::collections::HashMap;

/// Lines less alike than this are no neighbours.
const ALIKE: f64 = 0.1;
const DAMPING: f64 = 0.85;
const ROUNDS: usize = 20;

/// Vectors of length one, and who has each term.
pub(super) struct Terms {
    vectors: Vec<Vec<(u64, f64)>>,
    holders: HashMap<u64, Vec<(usize, f64)>>,
}

impl Terms {
    pub(super) fn of<'t>(lines: impl Iterator<Item = &'t str>) -> Self {
        let counts: Vec<HashMap<u64, f64>> = lines
            .map(|line| {
                let mut counts = HashMap::new();
                terms(line, &mut |term| *counts.entry(term).or_default() += 1.0);
                counts
            })
            .collect();
        let mut frequencies: HashMap<u64, f64> = HashMap::new();
        for term in counts.iter().flat_map(HashMap::keys) {
            *frequencies.entry(*term).or_default() += 1.0;
        }
        let all = counts.len() as f64;
        let vectors: Vec<Vec<(u64, f64)>> = counts
            .into_iter()
            .map(|counts| {
                let mut vector: Vec<(u64, f64)> = counts
                    .into_iter()
                    .map(|(term, count)| (term, count * (all / frequencies[&term]).ln()))
                    .collect();
                // Sums are to be the same in every run.
                vector.sort_by_key(|(term, _)| *term);
                let length = vector.iter().map(|(_, weight)| weight * weight).sum::<f64>().sqrt().max(1e-9);
                vector.iter_mut().for_each(|(_, weight)| *weight /= length);
                vector
            })
            .collect();
        let mut holders: HashMap<u64, Vec<(usize, f64)>> = HashMap::new();
        for (nth, vector) in vectors.iter().enumerate() {
            for (term, weight) in vector {
                holders.entry(*term).or_default().push((nth, *weight));
            }
        }
        Terms { vectors, holders }
    }

    /// How near each line is to the centroid of all.
    pub(super) fn to_centroid(&self) -> Vec<f64> {
        let weight = |term: &u64| self.holders[term].iter().map(|(_, weight)| weight).sum::<f64>();
        let centroid: HashMap<u64, f64> = self.holders.keys().map(|term| (*term, weight(term))).collect();
        let near =
            |vector: &Vec<(u64, f64)>| vector.iter().map(|(term, weight)| weight * centroid[term]).sum();
        self.vectors.iter().map(near).collect()
    }

    /// The lines alike to a line.
    fn neighbours(&self, nth: usize) -> Vec<usize> {
        let mut alike = vec![0.0; self.vectors.len()];
        for (term, weight) in &self.vectors[nth] {
            for (other, theirs) in &self.holders[term] {
                alike[*other] += weight * theirs;
            }
        }
        (0..alike.len()).filter(|other| *other != nth && alike[*other] > ALIKE).collect()
    }
}

/// PageRank over the graph of lines that are alike.
pub(super) fn centrality(terms: &Terms) -> Vec<f64> {
    let graph: Vec<Vec<usize>> = (0..terms.vectors.len()).map(|nth| terms.neighbours(nth)).collect();
    let mut ranks = vec![1.0; graph.len()];
    for _ in 0..ROUNDS {
        let mut next = vec![1.0 - DAMPING; graph.len()];
        for (nth, neighbours) in graph.iter().enumerate() {
            let share = DAMPING * ranks[nth] / neighbours.len().max(1) as f64;
            neighbours.iter().for_each(|other| next[*other] += share);
        }
        ranks = next;
    }
    ranks
}
