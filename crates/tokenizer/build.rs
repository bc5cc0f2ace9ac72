//! Classes of all characters, as a table of two stages: `blocks` says which block of 256 classes a character is in, and
//! a block has two classes in a byte.

use regex_syntax::hir::{Class, HirKind};
use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;

/// The classes by their numbers in `src/classes.rs`; what is in none is 0.
const CLASSES: [(u8, &str); 6] = [
    (1, r"[\p{Lu}\p{Lt}]"),
    (2, r"\p{Ll}"),
    (3, r"[\p{Lm}\p{Lo}]"),
    (4, r"\p{M}"),
    (5, r"\p{N}"),
    (6, r"\s"),
];
const NEWLINE: u8 = 7;
const BLOCK: usize = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let mut classes = vec![0_u8; 0x11_0000];
    for (number, pattern) in CLASSES {
        let HirKind::Class(Class::Unicode(class)) = regex_syntax::parse(pattern)?.into_kind() else {
            return Err(format!("{pattern} is no class").into());
        };
        for range in class.ranges() {
            for slot in &mut classes[range.start() as usize..=range.end() as usize] {
                assert_eq!(*slot, 0, "classes overlap at {pattern}");
                *slot = number;
            }
        }
    }
    classes['\r' as usize] = NEWLINE;
    classes['\n' as usize] = NEWLINE;

    let mut blocks = Vec::new();
    let mut distinct: Vec<&[u8]> = Vec::new();
    for block in classes.chunks(BLOCK) {
        let at = distinct.iter().position(|known| *known == block).unwrap_or_else(|| {
            distinct.push(block);
            distinct.len() - 1
        });
        blocks.push(u8::try_from(at)?);
    }
    let packed: Vec<u8> =
        distinct.iter().flat_map(|block| block.chunks(2).map(|pair| pair[0] | pair[1] << 4)).collect();
    let out = env::var("OUT_DIR")?;
    fs::write(Path::new(&out).join("blocks.bin"), &blocks)?;
    fs::write(Path::new(&out).join("classes.bin"), &packed)?;
    // ASCII at once, a byte each.
    fs::write(Path::new(&out).join("ascii.bin"), &classes[..128])?;
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}
