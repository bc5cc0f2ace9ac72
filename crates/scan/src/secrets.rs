//! Where secrets stand in a text: one pass, hand-written, in linear time whatever the text is.
//!
//! Precision comes before recall: a shape must be one that nobody writes by chance. What a rule accepts may only become
//! less when a part of it is replaced, so that a text in which secrets were replaced has no others
//! (`redact(redact(x)) = redact(x)`): a rule asks for a least length, never for an exact one of a run that could be cut.

mod assigned;
mod prefixed;
#[cfg(test)]
mod tests;

use std::ops::Range;

/// The kinds of secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A private key in PEM, of OpenSSH, or of PGP in armour.
    PrivateKey,
    /// The id of an AWS key, `AKIA…`, or of a temporary one, `ASIA…`.
    AwsAccessKey,
    /// The secret to it, where a label says so.
    AwsSecretKey,
    /// `ghp_…`, `gho_…`, `ghu_…`, `ghs_…`, `ghr_…`, `github_pat_…`.
    GithubToken,
    /// `xoxb-…` and its like, `xapp-…`.
    SlackToken,
    /// A signed JSON web token.
    Jwt,
    /// What follows `Bearer`.
    BearerToken,
    /// The password in `scheme://user:password@host`.
    Password,
    /// `sk-ant-…`.
    AnthropicKey,
    /// `sk-proj-…`.
    OpenaiKey,
    /// `sk_live_…`, `rk_live_…`.
    StripeKey,
    /// Another `sk-…`.
    ApiKey,
    /// `AIza…`.
    GoogleApiKey,
    /// `npm_…`.
    NpmToken,
    /// What follows `Basic`.
    BasicAuth,
    /// The cookies of a header.
    Cookie,
    /// The path of a webhook.
    Webhook,
    /// The value of a name that says so: `CLIENT_SECRET=…`, `"apiKey": "…"`.
    Secret,
}

impl Kind {
    /// Its name, as placeholders have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::PrivateKey => "private-key",
            Kind::AwsAccessKey => "aws-access-key",
            Kind::AwsSecretKey => "aws-secret-key",
            Kind::GithubToken => "github-token",
            Kind::SlackToken => "slack-token",
            Kind::Jwt => "jwt",
            Kind::BearerToken => "bearer-token",
            Kind::Password => "password",
            Kind::AnthropicKey => "anthropic-key",
            Kind::OpenaiKey => "openai-key",
            Kind::StripeKey => "stripe-key",
            Kind::ApiKey => "api-key",
            Kind::GoogleApiKey => "google-api-key",
            Kind::NpmToken => "npm-token",
            Kind::BasicAuth => "basic-auth",
            Kind::Cookie => "cookie",
            Kind::Webhook => "webhook",
            Kind::Secret => "secret",
        }
    }
}

/// What a key's marker begins and ends with.
const DASHES: &[u8] = b"-----";
const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
/// Behind what an unfinished key is not looked for twice.
const REPLACED_KEY: &str = "[redacted: private-key";
/// Characters of base64 in a row that no prose has.
const RUN: usize = 16;

/// Calls `found` with every secret of `text`, in order.
pub fn secrets(text: &str, found: &mut dyn FnMut(Kind, Range<usize>)) {
    let mut scan = Scan { text, bytes: text.as_bytes(), behind: 0, begin: None, end: None, password: None };
    let mut at = 0;
    while at < scan.bytes.len() {
        at = scan.step(at, found);
    }
}

/// The same for a text of which some ranges, in order and apart, are all lines of texts that were searched, and that hold no
/// secret: only what is between them is looked at. A secret and what tells it from others stand in one line,
/// but for a private key: where one begins anywhere, all of the text is looked at. The number of bytes that were.
pub fn secrets_outside(
    text: &str,
    searched: &[Range<usize>],
    found: &mut dyn FnMut(Kind, Range<usize>),
) -> usize {
    let bytes = text.as_bytes();
    let is_line = |range: &&Range<usize>| {
        let before = range.start.checked_sub(1).and_then(|at| bytes.get(at));
        let (within, behind) = (range.start <= range.end && range.end <= bytes.len(), bytes.get(range.end));
        within && before.is_none_or(|byte| *byte == b'\n') && behind.is_none_or(|byte| *byte == b'\n')
    };
    if searched.is_empty() || text.contains(BEGIN) {
        secrets(text, found);
        return bytes.len();
    }
    let (mut from, mut looked) = (0, 0);
    let end = bytes.len()..bytes.len();
    for Range { start, end } in searched.iter().filter(is_line).chain([&end]) {
        let part = text.get(from..*start).unwrap_or_default();
        secrets(part, &mut |kind, range| found(kind, from + range.start..from + range.end));
        looked += part.len();
        from = from.max(*end);
    }
    looked
}

/// Letters, digits, `_` and `-`: what keys and tokens are made of.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// The same but for `-`.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}

/// What RFC 6750 lets a bearer token be made of.
fn is_bearer(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}

/// What may stand between `//` and the path of a URL that holds a password.
fn is_authority(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"/?#[]\"'`<>\\{}|^".contains(&byte)
}

/// A run of word characters.
struct Word {
    start: usize,
    end: usize,
    /// Where its last long run of letters and digits with a digit begins, once it was looked for.
    strong: Option<Option<usize>>,
    /// Where the token that it may be the head of ends, once it was looked for.
    token: Option<Option<usize>>,
}

struct Scan<'t> {
    text: &'t str,
    bytes: &'t [u8],
    /// Where the last secret ended: nothing looks back over it.
    behind: usize,
    /// The next marker that begins a key, and the next that ends one, from a place that was asked for before.
    begin: Option<usize>,
    end: Option<usize>,
    /// A password that was seen in a URL and is not reached yet.
    password: Option<Range<usize>>,
}

impl<'t> Scan<'t> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    fn rest(&self, at: usize) -> &'t [u8] {
        self.bytes.get(at..).unwrap_or_default()
    }

    /// How long the run of such bytes at `from` is. Nothing runs into the marker of a key.
    fn run(&self, from: usize, of: impl Fn(u8) -> bool) -> usize {
        let mut length = 0;
        for (nth, byte) in self.rest(from).iter().enumerate() {
            if !of(*byte) || *byte == b'-' && self.rest(from + nth).starts_with(DASHES) {
                break;
            }
            length += 1;
        }
        length
    }

    /// Looks at what stands at `at`; where to go on.
    fn step(&mut self, at: usize, found: &mut dyn FnMut(Kind, Range<usize>)) -> usize {
        let mut hit = |scan: &mut Self, kind, range: Range<usize>| {
            scan.behind = range.end;
            found(kind, range.clone());
            range.end
        };
        if let Some(password) = self.password.take_if(|password| password.start <= at) {
            let own = self.word(at);
            let whole =
                self.token(at, &mut Word { start: at, ..own }).filter(|(_, end)| *end == password.end);
            let kind = whole.map_or(Kind::Password, |(kind, _)| kind);
            return hit(self, kind, password);
        }
        let Some(byte) = self.byte(at) else { return at + 1 };
        if byte == b':' && self.rest(at).starts_with(b"://") {
            self.password = self.password_behind(at);
            return at + 3;
        }
        if byte == b'-' && self.rest(at).starts_with(DASHES) {
            return match self.private_key(at) {
                Some(end) => hit(self, Kind::PrivateKey, at..end),
                None => at + 1,
            };
        }
        if !is_word(byte) {
            return at + 1;
        }
        let mut word = self.word(at);
        let mut next = at;
        let mut begins = true;
        let escaped = self.escaped(at);
        while next < word.end {
            if (begins || next == escaped)
                && let Some((kind, end)) = self.token(next, &mut word)
            {
                next = hit(self, kind, next..end);
                begins = true;
                continue;
            }
            if begins && let Some(token) = self.bearer(next, word.end) {
                return hit(self, Kind::BearerToken, token);
            }
            // The next token begins behind a dash, or behind an escape.
            let rest = self.bytes.get(next..word.end).unwrap_or_default();
            let dash = rest.iter().position(|byte| *byte == b'-');
            let behind = dash.map_or(word.end, |dash| next + dash + 1);
            begins = dash.is_some();
            if (next + 1..behind).contains(&escaped) {
                (next, begins) = (escaped, false);
            } else {
                next = behind;
            }
        }
        if next != word.end {
            return next;
        }
        if let Some(secret) = self.aws_secret(word.end) {
            return hit(self, Kind::AwsSecretKey, secret);
        }
        match self.assigned(word.start.max(self.behind), word.end) {
            Some((kind, secret)) => hit(self, kind, secret),
            None => next,
        }
    }

    fn word(&self, start: usize) -> Word {
        Word { start, end: start + self.run(start, is_word), strong: None, token: None }
    }

    /// Where a word begins whose first characters belong to an escape in front of it: `\n`, `\u003d`, `%3D`.
    fn escaped(&self, at: usize) -> usize {
        let hex =
            |count: usize| self.rest(at).iter().take(count).filter(|byte| byte.is_ascii_hexdigit()).count();
        let before = at.checked_sub(1).filter(|before| *before >= self.behind);
        match (before.and_then(|before| self.byte(before)), self.byte(at)) {
            (Some(b'%'), _) if hex(2) == 2 => at + 2,
            (Some(b'\\'), Some(b'u')) => at + 5,
            (Some(b'\\'), Some(b'n' | b'r' | b't' | b'b' | b'f')) => at + 1,
            _ => at,
        }
    }

    /// The key or token at `at`, where `word` goes on; its kind and its end.
    fn token(&self, at: usize, word: &mut Word) -> Option<(Kind, usize)> {
        let rest = self.rest(at);
        let names = |from: usize| self.run(at + from, is_name);
        let plain = |from: usize| self.run(at + from, |byte| byte.is_ascii_alphanumeric());
        match rest {
            [b'A', b'K' | b'S', b'I', b'A', ..] => {
                let is_code = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
                let ends = self.byte(at + 20).is_none_or(|byte| !is_name(byte));
                (ends && self.run(at + 4, is_code) == 16).then_some((Kind::AwsAccessKey, at + 20))
            }
            [b'A', b'I', b'z', b'a', ..] => (word.end >= at + 39).then_some((Kind::GoogleApiKey, word.end)),
            [b's' | b'r', b'k', b'_', b'l', b'i', b'v', b'e', b'_', ..]
            | [b's' | b'r', b'k', b'_', b't', b'e', b's', b't', b'_', ..] => {
                let length = plain(8);
                (length >= RUN).then_some((Kind::StripeKey, at + 8 + length))
            }
            [b's', b'k', b'-', ..] => {
                let kind = match rest {
                    [_, _, _, b'a', b'n', b't', b'-', ..] => Kind::AnthropicKey,
                    [_, _, _, b'p', b'r', b'o', b'j', b'-', ..] => Kind::OpenaiKey,
                    _ => Kind::ApiKey,
                };
                (word.end >= at + 24 && self.is_strong(at + 3, word)).then_some((kind, word.end))
            }
            [b'g', b'h', b'p' | b'o' | b'u' | b's' | b'r', b'_', ..] => {
                let length = names(4);
                (length >= 36).then_some((Kind::GithubToken, at + 4 + length))
            }
            [b'g', ..] if rest.starts_with(b"github_pat_") => {
                let length = names(11);
                (length >= 36).then_some((Kind::GithubToken, at + 11 + length))
            }
            [b'n', b'p', b'm', b'_', ..] => {
                let length = plain(4);
                (length >= 36).then_some((Kind::NpmToken, at + 4 + length))
            }
            [b'x', b'o', b'x', b'a'..=b'z', b'-', ..] | [b'x', b'a', b'p', b'p', b'-', ..] => {
                self.is_strong(at + 5, word).then_some((Kind::SlackToken, word.end))
            }
            [b'e', b'y', b'J', ..] => {
                let end = *word.token.get_or_insert_with(|| self.jwt_behind(word.end));
                (word.end - at >= 10).then_some(())?;
                Some((Kind::Jwt, end?))
            }
            _ => self.prefixed(at, word.end),
        }
    }

    /// True when the word has, behind `from`, a run that only a generator makes: long, of letters and digits.
    fn is_strong(&self, from: usize, word: &mut Word) -> bool {
        let (start, end) = (word.start, word.end);
        let strong = *word.strong.get_or_insert_with(|| {
            let of = self.bytes.get(start..end).unwrap_or_default();
            let mut to = of.len();
            of.rsplit(|byte| !byte.is_ascii_alphanumeric()).find_map(|run| {
                let from = to - run.len();
                to = from.saturating_sub(1);
                (run.len() >= RUN && run.iter().any(u8::is_ascii_digit)).then_some(start + from)
            })
        });
        strong.is_some_and(|strong| strong >= from)
    }

    /// Where a JSON web token ends whose first part ends at `end`: `.eyJ….…`.
    fn jwt_behind(&self, end: usize) -> Option<usize> {
        let second = end + 1;
        if self.byte(end) != Some(b'.') || !self.rest(second).starts_with(b"eyJ") {
            return None;
        }
        let length = self.run(second, is_word);
        let third = second + length + 1;
        if length < 10 || self.byte(third - 1) != Some(b'.') {
            return None;
        }
        let length = self.run(third, is_word);
        (length >= 10).then_some(third + length)
    }

    /// The token behind `Bearer `; none where it is of a kind that has a name.
    fn bearer(&self, at: usize, end: usize) -> Option<Range<usize>> {
        if !self.bytes.get(at..end)?.eq_ignore_ascii_case(b"bearer") {
            return None;
        }
        let blanks = self.run(end, |byte| byte == b' ' || byte == b'\t');
        let start = end + blanks;
        let token = self.bytes.get(start..start + self.run(start, is_bearer))?;
        let dots = token.iter().rev().take_while(|byte| **byte == b'.').count();
        let token = token.get(..token.len() - dots)?;
        let random = token.len() >= RUN && token.iter().any(u8::is_ascii_digit) || token.len() >= 40;
        let end = start + token.len();
        let named = self.token(start, &mut self.word(start)).is_some_and(|(_, stop)| stop == end);
        (blanks > 0 && random && !named).then_some(start..end)
    }

    /// The secret key that is the value of a label which ends at `end`, as `AWS_SECRET_ACCESS_KEY=`.
    fn aws_secret(&self, end: usize) -> Option<Range<usize>> {
        // Most words are told apart by their last letters.
        self.byte(end.checked_sub(1)?).filter(|last| last.eq_ignore_ascii_case(&b'y'))?;
        self.byte(end.checked_sub(2)?).filter(|before| b"eE_- ".contains(before))?;
        let label = self.bytes.get(self.behind.max(end.saturating_sub(32))..end)?;
        let mut letters =
            label.iter().rev().filter(|byte| !b"_- ".contains(byte)).map(u8::to_ascii_lowercase);
        let is = |name: &[u8], of: &mut dyn Iterator<Item = u8>| {
            name.iter().rev().all(|byte| of.next() == Some(*byte))
        };
        let mut again = letters.clone();
        if !is(b"secretaccesskey", &mut letters) && !is(b"awssecretkey", &mut again) {
            return None;
        }
        let marks = self.rest(end).iter().take(8).take_while(|byte| b" \t\"'`:=>\\".contains(byte)).count();
        if marks == 0 {
            return None;
        }
        let start = end + marks;
        let secret = self.bytes.get(start..start + self.run(start, is_base64))?;
        let mixed = secret.iter().any(u8::is_ascii_uppercase) && secret.iter().any(u8::is_ascii_lowercase);
        let is_password = self.password.as_ref().is_some_and(|password| password.start <= start);
        (secret.len() >= 40 && mixed && !is_password).then_some(start..start + secret.len())
    }

    /// The password of the URL whose `://` is at `at`.
    fn password_behind(&self, at: usize) -> Option<Range<usize>> {
        let scheme =
            at.checked_sub(1).filter(|before| *before >= self.behind).and_then(|before| self.byte(before));
        scheme.filter(u8::is_ascii_alphanumeric)?;
        let start = at + 3;
        let authority = self.rest(start).iter().take_while(|byte| is_authority(**byte)).count();
        let authority = self.bytes.get(start..start + authority)?;
        let login = authority.get(..authority.iter().rposition(|byte| *byte == b'@')?)?;
        let colon = login.iter().position(|byte| *byte == b':')?;
        let password = login.get(colon + 1..)?;
        let says = password.iter().any(u8::is_ascii_alphanumeric);
        says.then_some(start + colon + 1..start + login.len())
    }

    /// Where the private key ends whose marker may be at `at`: behind its last marker, or, where that is missing, behind
    /// the last of its lines.
    fn private_key(&mut self, at: usize) -> Option<usize> {
        let body = self.marker(at, BEGIN)?;
        let begin = self.next(body, true);
        let end = self.next(body, false);
        let text = self.text.get(body..begin.min(end))?;
        let whole = self.marker(end, END).filter(|_| end < begin);
        let long = text.as_bytes().split(|byte| !is_base64(*byte)).any(|run| run.len() >= RUN);
        match whole.filter(|_| long && !text.contains(REPLACED_KEY)) {
            Some(end) => Some(end),
            None => self.key_lines(body),
        }
    }

    /// Where the marker of a private key ends that begins at `at`.
    fn marker(&self, at: usize, opening: &str) -> Option<usize> {
        let rest = self.rest(at).strip_prefix(opening.as_bytes())?;
        let is_label = |byte: &&u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || **byte == b' ';
        let length = rest.iter().take(40).take_while(is_label).count();
        let label = rest.get(..length)?;
        let of_key = label.ends_with(b"PRIVATE KEY") || label.ends_with(b"PRIVATE KEY BLOCK");
        let closed = rest.get(length..)?.starts_with(DASHES);
        (of_key && closed).then_some(at + opening.len() + length + DASHES.len())
    }

    /// The next marker from `from` on, which only grows from call to call.
    fn next(&mut self, from: usize, begin: bool) -> usize {
        let known = if begin { &mut self.begin } else { &mut self.end };
        let what = if begin { BEGIN } else { END };
        match known {
            Some(at) if *at >= from => *at,
            _ => {
                let found = self.text.get(from..).and_then(|rest| rest.find(what));
                *known.insert(found.map_or(self.text.len(), |found| from + found))
            }
        }
    }

    /// Where the lines of base64 behind a key's marker end; nothing when there are none.
    fn key_lines(&self, body: usize) -> Option<usize> {
        let mut end = None;
        let mut at = body;
        loop {
            at += self.run(at, |byte| b" \t\r\n\\\"'".contains(&byte));
            let line = self.run(at, |byte| is_base64(byte) || byte == b'=');
            if line < RUN {
                return end;
            }
            at += line;
            end = Some(at);
        }
    }
}
