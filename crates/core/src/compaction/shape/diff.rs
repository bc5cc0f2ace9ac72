//! Diffs: every file with what was added and removed, the headers of its hunks, then as many changed lines as fit.

use super::fit::Lines;
use super::text::clip;
use crate::order;
use std::borrow::Cow;

/// The longest line that is shown.
const LONGEST: usize = 400;

/// Changed lines of a hunk that are shown together.
const TOGETHER: u64 = 4;

/// What a line of a diff is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    /// It names a file; so many lines were added and removed below it.
    File(usize, usize),
    /// The header of a hunk.
    Hunk,
    /// Added or removed: which of its hunk.
    Changed(u64),
    /// Anything else.
    Other,
}

/// True for a unified diff, with or without a commit's message above it.
pub(super) fn is_diff(text: &str) -> bool {
    let mut lines = text.lines().take(200).peekable();
    let mut named = false;
    while let Some(line) = lines.next() {
        named |= line.starts_with("diff --git ");
        named |= line.starts_with("--- ") && lines.peek().is_some_and(|next| next.starts_with("+++ "));
        if named && line.starts_with("@@ ") {
            return true;
        }
    }
    false
}

/// The lines with what they are.
fn read(text: &str) -> Vec<(&str, LineKind)> {
    let has_git = text.lines().any(|line| line.starts_with("diff --git "));
    let mut lines: Vec<(&str, LineKind)> = Vec::new();
    let mut file: Option<usize> = None;
    let (mut nth, mut in_hunk) = (0, false);
    let mut rest = text.lines().peekable();
    while let Some(line) = rest.next() {
        // Inside a hunk, "--- x" may be a removed line "-- x": what follows tells.
        let opens_plain =
            !has_git && line.starts_with("--- ") && rest.peek().is_some_and(|next| next.starts_with("+++ "));
        let kind = if line.starts_with("diff --git ") || opens_plain {
            (file, in_hunk) = (Some(lines.len()), false);
            LineKind::File(0, 0)
        } else if line.starts_with("@@ ") && file.is_some() {
            (nth, in_hunk) = (0, true);
            LineKind::Hunk
        } else if in_hunk && line.starts_with(['+', '-']) {
            nth += 1;
            if let Some((_, LineKind::File(added, removed))) = file.and_then(|at| lines.get_mut(at)) {
                *(if line.starts_with('+') { added } else { removed }) += 1;
            }
            LineKind::Changed(nth)
        } else {
            LineKind::Other
        };
        lines.push((line, kind));
    }
    lines
}

/// The diff in at most `target` characters.
pub(super) fn shape(text: &str, target: usize) -> String {
    let lines = read(text);
    let files: Vec<(usize, usize)> = lines
        .iter()
        .filter_map(|(_, kind)| match kind {
            LineKind::File(added, removed) => Some((*added, *removed)),
            _ => None,
        })
        .collect();
    let added: usize = files.iter().map(|file| file.0).sum();
    let removed: usize = files.iter().map(|file| file.1).sum();
    let mut out = format!("[diff: {} files, +{added} -{removed}]\n", files.len());
    let room = target.saturating_sub(out.chars().count());
    let shown = lines.iter().map(|(line, kind)| match kind {
        LineKind::File(added, removed) => Cow::Owned(format!("{line} [+{added} -{removed}]")),
        _ => clip(line, LONGEST),
    });
    let mut chosen = Lines::new(shown, "lines");
    let of = |wanted: fn(LineKind) -> bool| {
        lines.iter().enumerate().filter(move |(_, (_, kind))| wanted(*kind)).map(|(at, _)| at)
    };
    chosen.take(of(|kind| matches!(kind, LineKind::File(..))), room);
    // Who made the change and why stands above the first file.
    let first = of(|kind| matches!(kind, LineKind::File(..))).next().unwrap_or(0);
    chosen.take(0..first.min(12), room);
    let half = room.saturating_add(chosen.chars()) / 2;
    chosen.take(of(|kind| kind == LineKind::Hunk), half);
    // The first changed lines of every hunk, then the next ones: no file takes all the room.
    let changed: Vec<(usize, u64)> = lines
        .iter()
        .enumerate()
        .filter_map(|(at, (_, kind))| match kind {
            LineKind::Changed(nth) => Some((at, *nth)),
            _ => None,
        })
        .collect();
    let changed = order::by_key(changed, |(_, nth)| *nth / TOGETHER);
    if chosen.fill(changed.into_iter().map(|(at, _)| at), room) {
        chosen.fill(0..lines.len(), room);
    }
    chosen.write(&mut out);
    out
}
