//! What a search found: title, address and snippet of each result, out of JSON or of text.

use super::json::{Node, Value};
use super::text::{clip, count};
use std::borrow::Cow;
use std::fmt::Write as _;

const URLS: &[&str] = &["url", "link", "href", "uri"];
const TITLES: &[&str] = &["title", "name", "heading"];
const SNIPPETS: &[&str] =
    &["snippet", "description", "summary", "excerpt", "content", "text", "body", "abstract", "raw_content"];
/// A line of these is a title or an address, whatever stands before the colon is not.
const LABELS: &[&str] =
    &["title", "url", "link", "source", "snippet", "content", "description", "summary", "text"];

/// One result.
#[derive(Debug, Default)]
struct SearchResult<'t> {
    title: Cow<'t, str>,
    url: Cow<'t, str>,
    snippet: String,
}

/// The results of a search that answered with JSON.
pub(super) fn of_json(node: &Node<'_>, snippet_chars: usize) -> Option<String> {
    let results = results(node, 0)?;
    let found: Vec<SearchResult<'_>> = results
        .iter()
        .filter_map(|item| {
            let snippet = first(item, SNIPPETS).unwrap_or_default().into_owned();
            let title = first(item, TITLES).unwrap_or_default();
            first(item, URLS).map(|url| SearchResult { title, url, snippet })
        })
        .collect();
    let answer = node.get("answer").and_then(Node::text).filter(|answer| !answer.is_empty());
    let mut out = answer.map(|answer| format!("Answer: {answer}\n")).unwrap_or_default();
    write(&found, results.len(), snippet_chars, &mut out);
    Some(out)
}

fn first<'n>(item: &'n Node<'_>, names: &[&str]) -> Option<Cow<'n, str>> {
    names.iter().find_map(|name| item.get(name).and_then(Node::text).filter(|text| !text.is_empty()))
}

/// The list most of whose items have an address.
fn results<'n, 't>(node: &'n Node<'t>, depth: usize) -> Option<&'n [Node<'t>]> {
    if depth > 4 {
        return None;
    }
    match &node.value {
        Value::List(items) => {
            let leading = items.iter().filter(|item| first(item, URLS).is_some()).count();
            if leading > 0 && leading * 2 >= items.len() {
                return Some(items);
            }
            items.iter().take(20).find_map(|item| results(item, depth + 1))
        }
        Value::Object(fields) => fields.iter().find_map(|(_, node)| results(node, depth + 1)),
        _ => None,
    }
}

/// The results of a search that answered with text: blocks, each with an address.
pub(super) fn of_text(text: &str, snippet_chars: usize) -> Option<String> {
    let mut found: Vec<SearchResult<'_>> = Vec::new();
    for block in blocks(text) {
        let Some((at, url)) = block.iter().enumerate().find_map(|(at, line)| Some((at, address(line)?)))
        else {
            // What stands behind a result belongs to it; what stands before the first is no result.
            if let Some(last) = found.last_mut() {
                join(&mut last.snippet, &block);
            }
            continue;
        };
        let mut result = SearchResult { url: Cow::Borrowed(url), ..SearchResult::default() };
        let titled = block.first().map(|line| title(line)).unwrap_or_default();
        result.title = Cow::Borrowed(titled);
        let rest = block.iter().enumerate().filter(|(nth, _)| *nth != 0 && *nth != at).map(|(_, line)| *line);
        join(&mut result.snippet, &rest.collect::<Vec<_>>());
        found.push(result);
    }
    if found.is_empty() {
        return None;
    }
    let mut out = String::new();
    write(&found, found.len(), snippet_chars, &mut out);
    Some(out)
}

/// Runs of lines; a blank line, a number or a label for a title begins the next one.
fn blocks(text: &str) -> Vec<Vec<&str>> {
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    let mut begins = true;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.bytes().all(|byte| b"-=*_".contains(&byte)) {
            begins = true;
            continue;
        }
        let numbered = line.split_once(['.', ')']).is_some_and(|(number, _)| {
            (1..=3).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        let titled = label(line).is_some_and(|(label, _)| label.eq_ignore_ascii_case("title"));
        match blocks.last_mut() {
            Some(block) if !(begins || numbered || titled) => block.push(line),
            _ => blocks.push(vec![line]),
        }
        begins = false;
    }
    blocks
}

fn label(line: &str) -> Option<(&str, &str)> {
    let (label, rest) = line.split_once(':')?;
    let label = label.trim().trim_matches(['*', '#', '-', ' ']);
    LABELS
        .iter()
        .any(|known| label.eq_ignore_ascii_case(known))
        .then(|| (label, rest.trim_matches(['*', ' '])))
}

/// The address in a line.
fn address(line: &str) -> Option<&str> {
    let at = line.find("http://").into_iter().chain(line.find("https://")).min()?;
    let rest = line.get(at..)?;
    let end = rest.find(|c: char| c.is_whitespace() || "<>\"')]}|".contains(c)).unwrap_or(rest.len());
    rest.get(..end).map(|url| url.trim_end_matches(['.', ',', ';']))
}

/// A line as a title: without its number, its label, the address of a Markdown link.
fn title(line: &str) -> &str {
    let line = label(line).map_or(line, |(_, rest)| rest);
    let line = line
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .trim_start_matches(['.', ')', '#', '-', '*', ' ']);
    let line = if line.is_empty() { "" } else { line };
    match line.strip_prefix('[').and_then(|link| link.split_once("](")) {
        Some((title, _)) => title,
        None => line.trim_matches(['*', ' ']),
    }
}

fn join(snippet: &mut String, lines: &[&str]) {
    for line in lines {
        if !snippet.is_empty() {
            snippet.push(' ');
        }
        snippet.push_str(label(line).map_or(*line, |(_, rest)| rest));
    }
}

fn write(found: &[SearchResult<'_>], all: usize, snippet_chars: usize, out: &mut String) {
    let _ = write!(out, "{all} results");
    for (nth, SearchResult { title, url, snippet }) in found.iter().enumerate() {
        let title = if title.is_empty() { url } else { title };
        let _ = write!(out, "\n{}. {}\n   {url}", nth + 1, clip(title, snippet_chars));
        let snippet = snippet.split_whitespace().collect::<Vec<_>>().join(" ");
        if count(&snippet) > 0 {
            let _ = write!(out, "\n   {}", clip(&snippet, snippet_chars));
        }
    }
}
