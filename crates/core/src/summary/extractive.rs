//! A summary without a model: what the user said, what was touched and run, what failed, and the lines of the
//! conversation that carry the most facts for their length. Deterministic, in the sections of `S1.7`.

use super::facts::{Fact, FactKind, FoundFacts, collect, is_error_line, is_path_key};
use super::prompt::SECTIONS;
use super::quote::{KEPT, RECORD, RULES};
use super::render::{ClipAt, MARKER_TOKENS, clip, without_base64};
use super::text::{sentences, unlisted};
use crate::message::{Message, Role};
use crate::order;
use crate::tokens::Estimator;
use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

const CONTEXT: usize = 0;
const OVERVIEW: usize = 1;
const CODE: usize = 2;
const ISSUES: usize = 3;
const STATUS: usize = 4;
const PENDING: usize = 5;
const PREFERENCES: usize = 6;
const DECISIONS: usize = 7;

/// Label of the user's last words.
const LATEST: &str = "Latest request: ";

/// Label of what the user said before.
const USER: &str = "The user: ";

/// A line of less than this many tokens says too little to be worth a bullet.
const LEAST: usize = MARKER_TOKENS + 8;

/// Lines of evidence are this long, in bytes.
const EVIDENCE: std::ops::RangeInclusive<usize> = 24..=400;

/// What marks the message of an earlier summary (`S1.8`, `S3.4`, `S4.2`).
const EARLIER: [&str; 3] = ["[Compressed History]", "[Conversation compressed]", "[SUMMARY]:"];

/// Bits of text that mean something to this library where they are: wire markers of every preset.
const MARKERS: [&str; 13] = [
    EARLIER[0],
    EARLIER[1],
    EARLIER[2],
    "[Checkpoint ",
    "[Output compacted",
    "[Content unavailable:",
    "[Part ",
    "Tool result is at:",
    "Output too large. Saved to:",
    "ACTIVE GOAL:",
    KEPT,
    RECORD,
    RULES,
];

/// Markers that move a goal, where a model writes them.
const GOAL_MARKERS: [&str; 3] = ["[CHECKPOINT]", "[DECISION]", "[ARTIFACT]"];

/// A message of the user that is an earlier summary.
pub(crate) fn is_earlier(text: &str) -> bool {
    EARLIER.iter().any(|mark| text.starts_with(mark))
}

/// A summary of `messages` in at most `target_tokens` tokens, written without a model. Empty when nothing fits.
pub fn extractive(messages: &[Message<'_>], target_tokens: usize, estimator: Estimator) -> String {
    let mut page = ExtractPage { items: Vec::new(), headings: 0, left: target_tokens, estimator };
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
    if let Some((index, status)) = said(Role::Assistant).next_back() {
        page.add(STATUS, index, "", &status, part(12));
    }
    match asked.first() {
        // A second compaction: what the first one kept stays what it was, in its sections.
        Some((index, text)) if is_earlier(text) => page.carry(*index, text, part(40)),
        Some((index, goal)) => {
            page.add(OVERVIEW, *index, "Goal: ", goal, part(20));
        }
        None => {}
    }
    if let [_, .., (index, request)] = asked.as_slice() {
        page.add(PENDING, *index, LATEST, request, part(15));
    }

    let mut lines = Vec::new();
    let found = collect(messages, &mut |index, text, known| {
        let text = without_number(unlisted(text));
        if known.is_empty() || text.len() < *EVIDENCE.start() {
            return;
        }
        let prose = messages.get(index).is_some_and(|message| message.role != Role::Tool);
        if EVIDENCE.contains(&text.len()) {
            let tokens = estimator.text(text) + 2;
            lines.push(EvidenceLine { index, text, known: known.to_vec(), tokens, prose });
        } else if prose {
            // A paragraph too long for a bullet: its sentences, their facts looked up when all are known.
            let pieces = sentences(text).filter(|piece| EVIDENCE.contains(&piece.len()));
            lines.extend(pieces.map(|text| {
                let tokens = estimator.text(text) + 2;
                EvidenceLine { index, text, known: Vec::new(), tokens, prose }
            }));
        }
    });
    for line in &mut lines {
        if line.known.is_empty() {
            found.known(line.text, &mut |id| line.known.push(id));
        }
        order::unique(&mut line.known);
    }
    let facts = found.facts(|kind| {
        use FactKind::{Command, Constraint, Decision, Error};
        matches!(kind, Command | Constraint | Decision | Error)
    });
    page.facts(&facts, FactKind::Constraint, PREFERENCES, part(12));
    page.files(messages, part(10));
    page.facts(&facts, FactKind::Error, ISSUES, part(8));
    page.facts(&facts, FactKind::Decision, DECISIONS, part(6));
    page.facts(&facts, FactKind::Command, CONTEXT, part(6));
    let between = asked.get(1..asked.len().saturating_sub(1)).unwrap_or_default();
    let mut room = part(20);
    for (index, request) in between.iter().rev() {
        let spent = page.add(OVERVIEW, *index, USER, request, room.min(160));
        room -= spent.unwrap_or(0).min(room);
    }
    page.evidence(&lines, &found);
    page.write(target_tokens)
}

/// The bullets chosen so far, most important first.
struct ExtractPage {
    items: Vec<Bullet>,
    /// Bit set of the sections that have a heading already.
    headings: u32,
    left: usize,
    estimator: Estimator,
}

struct Bullet {
    section: usize,
    index: usize,
    line: String,
}

impl ExtractPage {
    /// Adds a bullet of at most `cap` tokens, once; what it costs, or `None` when there is no room.
    fn add(&mut self, section: usize, index: usize, label: &str, text: &str, cap: usize) -> Option<usize> {
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
            0 => return Some(0),
            fits if fits <= cap => whole,
            _ if cap < LEAST => return None,
            _ => Cow::Owned(clip(&text, tokens, cap, self.estimator, ClipAt::BetweenWords, quote)),
        };
        let line = format!("- {label}{body}");
        if self.items.iter().any(|item| item.section == section && item.line == line) {
            return Some(0);
        }
        let spent = fixed + self.estimator.text(&body);
        self.left -= spent.min(self.left);
        self.headings |= 1 << section;
        self.items.push(Bullet { section, index, line });
        Some(spent)
    }

    /// Takes over the bullets of an earlier summary, the lasting sections first.
    fn carry(&mut self, index: usize, text: &str, mut room: usize) {
        let mut section = OVERVIEW;
        let mut bullets: [Vec<String>; SECTIONS.len()] = Default::default();
        for line in EARLIER
            .iter()
            .find_map(|mark| text.strip_prefix(mark))
            .unwrap_or(text)
            .lines()
            .filter(|line| !line.trim().is_empty())
        {
            if let Some(name) = line.strip_prefix("## ") {
                section = SECTIONS.iter().position(|known| *known == name.trim()).unwrap_or(section);
                continue;
            }
            let Some(of_section) = bullets.get_mut(section) else { continue };
            match (line.strip_prefix("  "), of_section.last_mut()) {
                (Some(more), Some(bullet)) => {
                    bullet.push('\n');
                    bullet.push_str(more);
                }
                _ => of_section.push(line.strip_prefix("- ").unwrap_or(line).to_string()),
            }
        }
        for section in [OVERVIEW, PREFERENCES, DECISIONS, CODE, ISSUES, PENDING, CONTEXT, STATUS] {
            if section == STATUS && self.headings & (1 << STATUS) != 0 {
                return;
            }
            for bullet in bullets.get(section).into_iter().flatten() {
                // What was latest then is not any more.
                let (section, label, bullet) = match bullet.strip_prefix(LATEST) {
                    Some(request) => (OVERVIEW, USER, request),
                    None => (section, "", bullet.as_str()),
                };
                match self.add(section, index, label, bullet, room) {
                    None => return,
                    Some(spent) => room -= spent.min(room),
                }
            }
        }
    }

    /// The best facts of a kind, in `room` tokens.
    fn facts(&mut self, facts: &[Fact], kind: FactKind, section: usize, mut room: usize) {
        // A bare error name says nothing without its line.
        let tells = |fact: &&Fact| fact.kind == kind && (kind != FactKind::Error || fact.text.contains(' '));
        for fact in facts.iter().filter(tells) {
            match self.add(section, fact.index.unwrap_or(0), "", &fact.text, room) {
                None => return,
                Some(spent) => room -= spent.min(room),
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
        for (looked_at, index, path) in order::by_key(touched, |(looked_at, ..)| u64::from(*looked_at)) {
            if looked_at && seen.contains(&(path.clone(), true)) {
                continue;
            }
            let label = if looked_at { "used: " } else { "changed: " };
            match self.add(CODE, index, label, &path, room) {
                None => return,
                Some(spent) => room -= spent.min(room),
            }
        }
    }

    /// Fills what is left with the lines that add the most weight of facts not on the page yet, for their length.
    fn evidence(&mut self, lines: &[EvidenceLine<'_>], found: &FoundFacts) {
        let mut weights = found.weights();
        // What is on the page is worth nothing more.
        for item in &self.items {
            found.known(&item.line, &mut |id| {
                weights.get_mut(id).into_iter().for_each(|weight| *weight = 0.0)
            });
        }
        // Lazy greedy: a line's value only ever falls, so that a stale one is re-queued with its value of now.
        let mut queue: BinaryHeap<(u64, Reverse<usize>)> =
            lines.iter().enumerate().map(|(at, line)| (line.value(&weights), Reverse(at))).collect();
        while let Some((claimed, Reverse(at))) = queue.pop() {
            if self.left < LEAST || claimed == 0 {
                return;
            }
            let Some(line) = lines.get(at).filter(|line| line.tokens <= self.left) else { continue };
            let value = line.value(&weights);
            if value < claimed {
                queue.push((value, Reverse(at)));
                continue;
            }
            let section = if is_error_line(line.text) { ISSUES } else { CONTEXT };
            if self.add(section, line.index, "", line.text, self.left).is_some() {
                for id in &line.known {
                    weights.get_mut(*id).into_iter().for_each(|weight| *weight = 0.0);
                }
            }
        }
    }

    /// The page, sections in their order, bullets in the order of the conversation.
    fn write(mut self, target: usize) -> String {
        loop {
            let mut out = String::new();
            for (section, name) in SECTIONS.iter().enumerate() {
                let items: Vec<&Bullet> = self.items.iter().filter(|item| item.section == section).collect();
                let items = order::by_key(items, |item| item.index as u64);
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
struct EvidenceLine<'t> {
    index: usize,
    text: &'t str,
    /// Ids of the facts in it, each once.
    known: Vec<usize>,
    tokens: usize,
    /// Said by somebody, not printed by a tool.
    prose: bool,
}

impl EvidenceLine<'_> {
    /// Weight of its facts that are not on the page, for its length, as an integer so that it orders totally.
    fn value(&self, weights: &[f64]) -> u64 {
        let weight: f64 = self.known.iter().filter_map(|id| weights.get(*id)).sum();
        // A sentence says what a fact is about; a line of output often only holds it.
        let weight = if self.prose { 2.0 * weight } else { weight };
        // The constant keeps fragments of a few words from winning over lines that say something.
        (weight * 1e6 / (self.tokens as f64 + 12.0)) as u64
    }
}

/// A line without the number that tools for reading files print before it: `  42→`, `42<tab>`.
pub(super) fn without_number(line: &str) -> &str {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    match rest.strip_prefix(['→', '\t']) {
        Some(text) if rest.len() < line.len() => text.trim(),
        _ => line,
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
pub(super) fn quote(text: &str) -> Cow<'_, str> {
    let mut out = Cow::Borrowed(text);
    if text.contains(['\n', '\r']) {
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        out = Cow::Owned(lines.join("\n  ").replace('\r', " "));
    }
    // A goal is moved by markers of the model alone.
    for marker in GOAL_MARKERS {
        if out.contains(marker) {
            out = Cow::Owned(out.replace(marker, &escaped(marker)));
        }
    }
    escape_markers(out)
}

/// Markers of our frames made text.
pub(super) fn escape_markers(text: Cow<'_, str>) -> Cow<'_, str> {
    MARKERS.into_iter().fold(text, |text, marker| match text.contains(marker) {
        true => Cow::Owned(text.replace(marker, &escaped(marker))),
        false => text,
    })
}

/// What reads the same and is no marker.
fn escaped(marker: &str) -> String {
    match (marker.strip_prefix('['), marker.strip_suffix(':')) {
        (Some(rest), _) => format!("&#91;{rest}"),
        (None, Some(start)) => format!("{start}&#58;"),
        (None, None) => marker.replacen(' ', "&#32;", 1),
    }
}
