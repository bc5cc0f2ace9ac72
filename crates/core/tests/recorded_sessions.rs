//! Real agent transcripts through compactions and sessions: valid before means valid after, nothing is lost, nothing
//! oversized is prepared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use context_compactor_core::Code;
use context_compactor_core::plan::Trigger;
use context_compactor_core::session::audit::audit;
use context_compactor_core::session::{Fate, LedgerEntry, Session};
use context_compactor_core::step::Event;
use context_compactor_core::summary::SummaryRequest;
use context_compactor_core::tokens::Estimator;
use context_compactor_core::wire::{self, Format};
use context_compactor_store_tests::conversation::Body;
use context_compactor_store_tests::host::{Summarise, summary, thrown};
use context_compactor_store_tests::{Host, MemoryStore};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::rc::Rc;
use support::{SUMMARY, settings};

/// Cut points of one transcript.
const CUTS: usize = 32;
/// Bytes of messages that the cuts of one transcript may amount to.
const BUDGET: usize = 6_000_000;

struct Transcript {
    id: String,
    format: Format,
    bodies: Vec<Body>,
    tokens: Vec<usize>,
}

fn transcripts(folder: &str) -> Vec<Transcript> {
    let root = std::env::var_os("CC_DATA")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    let path = root.join("core").join(folder);
    let Ok(entries) = std::fs::read_dir(&path) else {
        println!("skipped: no transcripts at {} (set CC_DATA)", path.display());
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let lines = files.iter().flat_map(|file| {
        BufReader::new(GzDecoder::new(std::fs::File::open(file).unwrap())).lines().map(Result::unwrap)
    });
    lines.filter_map(|line| transcript(&line)).collect()
}

fn transcript(line: &str) -> Option<Transcript> {
    let record = wire::parse(0, line).unwrap();
    let values = record.get("messages").as_array()?;
    let format = match record.get("format").as_str()? {
        "anthropic" => Format::Anthropic,
        "openai" | "openai-chat" => Format::OpenaiChat,
        _ => return None,
    };
    let bodies = values.iter().map(|value| Rc::from(serde_json::to_string(value).unwrap())).collect();
    let tokens = values
        .iter()
        .enumerate()
        .map(|(at, value)| Estimator::default().message(&format.wire().read(at, value).unwrap()))
        .collect();
    Some(Transcript { id: record.get("id").as_str()?.to_owned(), format, bodies, tokens })
}

fn problems(format: Format, bodies: &[Body]) -> usize {
    let values: Vec<_> = bodies.iter().map(|body| wire::parse(0, body).unwrap()).collect();
    format.wire().validate(&values, false).len()
}

/// Ends of prefixes: between exchanges first, then anywhere.
fn cuts(transcript: &Transcript) -> Vec<usize> {
    let values: Vec<_> = transcript.bodies.iter().map(|body| wire::parse(0, body).unwrap()).collect();
    let messages: Vec<_> =
        values.iter().map(|value| transcript.format.wire().read(0, value).unwrap()).collect();
    let exchanges = context_compactor_core::message::Exchanges::of(&messages);
    let (between, inside): (Vec<usize>, Vec<usize>) =
        (2..=transcript.bodies.len()).partition(|at| exchanges.is_boundary(*at));
    let bytes: usize = transcript.bodies.iter().map(|body| body.len()).sum();
    let count = CUTS.min(BUDGET / bytes.max(1)).max(2);
    let seed =
        transcript.id.bytes().fold(7, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut chosen = vec![transcript.bodies.len()];
    for pool in [between, inside] {
        let more = (count * 3 / 4).max(1);
        chosen.extend(rng.choose_multiple(pool, more));
    }
    chosen.truncate(count);
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// Every message has one fate, in order.
fn conserved(ledger: &[LedgerEntry], messages: usize) {
    assert_eq!(ledger.len(), messages);
    assert!(ledger.iter().enumerate().all(|(at, entry)| entry.index == at));
}

/// Options with a window small enough for the rungs to fire.
fn small(tokens: usize, scripted: bool) -> Value {
    let window = (tokens * 3 / 4).clamp(4_000, 150_000);
    json!({ "contextWindow": window, "estimator": "calibrated", "hasSummarize": scripted, "retryCount": 1 })
}

#[derive(Debug, Default)]
struct Counts {
    histories: usize,
    compactions: usize,
    refused: usize,
    idle: usize,
    offloaded: usize,
    overflows: usize,
}

/// A compaction of a history that is handed over whole.
fn compact_once(transcript: &Transcript, cut: usize, scripted: bool, counts: &mut Counts) {
    let Transcript { id, format, bodies, tokens } = transcript;
    let history = &bodies[..cut];
    let mut host = Host::new(Rc::new(MemoryStore::default()), id);
    host.summarise = Box::new(|_, _| summary(SUMMARY));
    let mut options = small(tokens[..cut].iter().sum(), scripted);
    options["format"] = json!(format.as_str());
    let done = host.run(Session::compact_once(settings(options), history.to_vec()));
    let done = done.unwrap_or_else(|error| panic!("{id} at {cut}: {error}"));
    let result = done.result;
    counts.histories += 1;
    conserved(&result.ledger, cut);
    assert!(result.current_tokens <= result.previous_tokens, "{id} at {cut}");
    let after: Vec<Body> = done
        .items
        .iter()
        .map(|item| item.body.clone().unwrap_or_else(|| Rc::clone(&history[item.seq.unwrap() as usize])))
        .collect();
    let kept: Vec<u64> = done.items.iter().filter_map(|item| item.seq).collect();
    assert!(kept.is_sorted());
    if result.summary.is_some() {
        counts.compactions += 1;
        assert!(result.current_tokens < result.previous_tokens);
        if problems(*format, history) == 0 {
            assert_eq!(problems(*format, &after), 0, "{id} at {cut}: valid before, not after");
        }
    } else {
        assert_eq!(after, history, "{id} at {cut}: nothing was done, nothing changed");
        counts.refused += usize::from(!result.success);
        counts.idle += usize::from(result.success);
    }
}

/// A session that is appended to and prepared, at the cut and again behind it.
fn session(transcript: &Transcript, cut: usize, scripted: bool, counts: &mut Counts) {
    let over = json!({ "fallback": "extractive" });
    session_with(transcript, cut, scripted, over, Box::new(|_, _| summary(SUMMARY)), counts);
}

/// The same in presets that roll over, with summarisers that do not do what they are asked for.
fn rolls_over(transcript: &Transcript, cut: usize, scripted: bool, counts: &mut Counts) {
    let summarisers: [fn(&SummaryRequest) -> Event; 5] = [
        |_| summary(SUMMARY),
        |_| thrown("down", None),
        |_| summary(""),
        |request| summary(&request.messages[0].content),
        |request| summary(&"It goes on and on. ".repeat(request.max_tokens)),
    ];
    for (preset, nth) in [("checkpoint", cut % 5), ("factor3", (cut + 1) % 5)] {
        let summarise = summarisers[nth];
        let over = json!({ "preset": preset });
        session_with(transcript, cut, scripted, over, Box::new(move |request, _| summarise(request)), counts);
    }
}

fn session_with(
    transcript: &Transcript,
    cut: usize,
    scripted: bool,
    over: Value,
    summarise: Summarise,
    counts: &mut Counts,
) {
    let Transcript { id, format, bodies, tokens } = transcript;
    let memory = Rc::new(MemoryStore::default());
    let mut host = Host::new(Rc::clone(&memory) as _, id);
    host.summarise = summarise;
    let mut options = small(tokens[..cut].iter().sum(), scripted);
    options["format"] = json!(format.as_str());
    let rolls = over["preset"].is_string();
    for (key, value) in over.as_object().unwrap() {
        options[key] = value.clone();
    }
    let settings = settings(options);
    let (session, _) = host.run(Session::open(Rc::clone(&settings), Some(id.clone()), 10_000)).unwrap();
    let half = (cut / 2).max(1);
    for part in [&bodies[..half], &bodies[half..cut]] {
        host.run(session.append(part.to_vec())).unwrap_or_else(|error| panic!("{id} at {cut}: {error}"));
        match host.run(session.prepare(Trigger::Auto, Vec::new())) {
            Ok(prepared) => {
                assert!(prepared.usage.used_tokens <= settings.hard_limit, "{id} at {cut}: oversized");
                let sent = prepared.items.iter().map(|item| match item.seq {
                    Some(seq) => session.body(seq).unwrap().unwrap(),
                    None => item.body.clone().unwrap(),
                });
                let sent: Vec<Body> = sent.collect();
                assert!(
                    sent.is_empty() || problems(*format, &sent) == 0,
                    "{id} at {cut}: what is sent is valid"
                );
            }
            Err(error) if error.code == Code::ContextOverflow => {
                let plan = host.run(session.plan()).unwrap();
                // The shortest summary with its frame takes some room too.
                let excused = plan.proof.is_some()
                    || plan.floor + 200 > settings.hard_limit
                    || (!rolls && error.message.contains("the summary failed"));
                assert!(excused, "{id} at {cut}: it could have been made to fit: {error}");
                counts.overflows += 1;
            }
            Err(error) => panic!("{id} at {cut}: {error}"),
        }
    }
    counts.histories += 1;
    // The log holds every message to the letter, every offload the text of its result: `audit` compares them.
    let stored = audit(id, &memory.rows()).unwrap_or_else(|error| panic!("{id} at {cut}: {error}"));
    assert!(stored.messages.iter().zip(bodies).all(|(stored, body)| **stored == **body));
    let ledger = session.explain().unwrap();
    conserved(&ledger, cut);
    counts.offloaded += ledger.iter().filter(|entry| entry.reference.is_some()).count();
    counts.compactions += usize::from(ledger.iter().any(|entry| entry.fate == Fate::Summarised));
    for entry in ledger.iter().filter(|entry| entry.reference.is_some()).take(3) {
        let text = host.run(session.read(entry.reference.clone().unwrap(), 0, None)).unwrap();
        let value = wire::parse(0, &bodies[entry.index]).unwrap();
        let message = format.wire().read(0, &value).unwrap();
        assert_eq!(
            message.results().find(|result| result.text == text).map(|result| result.text.len()),
            Some(text.len())
        );
    }
}

fn each(folder: &str, check: impl Fn(&Transcript, usize, bool, &mut Counts)) {
    let mut counts = Counts::default();
    for transcript in transcripts(folder) {
        for (nth, cut) in cuts(&transcript).into_iter().enumerate() {
            check(&transcript, cut, nth % 2 == 0, &mut counts);
        }
    }
    println!("{folder}: {counts:?}");
}

#[test]
fn lesson_recorded_anthropic_histories_survive_compaction() {
    each("anthropic", compact_once);
}

#[test]
fn lesson_recorded_openai_histories_survive_compaction() {
    each("openai", compact_once);
}

#[test]
fn lesson_recorded_anthropic_sessions_fit_and_lose_nothing() {
    each("anthropic", session);
}

#[test]
fn lesson_recorded_openai_sessions_fit_and_lose_nothing() {
    each("openai", session);
}

#[test]
fn s5_15_recorded_sessions_roll_over_and_lose_nothing_whatever_the_summariser_does() {
    for folder in ["anthropic", "openai", "probes"] {
        each(folder, rolls_over);
    }
}

#[test]
fn lesson_probes_survive_compaction_and_sessions() {
    each("probes", compact_once);
    each("probes", session);
}
