//! Keys and tokens whose issuers publish how they begin.

use super::{Kind, RUN, Scan, is_name, is_word};

/// How they begin, and how many characters they have at least behind that, of letters, digits, `_` and `-`.
const PREFIXES: [(&[u8], usize); 28] = [
    (b"glpat-", 20),
    (b"gldt-", 20),
    (b"glrt-", 20),
    (b"glptt-", 20),
    (b"glsoat-", 20),
    (b"whsec_", 24),
    (b"ya29.", 20),
    (b"1//0", 30),
    (b"pypi-AgEI", 40),
    (b"hf_", 30),
    (b"gsk_", 40),
    (b"xai-", 40),
    (b"r8_", 32),
    (b"dapi", 32),
    (b"shpat_", 32),
    (b"shpss_", 32),
    (b"shpca_", 32),
    (b"shppa_", 32),
    (b"lin_api_", 32),
    (b"dop_v1_", 40),
    (b"doo_v1_", 40),
    (b"dor_v1_", 40),
    (b"dckr_pat_", 20),
    (b"hvs.", 20),
    (b"hvb.", 20),
    (b"hvr.", 20),
    (b"AGE-SECRET-KEY-1", 50),
    (b"cfut_", 32),
];

/// The bytes that may be their second, by their first: two bytes tell of nearly all words that they begin like none of them.
static HEADS: [u128; 128] = heads();

#[expect(clippy::indexing_slicing, reason = "an index that is too large does not compile here")]
const fn heads() -> [u128; 128] {
    let mut heads = [0; 128];
    let mut nth = 0;
    while nth < PREFIXES.len() {
        let (prefix, _) = PREFIXES[nth];
        heads[prefix[0] as usize] |= 1 << prefix[1];
        nth += 1;
    }
    heads
}

impl Scan<'_> {
    /// The key or token at `at`, by how it begins; its kind and its end.
    pub(super) fn prefixed(&self, at: usize, word: usize) -> Option<(Kind, usize)> {
        let rest = self.rest(at);
        let (first, second) = (*rest.first()?, rest.get(1).copied().unwrap_or(u8::MAX));
        if !first.is_ascii_alphanumeric() {
            return None;
        }
        let may_begin =
            HEADS.get(usize::from(first)).is_some_and(|heads| second < 128 && heads >> second & 1 == 1);
        let prefixes = if may_begin { &PREFIXES[..] } else { &[] };
        for (prefix, least) in prefixes {
            if prefix.get(2) == rest.get(2) && rest.starts_with(prefix) {
                let from = at + prefix.len();
                let length = self.run(from, is_word);
                let said = self.bytes.get(from..from + length)?;
                let random = said.iter().any(u8::is_ascii_digit);
                return (length >= *least && random).then_some((Kind::ApiKey, from + length));
            }
        }
        if first == b'S' && rest.starts_with(b"SG.") {
            let first = self.run(at + 3, is_word);
            let second = at + 3 + first + 1;
            let length = self.run(second, is_word);
            let is = first >= RUN && self.byte(second - 1) == Some(b'.') && length >= 32;
            return is.then_some((Kind::ApiKey, second + length));
        }
        self.twilio(at, word).or_else(|| self.telegram(at, word)).or_else(|| self.parted(at, word))
    }

    /// `SK` and 32 digits in hex.
    fn twilio(&self, at: usize, word: usize) -> Option<(Kind, usize)> {
        let hex = self.bytes.get(at..word)?.strip_prefix(b"SK")?;
        let is_hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
        (hex.len() >= 32 && hex.iter().all(is_hex)).then_some((Kind::ApiKey, word))
    }

    /// The number of a bot, a colon and its token.
    fn telegram(&self, at: usize, word: usize) -> Option<(Kind, usize)> {
        let number = self.bytes.get(at..word)?;
        let is_number = (8..=12).contains(&number.len()) && number.iter().all(u8::is_ascii_digit);
        if !is_number || self.byte(word) != Some(b':') {
            return None;
        }
        let length = self.run(word + 1, is_word);
        let token = self.bytes.get(word + 1..word + 1 + length)?;
        let mixed = token.iter().any(u8::is_ascii_uppercase) && token.iter().any(u8::is_ascii_lowercase);
        (length >= 34 && mixed).then_some((Kind::ApiKey, word + 1 + length))
    }

    /// Discord's three parts with dots between them, and what Azure issues to clients: `…Q~…`.
    fn parted(&self, at: usize, word: usize) -> Option<(Kind, usize)> {
        let first = word - at;
        if matches!(self.byte(at)?, b'M' | b'N' | b'O')
            && (23..=30).contains(&first)
            && self.byte(word)? == b'.'
        {
            let second = self.run(word + 1, is_word);
            let third = word + 1 + second + 1;
            let length = self.run(third, is_word);
            let is = (5..=7).contains(&second) && self.byte(third - 1) == Some(b'.') && length >= 27;
            return is.then_some((Kind::ApiKey, third + length));
        }
        let head = self.bytes.get(at..word)?;
        if first == 5 && head.ends_with(b"Q") && head.get(3)?.is_ascii_digit() && self.byte(word)? == b'~' {
            let length = self.run(word + 1, |byte| is_name(byte) || b"~.-".contains(&byte));
            return (length >= 30).then_some((Kind::Secret, word + 1 + length));
        }
        None
    }
}
