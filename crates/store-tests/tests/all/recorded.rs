//! Recorded traffic of real agents: read without loss, valid where a provider accepted it, and compacted with every
//! preset at many cut points.
//!
//! `CC_DATA` says where it is, `CC_DATA_SET=full` asks for all of it, `CC_CUTS=all` for every cut point,
//! `CC_CUTS=compacted` for every one of histories that are compacted and a sample for sessions.

use context_compactor_core::message::{Exchanges, Message, Part};
use context_compactor_core::policy::{PRESETS, Preset, Rung, Trigger};
use context_compactor_core::step::Event;
use context_compactor_core::summary::SummaryRequest;
use context_compactor_core::tokens::Estimator;
use context_compactor_core::wire::{self, Repaired};
use context_compactor_store_tests::checked::{Checked, compact_once};
use context_compactor_store_tests::counts::Counts;
use context_compactor_store_tests::host::{summary, thrown};
use context_compactor_store_tests::recorded::{FOLDERS, Recorded, Recording, record, recordings};
use fastrand::Rng;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Cut points of one transcript, unless all are asked for.
const CUTS: usize = 10;
/// Bytes of messages that those may amount to.
const BUDGET: usize = 2_000_000;
/// Transcripts (how their ids begin) that break a rule as they were recorded: the user broke off turns that had only
/// thought so far.
const KNOWN: (&str, &str) = ("entireio-cc-", "AN5");

/// What the check of single compactions is called.
const COMPACTED: &str = "recorded, compacted";

/// Runs `check` on every record, on every core, file by file; prints counts by file.
///
/// # Panics
///
/// With the first failures, when there are any.
fn each(name: &str, check: impl Fn(&Recorded, &mut Counts) -> Result<(), String> + Sync) {
    let mut failed = Vec::new();
    for file in FOLDERS.iter().flat_map(|folder| recordings(folder)) {
        let (counts, failures) = over(&file, &check);
        println!("{}", counts.line(name, &file.name));
        failed.extend(failures);
    }
    failed.truncate(5);
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

fn over(
    file: &Recording,
    check: &(impl Fn(&Recorded, &mut Counts) -> Result<(), String> + Sync),
) -> (Counts, Vec<String>) {
    let lines: Vec<String> = file.lines().collect();
    let (next, sums) = (AtomicUsize::new(0), Mutex::new((Counts::default(), Vec::new())));
    let skipped: Mutex<BTreeMap<String, usize>> = Mutex::default();
    let work = || {
        while let Some(line) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut counts = Counts::default();
            let failure = match record(line) {
                Ok(recorded) => {
                    counts.add("records", 1);
                    check(&recorded, &mut counts).err().map(|what| format!("{}: {what}", recorded.id))
                }
                Err(why) => {
                    counts.add("skipped", 1);
                    *skipped.lock().expect("no panic").entry(why).or_default() += 1;
                    None
                }
            };
            counts.add("failures", usize::from(failure.is_some()));
            let mut sums = sums.lock().expect("no panic");
            sums.0.merge(&counts);
            sums.1.extend(failure);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |count| count.get()) {
            scope.spawn(work);
        }
    });
    for (why, count) in skipped.into_inner().expect("no panic") {
        println!("skipped: {count} of {}: {why}", file.name);
    }
    sums.into_inner().expect("no panic")
}

fn text(error: context_compactor_core::Error) -> String {
    error.to_string()
}

/// Reads the messages of a record.
fn read<T>(recorded: &Recorded, with: impl FnOnce(&[Message<'_>]) -> T) -> Result<T, String> {
    let values = recorded.bodies.iter().map(|body| wire::parse(0, body));
    let values = values.collect::<Result<Vec<_>, _>>().map_err(text)?;
    let messages = values.iter().enumerate().map(|(at, value)| recorded.format.wire().read(at, value));
    Ok(with(&messages.collect::<Result<Vec<_>, _>>().map_err(text)?))
}

/// Texts in a message that a model reads: values of `text`, and contents, outputs and arguments that are strings.
fn texts<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Array(elements) => elements.iter().for_each(|element| texts(element, found)),
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text)
                        if ["text", "content", "output", "arguments", "thinking"].contains(&key.as_str()) =>
                    {
                        found.push(text);
                    }
                    _ => texts(value, found),
                }
            }
        }
        _ => {}
    }
}

/// Every text of a message is in what was read of it, unless something in it is the provider's business.
fn nothing_is_lost(body: &str, message: &Message<'_>, counts: &mut Counts) -> Result<(), String> {
    let mut opaque = false;
    let mut read = String::new();
    for part in &message.parts {
        match part {
            Part::Text(text) | Part::Reasoning { text, .. } => read.push_str(text),
            Part::ToolCall(call) => {
                counts.add("calls", 1);
                read.push_str(&call.arguments);
            }
            Part::ToolResult(result) => {
                counts.add("results", 1);
                counts.add("media", result.media.len());
                read.push_str(&result.text);
            }
            Part::Media(_) => counts.add("media", 1),
            Part::Opaque { .. } | Part::Compaction { .. } => {
                counts.add("opaque", 1);
                opaque = true;
            }
        }
        read.push('\n');
    }
    let value: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
    let mut there = Vec::new();
    texts(&value, &mut there);
    let is_read = |text: &&str| {
        // Inside of arguments and structured results a text stands as JSON has it.
        let quoted = json!(text).to_string();
        read.contains(*text) || read.contains(quoted.trim_matches('"'))
    };
    match there.iter().find(|text| !is_read(text)) {
        Some(_) if opaque => Ok(()),
        Some(lost) => Err(format!("a text of {} characters was not read", lost.chars().count())),
        None => Ok(()),
    }
}

#[test]
fn recorded_messages_are_read_and_what_a_provider_accepted_is_valid() {
    each("read", |recorded, counts| {
        counts.add("messages", recorded.bodies.len());
        let lost = read(recorded, |messages| {
            let mut bodies = recorded.bodies.iter().zip(messages).enumerate();
            bodies.try_for_each(|(at, (body, message))| {
                nothing_is_lost(body, message, counts).map_err(|what| format!("message {at}: {what}"))
            })
        });
        lost??;
        let values = recorded.bodies.iter().map(|body| wire::parse(0, body));
        let values = values.collect::<Result<Vec<_>, _>>().map_err(text)?;
        let problems = recorded.format.rules().validate(&values, false);
        let known = |rule: &str| recorded.id.starts_with(KNOWN.0) && rule == KNOWN.1;
        if let Some(problem) = problems.iter().find(|problem| !known(problem.rule)) {
            counts.add("invalid", 1);
            counts.add(problem.rule, 1);
            let told = format!("{} at message {}: {}", problem.rule, problem.index, problem.message);
            return if recorded.accepted { Err(told) } else { Ok(()) };
        }
        let (repaired, _) = recorded.format.rules().repair(&values);
        let untouched = repaired.iter().enumerate().all(|(at, message)| *message == Repaired::Keep(at));
        if problems.is_empty() && !(untouched && repaired.len() == values.len()) {
            return Err("a valid history was repaired".into());
        }
        Ok(())
    });
}

/// Ends of prefixes: between exchanges first, then anywhere; and a generator for choices about them.
fn cuts(recorded: &Recorded, name: &str) -> Result<(Vec<usize>, Rng), String> {
    let all = 1..=recorded.bodies.len();
    let seed =
        recorded.id.bytes().fold(7, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let mut rng = Rng::with_seed(seed);
    let asked = std::env::var("CC_CUTS").unwrap_or_default();
    if asked == "all" || (asked == "compacted" && name == COMPACTED) {
        return Ok((all.collect(), rng));
    }
    let exchanges = read(recorded, |messages| Exchanges::of(messages))?;
    let (between, inside): (Vec<usize>, Vec<usize>) = all.partition(|at| exchanges.is_boundary(*at));
    let bytes: usize = recorded.bodies.iter().map(|body| body.len()).sum();
    let count = CUTS.min(BUDGET / bytes.max(1)).max(2);
    let mut chosen = vec![recorded.bodies.len()];
    for pool in [between, inside] {
        chosen.extend(rng.choose_multiple(pool, (count * 3 / 4).max(1)));
    }
    chosen.truncate(count);
    chosen.sort_unstable();
    chosen.dedup();
    Ok((chosen, rng))
}

/// Options with a window small enough for the rungs to fire.
fn small(recorded: &Recorded, preset: &Preset, tokens: usize, rng: &mut Rng) -> Value {
    let mut options = json!({
        "preset": preset.name, "format": recorded.format.as_str(), "advanced": { "estimator": "calibrated" },
        "summarize": { "attempts": 1, "call": rng.bool().then_some(true), "fallback": "extractive" },
        "contextWindow": (tokens * 3 / 4).clamp(4_000, 150_000),
    });
    if rng.bool() {
        options["keep"] = json!({ "messages": rng.usize(1..12) });
    }
    options
}

fn at_each_cut(
    check: impl Fn(&Recorded, usize, &Value, &mut Counts) -> Result<(), String> + Sync,
    name: &str,
) {
    each(name, |recorded, counts| {
        let tokens = read(recorded, |messages| {
            messages.iter().map(|message| Estimator::default().message(message)).collect::<Vec<_>>()
        })?;
        let (cuts, mut rng) = cuts(recorded, name)?;
        for cut in cuts {
            counts.add("cuts", 1);
            for preset in PRESETS {
                let options = small(recorded, preset, tokens[..cut].iter().sum(), &mut rng);
                check(recorded, cut, &options, counts)
                    .map_err(|what| format!("{cut} messages with {options}: {what}"))?;
            }
        }
        Ok(())
    });
}

#[test]
fn lesson_recorded_histories_survive_compaction() {
    let once = |recorded: &Recorded, cut: usize, options: &Value, counts: &mut Counts| {
        counts.merge(&compact_once(recorded.format, options, &recorded.bodies[..cut])?);
        Ok(())
    };
    at_each_cut(once, COMPACTED);
}

#[test]
fn lesson_recorded_sessions_fit_and_lose_nothing() {
    let session = |recorded: &Recorded, cut: usize, options: &Value, counts: &mut Counts| {
        let mut session = Checked::open(recorded.format, options)?;
        let half = (cut / 2).max(1);
        for part in [&recorded.bodies[..half], &recorded.bodies[half..cut]] {
            session.append(part)?;
            session.prepare(Trigger::Auto)?;
        }
        session.stored()?;
        counts.merge(&session.counts);
        Ok(())
    };
    at_each_cut(session, "recorded, as a session");
}

#[test]
fn s5_15_recorded_sessions_roll_over_and_lose_nothing_whatever_the_summariser_does() {
    let summarisers: [fn(&SummaryRequest) -> Event; 4] = [
        |_| thrown("down", None),
        |_| summary(""),
        |request| summary(&request.messages[0].content),
        |request| summary(&"It goes on and on. ".repeat(request.max_tokens)),
    ];
    let session = |recorded: &Recorded, cut: usize, options: &Value, counts: &mut Counts| {
        let rolls = PRESETS.iter().any(|preset| {
            preset.name == options["preset"].as_str().unwrap_or_default()
                && preset.rungs.contains(&Rung::Rollover)
        });
        if !rolls {
            return Ok(());
        }
        let mut options = options.clone();
        options["summarize"]["fallback"] = json!("none");
        let mut session = Checked::open(recorded.format, &options)?;
        let summarise = summarisers[cut % summarisers.len()];
        session.host.summarise = Box::new(move |request, _| summarise(request));
        let half = (cut / 2).max(1);
        for part in [&recorded.bodies[..half], &recorded.bodies[half..cut]] {
            session.append(part)?;
            session.prepare(Trigger::Auto)?;
        }
        session.stored()?;
        counts.merge(&session.counts);
        Ok(())
    };
    at_each_cut(session, "recorded, rolling over");
}

#[test]
fn f26_what_a_provider_answered_breaks_no_rule_that_is_not_strict() {
    let mut checked = 0;
    for recording in recordings("wire") {
        for line in recording.lines() {
            // A request that was answered, whatever the server held beside it.
            let answered = wire::parse(0, &line).is_ok_and(|record| record.get("response").is_object());
            let Ok(recorded) = record(&line) else { continue };
            if !answered || recorded.bodies.is_empty() {
                continue;
            }
            let values = recorded.bodies.iter().map(|body| wire::parse(0, body).unwrap()).collect::<Vec<_>>();
            let problems = recorded.format.rules().validate(&values, false);
            assert_eq!(problems, [], "{}", recorded.id);
            checked += 1;
        }
    }
    println!("{checked} requests");
}
