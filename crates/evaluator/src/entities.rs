//! Typed entities of a text: what an agent has to write to the letter to mean it. Scanners of the evaluator's own, so that
//! the engine's are not measured by themselves.

use std::collections::HashMap;
use std::ops::Range;

/// Kinds of entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A file or folder, by its last two components.
    Path,
    /// A URL.
    Url,
    /// An e-mail address.
    Email,
    /// A hash, a UUID, a ticket, an order or booking number.
    Id,
    /// A name in code.
    Identifier,
    /// A version, a date, an amount, a number of three digits or more.
    Number,
    /// The name of an error.
    Error,
    /// A flag of a command: `--name`.
    Flag,
}

impl Kind {
    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Path => "path",
            Kind::Url => "url",
            Kind::Email => "email",
            Kind::Id => "id",
            Kind::Identifier => "identifier",
            Kind::Number => "number",
            Kind::Error => "error",
            Kind::Flag => "flag",
        }
    }
}

/// Is told an entity's kind, its name, and the bytes that it stands at.
pub type Found<'f> = dyn FnMut(Kind, &str, Range<usize>) + 'f;

/// Calls `found` with every entity of `text`, in order.
pub fn entities(text: &str, found: &mut Found<'_>) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let from = start + numbering(line);
        scan(text, from..start + line.len(), found);
        start += line.len();
    }
}

/// Bytes of the number that tools for reading files print before a line: `  42→`, `42<tab>`.
pub(crate) fn numbering(line: &str) -> usize {
    let rest = line.trim_start_matches(' ');
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    match after.strip_prefix('→').or_else(|| after.strip_prefix('\t')) {
        Some(code) if after.len() < rest.len() => line.len() - code.len(),
        _ => 0,
    }
}

fn scan(text: &str, range: Range<usize>, found: &mut Found<'_>) {
    let bytes = text.as_bytes();
    let mut at = range.start;
    while at < range.end {
        match bytes[at] {
            // An escape in code or in JSON that a tool printed: its letter belongs to no word.
            b'\\' => at += 2,
            byte if !is_word(byte) => at += 1,
            _ => {
                let rest = &bytes[at..range.end];
                let end = at
                    + url(rest)
                        .unwrap_or_else(|| rest.iter().position(|b| !is_word(*b)).unwrap_or(rest.len()));
                let word = &text[at..end];
                if word.contains("://") {
                    trimmed(word, at, &['.', ',', ';', ':', '!', '?', '*', '_'], |name, range| {
                        found(Kind::Url, name, range)
                    });
                } else if word.len() <= 300 {
                    classify(word, at, found);
                }
                at = end;
            }
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-./@#~:+%$".contains(&byte)
}

/// Length of the URL at the start of `bytes`.
fn url(bytes: &[u8]) -> Option<usize> {
    let scheme = bytes.iter().take(12).take_while(|b| b.is_ascii_alphanumeric() || **b == b'+').count();
    if scheme < 2 || !bytes[scheme..].starts_with(b"://") {
        return None;
    }
    let stops = |byte: &u8| !byte.is_ascii_graphic() || b"\"'`<>|\\(){}[],".contains(byte);
    Some(bytes.iter().position(stops).unwrap_or(bytes.len()))
}

/// Calls `with` with `word` without the marks at its end, if anything is left.
fn trimmed(word: &str, at: usize, marks: &[char], with: impl FnOnce(&str, Range<usize>)) {
    let name = word.trim_end_matches(marks);
    if name.len() > 1 {
        with(name, at..at + name.len());
    }
}

fn classify(word: &str, at: usize, found: &mut Found<'_>) {
    let start = word.len() - word.trim_start_matches([':', '+', '%']).len();
    let (word, at) = (&word[start..], at + start);
    let word = word.trim_end_matches(['.', ':', '-', '+', '@', '/', '#', '$', '~']);
    let range = at..at + word.len();
    if word.len() < 3 {
        return;
    }
    if is_email(word) {
        return found(Kind::Email, word, range);
    }
    if let Some(flag) = word.strip_prefix("--") {
        let named = flag.len() > 1 && flag.starts_with(|c: char| c.is_ascii_alphabetic());
        return if named {
            found(Kind::Flag, word, range)
        };
    }
    if word.contains('/') {
        let path = word.split(':').next().unwrap_or(word);
        if let Some(name) = path_name(path) {
            found(Kind::Path, name, at..at + path.len());
            // `src/main.rs:12:func`: the line says nothing, what stands on it may.
            let rest = word[path.len()..].trim_start_matches(|c: char| c == ':' || c.is_ascii_digit());
            if !rest.is_empty() {
                classify(rest, at + word.len() - rest.len(), found);
            }
            return;
        }
        let mut from = 0;
        for part in word.split('/') {
            classify(part, at + from, found);
            from += part.len() + 1;
        }
        return;
    }
    let file = word.split(':').next().unwrap_or(word);
    if is_file(file) {
        return found(Kind::Path, file, at..at + file.len());
    }
    if is_number(word) {
        let digits = word.bytes().all(|b| b.is_ascii_digit());
        return found(if digits && word.len() >= 6 { Kind::Id } else { Kind::Number }, word, range);
    }
    let mut from = 0;
    for part in word.split([':', '.']) {
        let name = part.trim_matches(['$', '@', '~', '%', '-', '+']);
        let kind = if is_error(name) {
            Some(Kind::Error)
        } else if is_id(name) {
            Some(Kind::Id)
        } else if is_identifier(name) {
            Some(Kind::Identifier)
        } else {
            None
        };
        if let Some(kind) = kind {
            found(kind, name, at + from..at + from + part.len());
        }
        from += part.len() + 1;
    }
}

fn is_email(word: &str) -> bool {
    word.split_once('@').is_some_and(|(name, host)| {
        let ending = host.rsplit_once('.').map_or("", |(_, ending)| ending);
        !name.is_empty() && ending.len() >= 2 && ending.bytes().all(|b| b.is_ascii_alphabetic())
    })
}

/// The last two components of a path.
fn path_name(path: &str) -> Option<&str> {
    let path = path.trim_end_matches('/');
    let letters = path.bytes().filter(u8::is_ascii_alphabetic).count();
    if letters < 3 || path.contains("//") || path.contains('@') || path == "/dev/null" {
        return None;
    }
    let separators = path.bytes().filter(|b| *b == b'/').count();
    let name = path.rsplit('/').next().unwrap_or("");
    let typed = name.rsplit_once('.').is_some_and(|(_, ending)| {
        (1..=5).contains(&ending.len()) && ending.bytes().any(|b| b.is_ascii_alphabetic())
    });
    let rooted = ["/", "./", "../", "~/"].iter().any(|root| path.starts_with(root));
    if !(separators >= 2 || typed && separators > 0 || rooted) {
        return None;
    }
    let from = path.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
    Some(path[from..].trim_start_matches(['/', '~']).trim_start_matches("./"))
}

/// A name with the ending of a file.
fn is_file(word: &str) -> bool {
    const ENDINGS: [&str; 39] = [
        "rs", "ts", "tsx", "js", "jsx", "mjs", "cjs", "py", "go", "java", "kt", "cc", "cpp", "hpp", "cs",
        "rb", "php", "swift", "sh", "sql", "md", "mdx", "txt", "json", "jsonl", "toml", "yaml", "yml", "xml",
        "html", "css", "csv", "lock", "cfg", "pdf", "png", "svg", "ipynb", "proto",
    ];
    word.rsplit_once('.').is_some_and(|(stem, ending)| {
        ENDINGS.contains(&ending)
            && stem.bytes().any(|b| b.is_ascii_alphanumeric())
            && stem.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
    })
}

/// `1.2.3`, `v2`, `$12.50`, `15%`, `2026-02-01`, `250ms`; small bare integers say nothing.
fn is_number(word: &str) -> bool {
    let core = word.strip_prefix(['v', '$', '-', '~', '#']).unwrap_or(word);
    if !core.starts_with(|c: char| c.is_ascii_digit()) || word.starts_with('#') || core.len() > 32 {
        return false;
    }
    let digits = core.bytes().filter(u8::is_ascii_digit).count();
    let head = core.bytes().take_while(|b| b.is_ascii_digit() || b".:-".contains(b)).count();
    let unit = &core[head..];
    if unit.len() > 3 || !unit.bytes().all(|b| b.is_ascii_alphabetic() || b == b'%') {
        return false;
    }
    digits >= 3 || !unit.is_empty() || word.starts_with(['v', '$']) || core.contains('.')
}

fn is_error(word: &str) -> bool {
    let code = ["E", "TS"].iter().any(|prefix| {
        word.strip_prefix(prefix)
            .is_some_and(|code| code.len() == 4 && code.bytes().all(|b| b.is_ascii_digit()))
    });
    let named = ["Error", "Exception"].iter().any(|ending| {
        word.strip_suffix(ending).is_some_and(|kind| {
            kind.len() >= 2
                && kind.starts_with(|c: char| c.is_ascii_uppercase())
                && kind.bytes().all(|b| b.is_ascii_alphanumeric())
        })
    });
    const SYSTEM: [&str; 10] = [
        "ENOENT", "EACCES", "EPERM", "EEXIST", "EPIPE", "EINVAL", "ENOTDIR", "ERESOLVE", "SIGSEGV", "SIGKILL",
    ];
    code || named || SYSTEM.contains(&word) || word.starts_with("ERR_") && word.len() > 6
}

fn is_id(word: &str) -> bool {
    let core = word.trim_start_matches('#');
    let bytes = core.as_bytes();
    let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
    if core.len() < 3 || core.len() > 64 || digits == 0 {
        return false;
    }
    if !bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-') {
        return false;
    }
    if core.len() < word.len() {
        return true;
    }
    let letters = core.len() - digits > bytes.iter().filter(|b| **b == b'-').count();
    let hexadecimal = bytes.iter().all(|b| b.is_ascii_hexdigit() || *b == b'-');
    if hexadecimal && letters && digits >= 2 && core.len() >= 7 {
        return true;
    }
    if let Some((project, issue)) = core.split_once('-') {
        return (2..=10).contains(&project.len())
            && project.bytes().all(|b| b.is_ascii_uppercase())
            && !issue.is_empty()
            && issue.bytes().all(|b| b.is_ascii_digit());
    }
    let upper = bytes.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    upper && letters && digits >= 2 && core.len() >= 5
}

/// A name that nobody writes by chance: `snake_case`, `camelCase`, `PascalCase`, `CONST_CASE`.
fn is_identifier(word: &str) -> bool {
    const PRODUCTS: [&str; 6] = ["GitHub", "GitLab", "JavaScript", "TypeScript", "OpenAI", "PostgreSQL"];
    let bytes = word.as_bytes();
    if !(4..=80).contains(&word.len()) || PRODUCTS.contains(&word) {
        return false;
    }
    if !bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_') || bytes[0].is_ascii_digit() {
        return false;
    }
    let joined = word.trim_matches('_').contains('_');
    let hump = bytes.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    bytes.iter().filter(|b| b.is_ascii_alphabetic()).count() >= 3 && (joined || hump)
}

/// Where entities are seen: an entity that another source uses too is generic, and no news of this one.
///
/// A source is a repository or a benchmark; what is known of each entity is a set of sources. Nothing is listed by hand:
/// the table is made at run time of the transcripts that are there.
#[derive(Debug, Default)]
pub struct Generic {
    sources: Vec<String>,
    seen: HashMap<u64, u32>,
}

impl Generic {
    /// Counts the entities of a text of `source`; up to 32 sources.
    pub fn add(&mut self, source: &str, text: &str) {
        let nth = self.sources.iter().position(|known| known == source).unwrap_or_else(|| {
            self.sources.push(source.to_owned());
            self.sources.len() - 1
        });
        entities(text, &mut |_, name, _| *self.seen.entry(hash(name)).or_default() |= bit(nth));
    }

    /// Whether a source other than `source` uses this entity.
    pub fn is_generic(&self, source: &str, name: &str) -> bool {
        let own = self.sources.iter().position(|known| known == source).map_or(0, bit);
        self.seen.get(&hash(name)).is_some_and(|sources| sources & !own != 0)
    }
}

/// Of a source; those after the first 32 have none.
fn bit(nth: usize) -> u32 {
    1_u32.checked_shl(nth as u32).unwrap_or(0)
}

/// FNV-1a: the same in every release.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<(Kind, String)> {
        let mut out = Vec::new();
        entities(text, &mut |kind, name, range| {
            assert!(text.get(range).is_some_and(|place| place.contains(name)), "{name}");
            out.push((kind, name.to_owned()));
        });
        out
    }

    #[test]
    fn entities_are_typed_and_named() {
        use Kind::*;
        for (text, expected) in [
            ("see ./crates/core/src/lib.rs:12:5.", vec![(Path, "src/lib.rs")]),
            (
                "cmd/main.go:12:runAll() in main.go",
                vec![(Path, "cmd/main.go"), (Identifier, "runAll"), (Path, "main.go")],
            ),
            ("(https://a.example/x?y=1).", vec![(Url, "https://a.example/x?y=1")]),
            ("to ann@mail.example, please", vec![(Email, "ann@mail.example")]),
            (
                "#W2378156 HAT219 4e313bb PROJ-12",
                vec![(Id, "#W2378156"), (Id, "HAT219"), (Id, "4e313bb"), (Id, "PROJ-12")],
            ),
            (
                "v1.2.3 $12.50 15% 250ms 42",
                vec![(Number, "v1.2.3"), (Number, "$12.50"), (Number, "15%"), (Number, "250ms")],
            ),
            ("TypeError: ENOENT E0463", vec![(Error, "TypeError"), (Error, "ENOENT"), (Error, "E0463")]),
            (
                "use --no-verify, snake_case.camelCase and strategy::SaveIt",
                vec![
                    (Flag, "--no-verify"),
                    (Identifier, "snake_case"),
                    (Identifier, "camelCase"),
                    (Identifier, "SaveIt"),
                ],
            ),
            ("한국어 camelCase变量 👩‍💻 src/a_b.rs다", vec![(Identifier, "camelCase"), (Path, "src/a_b.rs")]),
        ] {
            let expected: Vec<(Kind, String)> =
                expected.into_iter().map(|(kind, name)| (kind, name.to_owned())).collect();
            assert_eq!(all(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_of_lines_escapes_and_words_are_no_entities() {
        assert_eq!(all("   120→\tfoo\n121\tbar and/or it's well-known e.g. GitHub"), []);
        assert_eq!(all(r#""a\nContainer\tValue""#), []);
    }

    #[test]
    fn what_another_source_uses_is_generic() {
        let mut generic = Generic::default();
        generic.add("one", "README.md own_name");
        generic.add("two", "README.md");
        assert!(generic.is_generic("one", "README.md"));
        assert!(!generic.is_generic("one", "own_name"));
        assert!(generic.is_generic("two", "own_name"));
        assert!(!generic.is_generic("two", "unknown_name"));
    }
}
