//! A summary without a model: what the user said, what was touched and run, what failed, and the lines of the
//! conversation that carry the most facts for their length. Deterministic, in the sections of `S1.7`.

use super::facts::{Fact, FactKind, collect, is_error_line, is_path_key};
use super::prompt::SECTIONS;
use super::render::{MARKER_TOKENS, clip, without_base64};
use super::scan::entities;
use super::text::sentences;
use crate::message::{Message, Part, Role};
use crate::tokens::Estimator;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BinaryHeap, HashMap, HashSet};

const CONTEXT: usize = 0;
const OVERVIEW: usize = 1;
const CODE: usize = 2;
const ISSUES: usize = 3;
const STATUS: usize = 4;
const PENDING: usize = 5;
const PREFERENCES: usize = 6;
const DECISIONS: usize = 7;

/// A line of less than this many tokens says too little to be worth a bullet.
const LEAST: usize = MARKER_TOKENS + 8;

/// Lines of evidence are this long, in bytes.
const EVIDENCE: std::ops::RangeInclusive<usize> = 24..=400;

/// Bits of text that mean something to this library where they stand: wire markers of every preset.
const MARKERS: [&str; 12] = [
    "[Compressed History]",
    "[Conversation compressed]",
    "[SUMMARY]:",
    "[CHECKPOINT]",
    "[DECISION]",
    "[ARTIFACT]",
    "[Output compacted",
    "[Content unavailable:",
    "[Part ",
    "Tool result is at:",
    "Output too large. Saved to:",
    "ACTIVE GOAL:",
];

/// A summary of `messages` in at most `target_tokens` tokens, written without a model. Empty when nothing fits.
pub fn extractive(messages: &[Message<'_>], target_tokens: usize, estimator: Estimator) -> String {
    let mut page = Page { items: Vec::new(), headings: 0, left: target_tokens, estimator };
    let part = |percent: usize| target_tokens / 100 * percent + target_tokens % 100 * percent / 100;

    let said = |role| {
        messages
            .iter()
            .enumerate()
            .filter(move |(_, message)| message.role == role)
            .map(|(index, message)| (index, message.text()))
            .filter(|(_, text)| !text.trim().is_empty())
    };
    let asked: Vec<(usize, String)> = said(Role::User).collect();
    if let Some((index, goal)) = asked.first() {
        page.add(OVERVIEW, *index, "Goal: ", goal, part(20));
    }
    if let [_, .., (index, request)] = asked.as_slice() {
        page.add(PENDING, *index, "Latest request: ", request, part(15));
    }
    if let Some((index, status)) = said(Role::Assistant).last() {
        page.add(STATUS, index, "", &status, part(12));
    }

    let facts = collect(messages).into_facts();
    page.facts(&facts, FactKind::Constraint, PREFERENCES, part(12));
    page.files(messages, part(10));
    page.facts(&facts, FactKind::Error, ISSUES, part(8));
    page.facts(&facts, FactKind::Decision, DECISIONS, part(6));
    page.facts(&facts, FactKind::Command, CONTEXT, part(6));
    let between = asked.get(1..asked.len().saturating_sub(1)).unwrap_or_default();
    let mut room = part(20);
    for (index, request) in between.iter().rev() {
        let spent = page.add(OVERVIEW, *index, "The user: ", request, room.min(160));
        room -= spent.min(room);
    }
    page.evidence(messages, &facts);
    page.write(target_tokens)
}

/// The bullets chosen so far, most important first.
struct Page {
    items: Vec<Item>,
    /// Bit set of the sections that have a heading already.
    headings: u32,
    left: usize,
    estimator: Estimator,
}

struct Item {
    section: usize,
    index: usize,
    line: String,
}

impl Page {
    /// Adds a bullet of at most `cap` tokens; what it costs, 0 when there is no room.
    fn add(&mut self, section: usize, index: usize, label: &str, text: &str, cap: usize) -> usize {
        let heading = match self.headings & (1 << section) {
            0 => SECTIONS.get(section).map_or(0, |name| self.estimator.text(name) + 3),
            _ => 0,
        };
        // Two for the bullet's mark and its line break.
        let fixed = heading + self.estimator.text(label) + 2;
        let cap = cap.min(self.left).saturating_sub(fixed);
        let text = without_base64(text.trim());
        let whole = quote(&text);
        let tokens = self.estimator.text(&whole);
        let body = match tokens {
            0 => return 0,
            fits if fits <= cap => whole,
            _ if cap < LEAST => return 0,
            _ => Cow::Owned(clip(&text, tokens, cap, self.estimator, quote)),
        };
        let line = format!("- {label}{body}");
        let spent = fixed + self.estimator.text(&body);
        self.left -= spent.min(self.left);
        self.headings |= 1 << section;
        self.items.push(Item { section, index, line });
        spent
    }

    /// The best facts of a kind, in `room` tokens.
    fn facts(&mut self, facts: &[Fact], kind: FactKind, section: usize, mut room: usize) {
        // A bare error name says nothing without its line.
        let tells = |fact: &&Fact| fact.kind == kind && (kind != FactKind::Error || fact.text.contains(' '));
        for fact in facts.iter().filter(tells) {
            match self.add(section, fact.index, "", &fact.text, room) {
                0 => return,
                spent => room -= spent.min(room),
            }
        }
    }

    /// The files that tools touched: changed ones first, then the ones looked at, newest first.
    fn files(&mut self, messages: &[Message<'_>], mut room: usize) {
        let mut seen = HashSet::new();
        let mut touched = Vec::new();
        for (index, message) in messages.iter().enumerate().rev() {
            for call in message.calls() {
                let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) else { continue };
                let name = call.name.to_lowercase();
                let changes = CHANGES.iter().any(|verb| name.contains(verb));
                for (path, patched) in paths(&arguments) {
                    let changed = changes || patched;
                    if seen.insert((path.clone(), changed)) {
                        touched.push((!changed, index, path));
                    }
                }
            }
        }
        touched.sort_by_key(|(looked_at, index, _)| (*looked_at, std::cmp::Reverse(*index)));
        for (looked_at, index, path) in touched {
            if looked_at && seen.contains(&(path.clone(), true)) {
                continue;
            }
            let label = if looked_at { "used: " } else { "changed: " };
            match self.add(CODE, index, label, &path, room) {
                0 => return,
                spent => room -= spent.min(room),
            }
        }
    }

    /// Fills what is left with the lines that add the most weight of facts not on the page yet, for their length.
    fn evidence(&mut self, messages: &[Message<'_>], facts: &[Fact]) {
        if self.left < LEAST {
            return;
        }
        let ids: HashMap<(FactKind, &str), usize> =
            facts.iter().enumerate().map(|(id, fact)| ((fact.kind, fact.text.as_str()), id)).collect();
        let mut covered = vec![false; facts.len()];
        for item in &self.items {
            for id in known(&item.line, &ids) {
                covered.get_mut(id).into_iter().for_each(|covered| *covered = true);
            }
        }
        let mut lines: Vec<Line<'_>> = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            for text in message.parts.iter().filter_map(prose) {
                for line in text.lines().map(str::trim) {
                    // Prose by its sentences where a paragraph is too long for a bullet.
                    let long = line.len() > *EVIDENCE.end() && message.role != Role::Tool;
                    let pieces = if long { sentences(line).collect() } else { vec![line] };
                    for text in pieces.into_iter().filter(|piece| EVIDENCE.contains(&piece.len())) {
                        let known = known(text, &ids);
                        if !known.is_empty() {
                            let tokens = self.estimator.text(text) + 2;
                            lines.push(Line { index, text, known, tokens });
                        }
                    }
                }
            }
        }
        // Lazy greedy: a line's value only ever falls, so that a stale one is re-queued with its value of now.
        let mut queue: BinaryHeap<(u64, std::cmp::Reverse<usize>)> = lines
            .iter()
            .enumerate()
            .map(|(at, line)| (line.value(facts, &covered), std::cmp::Reverse(at)))
            .collect();
        while let Some((claimed, std::cmp::Reverse(at))) = queue.pop() {
            if self.left < LEAST || claimed == 0 {
                return;
            }
            let Some(line) = lines.get(at).filter(|line| line.tokens <= self.left) else { continue };
            let value = line.value(facts, &covered);
            if value < claimed {
                queue.push((value, std::cmp::Reverse(at)));
                continue;
            }
            let section = if is_error_line(line.text) { ISSUES } else { CONTEXT };
            if self.add(section, line.index, "", line.text, self.left) > 0 {
                for id in &line.known {
                    covered.get_mut(*id).into_iter().for_each(|covered| *covered = true);
                }
            }
        }
    }

    /// The page, sections in their order, bullets in the order of the conversation.
    fn write(mut self, target: usize) -> String {
        loop {
            let mut out = String::new();
            for (section, name) in SECTIONS.iter().enumerate() {
                let mut items: Vec<&Item> =
                    self.items.iter().filter(|item| item.section == section).collect();
                items.sort_by_key(|item| item.index);
                if !items.is_empty() {
                    out.push_str(if out.is_empty() { "" } else { "\n" });
                    out.push_str(&format!("## {name}\n"));
                }
                for item in items {
                    out.push_str(&item.line);
                    out.push('\n');
                }
            }
            let out = out.trim_end();
            let size = self.estimator.text(out);
            // An estimate of a text is not the sum of those of its parts: the least important go until it fits.
            if size <= target || self.items.is_empty() {
                return out.to_string();
            }
            let keep = self.items.len() * target / size.max(1);
            self.items.truncate(keep.min(self.items.len() - 1));
        }
    }
}

/// A line that may become evidence.
struct Line<'t> {
    index: usize,
    text: &'t str,
    /// Facts in it, by position in the list of facts, each once.
    known: Vec<usize>,
    tokens: usize,
}

impl Line<'_> {
    /// Weight of its facts that are not covered, for its length, as an integer so that it orders totally.
    fn value(&self, facts: &[Fact], covered: &[bool]) -> u64 {
        let fresh = self.known.iter().filter(|id| covered.get(**id) == Some(&false));
        let weight: f64 = fresh.filter_map(|id| facts.get(*id)).map(|fact| fact.weight).sum();
        // The constant keeps fragments of a few words from winning over lines that say what the fact is about.
        (weight * 1e6 / (self.tokens as f64 + 12.0)) as u64
    }
}

/// Facts in a text, each once.
fn known(text: &str, ids: &HashMap<(FactKind, &str), usize>) -> Vec<usize> {
    let mut known = Vec::new();
    entities(text, &mut |kind, text| known.extend(ids.get(&(kind, text))));
    known.sort_unstable();
    known.dedup();
    known
}

fn prose<'m>(part: &'m Part<'_>) -> Option<&'m str> {
    match part {
        Part::Text(text) => Some(text),
        Part::ToolResult(result) => Some(&result.text),
        _ => None,
    }
}

/// Parts of the names of tools that change files.
const CHANGES: [&str; 9] =
    ["write", "edit", "create", "patch", "replace", "insert", "delete", "rename", "update_file"];

/// The paths in a call's arguments, and whether a patch in them changes that file.
fn paths(arguments: &Value) -> Vec<(String, bool)> {
    let mut out = Vec::new();
    for (key, value) in arguments.as_object().into_iter().flatten() {
        let Some(text) = value.as_str() else { continue };
        if is_path_key(key) && !text.is_empty() && text.len() <= 300 && !text.contains('\n') {
            out.push((text.to_string(), false));
        }
        for line in text.lines().filter_map(|line| line.strip_prefix("*** ")) {
            let file =
                ["Add File: ", "Update File: ", "Delete File: "].iter().find_map(|p| line.strip_prefix(p));
            out.extend(file.map(|path| (path.trim().to_string(), true)));
        }
    }
    out
}

/// Text for inside a bullet: later lines indented, so that nothing in it starts a line of the page; markers of this
/// library escaped, so that nothing in it is taken for one.
fn quote(text: &str) -> Cow<'_, str> {
    let mut out = Cow::Borrowed(text);
    if text.contains(['\n', '\r']) {
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        out = Cow::Owned(lines.join("\n  ").replace('\r', " "));
    }
    for marker in MARKERS {
        if out.contains(marker) {
            let escaped = match marker.strip_suffix(':') {
                Some(start) => format!("{start}\\:"),
                None => format!("\\{marker}"),
            };
            out = Cow::Owned(out.replace(marker, &escaped));
        }
    }
    out
}
