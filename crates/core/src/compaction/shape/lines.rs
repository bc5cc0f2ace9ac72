//! What differs between two texts, line by line.

/// Changed lines beyond which nobody looks for more that is common: what differs so much is told whole.
const MOST: usize = 400;
/// Lines that are shown before and behind a change.
const AROUND: usize = 2;

/// What `new` has that `old` has not, and the other way round, as hunks of a unified diff; nothing where they are the same,
/// or have too little in common.
pub(crate) fn unified(old: &str, new: &str) -> Option<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let script = script(&old, &new)?;
    let mut out = String::new();
    let mut rest = script.as_slice();
    while let Some(first) = rest.iter().position(|step| step.is_change()) {
        // Changes with few lines between them are one hunk.
        let mut last = first;
        for (at, step) in rest.iter().enumerate().skip(first) {
            if step.is_change() {
                last = at;
            } else if at > last + 2 * AROUND {
                break;
            }
        }
        let to = (last + 1 + AROUND).min(rest.len());
        let hunk = rest.get(first.saturating_sub(AROUND)..to)?;
        write_hunk(&mut out, hunk, &old, &new);
        rest = rest.get(to..)?;
    }
    (!out.is_empty()).then(|| out.trim_end_matches('\n').to_owned())
}

/// A line of both, of the old text alone, or of the new one alone: where it is in each, or would be.
#[derive(Debug, Clone, Copy)]
struct LineStep {
    kind: StepKind,
    old: usize,
    new: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepKind {
    Same,
    Removed,
    Added,
}

impl LineStep {
    fn is_change(&self) -> bool {
        self.kind != StepKind::Same
    }
}

fn write_hunk(out: &mut String, hunk: &[LineStep], old: &[&str], new: &[&str]) {
    let Some(first) = hunk.first() else { return };
    let of_old = hunk.iter().filter(|step| step.kind != StepKind::Added).count();
    let of_new = hunk.iter().filter(|step| step.kind != StepKind::Removed).count();
    // As `diff -u` counts: where there is no line, the one before it.
    let from = |at: usize, count: usize| at + usize::from(count > 0);
    let (from_old, from_new) = (from(first.old, of_old), from(first.new, of_new));
    *out += &format!("@@ -{from_old},{of_old} +{from_new},{of_new} @@\n");
    for step in hunk {
        let (mark, line) = match step.kind {
            StepKind::Same => (' ', new.get(step.new)),
            StepKind::Removed => ('-', old.get(step.old)),
            StepKind::Added => ('+', new.get(step.new)),
        };
        out.push(mark);
        out.push_str(line.copied().unwrap_or_default());
        out.push('\n');
    }
}

/// The shortest way from the old lines to the new ones (Myers); nothing where it is too long.
fn script(old: &[&str], new: &[&str]) -> Option<Vec<LineStep>> {
    let common = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| pairs.take_while(|(a, b)| a == b).count();
    let head = common(&mut old.iter().zip(new));
    let (a, b) = (old.get(head..)?, new.get(head..)?);
    let tail = common(&mut a.iter().rev().zip(b.iter().rev()));
    let (a, b) = (a.get(..a.len() - tail)?, b.get(..b.len() - tail)?);
    let (n, m) = (a.len() as isize, b.len() as isize);
    // How far each diagonal is, for each number of changes; diagonals from -d to d, every other one.
    let mut reached: Vec<Vec<isize>> = Vec::new();
    let at = |row: &[isize], d: isize, k: isize| row.get(((k + d) / 2) as usize).copied().unwrap_or(-1);
    // From above (a line that is added) or from the left (one that is removed).
    let comes_from_above = |row: &[isize], d: isize, k: isize| {
        k == -d || (k != d && at(row, d - 1, k - 1) < at(row, d - 1, k + 1))
    };
    let same = |x: isize, y: isize| match (usize::try_from(x), usize::try_from(y)) {
        (Ok(x), Ok(y)) => matches!((a.get(x), b.get(y)), (Some(one), Some(other)) if one == other),
        _ => false,
    };
    let empty: Vec<isize> = Vec::new();
    let mut found = None;
    'search: for d in 0..=MOST as isize {
        let before = reached.last().unwrap_or(&empty);
        let mut row = Vec::with_capacity(d as usize + 1);
        for k in (-d..=d).step_by(2) {
            let mut x = match d {
                0 => 0,
                _ if comes_from_above(before, d, k) => at(before, d - 1, k + 1),
                _ => at(before, d - 1, k - 1) + 1,
            };
            while same(x, x - k) {
                x += 1;
            }
            row.push(x);
            if x >= n && x - k >= m {
                found = Some(d);
                reached.push(row);
                break 'search;
            }
        }
        reached.push(row);
    }
    let mut steps: Vec<LineStep> = Vec::new();
    let (mut x, mut y) = (n, m);
    let mut step = |kind, x: isize, y: isize| {
        steps.push(LineStep { kind, old: head + x.max(0) as usize, new: head + y.max(0) as usize });
    };
    for d in (1..=found?).rev() {
        let row = reached.get(d as usize - 1)?;
        let k = x - y;
        let above = comes_from_above(row, d, k);
        let back = if above { k + 1 } else { k - 1 };
        let from = at(row, d - 1, back);
        let (from_x, from_y) = (from, from - back);
        // Behind the change, the lines that are the same.
        let behind = if above { from_x } else { from_x + 1 };
        while x > behind {
            (x, y) = (x - 1, y - 1);
            step(StepKind::Same, x, y);
        }
        match above {
            true => step(StepKind::Added, from_x, from_y),
            false => step(StepKind::Removed, from_x, from_y),
        }
        (x, y) = (from_x, from_y);
    }
    while x > 0 && y > 0 {
        (x, y) = (x - 1, y - 1);
        step(StepKind::Same, x, y);
    }
    for nth in (0..head).rev() {
        steps.push(LineStep { kind: StepKind::Same, old: nth, new: nth });
    }
    steps.reverse();
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    steps.extend((0..tail).map(|nth| LineStep {
        kind: StepKind::Same,
        old: old_end + nth,
        new: new_end + nth,
    }));
    Some(steps)
}
