//! Values that their names call secret: `DB_PASSWORD=…`, `"apiKey": "…"`, headers, logins and connection strings.

use super::{Kind, Scan, is_base64, is_name};
use std::ops::Range;

/// Names of what is secret by itself: the last word of a name.
const SECRETS: [&[u8]; 9] = [
    b"secret",
    b"token",
    b"apikey",
    b"secretkey",
    b"accesskey",
    b"authkey",
    b"privatekey",
    b"accountkey",
    b"apitoken",
];
/// Words for what people choose.
const PASSWORDS: [&[u8]; 5] = [b"password", b"passwd", b"pwd", b"passphrase", b"pass"];
/// What makes a key one that opens something.
const KEYS: [&[u8]; 14] = [
    b"api",
    b"secret",
    b"private",
    b"access",
    b"auth",
    b"account",
    b"encryption",
    b"signing",
    b"master",
    b"shared",
    b"admin",
    b"service",
    b"storage",
    b"app",
];
/// What makes a token a place in a list, or the like.
const PLACES: [&[u8]; 8] =
    [b"page", b"next", b"continuation", b"cursor", b"sync", b"prev", b"cancellation", b"resume"];
/// Values that stand for a secret, lower case: they begin like this.
const STANDS_FOR: [&str; 12] = [
    "your",
    "example",
    "changeme",
    "change_me",
    "placeholder",
    "redacted",
    "process.env",
    "os.environ",
    "env.",
    "secrets.",
    "config.",
    "xxxx",
];
/// The longest value that is looked at, in bytes.
const LONGEST: usize = 4_096;
/// How far a command or a login is looked back for.
const BACK: usize = 200;

/// What a name says of its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    Password,
    Secret,
    /// User and password in base64.
    Login,
}

impl Scan<'_> {
    /// The secret that stands behind the word at `start .. end`, by what that says.
    pub(super) fn assigned(&self, start: usize, end: usize) -> Option<(Kind, Range<usize>)> {
        let word = self.bytes.get(start..end)?;
        if word.starts_with(b"-p") && self.is_of_mysql(start) {
            let value = start + 2..self.value_end(start + 2);
            return self.is_chosen(value.clone()).then_some((Kind::Password, value));
        }
        let last = word.last()?.to_ascii_lowercase();
        // The last letters of all names that are looked for.
        if !b"tndyesch".contains(&last) {
            return None;
        }
        if last == b'c' {
            return self.basic(word, end);
        }
        if last == b's' && word.eq_ignore_ascii_case(b"services") || word.eq_ignore_ascii_case(b"webhooks") {
            return self.webhook(start, end);
        }
        if word.eq_ignore_ascii_case(b"password") && self.is_of_login(start) {
            let from = end + self.run(end, |byte| byte == b' ' || byte == b'\t');
            let value = from..self.value_end(from);
            return (from > end && value.len() >= 4).then_some((Kind::Password, value));
        }
        let (from, quoted) = self.value_of(end)?;
        if word.eq_ignore_ascii_case(b"cookie") || word.eq_ignore_ascii_case(b"set-cookie") {
            return self.cookies(from);
        }
        let says = says(word)?;
        let value = match quoted {
            true => from..self.quoted_end(from)?,
            false => from..self.value_end(from),
        };
        if self.password.as_ref().is_some_and(|password| password.start <= value.start) {
            return None;
        }
        // A token of a kind that has a name is found by itself.
        let named = self.token(from, &mut self.word(from)).is_some_and(|(_, stop)| stop >= value.end);
        let is_set = word.iter().all(|byte| !byte.is_ascii_lowercase()) && self.byte(end) == Some(b'=');
        let holds = match says {
            Says::Password => self.is_chosen(value.clone()),
            Says::Secret => self.is_made(value.clone(), is_set),
            Says::Login => is_login(self.bytes.get(value.clone())?),
        };
        let kind = if says == Says::Secret { Kind::Secret } else { Kind::Password };
        (holds && !named).then_some((kind, value))
    }

    /// Where the value of a name begins that ends at `end`, and whether it is quoted.
    fn value_of(&self, end: usize) -> Option<(usize, bool)> {
        let is_mark = |byte: u8| byte == b'"' || byte == b'\'' || byte == b'\\';
        let is_blank = |byte: u8| byte == b' ' || byte == b'\t';
        let mut at = end + self.run(end, is_mark).min(2);
        at += self.run(at, is_blank).min(8);
        match self.byte(at)? {
            b'=' if self.byte(at + 1) == Some(b'>') => at += 2,
            b'=' if self.byte(at + 1) != Some(b'=') => at += 1,
            b':' if self.byte(at + 1) == Some(b'=') => at += 2,
            b':' if !self.rest(at).starts_with(b"::") && !self.rest(at).starts_with(b"://") => at += 1,
            _ => return None,
        }
        at += self.run(at, is_blank).min(8);
        let marks = self.run(at, is_mark).min(2);
        Some((at + marks, marks > 0))
    }

    /// Where a value ends that nothing quotes.
    fn value_end(&self, from: usize) -> usize {
        let bytes = self.rest(from);
        let bytes = bytes.get(..LONGEST).unwrap_or(bytes);
        let is_end = |nth: usize, byte: u8| {
            let next = bytes.get(nth + 1).copied().unwrap_or(b' ');
            !byte.is_ascii_graphic()
                || b"\"'`\\,;&<>()[]{}|:".contains(&byte)
                // Padding ends a value, and an assignment begins another.
                || (byte == b'=' && next.is_ascii_alphanumeric())
        };
        let length =
            bytes.iter().enumerate().position(|(nth, byte)| is_end(nth, *byte)).unwrap_or(bytes.len());
        let dots =
            bytes.get(..length).unwrap_or_default().iter().rev().take_while(|byte| b".!?".contains(byte));
        // What ends a sentence is no part of it, where it stands alone.
        let dots = if dots.clone().all(|byte| *byte == b'.') { dots.count() } else { 0 };
        from + length - dots
    }

    /// Where a value ends that is quoted; none for one with blanks in it, which is a text.
    fn quoted_end(&self, from: usize) -> Option<usize> {
        let bytes = self.rest(from);
        let bytes = bytes.get(..LONGEST).unwrap_or(bytes);
        let length =
            bytes.iter().position(|byte| b"\"'`\\\n[]".contains(byte) || byte.is_ascii_whitespace())?;
        matches!(bytes.get(length)?, b'"' | b'\'' | b'\\').then_some(from + length)
    }

    fn text_of(&self, value: Range<usize>) -> Option<&str> {
        let text = self.text.get(value)?;
        let lower = text.to_ascii_lowercase();
        let stands_for = STANDS_FOR.iter().any(|start| lower.starts_with(start));
        let is_reference =
            text.starts_with(['$', '{', '<', '%', '*', '/', '.', '~', '@', '#']) || text.contains("://");
        (!stands_for && !is_reference && text.is_ascii()).then_some(text)
    }

    /// A password that someone chose: a word has neither digits nor signs.
    fn is_chosen(&self, value: Range<usize>) -> bool {
        let Some(text) = self.text_of(value) else { return false };
        let letters = text.bytes().any(|byte| byte.is_ascii_alphabetic());
        let more = text.bytes().any(|byte| byte.is_ascii_digit() || b"!@#$%^&*+?".contains(&byte));
        text.len() >= 6 && letters && more
    }

    /// A value that a generator made. Where a variable is set to it less is asked for.
    fn is_made(&self, value: Range<usize>, is_set: bool) -> bool {
        let Some(text) = self.text_of(value) else { return false };
        let digits = |text: &str| text.bytes().any(|byte| byte.is_ascii_digit());
        let letters = text.bytes().any(|byte| byte.is_ascii_alphabetic());
        let mixed = text.bytes().any(|byte| byte.is_ascii_uppercase())
            && text.bytes().any(|byte| byte.is_ascii_lowercase());
        let runs = text.split(|c: char| !c.is_ascii_alphanumeric());
        // Words with numbers between them are a name.
        let strong =
            |run: &str| run.len() >= 12 && digits(run) && run.bytes().any(|byte| byte.is_ascii_alphabetic());
        let made =
            runs.clone().any(strong) || (text.len() >= 20 && mixed && digits(text) && !text.contains('.'));
        text.len() >= 8 && letters && digits(text) && (is_set || made)
    }

    /// `Basic` and a login in base64.
    fn basic(&self, word: &[u8], end: usize) -> Option<(Kind, Range<usize>)> {
        if !word.eq_ignore_ascii_case(b"basic") || !matches!(self.byte(end)?, b' ' | b'\t') {
            return None;
        }
        let from = end + 1;
        let to = from + self.run(from, |byte| is_base64(byte) || byte == b'=').min(LONGEST);
        is_login(self.bytes.get(from..to)?).then_some((Kind::BasicAuth, from..to))
    }

    /// The cookies of a header.
    fn cookies(&self, from: usize) -> Option<(Kind, Range<usize>)> {
        let name = self.run(from, |byte| is_name(byte) || b"-.".contains(&byte));
        if name == 0 || name > 128 || self.byte(from + name) != Some(b'=') {
            return None;
        }
        let bytes = self.rest(from);
        let bytes = bytes.get(..LONGEST).unwrap_or(bytes);
        let length = bytes.iter().position(|byte| b"\"'`\\\r\n[]".contains(byte)).unwrap_or(bytes.len());
        let said = bytes.get(name + 1..length)?;
        let long = said.split(|byte| !is_name(*byte) && *byte != b'-' && *byte != b'%').any(|run| {
            run.len() >= 16 && run.iter().any(u8::is_ascii_digit) && run.iter().any(u8::is_ascii_alphabetic)
        });
        long.then_some((Kind::Cookie, from..from + length))
    }

    /// The path of a webhook, which is all that it takes to post there.
    fn webhook(&self, start: usize, end: usize) -> Option<(Kind, Range<usize>)> {
        let before = self.bytes.get(start.saturating_sub(20).max(self.behind)..start)?;
        if !before.ends_with(b"hooks.slack.com/") && !before.ends_with(b"/api/") || self.byte(end)? != b'/' {
            return None;
        }
        let to =
            end + 1 + self.run(end + 1, |byte| is_name(byte) || byte == b'-' || byte == b'/').min(LONGEST);
        let path = self.bytes.get(end + 1..to)?;
        let long = path.rsplit(|byte| *byte == b'/').next()?;
        (path.contains(&b'/') && long.len() >= 16).then_some((Kind::Webhook, end + 1..to))
    }

    /// True behind `login …` of the same line, as in a `.netrc`.
    fn is_of_login(&self, start: usize) -> bool {
        self.line_before(start).is_some_and(|line| {
            let mut words = line.split_ascii_whitespace().rev();
            words.next();
            words.next() == Some("login")
        })
    }

    /// True in a line that runs a client of MySQL.
    fn is_of_mysql(&self, start: usize) -> bool {
        self.line_before(start).is_some_and(|line| line.contains("mysql") || line.contains("mariadb"))
    }

    /// What stands before `at` in its line, at most so much.
    fn line_before(&self, at: usize) -> Option<&str> {
        let mut from = at.saturating_sub(BACK).max(self.behind);
        while !self.text.is_char_boundary(from) {
            from += 1;
        }
        self.text.get(from..at)?.rsplit('\n').next()
    }
}

/// What a name says of its value: by its last words, `_`, `-` and capitals between them.
fn says(name: &[u8]) -> Option<Says> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let mut before = b'_';
    for byte in name.iter().rev().take(64).rev() {
        if !byte.is_ascii_alphanumeric() {
            before = b'_';
            continue;
        }
        let begins =
            !before.is_ascii_alphanumeric() || (byte.is_ascii_uppercase() && before.is_ascii_lowercase());
        if begins {
            words.push(Vec::new());
        }
        words.last_mut()?.push(byte.to_ascii_lowercase());
        before = *byte;
    }
    let last = words.last()?.as_slice();
    let other = words.len().checked_sub(2).and_then(|at| words.get(at)).map_or(&b""[..], Vec::as_slice);
    let is_place = words.iter().any(|word| PLACES.contains(&word.as_slice()));
    match last {
        b"auth" if words.len() == 1 => Some(Says::Login),
        _ if PASSWORDS.contains(&last) => Some(Says::Password),
        b"key" => KEYS.contains(&other).then_some(Says::Secret),
        _ if SECRETS.contains(&last) && !is_place => Some(Says::Secret),
        _ => None,
    }
}

/// True for base64 of `user:password`.
fn is_login(encoded: &[u8]) -> bool {
    let (mut bits, mut count) = (0_u32, 0);
    let (mut colon, mut length) = (false, 0);
    for byte in encoded.iter().take_while(|byte| **byte != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return false,
        };
        bits = (bits << 6 | u32::from(value)) & 0xFFFF;
        count += 6;
        if count >= 8 {
            count -= 8;
            let decoded = (bits >> count) as u8;
            if !decoded.is_ascii_graphic() {
                return false;
            }
            colon |= decoded == b':';
            length += 1;
        }
    }
    colon && length >= 5
}
