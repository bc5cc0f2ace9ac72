//! The text of a keep-layer: sections in the order of reading, filled in the order of importance.

use super::super::extractive::{quote, without_number};
use super::super::render::{ClipAt, MARKER_TOKENS, clip};
use super::super::text::unlisted;
use super::collect::{KeepLayerBuilder, MustKeep, SaidText};
use super::headings::{CONSTRAINTS, DETAILS, ERRORS, FILES, GOAL, Headings, SAID, TASKS};
use super::standing::WorkState;
use super::{files, turns};
use crate::checkpoint::Preservation;
use crate::order;
use crate::tokens::Estimator;
use std::fmt;

/// Files below the folder of most come behind all others.
const IN_FOLDER: usize = 1 << 20;

/// No line of a file takes fewer tokens.
const SHORTEST: usize = 4;

/// A bullet of less than this many tokens says too little to be cut to it.
pub(super) const LEAST: usize = MARKER_TOKENS + 8;

/// What parts of a layer are for, in percent of its tokens.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    /// What the user began with.
    pub goal: usize,
    /// Constraints, open errors and open tasks: not all of it, so that no list crowds out everything else.
    pub open: usize,
    /// What else the user said.
    pub said: usize,
    /// What happened, turn by turn.
    pub happened: usize,
    /// Files that were only read. Those that were changed have no limit.
    pub read: usize,
}

impl Shares {
    /// A layer that replaces a conversation alone.
    pub const ALONE: Shares = Shares { goal: 10, open: 50, said: 10, happened: 60, read: 10 };
    /// A layer beside a summary, which tells what happened.
    pub const BESIDE: Shares = Shares { said: 15, happened: 0, ..Shares::ALONE };

    /// With more room for what must be preserved (`S5.10`). Decisions are in the summary itself, and always in it.
    pub fn preserving(self, what: Preservation) -> Shares {
        Shares {
            goal: if what.preserve_goals { 2 * self.goal } else { self.goal },
            open: if what.preserve_errors { 3 * self.open / 2 } else { self.open },
            read: if what.preserve_code { 2 * self.read } else { self.read },
            ..self
        }
    }
}

/// A keep-layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeepLayer {
    /// Its text: Markdown, with headings in the language of the conversation. Empty when nothing is kept.
    pub text: String,
    /// The messages of the user that are verbatim in it and whole, by the numbers that they were added with.
    pub quoted: Vec<usize>,
}

/// What is beside a layer already.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beside<'a> {
    /// A summary: what it repeats to the letter is not said again.
    pub summary: &'a str,
    /// Messages of the user that are quoted whole, by the numbers that they were added with.
    pub quoted: &'a [usize],
    /// Messages of the user whose constraints hold no more.
    pub rejected: &'a [usize],
    /// How things stand at the end of the conversation, where that is behind what the layer is of.
    pub(crate) state: Option<&'a WorkState>,
    /// What messages are called where they can be read again.
    pub(crate) labels: Labels<'a>,
}

/// What the messages of a conversation are called, by the numbers that they were added with; nothing where they cannot be
/// read again.
#[derive(Clone, Copy, Default)]
pub(crate) struct Labels<'a>(pub(crate) Option<&'a dyn Fn(usize) -> String>);

impl Labels<'_> {
    pub(super) fn of(self, position: usize) -> Option<String> {
        self.0.filter(|_| position != usize::MAX).map(|label| label(position))
    }
}

impl fmt::Debug for Labels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Labels").field(&self.0.is_some()).finish()
    }
}

impl KeepLayerBuilder {
    /// What must be kept, in at most `budget` tokens.
    pub fn layer(&self, budget: usize, shares: Shares, estimator: Estimator) -> KeepLayer {
        self.layer_beside(budget, shares, Beside::default(), estimator)
    }

    /// What must be kept beside what is said already, in at most `budget` tokens.
    pub fn layer_beside(
        &self,
        budget: usize,
        shares: Shares,
        beside: Beside<'_>,
        estimator: Estimator,
    ) -> KeepLayer {
        let headings = self.spoken.headings();
        let state = beside.state.unwrap_or(&self.state);
        let mut layer =
            Sections { items: Vec::new(), opened: 0, left: budget, headings, estimator, root: String::new() };
        let part = |percent: usize| budget / 100 * percent + budget % 100 * percent / 100;
        // What is beside the layer is not repeated in it.
        let (mut told, mut apart) = (beside.summary.to_string(), Vec::new());
        for said in self.said.iter().filter(|said| beside.quoted.contains(&said.position)) {
            told.push('\n');
            told.push_str(&said.text);
            apart.push(said.at);
        }
        let is_said = |text: &str| beside.summary.contains(text);
        if let Some(goal) = self.goal().filter(|said| !beside.quoted.contains(&said.position)) {
            layer.say(GOAL, 0, goal, part(shares.goal).max(60));
        }
        let constraints = self.constraints().map(|(at, text)| MustKeep::Constraint(at, text.into()));
        let musts: Vec<MustKeep> = constraints.chain(state.left_open()).collect();
        let mut room = part(shares.open);
        for (order, must) in musts.iter().enumerate() {
            let (section, text) = match must {
                MustKeep::Constraint(at, text)
                    if !beside.quoted.contains(at) && !beside.rejected.contains(at) =>
                {
                    (CONSTRAINTS, text)
                }
                MustKeep::Failure(text) => (ERRORS, text),
                MustKeep::Task(text) => (TASKS, text),
                MustKeep::Constraint(..) | MustKeep::File(_) => continue,
            };
            // Constraints come newest first, and are listed oldest first.
            let order = if section == CONSTRAINTS { musts.len() - order } else { order };
            if !is_said(text) && !layer.holds(text) {
                room -= layer.add(section, order, text, room).min(room);
            }
        }
        let (changed, read) = state.files.lines();
        layer.root = state.files.root().to_string();
        let changed = changed.into_iter().filter(|(path, _)| !is_said(path));
        for (order, (_, line)) in changed.enumerate() {
            layer.file(order, &line, usize::MAX);
        }
        let room = part(shares.happened).min(layer.left);
        turns::add(&mut layer, self, &beside, room);
        let mut room = part(shares.said);
        for (order, said) in self.said.iter().enumerate().skip(1).rev() {
            if !beside.quoted.contains(&said.position) && !layer.holds(&quote(said.text.trim())) {
                room -= layer.say(SAID, order, said, room.min(part(5).max(60))).min(room);
            }
        }
        let last = layer.items.len();
        let mut room = part(shares.read);
        for (order, (_, line)) in read.iter().enumerate() {
            // Of a long session there are thousands.
            if room.min(layer.left) < SHORTEST {
                break;
            }
            room -= layer.file(last + order, line, room).min(room);
        }
        told.push('\n');
        told.push_str(&layer.text());
        let left = layer.left.saturating_sub(layer.heading(DETAILS));
        for line in self.lines.best((&told, &apart), left, self.count, estimator) {
            layer.opened |= 1 << DETAILS;
            let text = quote(&layer.short(&line.text)).into_owned();
            let source = line.source().map(|source| quote(&layer.short(source)).into_owned());
            let (order, lines) = (line.order, line.numbers());
            layer.items.push(LayerItem {
                section: DETAILS,
                order,
                depth: 0,
                source,
                lines,
                quotes: None,
                text,
            });
        }
        layer.write(budget)
    }
}

/// The bullets chosen so far, most important first.
pub(super) struct Sections {
    items: Vec<LayerItem>,
    /// Bit set of the sections that have a heading already.
    opened: u32,
    left: usize,
    headings: &'static Headings,
    pub(super) estimator: Estimator,
    /// The folder that files are listed below.
    root: String,
}

#[derive(Default)]
struct LayerItem {
    section: usize,
    /// Its position in its section.
    order: usize,
    /// Bullets that it is below.
    depth: usize,
    /// Where it is from. Passages of one source that follow each other share a bullet.
    source: Option<String>,
    /// Its lines there.
    lines: String,
    /// The message of the user that it is all of.
    quotes: Option<usize>,
    text: String,
}

impl Sections {
    /// Tokens of a heading that is not there yet.
    fn heading(&self, section: usize) -> usize {
        if self.opened & (1 << section) != 0 {
            return 0;
        }
        self.headings.get(section).map_or(0, |name| self.estimator.text(name) + 3)
    }

    /// Some bullet repeats this.
    fn holds(&self, text: &str) -> bool {
        self.items.iter().any(|item| item.text.contains(text))
    }

    /// Adds a bullet of at most `cap` tokens; what it costs, which is nothing where there is no room.
    fn add(&mut self, section: usize, order: usize, text: &str, cap: usize) -> usize {
        let fixed = self.heading(section) + 2;
        let cap = cap.min(self.left).saturating_sub(fixed);
        let whole = quote(text.trim());
        let tokens = self.estimator.text(&whole);
        let text = match tokens {
            0 => return 0,
            fits if fits <= cap => whole.into_owned(),
            _ if cap < LEAST => return 0,
            _ => clip(text.trim(), tokens, cap, self.estimator, ClipAt::BetweenWords, quote),
        };
        if self.items.iter().any(|item| item.section == section && item.text == text) {
            return 0;
        }
        let spent = fixed + self.estimator.text(&text);
        self.left -= spent.min(self.left);
        self.opened |= 1 << section;
        self.items.push(LayerItem { section, order, text, ..LayerItem::default() });
        spent
    }

    /// Adds the line of a file, below its folder where most files are in that.
    fn file(&mut self, order: usize, line: &str, cap: usize) -> usize {
        let root = std::mem::take(&mut self.root);
        let mut spent = 0;
        if let Some(below) = line.strip_prefix(root.as_str()).filter(|_| !root.is_empty()) {
            // What is elsewhere comes first, and then the folder.
            let order = IN_FOLDER + order;
            let folder = files::folder_line(&root);
            let is_there = self.items.iter().any(|item| item.section == FILES && item.text == folder);
            let (of_folder, of_line) = (self.estimator.text(&folder) + 2, self.estimator.text(below) + 4);
            if of_line + if is_there { 0 } else { of_folder } <= cap.min(self.left) {
                if !is_there {
                    spent += self.put(FILES, IN_FOLDER, 0, &folder);
                }
                spent += self.put(FILES, order + 1, 1, &quote(below));
            }
        } else {
            spent = self.add(FILES, order, line, cap);
        }
        self.root = root;
        spent
    }

    /// A text without the folder that the files are listed below.
    pub(super) fn short(&self, text: &str) -> String {
        match self.root.as_str() {
            "" => text.to_string(),
            root => text.replace(root, ""),
        }
    }

    /// Adds a bullet as it is, below `depth` others; what it costs.
    pub(super) fn put(&mut self, section: usize, order: usize, depth: usize, text: &str) -> usize {
        let spent = self.heading(section) + self.estimator.text(text) + 2 + 2 * depth;
        self.left -= spent.min(self.left);
        self.opened |= 1 << section;
        self.items.push(LayerItem { section, order, depth, text: text.to_string(), ..LayerItem::default() });
        spent
    }

    /// Adds what a user said, and notes when all of it is there.
    fn say(&mut self, section: usize, order: usize, said: &SaidText, cap: usize) -> usize {
        let before = self.items.len();
        let spent = self.add(section, order, &said.text, cap);
        let whole = quote(said.text.trim());
        if let Some(item) = self.items.get_mut(before)
            && said.whole
            && item.text == whole
        {
            item.quotes = Some(said.position);
        }
        spent
    }

    /// The layer, sections and bullets in their order.
    fn text(&self) -> String {
        let mut out = String::new();
        for (section, name) in self.headings.iter().enumerate() {
            let items: Vec<&LayerItem> = self.items.iter().filter(|item| item.section == section).collect();
            if items.is_empty() {
                continue;
            }
            out.push_str(if out.is_empty() { "## " } else { "\n## " });
            out.push_str(name);
            out.push('\n');
            let mut before = None;
            for item in order::by_key(items, |item| item.order as u64) {
                item.write(&mut out, before);
                before = item.source.as_deref();
            }
        }
        out.truncate(out.trim_end().len());
        out
    }

    /// The layer in at most `budget` tokens. An estimate of a text is not the sum of those of its parts: the least
    /// important bullets go until it fits.
    fn write(mut self, budget: usize) -> KeepLayer {
        loop {
            let text = self.text();
            let size = self.estimator.text(&text);
            if size <= budget || self.items.is_empty() {
                let quoted = self.items.iter().filter_map(|item| item.quotes).collect();
                return KeepLayer { text, quoted };
            }
            let keep = self.items.len() * budget / size.max(1);
            self.items.truncate(keep.min(self.items.len() - 1));
        }
    }
}

impl LayerItem {
    /// Writes the bullet behind one from the source `before`.
    fn write(&self, out: &mut String, before: Option<&str>) {
        let indent = "  ".repeat(self.depth);
        match self.source.as_deref() {
            Some(source) if before == Some(source) && self.lines.is_empty() => out.push_str("  […]\n  "),
            Some(source) if before == Some(source) => out.push_str(&format!("  {}:\n  ", self.lines)),
            Some(source) => {
                let colon = if self.lines.is_empty() { "" } else { ":" };
                out.push_str(&format!("- {source}{colon}{}:\n  ", self.lines));
            }
            None => out.push_str(&format!("{indent}- ")),
        }
        match self.depth {
            0 => out.push_str(&self.text),
            _ => out.push_str(&self.text.replace('\n', &format!("\n{indent}"))),
        }
        out.push('\n');
    }
}

/// A line without the mark of a list item and the number that tools print before it.
pub(super) fn unnumbered(line: &str) -> &str {
    without_number(unlisted(line))
}
