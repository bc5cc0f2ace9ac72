//! The rules of the API (OR1 to OR5) with the change that mends each, and those that not every request meets.

use super::item::{self, Family, Side};
use super::read;
use crate::message::Role;
use crate::order;
use crate::rules::Finding;
use crate::{Past, Problem, tagged};
use serde::de::IgnoredAny;
use serde_json_borrow::Value;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Characters that one text of a request may have.
const LONGEST_TEXT: usize = 10 * 1024 * 1024;

/// What mends an item.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fix {
    /// Take it out.
    Drop,
    /// Take the id off that the server gave it.
    Id,
    /// Replace lone surrogates.
    WellFormed,
}

/// An item that can be read.
struct Item<'a> {
    position: usize,
    kind: Cow<'a, str>,
    role: Role,
    value: &'a Value<'a>,
}

struct Findings(Vec<Finding<Fix>>);

impl Findings {
    fn add(&mut self, position: usize, rule: &'static str, what: impl Into<String>, fix: Fix) {
        self.0.push(Finding { position, rule, what: what.into(), fix });
    }
}

pub(super) fn find(messages: &[&Value<'_>]) -> Vec<Finding<Fix>> {
    judge(messages, true).0
}

/// Where no call waits and no reasoning ends, nothing that follows depends on what was before but for its ids.
pub(super) fn grows(past: &mut Past, window: &[&Value<'_>]) -> bool {
    let (findings, items) = judge(window, past.messages == 0);
    if !findings.is_empty() || items.iter().filter_map(own_id).any(|id| past.has(&id)) {
        return false;
    }
    // A trigger must be the last item, which it may be no more.
    let triggers = items.last().is_some_and(|item| item.kind == "compaction_trigger");
    let seam = window.len() - usize::from(triggers);
    items.iter().filter(|item| item.position < seam).filter_map(own_id).for_each(|id| past.note(&id));
    past.messages += seam;
    true
}

/// What is wrong with a history, or (`begins` is false) with the end of one, and the items that can be read.
fn judge<'a>(messages: &[&'a Value<'a>], begins: bool) -> (Vec<Finding<Fix>>, Vec<Item<'a>>) {
    let mut findings = Findings(Vec::new());
    let mut items = Vec::with_capacity(messages.len());
    for (position, value) in messages.iter().enumerate() {
        match read::message(position, value) {
            Ok(message) => {
                let kind = item::kind(value).unwrap_or_default();
                items.push(Item { position, kind, role: message.role, value });
            }
            Err(error) => {
                findings.add(position, "OR0", format!("the item cannot be read: {error}"), Fix::Drop);
            }
        }
    }
    for item in &items {
        ill_formed(item, &mut findings);
        too_long(item, &mut findings);
    }
    let open = if begins { leading(&items) } else { 0 };
    pairs(items.get(open..).unwrap_or_default(), Families::Known, &mut findings);
    reasoning(&items, &mut findings);
    ids(&items, &mut findings);
    triggers(&items, &mut findings);
    (findings.0, items)
}

/// OR0
fn ill_formed(item: &Item<'_>, findings: &mut Findings) {
    if !tagged::is_ill_formed(item.value) {
        return;
    }
    // What the provider wrote for itself is sent as it was or not at all.
    let verbatim = item.kind == "reasoning" || item::is_compaction(&item.kind);
    let (what, fix) = match verbatim {
        true => ("a text has a lone surrogate, which the API refuses; remove the item", Fix::Drop),
        false => {
            ("a text has a lone surrogate, which the API refuses; replace it by U+FFFD", Fix::WellFormed)
        }
    };
    findings.add(item.position, "OR0", what, fix);
}

/// OR3
fn too_long(item: &Item<'_>, findings: &mut Findings) {
    let length = tagged::given(item.value, "encrypted_content").and_then(Value::as_str).map_or(0, str::len);
    if item::is_compaction(&item.kind) && length > LONGEST_TEXT {
        let what = format!(
            "the compaction item has {length} characters, and the API takes {LONGEST_TEXT}; remove it and send what it stands for"
        );
        findings.add(item.position, "OR3", what, Fix::Drop);
    }
}

/// The families whose pairs are checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Families {
    /// Those that the API checks.
    Known,
    /// Those that are news to us.
    Other,
}

/// How many outputs a history begins with: the calls may be of a response that the server holds. Where it holds none,
/// it says so.
fn leading(items: &[Item<'_>]) -> usize {
    let answers = |item: &&Item<'_>| {
        let link = item::link(item.value, &item.kind);
        link.is_some_and(|link| link.side == Side::Answer && matches!(link.family, Family::App(_)))
    };
    items.iter().take_while(answers).count()
}

/// OR1: a call and its output, by id and kind. Ids are unique among the calls that wait, no more than that.
fn pairs(items: &[Item<'_>], which: Families, findings: &mut Findings) {
    let mut open = HashMap::new();
    let mut answered = HashSet::new();
    let (mut unanswered, mut programs) = (Vec::new(), HashSet::new());
    // A reference may stand for the call, or for the request, that a later item answers.
    let mut referenced = false;
    for item in items {
        referenced |= item.kind == "item_reference";
        if which == Families::Known {
            made_by(item, referenced, &programs, findings);
        }
        let Some(link) = item::link(item.value, &item.kind) else { continue };
        let checked = match which {
            Families::Known => !matches!(link.family, Family::Other(_)),
            Families::Other => matches!(link.family, Family::Other(_)) && item.kind != "mcp_call",
        };
        if !checked {
            continue;
        }
        if link.family == Family::Program && link.side == Side::Ask {
            programs.insert(link.id.clone());
        }
        let must_be_answered = which == Families::Other || link.family.must_be_answered();
        let must_be_asked = which == Families::Other || link.family.must_be_asked();
        let key = (link.family, link.id);
        match link.side {
            Side::Ask => {
                if let Some((position, true)) = open.insert(key.clone(), (item.position, must_be_answered)) {
                    unanswered.push((position, key.1));
                }
            }
            Side::Answer if open.remove(&key).is_some() => {
                answered.insert(key);
            }
            Side::Answer if !must_be_asked => {}
            Side::Answer if answered.contains(&key) => {
                let what = format!("answers the call `{}` a second time; keep one answer", key.1);
                findings.add(item.position, "OR1", what, Fix::Drop);
            }
            Side::Answer if referenced => {}
            Side::Answer => {
                let what = format!(
                    "answers the call `{}`, which no item of its kind before it made; remove it",
                    key.1
                );
                findings.add(item.position, "OR1", what, Fix::Drop);
            }
        }
    }
    let waiting = open.into_iter().filter(|(_, (_, must))| *must);
    unanswered.extend(waiting.map(|((_, id), (position, _))| (position, id)));
    for (position, id) in order::by_key(unanswered, |(position, _)| *position as u64) {
        let what =
            format!("the call `{id}` has no output of its kind; add one behind it, or remove the call");
        findings.add(position, "OR1", what, Fix::Drop);
    }
}

/// OR1: what a function is called with (`S1.15`), and the program that called it.
fn made_by(item: &Item<'_>, referenced: bool, programs: &HashSet<Cow<'_, str>>, findings: &mut Findings) {
    if item.role != Role::Assistant {
        return;
    }
    if item.kind == "function_call" {
        let arguments = item::text_field(item.value, "arguments").unwrap_or_default();
        if !is_json_object(&arguments) {
            let what = "the arguments of the call are not a JSON object; remove it with its output";
            findings.add(item.position, "OR1", what, Fix::Drop);
        }
    }
    if let Some(id) = item::caller(item.value)
        && !referenced
        && !programs.contains(&id)
    {
        let what =
            format!("the call was made by the program `{id}`, which does not stand before it; remove it");
        findings.add(item.position, "OR1", what, Fix::Drop);
    }
}

/// Some models write nothing for no arguments, and their servers take that back.
fn is_json_object(text: &str) -> bool {
    text.trim_start().is_empty()
        || text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// OR2: reasoning is followed by what the model said or did next.
fn reasoning(items: &[Item<'_>], findings: &mut Findings) {
    let mut followed = false;
    for item in items.iter().rev() {
        if item.kind != "reasoning" {
            followed = item.role == Role::Assistant;
        } else if !followed {
            let what = "the reasoning has no item of the model behind it; keep that with it, or remove it";
            findings.add(item.position, "OR2", what, Fix::Drop);
        }
    }
}

/// OR4: the API finds items by the ids that it gave them. An item that is taken out anyway leaves its id to the next.
fn ids(items: &[Item<'_>], findings: &mut Findings) {
    let drops = findings.0.iter().filter(|finding| finding.fix == Fix::Drop);
    let gone: HashSet<usize> = drops.map(|finding| finding.position).collect();
    let mut seen = HashSet::new();
    for item in items.iter().filter(|item| !gone.contains(&item.position)) {
        let Some(id) = own_id(item) else { continue };
        if seen.contains(&id) {
            let what = format!("the id `{id}` stands on two items; leave it out here, or remove the item");
            findings.add(item.position, "OR4", what, if can_do_without(item) { Fix::Id } else { Fix::Drop });
        } else {
            seen.insert(id);
        }
    }
}

/// The id of an item, where it has one.
fn own_id<'a>(item: &Item<'a>) -> Option<Cow<'a, str>> {
    let id = match item.kind.as_ref() {
        // The id of the call that it answers.
        "local_shell_call_output" => item::server_id(item.value, &item.kind),
        _ => item::text_field(item.value, "id"),
    };
    id.filter(|id| !id.is_empty())
}

/// True for the items that an app may have written as well, which have no id then. Two kinds of call must have theirs.
fn can_do_without(item: &Item<'_>) -> bool {
    if matches!(item.kind.as_ref(), "computer_call" | "local_shell_call") {
        return false;
    }
    let app = |link: item::Link<'_>| matches!(link.family, Family::App(_));
    let ours = item.kind == "message" || item::link(item.value, &item.kind).is_some_and(app);
    ours && item::server_id(item.value, &item.kind).is_some()
}

/// OR5
fn triggers(items: &[Item<'_>], findings: &mut Findings) {
    let earlier = items.split_last().map_or(items, |(_, earlier)| earlier);
    for item in earlier.iter().filter(|item| item.kind == "compaction_trigger") {
        let what = "a compaction_trigger must be the last item; remove it, or move it to the end";
        findings.add(item.position, "OR5", what, Fix::Drop);
    }
}

/// The beginnings of the ids that the API gives, and takes.
const PREFIXES: [(&str, &str); 3] = [("message", "msg"), ("function_call", "fc"), ("reasoning", "rs")];

/// What some requests, servers and kinds of item are refused for (OR1, OR2, OR4, OR5).
pub(super) fn strict(messages: &[Value<'_>]) -> Vec<Problem> {
    let read = |(position, value)| {
        let message = read::message(position, value).ok()?;
        let kind = item::kind(value).unwrap_or_default();
        Some(Item { position, kind, role: message.role, value })
    };
    let items: Vec<Item<'_>> = messages.iter().enumerate().filter_map(read).collect();
    let mut findings = Findings(Vec::new());
    pairs(&items, Families::Other, &mut findings);
    let problem = |it: Finding<Fix>| Problem { rule: it.rule, index: it.position, message: it.what };
    let mut problems: Vec<Problem> = findings.0.into_iter().map(problem).collect();
    let mut report = |rule, index, message: String| problems.push(Problem { rule, index, message });
    for item in items.iter().take(leading(&items)) {
        let what = "answers a call that only a server can have, by `previous_response_id` or a conversation; send the call too";
        report("OR1", item.position, what.to_owned());
    }
    if messages.is_empty() {
        report("OR5", 0, "the input is empty; it must have an item".to_owned());
    }
    for item in &items {
        if item.kind == "reasoning" && tagged::given(item.value, "encrypted_content").is_none() {
            let what = "reasoning without `encrypted_content` is known only where responses are stored; request `reasoning.encrypted_content`, or remove it";
            report("OR2", item.position, what.to_owned());
        }
        if item.kind == "item_reference" {
            let what = "only the server knows what the reference stands for, so that no summary can tell it; send the item itself";
            report("OR4", item.position, what.to_owned());
        }
        if item.kind == "function_call"
            && item::text_field(item.value, "arguments").is_some_and(|text| text.trim().is_empty())
        {
            report(
                "OR1",
                item.position,
                "the arguments of the call are an empty text; write `{}`".to_owned(),
            );
        }
        let prefix = PREFIXES.iter().find(|(kind, _)| *kind == item.kind);
        if let Some((_, prefix)) = prefix
            && let Some(id) = item::text_field(item.value, "id")
            && !id.starts_with(prefix)
        {
            let what =
                format!("the id `{id}` is none of the API's, which begin with `{prefix}`; leave it out");
            report("OR4", item.position, what);
        }
    }
    problems
}
