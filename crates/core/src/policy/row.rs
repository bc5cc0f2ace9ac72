//! What the table of options consists of.

use super::presets::{Numbers, Preset};
use super::rung::Rung;
use crate::checkpoint::Range;
use crate::tokens::budget;

/// The largest number of tokens, characters or milliseconds that an option may name.
pub(super) const MAX: usize = 1_000_000_000;

/// The values that an option takes.
#[derive(Debug, Clone, Copy)]
pub enum OptionKind {
    /// A whole number.
    Count {
        /// The smallest one.
        least: usize,
        /// And the largest.
        most: usize,
    },
    /// A number, whole or not.
    Number {
        /// The smallest one.
        least: f64,
        /// And the largest.
        most: f64,
    },
    /// `true` or `false`.
    Flag,
    /// A text that is not empty.
    Text,
    /// A list of such texts.
    Names,
    /// One of these texts.
    Choice(fn() -> Vec<&'static str>),
    /// A function of this type. The engine sees `true` where the app gave one.
    Function(&'static str),
    /// A value of this type, whose reader checks it.
    Value(&'static str),
    /// A value of this type that the engine never sees.
    Host(&'static str),
    /// An object of options. A function or text in its place is the option that `short` names.
    Group {
        /// The name of its type, where it has one.
        name: Option<&'static str>,
        /// The member that is meant when a function is given for the group.
        short: Option<&'static str>,
    },
}

/// The calls that take an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// Every one: `compact`, `planCompaction`, `openSession`, `importSession`.
    Every,
    /// `compact`.
    Compact,
    /// `openSession` and `importSession`.
    Sessions,
    /// `openSession`.
    Open,
}

/// Where the numbers of a preset have the value of an option; none where this preset has no such number.
pub(super) type NumberPlace = fn(&mut Numbers) -> Option<&mut dyn Number>;

/// An option.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its name, with the group's before it.
    pub path: &'static str,
    /// Its values.
    pub kind: OptionKind,
    /// `false` switches off what it is about.
    pub or_false: bool,
    /// Its group cannot be without it.
    pub is_required: bool,
    /// Its default, where the numbers of the preset do not have it.
    pub default: &'static str,
    /// What says its name by the original systems, as `layered.keepRecent` for `keepRecent` of `presetOptions`.
    pub documented_as: &'static [Documented],
    /// The calls that take it.
    pub calls: Calls,
    /// What to do instead, for a call that does not take it.
    pub remedy: &'static str,
    /// The rung that it is about: without that rung the option would do nothing, and is refused.
    pub rung: Option<Rung>,
    /// What it does.
    pub doc: &'static str,
    pub(super) place: Option<NumberPlace>,
    /// In windows smaller than the presets were written for, the default shrinks down to this.
    pub(super) scaled: Option<usize>,
}

/// A name of an option in an original system.
#[derive(Debug, Clone, Copy)]
pub struct Documented {
    /// The preset and the name.
    pub name: &'static str,
    /// The value that switches off; the others, where there is one, say nothing or are values of the option.
    pub off: Option<Off>,
}

/// How an original system says that something is off (`S2.7`, `S4.6`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Off {
    /// A switch of its own, which is `false`.
    Switch,
    /// This text; other values are those of the option.
    Text(&'static str),
    /// A choice of its own: the first is off, the second is not.
    Choice([&'static str; 2]),
}

/// What is told by the types, the docs and the reader in JavaScript: the engine in WebAssembly needs no such text.
const fn told(text: &'static str) -> &'static str {
    if cfg!(target_arch = "wasm32") { "" } else { text }
}

impl Row {
    const fn new(path: &'static str, kind: OptionKind) -> Row {
        Row {
            path,
            kind,
            or_false: false,
            is_required: false,
            default: "",
            documented_as: &[],
            calls: Calls::Every,
            remedy: "",
            rung: None,
            doc: "",
            place: None,
            scaled: None,
        }
    }

    pub(super) const fn count(path: &'static str, least: usize) -> Row {
        Row::new(path, OptionKind::Count { least, most: MAX })
    }

    pub(super) const fn range(path: &'static str, least: usize, most: usize) -> Row {
        Row::new(path, OptionKind::Count { least, most })
    }

    /// A share, of which 0 would make no sense.
    pub(super) const fn fraction(path: &'static str) -> Row {
        Row::number(path, 0.001, 1.0)
    }

    pub(super) const fn number(path: &'static str, least: f64, most: f64) -> Row {
        Row::new(path, OptionKind::Number { least, most })
    }

    pub(super) const fn flag(path: &'static str) -> Row {
        Row::new(path, OptionKind::Flag)
    }

    pub(super) const fn text(path: &'static str) -> Row {
        Row::new(path, OptionKind::Text)
    }

    pub(super) const fn names(path: &'static str) -> Row {
        Row::new(path, OptionKind::Names)
    }

    pub(super) const fn choice(path: &'static str, names: fn() -> Vec<&'static str>) -> Row {
        Row::new(path, OptionKind::Choice(names))
    }

    pub(super) const fn function(path: &'static str, of: &'static str) -> Row {
        Row::new(path, OptionKind::Function(of))
    }

    pub(super) const fn value(path: &'static str, of: &'static str) -> Row {
        Row::new(path, OptionKind::Value(of))
    }

    pub(super) const fn host(path: &'static str, of: &'static str) -> Row {
        Row::new(path, OptionKind::Host(of))
    }

    pub(super) const fn group(path: &'static str) -> Row {
        Row::new(path, OptionKind::Group { name: None, short: None })
    }

    pub(super) const fn named(path: &'static str, name: &'static str) -> Row {
        Row::new(path, OptionKind::Group { name: Some(name), short: None })
    }

    pub(super) const fn short(mut self, member: &'static str) -> Row {
        if let OptionKind::Group { name, .. } = self.kind {
            self.kind = OptionKind::Group { name, short: Some(member) };
        }
        self
    }

    pub(super) const fn or_false(mut self) -> Row {
        self.or_false = true;
        self
    }

    pub(super) const fn required(mut self) -> Row {
        self.is_required = true;
        self
    }

    pub(super) const fn default(mut self, default: &'static str) -> Row {
        self.default = told(default);
        self
    }

    pub(super) const fn was(mut self, names: &'static [Documented]) -> Row {
        self.documented_as = names;
        self
    }

    pub(super) const fn sessions(mut self, remedy: &'static str) -> Row {
        self.calls = Calls::Sessions;
        self.remedy = told(remedy);
        self
    }

    pub(super) const fn compact(mut self, remedy: &'static str) -> Row {
        self.calls = Calls::Compact;
        self.remedy = told(remedy);
        self
    }

    pub(super) const fn open(mut self, remedy: &'static str) -> Row {
        self.calls = Calls::Open;
        self.remedy = told(remedy);
        self
    }

    pub(super) const fn of(mut self, rung: Rung) -> Row {
        self.rung = Some(rung);
        self
    }

    pub(super) const fn at(mut self, place: NumberPlace) -> Row {
        self.place = Some(place);
        self
    }

    pub(super) const fn scaled(mut self, least: usize) -> Row {
        self.scaled = Some(least);
        self
    }

    pub(super) const fn doc(mut self, doc: &'static str) -> Row {
        self.doc = told(doc);
        self
    }

    /// The default of this option in a preset's numbers, where they have one.
    pub fn default_of(&self, preset: &Preset) -> Option<f64> {
        let mut numbers = preset.numbers;
        self.place.and_then(|place| place(&mut numbers).map(|number| number.get()))
    }
}

/// A number of a preset, of whatever type.
pub(super) trait Number {
    fn get(&self) -> f64;
    fn set(&mut self, value: f64);

    /// Makes a default smaller for a window that is smaller than the presets were written for.
    fn scale(&mut self, window: usize, least: usize) {
        self.set(budget::scale(self.get() as usize, window, least) as f64);
    }
}

impl Number for usize {
    fn get(&self) -> f64 {
        *self as f64
    }

    fn set(&mut self, value: f64) {
        *self = value as usize;
    }
}

impl Number for u64 {
    fn get(&self) -> f64 {
        *self as f64
    }

    fn set(&mut self, value: f64) {
        *self = value as u64;
    }
}

impl Number for u32 {
    fn get(&self) -> f64 {
        f64::from(*self)
    }

    fn set(&mut self, value: f64) {
        *self = value as u32;
    }
}

impl Number for f64 {
    fn get(&self) -> f64 {
        *self
    }

    fn set(&mut self, value: f64) {
        *self = value;
    }
}

impl Number for bool {
    fn get(&self) -> f64 {
        f64::from(u8::from(*self))
    }

    fn set(&mut self, value: f64) {
        *self = value != 0.0;
    }
}

/// The upper end; the lower one keeps its proportion to it.
impl Number for Range {
    fn get(&self) -> f64 {
        self.high as f64
    }

    fn set(&mut self, value: f64) {
        let high = value as usize;
        *self = Range { low: high * self.low / self.high, high };
    }
}
