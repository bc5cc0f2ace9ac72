//! The rules of the API (AN1 to AN7) with the change that mends each, and those of some models only. AN8 is about
//! what stood before an edit, so it is no rule of a history but of a repair ([`super::repair`]).

use super::instructions;
use super::read;
use super::turns::{
    self, Block, Side, Turn, caller, compacts, is_foreign_call, is_foreign_result, is_server_call,
    is_signed_compaction,
};
use crate::order;
use crate::rules::Finding;
use crate::{Past, Problem, tagged};
use serde_json_borrow::Value;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// What mends a message. A message's fixes are applied from the greatest to the least.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fix {
    /// Take it out.
    Drop,
    /// Put it where this position is once it is taken out of its own.
    To(usize),
    /// Make it the user's.
    AsUser,
    /// Put a user's message before it.
    OpenWithUser,
    /// Take out everything before a block.
    From(usize),
    /// Put the results of these messages' turn before everything else in it.
    ResultsFirst(Vec<usize>),
    /// Take out a block.
    Block(usize),
    /// Take out a block inside a tool result.
    Inner(usize, usize),
    /// Take the `cache_control` off a block, or off a block inside a tool result.
    Cache(usize, Option<usize>),
    /// Take white space off the end of a text block.
    Trim(usize),
    /// Replace lone surrogates.
    WellFormed,
}

/// Breakpoints of the prompt cache that one request may have.
const CACHE_BREAKPOINTS: usize = 4;

struct Findings(Vec<Finding<Fix>>);

impl Findings {
    fn add(&mut self, position: usize, rule: &'static str, what: impl Into<String>, fix: Fix) {
        self.0.push(Finding { position, rule, what: what.into(), fix });
    }

    fn block(&mut self, block: &Block<'_>, rule: &'static str, what: impl Into<String>) {
        self.add(
            block.position,
            rule,
            format!("content[{}]: {}", block.nth, what.into()),
            Fix::Block(block.nth),
        );
    }
}

pub(super) fn find(messages: &[&Value<'_>]) -> Vec<Finding<Fix>> {
    judge(messages, &Past::default(), |_| ()).0
}

/// A turn of the assistant depends on nothing before it but what [`Past`] knows, and calls of the provider's tools that
/// wait.
pub(super) fn grows(past: &mut Past, window: &[&Value<'_>]) -> bool {
    let (findings, (seam, breakpoints)) = judge(window, past, |turns| {
        let seam = seam(turns);
        (seam, marked(turns).iter().filter(|(position, ..)| *position < seam).count())
    });
    let clean = findings.is_empty();
    if clean {
        past.messages += seam;
        past.breakpoints += breakpoints;
    }
    clean
}

/// Where the last turn of the assistant begins before which no call of a provider's tool waits, in a history that breaks
/// no rule.
fn seam(turns: &[Turn<'_>]) -> usize {
    let (mut seam, mut waiting) = (0, 0_usize);
    for turn in turns {
        if turn.side == Side::Assistant && waiting == 0 {
            seam = turn.positions.first().copied().unwrap_or(seam);
        }
        for block in &turn.blocks {
            if is_foreign_call(&block.kind) {
                waiting += 1;
            } else if is_foreign_result(&block.kind) {
                waiting = waiting.saturating_sub(1);
            }
        }
    }
    seam
}

/// What is wrong with the messages behind `past`, and what `look` makes of their turns.
fn judge<T>(
    messages: &[&Value<'_>],
    past: &Past,
    look: impl FnOnce(&[Turn<'_>]) -> T,
) -> (Vec<Finding<Fix>>, T) {
    let begins = past.messages == 0;
    let mut findings = Findings(Vec::new());
    let mut unreadable = HashSet::new();
    for (position, message) in messages.iter().enumerate() {
        if let Err(error) = read::message(position, message) {
            findings.add(
                position,
                "AN0",
                format!("the message cannot be read ({error}); correct or remove it"),
                Fix::Drop,
            );
            unreadable.insert(position);
        } else if tagged::is_ill_formed(message) {
            let what = "a text has a lone surrogate, which the API refuses; replace it by U+FFFD";
            findings.add(position, "AN0", what, Fix::WellFormed);
        }
    }
    let is_directive =
        |position: usize| messages.get(position).is_some_and(|message| instructions::is_directive(message));
    let turns = turns::of(messages, |position| !unreadable.contains(&position) && !is_directive(position));
    if begins {
        first_is_user(&turns, &mut findings);
    }
    for (position, what, fix) in instructions::misplaced(&turns) {
        findings.add(position, "AN1", what, fix);
    }
    for turn in &turns {
        contents(turn, messages, &mut findings);
        turn.blocks.iter().for_each(|block| place(turn.side, block, &mut findings));
    }
    last_has_no_trailing_space(&turns, &mut findings);
    compaction(&turns, begins, &mut findings);
    tool_results(&turns, &mut findings);
    callers(&turns, &mut findings);
    server_results(&turns, &mut findings);
    cache_breakpoints(&turns, past.breakpoints, &mut findings);
    (findings.0, look(&turns))
}

/// AN1. What a compaction block stands for may be left out, and then the block's message begins.
fn first_is_user(turns: &[Turn<'_>], findings: &mut Findings) {
    let Some(&Turn { side, ref positions, ref blocks }) = turns.first() else { return };
    let Some(&first) = positions.first() else { return };
    match side {
        Side::User => {}
        Side::Assistant if blocks.first().is_some_and(|block| compacts(block.value)) => {}
        Side::Assistant => {
            findings.add(first, "AN1", "the first message must be from the user", Fix::OpenWithUser);
        }
        Side::System => {
            let what = "the first message must be from the user; hand opening instructions over as `system`";
            findings.add(first, "AN1", what, Fix::AsUser);
        }
    }
}

/// AN5: nothing empty, and not thinking alone.
fn contents(turn: &Turn<'_>, messages: &[&Value<'_>], findings: &mut Findings) {
    for &position in &turn.positions {
        let content = messages.get(position).and_then(|message| tagged::given(message, "content"));
        let empty = match content {
            Some(Value::Array(blocks)) => blocks.is_empty(),
            Some(text) => tagged::text(text).is_some_and(|text| text.trim().is_empty()),
            None => true,
        };
        if empty {
            findings.add(position, "AN5", "the message has no content; remove it", Fix::Drop);
        }
    }
    if !turn.blocks.is_empty() && turn.blocks.iter().all(Block::is_thinking) {
        for &position in &turn.positions {
            findings.add(position, "AN5", "the turn is thinking only; remove it", Fix::Drop);
        }
    }
    for block in turn.blocks.iter().filter(|block| tagged::text(block.value).is_none()) {
        if block.kind == "text" && block.prose().is_some_and(|text| text.trim().is_empty()) {
            findings.block(block, "AN5", "a text block must not be empty; remove it");
        }
        for (at, inner) in inner_blocks(block).iter().enumerate() {
            let text = tagged::given(inner, "text").and_then(tagged::text);
            if super::kind(inner).as_deref() == Some("text")
                && text.is_some_and(|text| text.trim().is_empty())
            {
                let what = format!(
                    "content[{}].content[{at}]: a text block must not be empty; remove it",
                    block.nth
                );
                findings.add(block.position, "AN5", what, Fix::Inner(block.nth, at));
            }
        }
    }
}

/// The blocks inside a tool result.
fn inner_blocks<'a>(block: &Block<'a>) -> &'a [Value<'a>] {
    match tagged::given(block.value, "content") {
        Some(Value::Array(blocks)) if block.kind == "tool_result" => blocks,
        _ => &[],
    }
}

/// Blocks that only one role may have, and what they must have (AN2, AN3, AN4, AN6, AN7).
fn place(side: Side, block: &Block<'_>, findings: &mut Findings) {
    let kind = block.kind.as_ref();
    // Who answers a call that is not known is not known either, but instructions neither call nor answer.
    if side == Side::System && (is_foreign_call(kind) || is_foreign_result(kind)) {
        findings.block(block, "AN3", format!("a {kind} block has no place in instructions; remove it"));
        return;
    }
    let (rule, owner) = match kind {
        "tool_use" => ("AN2", Side::Assistant),
        "tool_result" => ("AN2", Side::User),
        _ if is_server_call(kind) => ("AN3", Side::Assistant),
        _ if block.is_thinking() => ("AN4", Side::Assistant),
        _ => return,
    };
    if side != owner {
        let owner = if owner == Side::User { "the user" } else { "the assistant" };
        findings.block(block, rule, format!("a {kind} block stands only in messages of {owner}; remove it"));
    }
    if kind == "thinking" && block.field("signature").is_none_or(|signature| signature.is_empty()) {
        findings.block(block, "AN4", "a thinking block must have its signature; remove the block");
    }
    if block.is_thinking() && tagged::given(block.value, "cache_control").is_some() {
        let what = format!("content[{}]: thinking cannot have cache_control; remove the field", block.nth);
        findings.add(block.position, "AN6", what, Fix::Cache(block.nth, None));
    }
}

/// AN5
fn last_has_no_trailing_space(turns: &[Turn<'_>], findings: &mut Findings) {
    let Some(turn) = turns.last().filter(|turn| turn.side == Side::Assistant) else { return };
    let Some(block) = turn.blocks.last() else { return };
    if block.prose().is_some_and(|text| !text.trim().is_empty() && text.ends_with(char::is_whitespace)) {
        let what = "the final message of the assistant must not end with white space; trim it";
        findings.add(block.position, "AN5", what, Fix::Trim(block.nth));
    }
}

/// AN2
fn tool_results(turns: &[Turn<'_>], findings: &mut Findings) {
    let mut open: HashMap<Cow<'_, str>, bool> = HashMap::new();
    for (at, turn) in turns.iter().enumerate() {
        match turn.side {
            Side::System => open.clear(),
            Side::User => {
                answers(turn, &mut open, findings);
                open.clear();
            }
            Side::Assistant => {
                open.clear();
                let answered: HashSet<Cow<'_, str>> = match turns.get(at + 1) {
                    Some(next) if next.side == Side::User => {
                        ids(next, "tool_result", "tool_use_id").collect()
                    }
                    _ => HashSet::new(),
                };
                for block in turn.blocks.iter().filter(|block| block.kind == "tool_use") {
                    let id = block.field("id").unwrap_or_default();
                    if open.insert(id.clone(), false).is_some() {
                        findings.block(
                            block,
                            "AN2",
                            format!("the id `{id}` stands on two calls; remove one"),
                        );
                    } else if !answered.contains(&id) {
                        let what =
                            format!("the call `{id}` has no tool_result in the next user message; remove it");
                        findings.block(block, "AN2", what);
                    }
                }
            }
        }
    }
}

fn ids<'b, 'a: 'b>(
    turn: &'b Turn<'a>,
    kind: &'b str,
    key: &'b str,
) -> impl Iterator<Item = Cow<'a, str>> + 'b {
    turn.blocks.iter().filter(move |block| block.kind == kind).filter_map(move |block| block.field(key))
}

/// The results of a user's turn: each answers one call of the turn before, and stands before any text.
fn answers<'a>(turn: &Turn<'a>, open: &mut HashMap<Cow<'a, str>, bool>, findings: &mut Findings) {
    let mut late = None;
    let mut prose = false;
    for block in &turn.blocks {
        prose |= block.prose().is_some();
        if block.kind != "tool_result" {
            continue;
        }
        let id = block.field("tool_use_id").unwrap_or_default();
        match open.get_mut(&id) {
            None => {
                let what =
                    format!("answers the call `{id}`, which the message before did not make; remove it");
                findings.block(block, "AN2", what);
            }
            Some(true) => {
                findings.block(
                    block,
                    "AN2",
                    format!("answers the call `{id}` a second time; keep one answer"),
                );
            }
            Some(answered) => {
                *answered = true;
                if prose {
                    late.get_or_insert(block.position);
                }
            }
        }
    }
    if let Some(position) = late {
        let what = "tool_result blocks must stand before any text of their message; move them to its start";
        findings.add(position, "AN2", what, Fix::ResultsFirst(turn.positions.clone()));
    }
}

/// AN7. Where a compaction block may stand: in a turn of the assistant. One that was asked for is the first block of the
/// conversation, in a message of either side; what stands before it is what it stands for, and was to be left out.
fn compaction(turns: &[Turn<'_>], begins: bool, findings: &mut Findings) {
    let mut first = begins;
    let mut signed = None;
    for turn in turns {
        for block in &turn.blocks {
            if block.kind == "compaction" {
                let stands = turn.side == Side::Assistant
                    || turn.side == Side::User && is_signed_compaction(block.value);
                if !stands {
                    let what = "a compaction block stands only in messages of the assistant; remove it";
                    findings.block(block, "AN7", what);
                } else if block.field("content").is_some_and(|content| content.is_empty()) {
                    findings.block(block, "AN7", "a compaction block must not be empty; remove it");
                } else if is_signed_compaction(block.value) {
                    signed = Some((block, first));
                }
            }
            first = false;
        }
    }
    if let Some((block, false)) = signed {
        let what = format!(
            "content[{}]: a signed compaction block must be the first block of the conversation; leave out what \
             stands before it, which it stands for",
            block.nth
        );
        findings.add(block.position, "AN7", what, Fix::From(block.nth));
    }
}

/// AN3: what code made stands behind the code.
fn callers(turns: &[Turn<'_>], findings: &mut Findings) {
    let mut made: HashSet<Cow<'_, str>> = HashSet::new();
    for block in turns.iter().filter(|turn| turn.side == Side::Assistant).flat_map(|turn| &turn.blocks) {
        let is_call = block.kind == "tool_use" || is_foreign_call(&block.kind);
        match caller(block.value).filter(|_| is_call) {
            Some(caller) if !made.contains(&caller) => {
                let what = format!("was called by `{caller}`, which does not stand before it; remove it");
                findings.block(block, "AN3", what);
            }
            _ if is_foreign_call(&block.kind) => made.extend(block.field("id")),
            _ => {}
        }
    }
}

/// Calls that wait for their results, by id, newest last.
type Open<'b, 'a> = HashMap<Cow<'a, str>, Vec<&'b Block<'a>>>;

fn close(open: &mut Open<'_, '_>, id: &str) -> bool {
    open.get_mut(id).and_then(Vec::pop).is_some()
}

/// AN3. A turn that also calls the app's tools, the last one, or one with instructions behind it, may be paused before its
/// server tools answered: their results then open the next turn. Of calls that are not known nothing is known but that a
/// result has its call's id: who answers, and when, is not judged.
fn server_results(turns: &[Turn<'_>], findings: &mut Findings) {
    let (mut open, mut unknown) = (Open::new(), Open::new());
    for (at, turn) in turns.iter().enumerate().filter(|(_, turn)| turn.side != Side::System) {
        for block in &turn.blocks {
            if is_foreign_call(&block.kind) {
                let calls = match is_server_call(&block.kind) {
                    true if turn.side == Side::Assistant => &mut open,
                    true => continue,
                    false => &mut unknown,
                };
                calls.entry(block.field("id").unwrap_or_default()).or_default().push(block);
            } else if is_foreign_result(&block.kind) {
                let id = block.field("tool_use_id").unwrap_or_default();
                let by_server = turn.side == Side::Assistant && close(&mut open, &id);
                if !by_server && !close(&mut unknown, &id) {
                    let what = format!(
                        "answers the server tool call `{id}`, which does not stand before it in the assistant's \
                         messages; remove it"
                    );
                    findings.block(block, "AN3", what);
                }
            }
        }
        let paused = turns.get(at + 1).is_none_or(|next| next.side == Side::System)
            || turn.blocks.iter().any(|block| block.kind == "tool_use");
        if turn.side == Side::Assistant && !paused {
            let unanswered: Vec<&Block<'_>> = open.drain().flat_map(|(_, calls)| calls).collect();
            let place = |block: &&Block<'_>| (block.position as u64) << 32 | block.nth as u64;
            for block in order::by_key(unanswered, place) {
                findings.block(block, "AN3", "the server tool call has no result in its message; remove it");
            }
        }
    }
}

/// The breakpoints of the prompt cache: position of the message, block, block inside that.
fn marked(turns: &[Turn<'_>]) -> Vec<(usize, usize, Option<usize>)> {
    let mut marked = Vec::new();
    for block in turns.iter().flat_map(|turn| &turn.blocks).filter(|block| !block.is_thinking()) {
        let has = |value: &Value<'_>| tagged::given(value, "cache_control").is_some();
        let inner = inner_blocks(block).iter().enumerate().filter(|(_, inner)| has(inner));
        marked.extend(inner.map(|(at, _)| (block.position, block.nth, Some(at))));
        if has(block.value) {
            marked.push((block.position, block.nth, None));
        }
    }
    marked
}

/// AN6: the newest breakpoints are the ones worth keeping.
fn cache_breakpoints(turns: &[Turn<'_>], before: usize, findings: &mut Findings) {
    let marked = marked(turns);
    let extra = (before + marked.len()).saturating_sub(CACHE_BREAKPOINTS);
    for &(position, nth, inner) in marked.iter().take(extra) {
        let what = format!(
            "content[{nth}]: cache_control stands on {} blocks, and a request may have {CACHE_BREAKPOINTS}",
            marked.len()
        );
        findings.add(position, "AN6", what, Fix::Cache(nth, inner));
    }
}

/// Rules of some models and servers only (AN1, AN4, AN5).
pub(super) fn strict(messages: &[Value<'_>]) -> Vec<Problem> {
    let values: Vec<&Value<'_>> = messages.iter().collect();
    let turns =
        turns::of(&values, |position| values.get(position).is_some_and(|m| read::message(0, m).is_ok()));
    let mut problems = Vec::new();
    let mut report =
        |rule, index, what: &str| problems.push(Problem { rule, index, message: what.to_owned() });
    for turn in &turns {
        for &second in turn.positions.iter().skip(1) {
            report("AN1", second, "two neighbours of one role; join them");
        }
        if turn.side == Side::System {
            for &index in &turn.positions {
                report("AN1", index, "not every model takes system messages; use the `system` parameter");
            }
        }
    }
    for pair in turns.windows(2) {
        let [Turn { side: Side::Assistant, blocks: calls, .. }, Turn { side: Side::User, blocks, .. }] = pair
        else {
            continue;
        };
        let by_code = calls.iter().any(|call| call.kind == "tool_use" && caller(call.value).is_some());
        if let Some(block) = blocks.iter().find(|block| by_code && block.kind != "tool_result") {
            let what = "a message that answers calls made by code has nothing but tool_result blocks; say the rest later";
            report("AN2", block.position, what);
        }
    }
    // A turn that a server tool paused is sent back as it is.
    if let Some(Turn { side: Side::Assistant, blocks, .. }) = turns.last()
        && let Some(block) = blocks.last().filter(|block| !is_server_call(&block.kind))
    {
        let what = "newer models refuse a final message of the assistant (prefill); remove it";
        report("AN5", block.position, what);
    }
    let last = turns.iter().rfind(|turn| turn.side == Side::Assistant);
    if let Some(Turn { positions, blocks, .. }) = last
        && let Some(&index) = positions.first()
        && let Some(first) = blocks.iter().find(|block| block.kind != "compaction")
        && !first.is_thinking()
        && blocks.iter().any(Block::is_thinking)
    {
        report("AN4", index, "with thinking on, the final turn of the assistant must begin with thinking");
    }
    problems
}
