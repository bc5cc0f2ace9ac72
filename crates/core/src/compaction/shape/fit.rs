//! The most important lines of a text that fit, in their own order, with marks where some are left out.

use super::text::count;
use std::borrow::Cow;
use std::fmt::Write as _;

/// Lines to choose from.
pub(super) struct Lines<'t> {
    lines: Vec<(Cow<'t, str>, usize)>,
    unit: &'static str,
    chosen: Vec<bool>,
    /// Characters of the chosen ones, with a line break each.
    used: usize,
    /// Runs that are left out.
    gaps: usize,
    /// Characters of the mark of such a run, at most.
    mark: usize,
}

impl<'t> Lines<'t> {
    /// `unit` is what one line is, in the plural.
    pub(super) fn new(lines: impl Iterator<Item = Cow<'t, str>>, unit: &'static str) -> Self {
        let lines: Vec<_> =
            lines.map(|line| (count(&line), line)).map(|(chars, line)| (line, chars)).collect();
        let mark = count(&mark(lines.len(), unit)) + 1;
        let gaps = usize::from(!lines.is_empty());
        Lines { chosen: vec![false; lines.len()], lines, unit, used: 0, gaps, mark }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Characters of the text that is chosen so far, at most.
    pub(super) fn chars(&self) -> usize {
        self.used + self.gaps * self.mark
    }

    /// Takes lines, the most important first, while they fit `room` characters; one that does not is passed over. True
    /// when all fit.
    pub(super) fn take(&mut self, order: impl IntoIterator<Item = usize>, room: usize) -> bool {
        let mut all_fit = true;
        for at in order {
            all_fit &= self.add(at, room);
        }
        all_fit
    }

    /// Takes lines up to the first that does not fit, so that what is shown is in few pieces. True when all fit.
    pub(super) fn fill(&mut self, order: impl IntoIterator<Item = usize>, room: usize) -> bool {
        order.into_iter().all(|at| self.add(at, room))
    }

    fn add(&mut self, at: usize, room: usize) -> bool {
        let Some((_, chars)) = self.lines.get(at) else { return true };
        if self.chosen.get(at) != Some(&false) {
            return true;
        }
        let is_in = |at: Option<usize>| at.and_then(|at| self.chosen.get(at)).copied().unwrap_or(true);
        let closed = usize::from(is_in(at.checked_sub(1))) + usize::from(is_in(Some(at + 1)));
        let (used, gaps) = (self.used + chars + 1, self.gaps + 1 - closed);
        if used + gaps * self.mark > room {
            return false;
        }
        (self.used, self.gaps) = (used, gaps);
        if let Some(chosen) = self.chosen.get_mut(at) {
            *chosen = true;
        }
        true
    }

    /// The chosen lines with the marks between them, behind what `out` holds.
    pub(super) fn write(&self, out: &mut String) {
        let mut left_out = 0;
        for ((line, _), chosen) in self.lines.iter().zip(&self.chosen) {
            if *chosen {
                self.close(&mut left_out, out);
                out.push_str(line);
                out.push('\n');
            } else {
                left_out += 1;
            }
        }
        self.close(&mut left_out, out);
        if out.ends_with('\n') {
            out.pop();
        }
    }

    fn close(&self, left_out: &mut usize, out: &mut String) {
        if *left_out > 0 {
            let _ = writeln!(out, "{}", mark(*left_out, self.unit));
        }
        *left_out = 0;
    }
}

fn mark(count: usize, unit: &str) -> String {
    format!("[… {count} {unit} left out …]")
}

/// From both ends to the middle.
pub(super) fn ends(count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |nth| if nth % 2 == 0 { nth / 2 } else { count - 1 - nth / 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_fits_and_marks_what_is_left_out() {
        let texts: Vec<String> = (0..100).map(|nth| format!("line {nth}")).collect();
        let mut lines = Lines::new(texts.iter().map(|line| line.as_str().into()), "lines");
        lines.take([50], 100);
        lines.take(ends(100), 120);
        let mut out = String::new();
        lines.write(&mut out);
        let (start, end) = ("line 0\nline 1\nline 2\nline 3", "line 96\nline 97\nline 98\nline 99");
        let middle = "[… 46 lines left out …]\nline 50\n[… 45 lines left out …]";
        assert_eq!(out, format!("{start}\n{middle}\n{end}"));
        assert!(count(&out) <= 120 && lines.chars() <= 120);
    }

    #[test]
    fn ends_go_to_the_middle() {
        assert_eq!(ends(5).collect::<Vec<_>>(), [0, 4, 1, 3, 2]);
        assert_eq!(ends(0).count(), 0);
    }
}
