//! What an item is: its type, whose it is, and what ties it to another one.

use crate::message::Role;
use crate::tagged;
use serde_json_borrow::Value;
use std::borrow::Cow;

/// What stands for the id of a search for tools that the server ran: it gives none.
const SERVER_SEARCH: &str = "tool_search";

/// A text field.
pub(super) fn text_field<'a>(item: &'a Value<'a>, key: &str) -> Option<Cow<'a, str>> {
    tagged::text(tagged::given(item, key)?)
}

/// The item's type. A message need not tell it when it has a role, nor a reference, which is all `id`.
pub(super) fn kind<'a>(item: &'a Value<'a>) -> Option<Cow<'a, str>> {
    if tagged::given(item, "type").is_some() {
        return text_field(item, "type");
    }
    if tagged::given(item, "role").is_some() {
        return Some(Cow::Borrowed("message"));
    }
    text_field(item, "id").map(|_| Cow::Borrowed("item_reference"))
}

/// True for the provider's own compaction items.
pub(super) fn is_compaction(kind: &str) -> bool {
    matches!(kind, "compaction" | "compaction_summary")
}

/// The role that a name stands for; `None` for one that the format does not have.
pub(super) fn role_named(name: &str) -> Option<Role> {
    match name {
        "system" | "developer" => Some(Role::System),
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        _ => None,
    }
}

/// Whose an item is. What the model and the tools of the server write is the model's.
pub(super) fn role(item: &Value<'_>, kind: &str) -> Role {
    if let Some(role) = text_field(item, "role").as_deref().and_then(role_named) {
        return role;
    }
    match link(item, kind) {
        _ if kind == "compaction_trigger" => Role::System,
        Some(Link { side: Side::Answer, family: Family::Program, .. }) => Role::Assistant,
        Some(Link { side: Side::Answer, family: Family::ServerSearch, .. }) => Role::Assistant,
        // A call that was approved belongs to the approval, and is the server's.
        Some(Link { side: Side::Answer, .. }) if kind != "mcp_call" => Role::Tool,
        _ => Role::Assistant,
    }
}

/// What an item has to do with the one that it belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// A call, or a request for approval.
    Ask,
    /// What answers it.
    Answer,
}

/// The kinds of call, each with an answer of its own kind (OR1).
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Family<'a> {
    /// The app answers: by name (`function`, `custom_tool`, `shell`, …).
    App(&'static str),
    /// The server's own search for tools.
    ServerSearch,
    /// Code of the model that calls tools: answered when it has ended.
    Program,
    /// A kind that is news to us, by the name that its types begin with.
    Other(Cow<'a, str>),
}

impl Family<'_> {
    /// True when the API refuses a call of this kind without its answer.
    pub(super) fn must_be_answered(&self) -> bool {
        matches!(self, Family::App(_))
    }

    /// True when the API refuses an answer of this kind without its call.
    pub(super) fn must_be_asked(&self) -> bool {
        matches!(self, Family::App(_) | Family::Program)
    }
}

/// An item's end of a tie.
pub(super) struct Link<'a> {
    pub(super) side: Side,
    pub(super) family: Family<'a>,
    pub(super) id: Cow<'a, str>,
}

/// The calls that an app answers, by what their types begin with.
const APP: [&str; 8] = [
    "function",
    "custom_tool",
    "local_shell",
    "shell",
    "apply_patch",
    "computer",
    "tool_search",
    "mcp_approval",
];

/// The item's end of a tie; `None` for an item that stands alone. Types are read by their ends, so that a kind of
/// call that is news to us is tied to its output too (lesson: server tools and new block types).
pub(super) fn link<'a>(item: &'a Value<'a>, kind: &str) -> Option<Link<'a>> {
    let (side, stem) = sides(kind)?;
    let id = match (kind, side) {
        ("mcp_call", _) => {
            let id = text_field(item, "approval_request_id")?;
            return Some(Link { side: Side::Answer, family: Family::Other(Cow::Borrowed("mcp")), id });
        }
        ("mcp_approval_request", _) => text_field(item, "id")?,
        ("mcp_approval_response", _) => text_field(item, "approval_request_id")?,
        ("local_shell_call_output", _) => text_field(item, "call_id").or_else(|| text_field(item, "id"))?,
        ("tool_search_call" | "tool_search_output", _) => match text_field(item, "call_id") {
            Some(id) if text_field(item, "execution").as_deref() != Some("server") => id,
            // One with an id of its own was rebuilt by an app, perhaps without its output: it waits for none.
            Some(_) if side == Side::Ask => return None,
            id => {
                let id = id.unwrap_or(Cow::Borrowed(SERVER_SEARCH));
                return Some(Link { side, family: Family::ServerSearch, id });
            }
        },
        _ => text_field(item, "call_id")?,
    };
    let family = match APP.iter().find(|name| **name == stem) {
        Some(name) => Family::App(name),
        None if stem == "program" => Family::Program,
        None => Family::Other(Cow::Owned(stem.to_owned())),
    };
    Some(Link { side, family, id })
}

/// Which end of a tie a type is, and the name that both ends begin with.
fn sides(kind: &str) -> Option<(Side, &str)> {
    let answers = ["_output", "_result", "_response"].into_iter().find_map(|end| kind.strip_suffix(end));
    if let Some(stem) = answers {
        return Some((Side::Answer, stem.strip_suffix("_call").unwrap_or(stem)));
    }
    let asks = ["_call", "_request"].into_iter().find_map(|end| kind.strip_suffix(end));
    asks.or((kind == "program").then_some(kind)).map(|stem| (Side::Ask, stem))
}

/// The id that the server gave the item (`rs_`, `msg_`, `fc_`), when the item can do without: it must not outlive an
/// edit of the item (OR4).
pub(super) fn server_id<'a>(item: &'a Value<'a>, kind: &str) -> Option<Cow<'a, str>> {
    let pairs = match kind {
        "mcp_approval_request" | "item_reference" => true,
        "local_shell_call_output" => tagged::given(item, "call_id").is_none(),
        _ => false,
    };
    if pairs { None } else { text_field(item, "id") }
}

/// The id of the program whose code made this call.
pub(super) fn caller<'a>(item: &'a Value<'a>) -> Option<Cow<'a, str>> {
    text_field(tagged::given(item, "caller")?, "caller_id")
}
