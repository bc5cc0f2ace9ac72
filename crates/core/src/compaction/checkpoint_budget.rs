//! What the checkpoints of a context may take in the prompt (`S5.9`): the prompt's budget less the system prompt. What is
//! above it after a compaction is made shorter whatever its age, the oldest first, and then one; what is still above it
//! is said, and stays.

use super::ageing::{self, shorten};
use super::call::CallCost;
use super::result::Edit;
use super::rung::{Run, RungSpec, RungWork};
use crate::checkpoint::{Level, checkpoint_budget};
use crate::context::Origin;
use crate::error::{Code, Result};
use crate::log::View;
use crate::policy::Rung;
use crate::step::{self, Effect, Io, Notice};
use std::ops::Range;

/// A checkpoint of the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Standing {
    /// Where it stands in the context.
    at: usize,
    /// Tokens of its mark and text. What it quotes is the user's.
    tokens: usize,
    level: Option<Level>,
    /// Those with nothing of the app between them have the same.
    run: usize,
}

/// What is done next: the checkpoints in `range`, one or several neighbours, become one of `level`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BudgetStep {
    range: Range<usize>,
    level: Level,
}

fn standing(view: &View) -> Vec<Standing> {
    let (mut found, mut run) = (Vec::new(), 0);
    for (at, item) in view.items().iter().enumerate() {
        match &item.origin {
            Origin::Summary { made, .. } if item.origin.server().is_none() => {
                let made = made.as_deref();
                let own = made.map_or(0, |made| made.text_tokens);
                let tokens = if own == 0 { item.size.tokens } else { own };
                found.push(Standing { at, tokens, level: made.and_then(|made| made.level), run });
            }
            Origin::Acknowledgement => {}
            _ => run += 1,
        }
    }
    found
}

fn total(standing: &[Standing]) -> usize {
    standing.iter().map(|one| one.tokens).sum()
}

/// What the checkpoints of a session may take.
fn budget(view: &View) -> usize {
    checkpoint_budget(view.settings.numbers.checkpoint.room, view.usage.system)
}

/// The next step towards the budget, when there is one: what loses least first. `target` is how long a level is.
fn next(standing: &[Standing], budget: usize, target: impl Fn(Level) -> usize) -> Option<BudgetStep> {
    let total = total(standing);
    let (newest, older) = standing.split_last().filter(|_| total > budget)?;
    let without = |range: &[Standing]| total - range.iter().map(|one| one.tokens).sum::<usize>();
    let fits = |of: &[Standing], level| without(of) + target(level) <= budget;
    let aged = |one: &Standing| {
        let moderate = one.level.is_none_or(|level| level > Level::Moderate);
        let level = if moderate && fits(&[*one], Level::Moderate) { Level::Moderate } else { Level::Compact };
        BudgetStep { range: one.at..one.at + 1, level }
    };
    let is_long = |one: &Standing| one.level != Some(Level::Compact);
    if let Some(one) = older.iter().find(|one| is_long(one)) {
        return Some(aged(one));
    }
    let runs = |of: &[Standing]| {
        let of = of.chunk_by(|one, other| one.run == other.run).map(<[Standing]>::to_vec);
        of.filter(|run| run.len() > 1).collect::<Vec<_>>()
    };
    let merged = |run: &Vec<Standing>| {
        let range = run.first()?.at..run.last()?.at + 1;
        Some(BudgetStep { range, level: Level::Compact })
    };
    // The newest one is touched last, and not where the older ones can make the room.
    if let Some(run) = runs(older).iter().find(|run| fits(run, Level::Compact)) {
        return merged(run);
    }
    if is_long(newest) && fits(&[*newest], Level::Compact) {
        return Some(aged(newest));
    }
    let first = runs(standing).first().and_then(merged);
    first.or_else(|| is_long(newest).then(|| aged(newest)))
}

/// Behind a summary, or where the prompt does not fit: several old checkpoints become one, and all are brought within their
/// budget.
pub(super) const RUNG: RungSpec = RungSpec {
    rung: Rung::Merge,
    fires: ageing::fires,
    work: RungWork::Steps {
        waits: None,
        apply: |run, done| Box::pin(ageing::apply(run, done, async |spent| bring_within(run, spent).await)),
        least: ageing::ages,
    },
    idle: |_| None,
};

/// Makes several old checkpoints one, and brings all within their budget, or as near to it as the summariser gets them.
async fn bring_within(run: &Run<'_>, spent: &mut CallCost) -> Result<Vec<Edit>> {
    let mut edits: Vec<Edit> = ageing::merge(run, spent).await?.into_iter().collect();
    loop {
        let next = {
            let view = run.view();
            let target = |level| view.settings.checkpoint_tokens(level);
            next(&standing(&view), budget(&view), target)
        };
        let Some(BudgetStep { range, level }) = next else { break };
        let (at, count) = (range.start, range.len());
        match shorten(run, range, level, spent).await? {
            Some(Some(edit)) => edits.push(edit),
            // It is as short as the level makes it, which is noted: what is longer may still become shorter.
            Some(None) if count == 1 && is_of(&run.view(), at, level) => {}
            // The summariser failed, or another tab came first: the next compaction tries again.
            _ => break,
        }
    }
    warn(run.io, &run.view());
    Ok(edits)
}

fn is_of(view: &View, at: usize, level: Level) -> bool {
    standing(view).iter().any(|one| one.at == at && one.level == Some(level))
}

/// Says what is above the budget.
fn warn(io: &Io, view: &View) {
    let (standing, budget) = (standing(view), budget(view));
    let tokens = total(&standing);
    if tokens <= budget {
        return;
    }
    let (count, room, system) = (standing.len(), view.settings.numbers.checkpoint.room, view.usage.system);
    let message = format!(
        "{count} checkpoints take {tokens} tokens, {} more than their budget of {budget} ({room} less the {system} of the system prompt); they stay: shorten the system prompt, or raise checkpoint.promptBudget",
        tokens - budget
    );
    io.log(step::LogLevel::Warn, message.clone());
    io.tell(Effect::Notify(Notice::Warning { code: Code::ContextOverflow, message }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use Level::{Compact, Detailed, Moderate};

    fn target(level: Level) -> usize {
        match level {
            Compact => 100,
            Moderate => 300,
            Detailed => 500,
        }
    }

    /// Checkpoints side by side.
    fn side_by_side(of: &[(usize, Level)]) -> Vec<Standing> {
        let one = |(at, (tokens, level)): (usize, &(usize, Level))| Standing {
            at,
            tokens: *tokens,
            level: Some(*level),
            run: 0,
        };
        of.iter().enumerate().map(one).collect()
    }

    fn step(of: &[(usize, Level)], budget: usize) -> Option<(Range<usize>, Level)> {
        next(&side_by_side(of), budget, target).map(|next| (next.range, next.level))
    }

    #[test]
    fn s5_9_nothing_is_done_within_the_budget() {
        assert_eq!(step(&[(500, Detailed), (500, Detailed)], 1_000), None);
        assert_eq!(step(&[], 0), None);
    }

    #[test]
    fn s5_9_the_oldest_is_made_shorter_first_and_no_more_than_it_takes() {
        let three = [(500, Detailed), (500, Detailed), (500, Detailed)];
        assert_eq!(step(&three, 1_400), Some((0..1, Moderate)));
        assert_eq!(step(&three, 1_200), Some((0..1, Compact)));
        assert_eq!(step(&[(100, Compact), (300, Moderate), (500, Detailed)], 700), Some((1..2, Compact)));
    }

    #[test]
    fn s5_9_the_older_ones_become_one_before_the_newest_is_touched() {
        let three = [(100, Compact), (100, Compact), (500, Detailed)];
        assert_eq!(step(&three, 600), Some((0..2, Compact)));
        assert_eq!(step(&three, 400), Some((2..3, Compact)), "where they cannot make the room, it is");
        assert_eq!(step(&three, 200), Some((0..3, Compact)));
        assert_eq!(step(&three, 0), Some((0..3, Compact)));
    }

    #[test]
    fn s5_9_what_is_one_and_compact_already_stays() {
        assert_eq!(step(&[(500, Detailed)], 0), Some((0..1, Compact)));
        assert_eq!(step(&[(120, Compact)], 0), None);
    }

    #[test]
    fn s5_9_messages_of_the_app_keep_checkpoints_apart() {
        let mut apart = side_by_side(&[(100, Compact), (100, Compact), (100, Compact)]);
        (apart[1].run, apart[2].run) = (1, 1);
        let found = next(&apart, 50, target).map(|next| next.range);
        assert_eq!(found, Some(1..3));
        apart[2].run = 2;
        assert_eq!(next(&apart, 50, target), None);
    }
}
