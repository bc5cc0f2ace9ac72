//! HTML as text: no parser, no tree. Scripts, styles and markup go; headings, lists, table cells, links and the texts of
//! pictures stay. It reads tags one by one, as they come, so broken nesting is no matter; what a style sheet or a script
//! would hide or show is not known. A parser of all of HTML would weigh more than everything else here.

use super::fit::Lines;
use super::text::{clip, count};
use std::fmt::Write as _;

/// Elements whose content is not text.
const DROPPED: &[&str] = &["script", "style", "svg", "template", "noscript", "iframe", "canvas", "math"];
/// Elements that begin a line.
const BLOCKS: &[&str] = &[
    "p",
    "div",
    "br",
    "tr",
    "ul",
    "ol",
    "table",
    "section",
    "article",
    "header",
    "footer",
    "nav",
    "main",
    "aside",
    "form",
    "blockquote",
    "figure",
    "figcaption",
    "dl",
    "dt",
    "dd",
    "hr",
    "pre",
    "option",
    "body",
    "head",
];
/// How far behind the first `>` of a tag a quote may end.
const LONGEST_VALUE: usize = 1_000;
/// The longest line that is shown where not all fits.
const LONGEST: usize = 300;

/// True for a page, or a piece of one with several of the common elements.
pub(super) fn is_html(text: &str) -> bool {
    let start = text.trim_start();
    let begins = |with: &str| start.get(..with.len()).is_some_and(|head| head.eq_ignore_ascii_case(with));
    if begins("<!doctype html") || begins("<html") {
        return true;
    }
    let known = |tag: &str| {
        let name = tag.trim_start_matches('/');
        let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
        name.get(..end)
            .is_some_and(|name| BLOCKS.contains(&name) || matches!(name, "a" | "li" | "h1" | "h2" | "span"))
    };
    start.starts_with('<')
        && !begins("<?xml")
        && start.split('<').skip(1).take(400).filter(|tag| known(tag)).count() >= 8
}

/// Its text, line by line.
pub(super) fn text(html: &str) -> String {
    Strip { out: String::new(), blank: true, link: None, pre: 0 }.run(html)
}

struct Strip<'h> {
    out: String,
    /// The next blank would be one too many.
    blank: bool,
    /// Target of the link that is open, and where its text begins.
    link: Option<(&'h str, usize)>,
    /// Depth of preformatted text.
    pre: usize,
}

impl<'h> Strip<'h> {
    fn run(mut self, html: &'h str) -> String {
        let mut rest = html;
        while let Some(open) = rest.find('<') {
            self.words(rest.get(..open).unwrap_or(""));
            rest = rest.get(open..).unwrap_or("");
            if let Some(comment) = rest.strip_prefix("<!--") {
                rest = comment.find("-->").and_then(|end| comment.get(end + 3..)).unwrap_or("");
                continue;
            }
            let is_tag = rest
                .as_bytes()
                .get(1)
                .is_some_and(|byte| byte.is_ascii_alphabetic() || b"/!?".contains(byte));
            if !is_tag {
                self.words("<");
                rest = rest.get(1..).unwrap_or("");
                continue;
            }
            // Nothing closes it, nor anything behind it.
            let Some(close) = rest.find('>') else { break };
            let close = quoted_end(rest, close);
            let tag = rest.get(1..close).unwrap_or("");
            rest = rest.get(close + 1..).unwrap_or("");
            let end = tag.find(|c: char| c.is_ascii_whitespace()).unwrap_or(tag.len());
            let name = tag.get(..end).unwrap_or("").trim_end_matches('/').to_ascii_lowercase();
            if DROPPED.contains(&name.as_str()) && !tag.ends_with('/') {
                rest = behind(rest, &name);
            } else {
                self.tag(&name, tag.get(end..).unwrap_or(""));
            }
        }
        self.words(rest);
        lines(&self.out)
    }

    fn tag(&mut self, name: &str, attributes: &'h str) {
        let closed = name.strip_prefix('/');
        let plain = closed.unwrap_or(name);
        let heading =
            plain.strip_prefix('h').and_then(|level| level.parse::<usize>().ok()).filter(|n| *n <= 6);
        match (plain, closed.is_some()) {
            ("a", false) => self.link = attribute(attributes, "href").map(|href| (href, self.out.len())),
            ("a", true) => self.close_link(),
            ("img", _) => {
                if let Some(alt) = attribute(attributes, "alt").filter(|alt| !alt.trim().is_empty()) {
                    self.words(&format!("[image: {}]", alt.trim()));
                }
            }
            ("li", false) => self.begin("- "),
            ("li", true) => self.begin(""),
            ("td" | "th", true) => self.words(" | "),
            ("pre", closes) => {
                self.begin("");
                self.pre = if closes { self.pre.saturating_sub(1) } else { self.pre + 1 };
            }
            (_, closes) if heading.is_some() || plain == "title" => {
                let marks = "#".repeat(if closes { 0 } else { heading.unwrap_or(1) });
                self.begin(&marks);
                self.words(if closes { "" } else { " " });
            }
            _ if BLOCKS.contains(&plain) => self.begin(""),
            _ => {}
        }
    }

    /// A new line that begins with this.
    fn begin(&mut self, with: &str) {
        self.out.push('\n');
        self.out.push_str(with);
        self.blank = with.is_empty() || with.ends_with(' ');
    }

    fn close_link(&mut self) {
        let Some((href, from)) = self.link.take() else { return };
        let href = href.trim();
        let text = self.out.get(from..).unwrap_or("").trim();
        let leads = href.starts_with("http") || href.starts_with('/');
        if leads && !text.is_empty() && !text.contains(href) {
            let mut target = String::new();
            decode(href, &mut target);
            let _ = write!(self.out, " ({target})");
            self.blank = false;
        }
    }

    /// Text between tags: entities decoded, blanks joined.
    fn words(&mut self, text: &str) {
        let mut plain = String::with_capacity(text.len());
        decode(text, &mut plain);
        for letter in plain.chars() {
            if letter.is_whitespace() && (self.pre == 0 || letter == '\r') {
                if !self.blank {
                    self.out.push(' ');
                }
                self.blank = true;
            } else {
                self.out.push(letter);
                self.blank = false;
            }
        }
    }
}

/// Where the tag at the start of `text` ends: `close` is its first `>`, which may stand in a quoted value.
fn quoted_end(text: &str, close: usize) -> usize {
    let mut quote = None;
    // A quote that nothing closes ends at the first `>` after all; a value is never that long.
    for (at, byte) in text.bytes().enumerate().take(close.saturating_add(LONGEST_VALUE)) {
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            (None, b'>') => return at,
            _ => {}
        }
    }
    close
}

/// What follows the end of the element `name`.
fn behind<'h>(text: &'h str, name: &str) -> &'h str {
    let mut rest = text;
    while let Some(at) = rest.find("</") {
        rest = rest.get(at + 2..).unwrap_or("");
        let ends = rest.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name));
        if ends {
            return rest.find('>').and_then(|at| rest.get(at + 1..)).unwrap_or("");
        }
    }
    ""
}

/// The value of an attribute.
fn attribute<'h>(attributes: &'h str, name: &str) -> Option<&'h str> {
    let mut rest = attributes;
    while let Some(equals) = rest.find('=') {
        let (key, value) = (rest.get(..equals)?.trim(), rest.get(equals + 1..)?.trim_start());
        let key = key.rsplit(|c: char| c.is_whitespace()).next()?;
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (found, after) = match quote {
            Some(quote) => value.get(1..)?.split_once(quote)?,
            None => value.split_at(value.find(char::is_whitespace).unwrap_or(value.len())),
        };
        if key.eq_ignore_ascii_case(name) {
            return Some(found);
        }
        rest = after;
    }
    None
}

/// Entities that pages use in prose; any other stays as it is.
const ENTITIES: &[(&str, &str)] = &[
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("quot", "\""),
    ("apos", "'"),
    ("nbsp", " "),
    ("mdash", "—"),
    ("ndash", "–"),
    ("hellip", "…"),
    ("copy", "©"),
    ("reg", "®"),
    ("trade", "™"),
    ("laquo", "«"),
    ("raquo", "»"),
    ("lsquo", "‘"),
    ("rsquo", "’"),
    ("ldquo", "“"),
    ("rdquo", "”"),
    ("bull", "•"),
    ("middot", "·"),
    ("times", "×"),
    ("euro", "€"),
    ("pound", "£"),
    ("deg", "°"),
    ("rarr", "→"),
    ("larr", "←"),
];

fn decode(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(rest.get(..at).unwrap_or(""));
        rest = rest.get(at + 1..).unwrap_or("");
        // The longest name is short: a lone `&` costs no search to the end.
        let end = rest.bytes().take(10).position(|byte| byte == b';');
        let name = end.and_then(|end| rest.get(..end)).unwrap_or("");
        let number = name.strip_prefix('#').and_then(|number| match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => number.parse().ok(),
        });
        let named = ENTITIES.iter().find(|(key, _)| *key == name).map(|(_, text)| *text);
        if let Some(letter) = number.and_then(char::from_u32).filter(|c| !c.is_control()) {
            out.push(letter);
        } else if let Some(text) = named {
            out.push_str(text);
        } else {
            out.push('&');
            continue;
        }
        rest = rest.get(name.len() + 1..).unwrap_or("");
    }
    out.push_str(rest);
}

/// Lines without blanks around them, without the empty ones.
fn lines(text: &str) -> String {
    let shown = text.lines().map(|line| line.trim().trim_matches('|').trim_end());
    let kept: Vec<&str> =
        shown.filter(|line| line.chars().any(|c| !matches!(c, '-' | '#' | '|' | ' '))).collect();
    kept.join("\n")
}

/// The page in at most `target` characters.
pub(super) fn shape(html: &str, target: usize) -> String {
    let text = text(html);
    let mut out =
        format!("[HTML of {} characters as text; scripts, styles and markup left out]\n", count(html));
    let room = target.saturating_sub(count(&out));
    if count(&text) <= room {
        out.push_str(&text);
        return out;
    }
    let all: Vec<&str> = text.lines().collect();
    let mut lines = Lines::new(all.iter().map(|line| clip(line, LONGEST)), "lines");
    let matching = |wanted: fn(&str) -> bool| {
        all.iter().enumerate().filter(move |(_, line)| wanted(line)).map(|(at, _)| at)
    };
    lines.take(matching(|line| line.starts_with('#')), room / 2);
    // Menus are lists of links; prose comes first.
    if lines.fill(matching(|line| !is_menu(line)), room) {
        lines.fill(0..all.len(), room);
    }
    lines.write(&mut out);
    out
}

/// A link and nothing else.
fn is_menu(line: &str) -> bool {
    line.ends_with(')') && line.len() < 120 && line.starts_with("- ") && line.contains(" (")
}

#[cfg(test)]
mod tests {
    use super::is_menu;

    #[test]
    fn f39_s2_11_a_line_of_a_menu_is_a_short_item_with_a_link_and_nothing_else() {
        let long = |bytes: usize| format!("- {} (/home)", "x".repeat(bytes - 10));
        for (line, expected) in [
            ("- Home (/home)", true),
            (&long(119), true),
            (&long(120), false),
            (&long(121), false),
            ("- Home (/home).", false),
            ("Home (/home)", false),
            ("- Home(/home)", false),
        ] {
            assert_eq!(is_menu(line), expected, "{line}");
        }
    }
}
