//! Runs of base64: pictures and files that an app put into a text.

use crate::bytes::Set;
use std::ops::Range;
use std::sync::LazyLock;

/// Lines of a run are at least this long.
const LINE: usize = 60;

/// What base64 is made of, in both alphabets.
static DIGITS: LazyLock<Set> =
    LazyLock::new(|| Set::of(|byte| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte)));

/// Calls `found` with every run of base64 of at least `least` bytes, in order.
///
/// A run may be broken into lines of 60 characters or more, as mail and PEM do. It must mix letters and digits, so that
/// a ruler of dashes or a row of one letter stays what it is.
pub fn runs(text: &str, least: usize, found: &mut dyn FnMut(Range<usize>)) {
    let bytes = text.as_bytes();
    let digits = &*DIGITS;
    let goes_on = |byte: &u8| digits.has(*byte) || matches!(byte, b'\n' | b'\r');
    let mut at = 0;
    while at < bytes.len() {
        // Most text has something else in any few bytes: no run that is long enough has it, nor begins before it.
        let window = bytes.get(at..at + least.clamp(1, LINE));
        if let Some(other) = window.and_then(|window| window.iter().rposition(|byte| !goes_on(byte))) {
            at += other + 1;
            continue;
        }
        let run = run_at(digits, bytes, at);
        if run >= least {
            let slice = bytes.get(at..at + run).unwrap_or_default();
            if slice.iter().any(u8::is_ascii_digit) && slice.iter().any(u8::is_ascii_alphabetic) {
                found(at..at + run);
            }
        }
        at += run.max(1);
    }
}

fn run_at(digits: &Set, bytes: &[u8], from: usize) -> usize {
    let (mut at, mut line) = (from, from);
    while let Some(&byte) = bytes.get(at) {
        if digits.has(byte) {
            at += 1;
        } else {
            let next = match byte {
                b'\n' => at + 1,
                b'\r' if bytes.get(at + 1) == Some(&b'\n') => at + 2,
                _ => break,
            };
            let goes_on = bytes.get(next).is_some_and(|b| b.is_ascii_alphanumeric() || b"+/".contains(b));
            if at - line < LINE || !goes_on {
                break;
            }
            (at, line) = (next, next);
        }
    }
    at - from
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, least: usize) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        runs(text, least, &mut |run| found.push(run));
        found
    }

    /// The same without a look ahead.
    fn plainly(text: &str, least: usize) -> Vec<Range<usize>> {
        let (bytes, mut at, mut found) = (text.as_bytes(), 0, Vec::new());
        while at < bytes.len() {
            let run = run_at(&DIGITS, bytes, at);
            let slice = &bytes[at..at + run];
            if run >= least
                && slice.iter().any(u8::is_ascii_digit)
                && slice.iter().any(u8::is_ascii_alphabetic)
            {
                found.push(at..at + run);
            }
            at += run.max(1);
        }
        found
    }

    #[test]
    fn runs_are_found_wherever_they_begin_and_however_they_are_broken() {
        let mut seed = 7_u32;
        let mut random = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % below
        };
        let (mut any, mut texts) = (0, 0);
        while texts < 2_000 {
            let mut text = String::new();
            for _ in 0..random(8) {
                let length = [1, 5, 59, 60, 61, 76, 200][random(7) as usize];
                text.extend((0..length).map(|nth| char::from(b"aB3+/x9Z"[nth % 8])));
                text.push_str(["", " ", "\n", "\r\n", "\r", "é", "--", "\n\n"][random(8) as usize]);
            }
            for least in [1, 59, 60, 61, 100, 300] {
                let expected = plainly(&text, least);
                assert_eq!(of(&text, least), expected, "{least} {text:?}");
                any += expected.len();
            }
            texts += 1;
        }
        assert!(any > 1_000, "{any}");
    }
}
