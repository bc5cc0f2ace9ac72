//! Logs: errors and warnings whole, repeated lines once with their number, the first and the last lines, the time span.

use super::fit::{Lines, ends};
use super::text::{Severity, clip, is_continuation, is_logged, level, timestamp};
use std::borrow::Cow;
use std::collections::HashMap;

/// Fewer lines with a time or a level than this are no log.
const LEAST_LINES: usize = 5;
/// Lines at each end that are shown whatever they say.
const ENDS: usize = 2;
/// Other lines are clipped to this many characters, errors only when they would not fit.
const LONGEST: usize = 400;

/// True for a text most of whose lines begin as lines of a log do; stacks may stand between them.
pub(super) fn is_log(text: &str) -> bool {
    let (mut logged, mut stacked, mut other) = (0_usize, 0_usize, 0_usize);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let counter = match line {
            line if is_logged(line) => &mut logged,
            line if is_continuation(line) => &mut stacked,
            _ => &mut other,
        };
        *counter += 1;
    }
    logged >= LEAST_LINES && logged >= other && logged * 4 >= stacked
}

struct ConsoleLine<'t> {
    text: &'t str,
    level: Severity,
    /// Lines of the same template, this one included.
    count: usize,
}

/// The log in at most `target` characters.
pub(super) fn shape(text: &str, target: usize) -> String {
    let lines = levelled(text);
    let of = |wanted: Severity| lines.iter().filter(|line| line.level == wanted).count();
    let (errors, warnings) = (of(Severity::Error), of(Severity::Warning));
    let mut out = format!("[log: {} lines, {errors} of errors, {warnings} of warnings", lines.len());
    let mut times = lines.iter().filter_map(|line| timestamp(line.text));
    let mut back = lines.iter().rev().filter_map(|line| timestamp(line.text));
    if let (Some(first), Some(last)) = (times.next(), back.next()) {
        out.push_str(&format!(", {first} to {last}"));
    }
    out.push_str("]\n");
    let room = target.saturating_sub(out.chars().count());
    // Errors are whole and each on its own, unless they would not all fit.
    let chosen = choose(lines, false, room).or_else(|| choose(levelled(text), true, room));
    if let Some(chosen) = chosen {
        chosen.write(&mut out);
    }
    out
}

/// The lines that are shown: errors first, both ends, warnings, one of each template. Nothing when errors were not to
/// be folded, and do not all fit.
fn choose(lines: Vec<ConsoleLine<'_>>, folds_errors: bool, room: usize) -> Option<Lines<'_>> {
    let folded = fold(lines, folds_errors);
    let mut chosen = Lines::new(folded.iter().map(|line| shown(line, !folds_errors)), "lines");
    let at_level = |wanted: Severity| {
        let all: Vec<usize> =
            folded.iter().enumerate().filter(|(_, line)| line.level == wanted).map(|(at, _)| at).collect();
        ends(all.len()).filter_map(move |nth| all.get(nth).copied())
    };
    let all_fit = chosen.take(at_level(Severity::Error), room);
    if !all_fit && !folds_errors {
        return None;
    }
    chosen.take(ends(folded.len()).take(2 * ENDS), room);
    chosen.take(at_level(Severity::Warning), room);
    chosen.fill(at_level(Severity::Other), room);
    Some(chosen)
}

/// A line as it is shown; errors whole where they fit.
fn shown<'t>(line: &ConsoleLine<'t>, whole_errors: bool) -> Cow<'t, str> {
    let text = if line.level == Severity::Error && whole_errors {
        Cow::Borrowed(line.text)
    } else {
        clip(line.text, LONGEST)
    };
    if line.count > 1 { Cow::Owned(format!("{text} [×{}]", line.count)) } else { text }
}

/// The lines with their levels; what follows an error and belongs to it is an error too.
fn levelled(text: &str) -> Vec<ConsoleLine<'_>> {
    let mut above = Severity::Other;
    let mut lines = Vec::new();
    for text in text.lines().filter(|line| !line.trim().is_empty()) {
        let own = level(text);
        let level = if is_continuation(text) && !is_logged(text) { own.min(above) } else { own };
        above = level;
        lines.push(ConsoleLine { text, level, count: 1 });
    }
    lines
}

/// Lines of one template become the first of them; errors and both ends of the log stay, unless errors fold too.
fn fold(lines: Vec<ConsoleLine<'_>>, errors_too: bool) -> Vec<ConsoleLine<'_>> {
    let last = lines.len().saturating_sub(ENDS);
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut folded: Vec<ConsoleLine<'_>> = Vec::new();
    for (at, line) in lines.into_iter().enumerate() {
        let stays = at >= last || line.level == Severity::Error && !errors_too;
        if !stays {
            if let Some(known) = seen.get(&template(line.text)).and_then(|at| folded.get_mut(*at)) {
                known.count += 1;
                continue;
            }
            seen.insert(template(line.text), folded.len());
        }
        folded.push(line);
    }
    folded
}

/// A line without what differs from one time to the next: words with digits in them.
fn template(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for word in line.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let end = word.char_indices().next_back().filter(|(_, c)| !c.is_alphanumeric());
        let (name, mark) = word.split_at(end.map_or(word.len(), |(at, _)| at));
        out.push_str(if name.bytes().any(|byte| byte.is_ascii_digit()) { "#" } else { name });
        out.push_str(mark);
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_template_is_what_does_not_change() {
        use super::template;
        assert_eq!(template("GET /a/17 took 12ms"), template("GET /a/9 took 340ms"));
        assert_ne!(template("GET /a"), template("GET /b"));
        assert_eq!(template("사용자 12 연결"), "사용자 # 연결");
    }
}
