//! Whole encodings against the published ranks and the rules taken literally.
//!
//! The build brings both the tables and the published files; without a build there is nothing to test, which is said.

#![allow(clippy::panic, clippy::unwrap_used)]

use context_compactor_tokenizer::{PADDING, Rules, Tail, Tokenizer};
use fancy_regex::Regex;
use proptest::prelude::*;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

const ENCODINGS: [(&str, Rules); 2] = [("o200k_base", Rules::O200k), ("cl100k_base", Rules::Cl100k)];

/// An encoding, and what it must do.
struct Pair {
    tokenizer: Tokenizer,
    tokens: Vec<Vec<u8>>,
    ranks: HashMap<Vec<u8>, u32>,
    expression: Regex,
}

static PAIRS: LazyLock<Option<Mutex<Vec<Pair>>>> = LazyLock::new(|| {
    ENCODINGS.into_iter().map(|(name, rules)| pair(name, rules)).collect::<Option<_>>().map(Mutex::new)
});

fn pair(name: &str, rules: Rules) -> Option<Pair> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: PathBuf| match fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(_) => {
            println!("skipped: there is no {}; `npm run build` makes it", path.display());
            None
        }
    };
    let module = read(root.join(format!("js/wasm/{name}.js")))?;
    let published = read(root.join(format!("node_modules/gpt-tokenizer/data/{name}.tiktoken")))?;
    let expressions = read(root.join(format!("node_modules/tiktoken/encoders/{name}.json")))?;
    let table = module.split_once("text = \"").and_then(|(_, rest)| rest.split_once('"')).unwrap().0;
    let expression = expressions.split_once("\"pat_str\":\"").unwrap().1.split_once("\",\"").unwrap().0;
    let tokens: Vec<Vec<u8>> =
        published.lines().map(|line| base64(line.split_once(' ').unwrap().0)).collect();
    Some(Pair {
        tokenizer: Tokenizer::new(rules, table.as_bytes()).unwrap(),
        ranks: tokens.iter().cloned().zip(0..).collect(),
        tokens,
        expression: Regex::new(&expression.replace("\\\\", "\\")).unwrap(),
    })
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        other => panic!("{other} is no digit"),
    };
    let bits: Vec<u8> = text
        .bytes()
        .filter(|byte| *byte != b'=')
        .flat_map(|byte| (0..6).rev().map(move |bit| digit(byte) >> bit & 1))
        .collect();
    bits.chunks_exact(8).map(|byte| byte.iter().fold(0, |byte, bit| byte << 1 | bit)).collect()
}

fn padded(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0xff; PADDING]].concat()
}

impl Pair {
    fn encode(&mut self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        self.tokenizer.encode(&padded(text), text.len(), &mut ids);
        ids
    }

    fn count(&mut self, text: &str) -> usize {
        self.tokenizer.count(&padded(text), text.len())
    }

    fn tail(&mut self, text: &str) -> Tail {
        self.tokenizer.count_tail(&padded(text), text.len())
    }

    fn decode(&self, ids: &[u32]) -> Vec<u8> {
        ids.iter().flat_map(|id| self.tokenizer.token(*id).unwrap()).copied().collect()
    }

    /// What the rules say, step by step.
    fn expected(&self, text: &str) -> Vec<u32> {
        self.expression
            .find_iter(text)
            .flat_map(|piece| self.merged(piece.unwrap().as_str().as_bytes()))
            .collect()
    }

    fn merged(&self, piece: &[u8]) -> Vec<u32> {
        let mut parts: Vec<Vec<u8>> = piece.iter().map(|byte| vec![*byte]).collect();
        loop {
            let lowest = parts
                .windows(2)
                .enumerate()
                .filter_map(|(at, pair)| Some((*self.ranks.get(&pair.concat())?, at)))
                .min();
            let Some((_, at)) = lowest else { break };
            let right = parts.remove(at + 1);
            parts[at].extend(right);
        }
        parts.iter().map(|part| self.ranks[part]).collect()
    }
}

fn each(check: impl Fn(&mut Pair)) {
    if let Some(pairs) = &*PAIRS {
        pairs.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).iter_mut().for_each(check);
    }
}

fn exact(pair: &mut Pair, text: &str) {
    let ids = pair.encode(text);
    assert_eq!(ids, pair.expected(text), "{text:?}");
    // Once as it is found, once as it was kept.
    assert_eq!([pair.count(text), pair.count(text)], [ids.len(); 2], "{text:?}");
    assert_eq!(pair.decode(&ids), text.as_bytes());
}

#[test]
fn the_tokens_are_those_that_were_published() {
    each(|pair| {
        assert_eq!(pair.tokenizer.vocabulary_size(), pair.tokens.len());
        for (rank, bytes) in pair.tokens.iter().enumerate() {
            assert_eq!(pair.tokenizer.token(rank as u32), Some(bytes.as_slice()));
        }
        assert_eq!(pair.tokenizer.token(pair.tokens.len() as u32), None);
    });
}

#[test]
fn a_token_that_is_one_piece_is_encoded_as_itself() {
    each(|pair| {
        let mut texts = 0;
        for rank in 0..pair.tokens.len() {
            let Ok(text) = String::from_utf8(pair.tokens[rank].clone()) else { continue };
            if pair.expression.find(&text).unwrap().unwrap().as_str() != text {
                continue;
            }
            texts += 1;
            assert_eq!(pair.encode(&text), [rank as u32], "{text:?}");
        }
        assert!(texts > pair.tokens.len() / 2);
    });
}

#[test]
fn names_of_special_tokens_are_text() {
    each(|pair| {
        for name in ["<|endoftext|>", "<|fim_prefix|>", "<|endofprompt|>", "<|im_start|>"] {
            exact(pair, name);
            assert!(pair.encode(name).len() > 2);
        }
        let end = if pair.tokens.len() > 199_000 { 199_999 } else { 100_257 };
        assert_eq!(pair.decode(&[end]), b"<|endoftext|>");
    });
}

#[test]
fn long_pieces_are_merged_like_short_ones() {
    each(|pair| {
        for unit in ["a", " ", "=", "ab", "字", "中文", "é", "aZ", "\n", "!?"] {
            for length in [14, 15, 16, 17, 95, 96, 97, 98, 200, 500] {
                let text: String = unit.chars().cycle().take(length).collect();
                exact(pair, &text);
                exact(pair, &format!("x {text} y"));
            }
        }
    });
}

#[test]
fn a_long_run_costs_what_it_is_long() {
    each(|pair| {
        for unit in ["a", " ", "字", "=", "\n", "z9Q"] {
            let text = unit.repeat(300_000);
            let started = std::time::Instant::now();
            assert!(pair.count(&text) > 1_000);
            // Some tenths of a second; were it the square of the length, hours.
            assert!(started.elapsed().as_secs() < 30, "{unit:?}");
        }
    });
}

#[test]
fn a_damaged_table_is_refused() {
    for table in ["", "AAAB", &"A".repeat(2 * 256 + 5), &"=".repeat(2 * 256), &"A".repeat(2 * 256 + 5 * 6)] {
        let read = Tokenizer::new(Rules::O200k, table.as_bytes());
        assert!(read.is_none_or(|tokenizer| tokenizer.vocabulary_size() == 261), "{table:?}");
    }
    // The one token behind the bytes is merged of one that is not there yet.
    let ahead = format!("{}{}", "AA".repeat(256), "AEAAAA");
    assert!(Tokenizer::new(Rules::O200k, ahead.as_bytes()).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn texts_are_encoded_as_the_rules_say(text in prop_oneof![any::<String>(), "[a-zA-Z' ]{0,60}", "\\PC{0,80}", "[一-鿿]{0,40}"]) {
        each(|pair| exact(pair, &text));
    }

    #[test]
    fn a_text_in_parts_has_the_tokens_of_the_whole(parts in prop::collection::vec("[a-zA-Z'字\u{301} \n!0-9]{0,12}", 0..12)) {
        each(|pair| {
            let (mut settled, mut rest, mut whole) = (0, String::new(), String::new());
            for part in &parts {
                whole.push_str(part);
                rest.push_str(part);
                let tail = pair.tail(&rest);
                assert_eq!(settled + tail.tokens, pair.count(&whole), "{parts:?}");
                settled += tail.settled;
                rest.drain(..tail.bytes);
            }
        });
    }
}
