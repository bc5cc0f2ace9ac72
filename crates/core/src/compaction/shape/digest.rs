//! What stands in place of a result right after its tool returned it, by the type of the tool (`S4.5`), and which results
//! are never touched (`S4.6`).

use super::json::{Node, Value};
use super::text::{clip, count};
use super::{html, json, json_lines, outline, search, table};
use crate::policy::{Digest, ProcessNumbers};
use serde_json_borrow::Value as Arguments;
use std::fmt::Write as _;

/// The longest row of a sample.
const LONGEST_ROW: usize = 400;
/// Headers of an answer that say something about it.
const HEADERS: &[&str] = &["content-type", "location", "link", "retry-after", "etag"];

/// The digest; nothing when the result is small enough for its type, or cannot be read as one.
pub(crate) fn digest(kind: Digest, text: &str, arguments: &str, numbers: &ProcessNumbers) -> Option<String> {
    match kind {
        Digest::Search => match json::read(text) {
            Some(node) => search::of_json(&node, numbers.snippet_chars),
            None => search::of_text(text, numbers.snippet_chars),
        },
        Digest::File => file(text, arguments, numbers),
        Digest::Query => query(text, numbers),
        Digest::Api => api(text, numbers),
    }
}

fn file(text: &str, arguments: &str, numbers: &ProcessNumbers) -> Option<String> {
    let (lines, first) = outline::numbered(text);
    if lines.len() <= numbers.file_lines {
        return None;
    }
    let arguments: Option<Arguments<'_>> = crate::wire::objects::from_str(arguments).ok();
    let named = |key: &&str| Some(arguments.as_ref()?.as_object()?.get(key)?.as_str()?.to_string());
    let path =
        ["path", "file_path", "file", "filename", "filePath"].iter().find_map(named).unwrap_or_default();
    let last = first + lines.len() - 1;
    let outline = outline::outline(&lines, first, &path, numbers.outline_lines);
    Some(format!(
        "{path}{}{} lines, {first} to {last}\n{outline}",
        if path.is_empty() { "" } else { ": " },
        lines.len()
    ))
}

fn query(text: &str, numbers: &ProcessNumbers) -> Option<String> {
    let rows = |out: &mut String, all: usize, columns: &[String]| {
        let _ = write!(out, "{all} rows");
        if !columns.is_empty() {
            let _ = write!(out, "; columns: {}", columns.join(", "));
        }
    };
    let mut out = String::new();
    let of_nodes = |nodes: &[Node<'_>], out: &mut String| {
        rows(out, nodes.len(), &nodes.first().map(keys).unwrap_or_default());
        for (at, node) in table::sample(nodes, numbers.sample_rows) {
            let row = json::shape(node, LONGEST_ROW).unwrap_or_default();
            let _ = write!(out, "\nrow {}: {row}", at + 1);
        }
    };
    if let Some(node) = json::read(text) {
        let nodes = longest(&node, 0).filter(|rows| rows.len() > numbers.query_rows)?;
        if let Value::Object(fields) = &node.value {
            for (key, value) in fields.iter().filter_map(|(key, node)| Some((key, node.text()?))) {
                let _ = writeln!(out, "{}: {}", json::unquoted(key), clip(&value, LONGEST_ROW));
            }
        }
        of_nodes(nodes, &mut out);
    } else if let Some(nodes) = json_lines(text) {
        if nodes.len() <= numbers.query_rows {
            return None;
        }
        of_nodes(&nodes, &mut out);
    } else {
        let table = table::read(text).filter(|table| table.rows.len() > numbers.query_rows)?;
        let columns: Vec<String> = table.columns.iter().map(|name| (*name).to_string()).collect();
        rows(&mut out, table.rows.len(), &columns);
        for (at, row) in table::sample(&table.rows, numbers.sample_rows) {
            let _ = write!(out, "\nrow {}: {}", at + 1, clip(row, LONGEST_ROW));
        }
    }
    Some(out)
}

fn keys(node: &Node<'_>) -> Vec<String> {
    match &node.value {
        Value::Object(fields) => fields.iter().map(|(key, _)| json::unquoted(key).into_owned()).collect(),
        _ => Vec::new(),
    }
}

/// The longest list, of the answer or of its fields.
fn longest<'n, 't>(node: &'n Node<'t>, depth: usize) -> Option<&'n [Node<'t>]> {
    match &node.value {
        Value::List(items) => Some(items),
        Value::Object(fields) if depth < 3 => {
            fields.iter().filter_map(|(_, node)| longest(node, depth + 1)).max_by_key(|items| items.len())
        }
        _ => None,
    }
}

fn api(text: &str, numbers: &ProcessNumbers) -> Option<String> {
    let (status, kept, body) = response(text);
    let mut out = status.map(|status| format!("status: {status}\n")).unwrap_or_default();
    out.push_str(&kept);
    let room = numbers.api_chars.saturating_sub(count(&out));
    match json::read(body) {
        Some(node) => {
            if let Some(status) = status_field(&node).filter(|_| status.is_none()) {
                let _ = writeln!(out, "status: {status}");
            }
            out.push_str(&json::shape(&node, room)?);
        }
        None if html::is_html(body) => out.push_str(&html::shape(body, room)),
        None => return None,
    }
    Some(out)
}

/// The status line, the telling headers and the body of an answer as it came over the wire, or with its status first.
fn response(text: &str) -> (Option<&str>, String, &str) {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let first = first.trim();
    if first.starts_with("HTTP/") {
        let status = first.split_once(' ').map(|(_, status)| status);
        let (head, body) =
            rest.split_once("\r\n\r\n").or_else(|| rest.split_once("\n\n")).unwrap_or(("", rest));
        let mut kept = String::new();
        for line in head.lines() {
            let name = line.split(':').next().unwrap_or("");
            if HEADERS.iter().any(|known| name.eq_ignore_ascii_case(known)) {
                let _ = writeln!(kept, "{}", line.trim());
            }
        }
        return (status, kept, body);
    }
    let status = first
        .split_once(':')
        .filter(|(name, _)| name.len() < 20 && name.to_ascii_lowercase().starts_with("status"))
        .map(|(_, status)| status.trim());
    (status, String::new(), if status.is_some() { rest } else { text })
}

/// The code that an answer gives itself.
fn status_field(node: &Node<'_>) -> Option<String> {
    let code =
        ["status", "statusCode", "status_code", "code"].iter().find_map(|name| node.get(name)?.text())?;
    code.parse::<u16>().is_ok_and(|code| (100..600).contains(&code)).then(|| code.into_owned())
}

/// True for a result in which a tool reports that it failed, where the format cannot say so.
pub(crate) fn is_error(text: &str) -> bool {
    if let Some(node) = json::read(text) {
        let said = |name: &str| {
            node.get(name).is_some_and(|node| match &node.value {
                Value::Scalar(text) => !matches!(*text, "null" | "false" | "0"),
                Value::Text(text) => text.len() > 2,
                Value::List(items) => !items.is_empty(),
                Value::Object(fields) => !fields.is_empty(),
            })
        };
        let denied =
            |name: &str| matches!(node.get(name).map(|node| &node.value), Some(Value::Scalar("false")));
        let refused =
            status_field(&node).and_then(|code| code.parse().ok()).is_some_and(|code: u16| code >= 400);
        return refused
            || denied("ok")
            || denied("success")
            || ["error", "errors", "isError", "is_error"].iter().any(|name| said(name));
    }
    let (status, _, _) = response(text);
    let code = status.and_then(|status| status.split(' ').next()).and_then(|code| code.parse::<u16>().ok());
    if code.is_some_and(|code| code >= 400) {
        return true;
    }
    const BEGINNINGS: &[&str] = &[
        "error",
        "exception",
        "traceback (most recent call last)",
        "fatal",
        "panic",
        "command failed",
        "failed",
        "unhandled",
        "uncaught",
        "permission denied",
    ];
    let line = text.trim_start().lines().next().unwrap_or("").trim_start_matches(['[', '<', '*', '#', ' ']);
    let begins = |with: &&str| {
        let head = line.get(..with.len()).is_some_and(|head| head.eq_ignore_ascii_case(with));
        // "Errors are handled in src/…" is a heading.
        head && line
            .get(with.len()..)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([':', ']', '!', '[', '(', '>']))
    };
    let name = line.split(':').next().unwrap_or("");
    let named =
        line.contains(':') && !name.contains(' ') && (name.ends_with("Error") || name.ends_with("Exception"));
    named || BEGINNINGS.iter().any(begins)
}

/// True for JSON and YAML.
pub(crate) fn is_structured(text: &str) -> bool {
    json::read(text).is_some() || is_yaml(text)
}

/// Keys and list items on nearly every line, and nothing that ends as a sentence does.
fn is_yaml(text: &str) -> bool {
    let (mut lines, mut keyed) = (0_usize, 0_usize);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        lines += 1;
        let item = line.strip_prefix("- ").unwrap_or(line);
        let key = item.split_once(':').is_some_and(|(key, rest)| {
            !key.is_empty() && !key.contains([' ', '{', '(']) && (rest.is_empty() || rest.starts_with(' '))
        });
        keyed += usize::from(key || line == "---" || line.starts_with("- "));
    }
    lines > 1 && keyed * 10 >= lines * 9
}
