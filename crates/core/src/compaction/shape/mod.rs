//! Tool results made shorter by their content, without a model (`S2.11`, `S4.5`): pure, deterministic, in linear time.
//!
//! Every text that was shortened says what it was and how much is left out; errors, paths and ids in it are to the
//! letter. Source code and prose are nobody's here: they are the summariser's.

mod diff;
mod digest;
mod fit;
mod html;
mod json;
pub(super) mod lines;
mod log;
mod outline;
pub(super) mod overlap;
mod search;
mod table;
mod text;

#[cfg(test)]
mod tests;

pub(crate) use digest::{digest, is_error, is_structured};

use text::count;

/// What a text is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    /// An object or a list.
    Json,
    /// One of them on each line.
    JsonLines,
    /// Rows under a header.
    Table,
    /// Lines with times or levels.
    Log,
    /// A unified diff.
    Diff,
    /// A page, or a piece of one.
    Html,
}

impl TextKind {
    /// The name in logs and in texts.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            TextKind::Json => "JSON",
            TextKind::JsonLines => "JSON lines",
            TextKind::Table => "table",
            TextKind::Log => "log",
            TextKind::Diff => "diff",
            TextKind::Html => "HTML",
        }
    }
}

/// A text that was shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shaped {
    /// What it was.
    pub(crate) kind: TextKind,
    /// What it is now.
    pub(crate) text: String,
    /// Nothing of it is left but its size.
    pub(crate) is_bare: bool,
}

/// A text, recognised.
enum Content<'t> {
    Json(json::Node<'t>),
    JsonLines(Vec<json::Node<'t>>),
    Table(table::Table<'t>),
    Log,
    Diff,
    Html,
}

impl<'t> Content<'t> {
    fn of(text: &'t str) -> Option<Self> {
        if let Some(node) = json::read(text) {
            return Some(Content::Json(node));
        }
        if let Some(nodes) = json_lines(text) {
            return Some(Content::JsonLines(nodes));
        }
        if diff::is_diff(text) {
            return Some(Content::Diff);
        }
        if html::is_html(text) {
            return Some(Content::Html);
        }
        if log::is_log(text) {
            return Some(Content::Log);
        }
        table::read(text).map(Content::Table)
    }

    fn kind(&self) -> TextKind {
        match self {
            Content::Json(_) => TextKind::Json,
            Content::JsonLines(_) => TextKind::JsonLines,
            Content::Table(_) => TextKind::Table,
            Content::Log => TextKind::Log,
            Content::Diff => TextKind::Diff,
            Content::Html => TextKind::Html,
        }
    }
}

/// Every line a value. Where all is one line it is read before.
fn json_lines(text: &str) -> Option<Vec<json::Node<'_>>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let nodes: Vec<_> = lines.map(json::read).collect::<Option<_>>()?;
    (!nodes.is_empty()).then_some(nodes)
}

/// The text in at most `target` characters, by what it is made of; nothing for prose and code. A text that fits comes
/// back as it is. A target that no honest form fits is passed by a line that says what was there.
pub(crate) fn shape(text: &str, target: usize) -> Option<Shaped> {
    let content = Content::of(text)?;
    let kind = content.kind();
    let chars = count(text);
    if chars <= target {
        return Some(Shaped { kind, text: text.to_string(), is_bare: false });
    }
    let shaped = match content {
        Content::Json(node) => json::shape(&node, target),
        Content::JsonLines(nodes) => json::shape_lines(&nodes, target),
        Content::Table(table) => Some(table::shape(&table, target)),
        Content::Log => Some(log::shape(text, target)),
        Content::Diff => Some(diff::shape(text, target)),
        Content::Html => Some(html::shape(text, target)),
    };
    let shaped = shaped.filter(|shaped| count(shaped) <= target);
    let is_bare = shaped.is_none();
    let shaped = shaped.unwrap_or_else(|| format!("[{}: {chars} characters left out]", kind.as_str()));
    if count(&shaped) >= chars {
        return Some(Shaped { kind, text: text.to_string(), is_bare: false });
    }
    Some(Shaped { kind, text: shaped, is_bare })
}
