//! Hindsight recall: how much of what an agent went on to write from memory a compacted context still holds.
//!
//! A transcript is cut at `t`. *P* is what stands before the cut and since the last real compaction, *F* what follows
//! within 20,000 tokens and before the next one. A *cold need* is an entity of P whose first mention in F is the
//! agent's own: prose or arguments of a call, not something that it was just told. For a compacted context C of at most
//! B tokens:
//!
//! * **T1**, mention: the share of needs that C names.
//! * **T2**, context: of those, named within 280 characters of two content words that also surround it in P. A bag of
//!   names has none.
//! * **T3**, verbatim: the share of the spans of eight tokens that the agent copied from P which C holds.
//! * **recoverable**: T1, or one recall away: the need stands in a stored call or result whose path or main argument C
//!   still names (`referenced`), or a search of P with the agent's own words finds it (`searched`).
//!
//! Presence is necessary, not sufficient: a model may overlook what its context holds. The metric is lexical and punishes
//! paraphrase. So it compares methods on the same cuts and says nothing of tasks solved.
//!
//! Entities that transcripts of other sources use too are generic and no needs; so are those of the app's instructions,
//! which no compaction removes.

mod adversary;
mod baseline;
mod case;
mod cut;
mod lexrank;
mod oracle;
mod page;
mod probe;
mod report;
mod search;
mod text;

#[cfg(test)]
mod tests;

pub use adversary::{bag, shuffled};
pub use baseline::{head_and_tail, lead, lexrank, masked, tail, tfidf};
pub use case::{Case, Need, Scores, messages};
pub use cut::{Cutting, cases};
pub use oracle::{Oracle, Tier};
pub use probe::{Answered, Probe, Probed, answered};
pub use report::{BUDGETS, Cut, Method, Report, Row, measure, methods};
pub use text::{Stub, Text, Voice, texts};

use context_compactor_core::message::Message;

/// A method under test: what is left of messages in so many tokens.
pub type Compactor<'c> = dyn Fn(&[Message<'_>], usize) -> String + Sync + 'c;

/// What `compactor` retains of each case at each budget, given as a share of the case's tokens in percent.
pub fn recall(cases: &[Case], compactor: &Compactor<'_>, budgets: &[usize]) -> Vec<Vec<Scores>> {
    let of = |case: &Case| budgets.iter().map(|percent| case.measure(compactor, *percent)).collect();
    cases.iter().map(of).collect()
}
