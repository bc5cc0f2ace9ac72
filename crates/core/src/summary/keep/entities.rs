//! Things that a text names, as numbers: which text names the same thing, and how telling that is.

use super::super::facts::FactKind;
use super::super::scan;
use super::generic::GENERIC;

/// Calls `found` with every thing that `text` names and that is not generic: its number and the weight of its kind.
///
/// Beside the entities of facts these are e-mail addresses and what other scripts put between quotation marks: a keep-layer
/// stays in its conversation, whose text it repeats.
pub(super) fn each(text: &str, found: &mut impl FnMut(u64, f64)) {
    scan::entities(text, &mut |kind, name| {
        if let Some(id) = id(kind, name) {
            found(id, weight(kind));
        }
    });
    if text.contains('@') {
        for word in text.split(|c: char| c.is_whitespace() || "<>()[]\"',;".contains(c)) {
            let address = word.trim_matches(['.', ':']).split_once('@');
            if address.is_some_and(|(name, host)| {
                !name.is_empty() && host.contains('.') && !host.contains(['@', '/']) && !host.starts_with('.')
            }) {
                found(number(word.trim_matches(['.', ':'])), 1.5);
            }
        }
    }
    if !text.is_ascii() {
        quoted(text, &mut |name| found(number(name), 1.0));
    }
}

/// What is between the quotation marks of scripts that write names without blanks or capitals.
fn quoted<'t>(text: &'t str, found: &mut impl FnMut(&'t str)) {
    const MARKS: [(char, char); 6] =
        [('「', '」'), ('『', '』'), ('《', '》'), ('“', '”'), ('«', '»'), ('【', '】')];
    for (open, close) in MARKS {
        for piece in text.split(open).skip(1) {
            let name = piece.split(close).next().filter(|name| name.len() < piece.len());
            if let Some(name) = name.filter(|name| (4..=60).contains(&name.len()) && !name.contains('\n')) {
                found(name);
            }
        }
    }
}

/// The number of the thing that `name` names; none for what every project has.
pub(super) fn id(kind: FactKind, name: &str) -> Option<u64> {
    let name = if kind == FactKind::Path { last_two(name) } else { name };
    GENERIC.binary_search(&name).is_err().then(|| number(name))
}

/// The last two components of a path: one file is named from several folders.
pub(in super::super) fn last_two(path: &str) -> &str {
    let path = path.trim_end_matches(['/', '\\']);
    let is_end = |(at, byte): (usize, u8)| matches!(byte, b'/' | b'\\').then_some(at);
    match path.bytes().enumerate().rev().filter_map(is_end).nth(1) {
        Some(at) => path.get(at + 1..).unwrap_or(path),
        None => path.trim_start_matches("./"),
    }
}

/// How telling a kind is.
pub(super) fn weight(kind: FactKind) -> f64 {
    match kind {
        FactKind::Error => 2.5,
        FactKind::Path | FactKind::Id | FactKind::Command => 2.0,
        FactKind::Url => 1.5,
        FactKind::Identifier | FactKind::Constraint | FactKind::Decision => 1.0,
        FactKind::Number => 0.8,
    }
}

/// FNV-1a: the same number in every run and on every platform, at one multiplication a byte.
pub(super) fn number(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
