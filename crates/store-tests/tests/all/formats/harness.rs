//! Runs a property over seeds on every core, counts, and reports what fails as small as it can be made.

use crate::formats::shrink::smallest;
use context_compactor_core::wire::{Format, parse};
use context_compactor_store_tests::counts::Counts;
use fastrand::Rng;
use serde_json::Value;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Histories for each format when nobody asks for more.
const HISTORIES: u64 = 2_000;
/// Failures after which a property is given up.
const ENOUGH: usize = 5;
/// Seeds between two words about progress.
const STRETCH: u64 = 10_000;

/// Something that holds for every history.
pub(crate) struct Property {
    /// Its name in reports.
    pub(crate) name: &'static str,
    /// Makes a history.
    pub(crate) make: fn(Format, &mut Rng) -> Vec<Value>,
    /// The histories that it speaks of: a failing one is made smaller among them.
    pub(crate) admits: fn(Format, &[Value]) -> bool,
    /// Holds, or what does not. Choices of its own are made from a generator that the seed decides too.
    pub(crate) holds: fn(Format, &[Value], Rng, &mut Counts) -> Result<(), String>,
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// One seed, or as many as are asked for from the first one on.
fn seeds() -> Range<u64> {
    match number("CC_HISTORY_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let first = number("CC_HISTORY_FIRST").unwrap_or(0);
            first..first + number("CC_HISTORIES").unwrap_or(HISTORIES)
        }
    }
}

/// True for the formats that are asked for: all, or one.
fn is_asked(format: Format) -> bool {
    std::env::var("CC_HISTORY_FORMAT").map_or(true, |name| name == format.as_str())
}

impl Property {
    /// Runs it for every format.
    pub(crate) fn check(&self) {
        self.check_for(&Format::ALL);
    }

    /// Runs it for some formats.
    pub(crate) fn check_for(&self, formats: &[Format]) {
        let asked = formats.iter().filter(|format| is_asked(**format));
        let failed: Vec<String> = asked.filter_map(|format| self.check_format(*format)).collect();
        assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    }

    fn check_format(&self, format: Format) -> Option<String> {
        let (counts, failures) = (Mutex::new(Counts::default()), Mutex::new(Vec::new()));
        let (seeds, of) = (seeds(), format.as_str());
        let next = AtomicU64::new(seeds.start);
        let work = || {
            let mut mine = Counts::default();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds.end || failures.lock().expect("no panic").len() >= ENOUGH {
                    break;
                }
                if seed > seeds.start && seed.is_multiple_of(STRETCH) && number("CC_PROGRESS").is_some() {
                    println!("{} {of}: {seed} of {}", self.name, seeds.end);
                }
                mine.add("histories", 1);
                let history = (self.make)(format, &mut Rng::with_seed(seed));
                if let Err(what) = self.run(format, &history, seed, &mut mine) {
                    failures.lock().expect("no panic").push((seed, what));
                }
            }
            counts.lock().expect("no panic").merge(&mine);
        };
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, |count| count.get()) {
                scope.spawn(work);
            }
        });
        let mut counts = counts.into_inner().expect("no panic");
        let mut failures = failures.into_inner().expect("no panic");
        failures.sort();
        counts.add("failures", failures.len());
        println!("{}", counts.line(self.name, of));
        let (seed, what) = failures.first()?;
        let history = (self.make)(format, &mut Rng::with_seed(*seed));
        let history = smallest(history, |history| {
            (self.admits)(format, history)
                && self.run(format, history, *seed, &mut Counts::default()).is_err()
        });
        let least = self.run(format, &history, *seed, &mut Counts::default()).err();
        let messages: Vec<String> = history.iter().map(|message| format!("  {message}")).collect();
        Some(format!(
            "{} does not hold for {of}: seed {seed} (CC_HISTORY_SEED={seed} repeats it)\n{}\nof the history\n{}",
            self.name,
            least.as_ref().unwrap_or(what),
            messages.join("\n")
        ))
    }

    /// A panic is a failure like any other.
    fn run(&self, format: Format, history: &[Value], seed: u64, counts: &mut Counts) -> Result<(), String> {
        let run = AssertUnwindSafe(|| (self.holds)(format, history, Rng::with_seed(!seed), counts));
        catch_unwind(run).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            Err(format!("panicked: {}", text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("?")))
        })
    }
}

/// Parses a history and hands it to `with`.
pub(crate) fn read<T>(history: &[Value], with: impl FnOnce(&[serde_json_borrow::Value<'_>]) -> T) -> T {
    let texts: Vec<String> = history.iter().map(Value::to_string).collect();
    let messages: Vec<_> =
        texts.iter().enumerate().map(|(at, text)| parse(at, text).expect("an object")).collect();
    with(&messages)
}

/// The format's provider would accept it.
pub(crate) fn is_valid(format: Format, history: &[Value]) -> bool {
    read(history, |messages| format.rules().validate(messages, false)).is_empty()
}

/// For properties of any history.
pub(crate) fn any(_: Format, _: &[Value]) -> bool {
    true
}
