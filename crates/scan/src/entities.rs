//! Entities in text: hand-written scanners, one pass, borrowing what they find.
//!
//! What looks like a secret, an e-mail address or a URL with credentials in it is never an entity: facts travel further
//! than the text that they stand in.

use crate::bytes::Set;
use std::sync::LazyLock;

/// What a text can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file or folder.
    Path,
    /// A URL without credentials.
    Url,
    /// A hash, UUID, ticket, order or booking number.
    Id,
    /// A version, a date, an amount, a quantity with its unit.
    Number,
    /// The name of an error.
    Error,
    /// A name in code: `snake_case`, `camelCase`, `--flag`.
    Identifier,
}

/// Is told what is named, and by which text.
type Found<'f, 't> = dyn FnMut(Kind, &'t str) + 'f;

/// What words are made of besides letters of other scripts.
static WORD: LazyLock<Set> =
    LazyLock::new(|| Set::of(|byte| byte.is_ascii_alphanumeric() || b"_-./\\@#$~:+%".contains(&byte)));

/// Calls `found` with every path, URL, id, number, error name and identifier of `text`, in order.
pub fn entities<'t>(text: &'t str, found: &mut Found<'_, 't>) {
    let word_bytes = &*WORD;
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii() && !word_bytes.has(byte) {
            at += 1;
            continue;
        }
        let rest = text.get(at..).unwrap_or("");
        if let Some(url) = url(rest) {
            if is_public(url) {
                found(Kind::Url, url);
            }
            at += url.len().max(1);
            continue;
        }
        let word = word(word_bytes, rest);
        if word.is_empty() {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        }
        let closes_tag = at > 0 && bytes.get(at - 1) == Some(&b'<') && word.starts_with('/');
        if !closes_tag {
            classify(word, rest, found);
        }
        at += word.len();
    }
}

/// The word at the start of `rest`: word bytes, letters of any script, and the commas of `1,299`.
fn word<'t>(word_bytes: &Set, rest: &'t str) -> &'t str {
    let bytes = rest.as_bytes();
    let mut end = 0;
    while let Some(&byte) = bytes.get(end) {
        if byte.is_ascii() {
            let group = byte == b',' && is_digit_group(bytes, end);
            if !word_bytes.has(byte) && !group {
                break;
            }
            end += 1;
        } else {
            match rest.get(end..).and_then(|tail| tail.chars().next()) {
                Some(letter) if letter.is_alphanumeric() => end += letter.len_utf8(),
                _ => break,
            }
        }
    }
    rest.get(..end).unwrap_or("")
}

/// A comma between a digit and exactly three more.
fn is_digit_group(bytes: &[u8], comma: usize) -> bool {
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    comma > 0 && digit(comma - 1) && (1..=3).all(|n| digit(comma + n)) && !digit(comma + 4)
}

/// The URL at the start of `rest`.
fn url(rest: &str) -> Option<&str> {
    let bytes = rest.as_bytes();
    let scheme = bytes.iter().take(12).take_while(|b| b.is_ascii_alphanumeric() || **b == b'+').count();
    let is_followed = bytes.get(scheme) == Some(&b':') && bytes.get(scheme..)?.starts_with(b"://");
    if scheme < 2 || !is_followed {
        return None;
    }
    let stops = |byte: &u8| !byte.is_ascii_graphic() || b"\"'`<>|\\(){}[]".contains(byte);
    let end = bytes.iter().position(stops).unwrap_or(bytes.len());
    let url = rest.get(..end)?.trim_end_matches(['.', ',', ';', ':', '!', '?', '*']);
    Some(url)
}

/// A URL of sensible length, without user name and password.
fn is_public(url: &str) -> bool {
    let host = url.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?']).next().unwrap_or(""));
    url.len() <= 300 && host.len() >= 3 && !host.contains('@')
}

fn classify<'t>(word: &'t str, rest: &'t str, found: &mut Found<'_, 't>) {
    if !word.is_ascii() {
        if word.contains('/')
            && let Some(path) = mixed_path(word)
        {
            return found(Kind::Path, path);
        }
        // "使用camelCase变量": the runs of ASCII are words of their own.
        for run in word.split(|c: char| !c.is_ascii()).filter(|run| run.len() > 2) {
            classify(run, run, found);
        }
        return;
    }
    let word = trimmed(word);
    if word.len() < 2 || word.len() > 200 {
        return;
    }
    // Most words are plain ones: "word", "Word".
    if word.bytes().skip(1).all(|byte| byte.is_ascii_lowercase())
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
    {
        return;
    }
    if word.contains('@') {
        // `@scope/name`, `name@1.2.3`; anything else may be an address.
        let package = word.strip_prefix('@').is_some_and(|name| name.contains('/') && !name.contains('@'));
        let version =
            word.rsplit_once('@').is_some_and(|(_, after)| after.starts_with(|c: char| c.is_ascii_digit()));
        if (package || version) && word.len() <= 80 {
            found(Kind::Identifier, word);
        }
        return;
    }
    if is_secret(word) {
        return;
    }
    if let Some(path) = path(word) {
        found(Kind::Path, path);
    } else if is_id(word) {
        found(Kind::Id, word);
    } else if let Some(number) = number(word, rest) {
        found(Kind::Number, number);
    } else if is_error(word) {
        found(Kind::Error, word);
    } else if is_identifier(word) {
        found(Kind::Identifier, word);
    }
}

/// An ASCII word without the marks around it.
fn trimmed(word: &str) -> &str {
    let bytes = word.as_bytes();
    let end = bytes.iter().rposition(|byte| !matches!(byte, b'.' | b':' | b'-' | b'+' | b'@' | b','));
    let end = end.map_or(0, |last| last + 1);
    let start = bytes.iter().take(end).position(|byte| !matches!(byte, b':' | b'+' | b','));
    word.get(start.unwrap_or(end)..end).unwrap_or("")
}

/// Prefixes of well-known keys and tokens.
fn is_secret(word: &str) -> bool {
    const PREFIXES: [&str; 11] =
        ["sk-", "pk_", "sk_", "ghp_", "gho_", "ghs_", "github_pat_", "xox", "AKIA", "AIza", "eyJ"];
    word.len() >= 16 && PREFIXES.iter().any(|prefix| word.starts_with(prefix))
}

/// File name extensions that make a bare word a file.
const EXTENSIONS: &[&str] = &[
    "rs", "ts", "tsx", "js", "jsx", "mjs", "cjs", "py", "go", "java", "kt", "c", "h", "cc", "cpp", "hpp",
    "cs", "rb", "php", "swift", "sh", "sql", "md", "mdx", "txt", "json", "jsonl", "toml", "yaml", "yml",
    "xml", "html", "css", "scss", "csv", "log", "lock", "env", "ini", "cfg", "conf", "pdf", "png", "jpg",
    "svg", "ipynb", "vue", "svelte", "proto", "wasm", "zip", "gz",
];

/// The path that an ASCII word is, without a trailing `:line:column`.
fn path(word: &str) -> Option<&str> {
    // Without one of these a word has neither folders nor an extension.
    if !word.bytes().any(|byte| matches!(byte, b'.' | b'/' | b'\\')) {
        return None;
    }
    let mut path = word;
    while let Some((before, digits)) = path.rsplit_once(':') {
        if before.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit() || b == b'-') {
            break;
        }
        path = before;
    }
    let drive = path.as_bytes().get(1) == Some(&b':') && path.contains('\\');
    let bytes = path.as_bytes();
    if bytes.windows(2).any(|two| two == b"//" || two == b"::") || (bytes.contains(&b':') && !drive) {
        return None;
    }
    let separators = path.bytes().filter(|b| *b == b'/' || (drive && *b == b'\\')).count();
    let name = path.trim_end_matches('/').rsplit(['/', '\\']).next().unwrap_or("");
    let extension = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty() || separators > 0);
    if separators == 0 {
        let known = extension.is_some_and(|(stem, ext)| {
            EXTENSIONS.contains(&ext) && stem.bytes().any(|b| b.is_ascii_alphanumeric())
        });
        return known.then_some(path);
    }
    let letters = path.bytes().filter(u8::is_ascii_alphabetic).count();
    let rooted = ["/", "./", "../", "~/"].iter().any(|root| path.starts_with(root)) || drive;
    let typed = extension.is_some_and(|(_, ext)| {
        (1..=5).contains(&ext.len()) && ext.bytes().all(|b| b.is_ascii_alphanumeric()) && !is_digits(ext)
    });
    if path == "/dev/null" {
        return None;
    }
    (letters >= 3 && (rooted || typed || separators >= 2)).then_some(path)
}

/// A path among or with letters of other scripts: "修改src/设计.md文件" holds `src/设计.md`.
fn mixed_path(word: &str) -> Option<&str> {
    let slash = word.find('/')?;
    // Prose glued to the front ends where ASCII begins.
    let start = word.get(..slash)?.find(|c: char| c.is_ascii()).unwrap_or(slash);
    let word = word.get(start..)?;
    let name = word.rfind('/')?;
    let end = match word.get(name..)?.find('.') {
        Some(dot) => {
            let from = name + dot + 1;
            let extension = word.get(from..)?.find(|c: char| !c.is_ascii_alphanumeric());
            extension.map_or(word.len(), |length| from + length)
        }
        None => word.get(name..)?.find(|c: char| !c.is_ascii()).map_or(word.len(), |at| name + at),
    };
    let path = word.get(..end)?.trim_end_matches('/');
    (path.chars().filter(|c| c.is_alphabetic()).count() >= 3 && path.len() <= 300 && path.contains('/'))
        .then_some(path)
}

/// A hash, a UUID, a ticket, an order or booking number.
fn is_id(word: &str) -> bool {
    let core = word.trim_start_matches('#');
    let bytes = core.as_bytes();
    if core.len() < 4 || !bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-') {
        return word.len() > 1 && core.len() < word.len() && is_digits(core);
    }
    let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
    if core.len() < word.len() && digits > 0 {
        return core.len() <= 40;
    }
    let hex = bytes.iter().all(|b| b.is_ascii_hexdigit() || *b == b'-');
    let letters = bytes.iter().any(u8::is_ascii_alphabetic);
    if hex && letters && digits >= 2 && core.len() >= 7 && core.len() <= 64 {
        return true;
    }
    if let Some((project, issue)) = core.split_once('-') {
        // Names of standards have the shape of tickets.
        const STANDARDS: [&str; 10] =
            ["UTF", "SHA", "ISO", "RFC", "AES", "RSA", "GPT", "HTTP", "IEEE", "CVSS"];
        return !STANDARDS.contains(&project)
            && (2..=10).contains(&project.len())
            && project.bytes().all(|b| b.is_ascii_uppercase())
            && (1..=7).contains(&issue.len())
            && is_digits(issue);
    }
    let upper = bytes.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    upper && letters && digits >= 2 && (6..=32).contains(&core.len())
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Units that may follow a number after a blank.
const UNITS: &[&str] = &[
    "ms",
    "s",
    "sec",
    "seconds",
    "min",
    "minutes",
    "h",
    "hours",
    "days",
    "weeks",
    "months",
    "years",
    "B",
    "KB",
    "MB",
    "GB",
    "TB",
    "KiB",
    "MiB",
    "GiB",
    "bytes",
    "tokens",
    "characters",
    "chars",
    "lines",
    "rows",
    "px",
    "requests",
    "retries",
    "messages",
    "files",
    "times",
    "percent",
    "USD",
    "EUR",
    "dollars",
];

/// A version, a date, an amount, a quantity with its unit; small bare integers say nothing.
fn number<'t>(word: &'t str, rest: &'t str) -> Option<&'t str> {
    let core = word.strip_prefix(['v', '$', '-', '~']).unwrap_or(word);
    if !core.starts_with(|c: char| c.is_ascii_digit()) || core.len() > 40 {
        return None;
    }
    let digits = core.bytes().filter(u8::is_ascii_digit).count();
    let head = core.bytes().take_while(|b| b.is_ascii_digit() || b".,:-/".contains(b)).count();
    let unit = core.get(head..).unwrap_or("");
    if unit.len() > 12 || !unit.bytes().all(|b| b.is_ascii_alphanumeric() || b"%-.+".contains(&b)) {
        return None;
    }
    if unit.is_empty()
        && let Some(after) = rest.get(word.len()..).and_then(|after| after.strip_prefix(' '))
        && let Some(name) = UNITS.iter().find(|name| {
            let follows = after.strip_prefix(**name).map(|tail| tail.chars().next());
            follows.is_some_and(|next| next.is_none_or(|c| !c.is_alphanumeric()))
        })
    {
        return rest.get(..word.len() + 1 + name.len());
    }
    let telling = digits >= 3 || !unit.is_empty() || word.starts_with(['v', '$']) || core.contains('.');
    telling.then_some(word)
}

/// The name of an error: `E0463`, `TS2304`, `ENOENT`, `TypeError`, `NullPointerException`.
fn is_error(word: &str) -> bool {
    let name = word.rsplit(['.', ':']).next().unwrap_or(word);
    for prefix in ["E", "TS"] {
        if name.strip_prefix(prefix).is_some_and(|code| code.len() == 4 && is_digits(code)) {
            return true;
        }
    }
    const ERRNO: &[&str] = &[
        "ENOENT",
        "EACCES",
        "EPERM",
        "EEXIST",
        "ECONNREFUSED",
        "ECONNRESET",
        "ETIMEDOUT",
        "EADDRINUSE",
        "EPIPE",
        "ENOSPC",
        "EMFILE",
        "EINVAL",
        "ENOTFOUND",
        "EISDIR",
        "ENOTDIR",
        "ENOMEM",
        "ERESOLVE",
        "SIGSEGV",
        "SIGKILL",
    ];
    let named = ["Error", "Exception"].iter().any(|end| {
        name.strip_suffix(end).is_some_and(|kind| {
            kind.len() >= 2
                && kind.starts_with(|c: char| c.is_ascii_uppercase())
                && kind.bytes().all(|b| b.is_ascii_alphanumeric())
        })
    });
    let may_be = name.starts_with(['E', 'S']);
    named || may_be && (ERRNO.contains(&name) || (name.starts_with("ERR_") && name.len() > 6))
}

/// A name that nobody writes by chance: `snake_case`, `camelCase`, `PascalCase`, `CONST_CASE`, `a::b`, `--flag`.
fn is_identifier(word: &str) -> bool {
    if !(4..=80).contains(&word.len()) {
        return false;
    }
    if let Some(flag) = word.strip_prefix("--") {
        return flag.len() >= 2
            && flag.starts_with(|c: char| c.is_ascii_alphabetic())
            && flag.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    }
    let bytes = word.as_bytes();
    if !bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"_.:".contains(b))
        || !bytes.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_')
    {
        return false;
    }
    // Products that are spelled like code.
    const PRODUCTS: [&str; 8] =
        ["GitHub", "GitLab", "JavaScript", "TypeScript", "OpenAI", "PostgreSQL", "DevOps", "LaTeX"];
    if PRODUCTS.contains(&word) {
        return false;
    }
    let joined = word.trim_matches('_').contains('_') || word.contains("::");
    let hump = |pair: &[u8]| match pair {
        [a, b] => a.is_ascii_lowercase() && b.is_ascii_uppercase(),
        _ => false,
    };
    let letters = bytes.iter().filter(|b| b.is_ascii_alphabetic()).count();
    letters >= 3 && (joined || bytes.windows(2).any(hump))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<(Kind, &str)> {
        let mut out = Vec::new();
        entities(text, &mut |kind, text| out.push((kind, text)));
        out
    }

    #[test]
    fn lesson_lost_constraints_entities_are_typed() {
        use Kind::*;
        for (text, expected) in [
            ("see src/main.rs:12:5, please", vec![(Path, "src/main.rs")]),
            ("Cargo.toml and ./run", vec![(Path, "Cargo.toml"), (Path, "./run")]),
            ("修改src/设计.md文件，然后", vec![(Path, "src/设计.md")]),
            ("打开 /docs/说明.txt。", vec![(Path, "/docs/说明.txt")]),
            ("[docs](https://a.example/x?y=1&z=2).", vec![(Url, "https://a.example/x?y=1&z=2")]),
            ("commit 4e313bb for PROJ-1234", vec![(Id, "4e313bb"), (Id, "PROJ-1234")]),
            ("order #W2378156, booking HAT219", vec![(Id, "#W2378156"), (Id, "HAT219")]),
            ("550e8400-e29b-41d4-a716-446655440000", vec![(Id, "550e8400-e29b-41d4-a716-446655440000")]),
            ("costs $1,299.00 or 15%", vec![(Number, "$1,299.00"), (Number, "15%")]),
            ("v1.2.3 in 250ms, 50 MB", vec![(Number, "v1.2.3"), (Number, "250ms"), (Number, "50 MB")]),
            (
                "error[E0463]: TypeError, ENOENT",
                vec![(Error, "E0463"), (Error, "TypeError"), (Error, "ENOENT")],
            ),
            (
                "使用camelCase变量 and snake_case, MAX_SIZE --no-verify",
                vec![
                    (Identifier, "camelCase"),
                    (Identifier, "snake_case"),
                    (Identifier, "MAX_SIZE"),
                    (Identifier, "--no-verify"),
                ],
            ),
        ] {
            assert_eq!(all(text), expected, "{text}");
        }
    }

    #[test]
    fn lesson_secrets_are_never_entities() {
        for text in [
            "write to someone@mail.example",
            "postgres://admin:hunter2@db.internal/app",
            "sk-proj-4f9aB2c8D1e7F6a5b4C3",
            "ghp_abcdefghijklmnop0123",
        ] {
            assert_eq!(all(text), [], "{text}");
        }
    }

    #[test]
    fn ordinary_words_are_no_entities() {
        assert_eq!(
            all("and/or this, that. 3 of 4 </div> שלום 你好 👩‍💻 it's a well-known thing e.g. this"),
            []
        );
    }
}
