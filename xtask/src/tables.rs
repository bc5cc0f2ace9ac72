//! `js/generated/tables/`: the estimator's tables as texts, a file for each family, which JavaScript counts by.
//!
//! A weight is a character, and a large one two. Weights of classes that no UTF-8 has are left out. The maps of bytes to
//! rows and columns are the same in all families: they have a file of their own.

use crate::Result;
use context_compactor_core::tokens::Family;
use std::fs;
use std::path::Path;

/// Bytes of the two maps, and of the weights by row and column: see `crates/estimator`.
const MAPS: usize = 512;
const PAIRS: usize = 80 * 72;
/// Weights by the classes of four bytes, three bits each.
const CONTEXTS: usize = 1 << 12;
/// Bytes of the weights of runs.
const RUNS: usize = 512;

/// Characters that need no escaping, from `#` on; the last two begin a large weight.
const FIRST: u8 = b'#';
const SIGNS: u8 = 91;
const SMALL: u8 = SIGNS - 2;

/// Writes the files that are not what the tables say.
pub(crate) fn write(root: &Path) -> Result<()> {
    let folder = root.join("js/generated/tables");
    let mut maps = None;
    for family in Family::ALL {
        let name = family.name();
        let table = fs::read(root.join(format!("crates/estimator/tables/{name}.bin")))?;
        if table.len() != MAPS + PAIRS + CONTEXTS + RUNS {
            return Err(format!("the table of {name} has {} bytes", table.len()).into());
        }
        let (map, weights) = table.split_at(MAPS);
        if *maps.get_or_insert_with(|| map.to_vec()) != map {
            return Err(format!("{name} has maps of its own").into());
        }
        let (pairs, rest) = weights.split_at(PAIRS);
        let (contexts, runs) = rest.split_at(CONTEXTS);
        let known =
            contexts.iter().enumerate().filter(|(classes, _)| is_utf8(*classes)).map(|(_, weight)| weight);
        write_text(&folder.join(format!("{name}.ts")), name, pairs.iter().chain(known).chain(runs))?;
    }
    write_text(&folder.join("maps.ts"), "maps", maps.unwrap_or_default().iter())
}

fn write_text<'b>(file: &Path, name: &str, values: impl Iterator<Item = &'b u8>) -> Result<()> {
    let text = format!(
        "/** Made by the build from `crates/estimator/tables`. */\n\nexport const {name} =\n  \"{}\";\n",
        values.map(|value| signs(*value)).collect::<String>()
    );
    if fs::read_to_string(file).is_ok_and(|written| written == text) {
        return Ok(());
    }
    println!("build: table {name}");
    fs::create_dir_all(file.parent().unwrap_or(file))?;
    Ok(fs::write(file, text)?)
}

fn signs(value: u8) -> String {
    match value.checked_sub(SMALL) {
        None => sign(value).to_string(),
        Some(large) => [sign(SMALL + large / SIGNS), sign(large % SIGNS)].iter().collect(),
    }
}

/// No quote is behind the first, and the backslash is left out.
fn sign(number: u8) -> char {
    let code = FIRST + number;
    char::from(code + u8::from(code >= b'\\'))
}

/// Whether four bytes of these classes can stand side by side: 6 goes on with a character, and 7 begins one.
fn is_utf8(classes: usize) -> bool {
    let class = |nth: usize| classes >> (3 * nth) & 7;
    (0..3).all(|nth| match (class(nth + 1), class(nth)) {
        (before, 6) => before >= 6,
        (before, _) => before != 7,
    }) && classes != 0o6666
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_signs_of_its_own_that_need_no_escaping() {
        let texts: Vec<String> = (0..=u8::MAX).map(signs).collect();
        assert!(texts.concat().bytes().all(|byte| (b'#'..=b'~').contains(&byte) && byte != b'\\'));
        assert!(
            texts
                .iter()
                .enumerate()
                .all(|(at, text)| !texts[..at].iter().any(|other| text.starts_with(other)))
        );
    }

    #[test]
    fn classes_of_characters_can_stand_side_by_side() {
        for text in ["a 1Z", "\u{e9}a\u{e9}", "\u{20ac}\u{20ac}", "\u{1f44d}\u{1f44d}", "a\u{1f44d}!"] {
            let class = |byte: u8| match byte {
                0x80..0xc0 => 6,
                0xc0.. => 7,
                _ => 5,
            };
            let classes: Vec<usize> = text.bytes().map(class).collect();
            for window in classes.windows(4) {
                assert!(is_utf8(window.iter().fold(0, |all, class| all << 3 | class)), "{text}");
            }
        }
        for wrong in [0o7111, 0o1611, 0o1171, 0o6666, 0o7711] {
            assert!(!is_utf8(wrong));
        }
    }
}
