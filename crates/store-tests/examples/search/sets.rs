//! Histories with questions, of the recordings: facts that users told (`probes/`), the same inside sessions of agents, and
//! inside long chats, which are made here of those and of the prose of other conversations.

use crate::bm25::words;
use crate::trials::{Texts, texts};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, body, user};
use context_compactor_store_tests::recorded;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Questions over some histories.
pub(crate) struct Set {
    pub(crate) name: String,
    pub(crate) histories: Vec<History>,
}

/// A history, and what is asked of it.
#[derive(Clone)]
pub(crate) struct History {
    pub(crate) format: Format,
    pub(crate) bodies: Vec<Body>,
    /// Each with the indices of the messages that have the evidence.
    pub(crate) questions: Vec<(String, Vec<usize>)>,
}

/// Messages with the evidence of the questions of `probes/memorybank_zh_en`, by history, as a person read them; empty where
/// none has it.
const MEMORYBANK: &str = include_str!("memorybank.json");
/// Long chats: bytes, of 128,000 and 500,000 tokens, and whether every second conversation was pasted in as one message.
const LONG: [(&str, usize, bool); 3] = [
    ("long chats, 128K tokens", 512_000, false),
    ("long chats, 500K tokens", 2_000_000, false),
    ("long chats with long messages, 500K tokens", 2_000_000, true),
];
/// Messages that are pasted in as one.
const PASTED: usize = 8;

pub(crate) fn sets() -> Vec<Set> {
    let facts = with_evidence("probes/bfcl_v4_memory");
    let dialogues = memorybank();
    let mut sets = Vec::new();
    let short: Vec<History> = facts.iter().chain(&dialogues).cloned().collect();
    for (name, bytes, is_pasted) in LONG {
        let (mut filler, mut told) = (filler(), short.clone());
        if is_pasted {
            filler.iter_mut().step_by(2).for_each(|dialogue| *dialogue = vec![as_one(dialogue)]);
            told.iter_mut().for_each(paste);
        }
        let long = told.iter().enumerate().map(|(nth, history)| among(history, &filler, nth, bytes));
        sets.push(Set { name: name.into(), histories: long.collect() });
    }
    sets.push(Set {
        name: "facts in coding sessions".into(),
        histories: with_evidence("probes/spliced_bfcl_in_coding"),
    });
    sets.push(Set { name: "facts told".into(), histories: facts });
    sets.push(Set { name: "dialogues".into(), histories: dialogues });
    sets.retain(|set| !set.histories.is_empty());
    sets
}

/// Histories whose questions quote their evidence.
fn with_evidence(source: &str) -> Vec<History> {
    named(source, |probe| Some(probe["question"].as_str()?.to_owned()))
}

/// The facts that users told, each question in place of its text the number of its probe: `#31`.
pub(crate) fn numbered() -> Vec<History> {
    named("probes/bfcl_v4_memory", |probe| {
        let number = probe["id"].as_str()?.strip_prefix("memory_")?.split('-').next()?;
        Some(format!("#{number}"))
    })
}

fn named(source: &str, name: impl Fn(&Value) -> Option<String>) -> Vec<History> {
    let history = |line: String| {
        let record: Value = serde_json::from_str(&line).expect("a line is JSON");
        let recorded = recorded::record(&line).expect("a record can be read");
        let texts = texts(recorded.format, &recorded.bodies);
        let mut questions = Vec::new();
        for probe in record["probes"].as_array().into_iter().flatten() {
            let (Some(question), Some(evidence)) = (name(probe), probe["evidence"].as_str()) else {
                continue;
            };
            let having = (0..texts.len()).filter(|at| is_evidence(&texts[*at], evidence)).collect::<Vec<_>>();
            if !having.is_empty() {
                questions.push((question, having));
            }
        }
        History { format: recorded.format, bodies: recorded.bodies, questions }
    };
    recorded::lines(source).into_iter().map(history).collect()
}

/// True for a message in which each piece of the evidence stands, whatever the punctuation.
fn is_evidence(texts: &Texts, evidence: &str) -> bool {
    let plain = |text: &str| words(text).collect::<Vec<_>>().join(" ");
    let said = plain(&texts.said);
    evidence.split("...").map(plain).filter(|piece| !piece.is_empty()).all(|piece| said.contains(&piece))
}

fn memorybank() -> Vec<History> {
    let known: HashMap<String, Vec<Vec<usize>>> = serde_json::from_str(MEMORYBANK).expect("this is JSON");
    let history = |line: String| {
        let record: Value = serde_json::from_str(&line).expect("a line is JSON");
        let recorded = recorded::record(&line).expect("a record can be read");
        let evidence = known.get(&recorded.id)?;
        let probes = record["probes"].as_array().into_iter().flatten();
        let asked = probes.filter_map(|probe| Some(probe["question"].as_str()?.to_owned()));
        let questions = asked.zip(evidence.iter().cloned()).filter(|(_, having)| !having.is_empty());
        Some(History { format: recorded.format, questions: questions.collect(), bodies: recorded.bodies })
    };
    recorded::lines("probes/memorybank_zh_en").into_iter().filter_map(history).collect()
}

/// Other conversations, each what its two sides say.
pub(crate) fn filler() -> Vec<Vec<Body>> {
    let dialogue = |line: String| -> Vec<Body> {
        let record: Value = serde_json::from_str(&line).expect("a line is JSON");
        let messages = record["messages"].as_array().into_iter().flatten();
        let prose = messages.filter_map(|message| {
            let said = message["content"].as_str().filter(|said| !said.trim().is_empty())?;
            let role = message["role"].as_str().filter(|role| ["user", "assistant"].contains(role))?;
            Some(body(&json!({ "role": role, "content": said })))
        });
        prose.collect()
    };
    recorded::lines("openai/tau_customer_service").into_iter().map(dialogue).collect()
}

/// Several messages as one that the user pastes in.
fn as_one(bodies: &[Body]) -> Body {
    let said = |body: &Body| -> Option<String> {
        let message: Value = serde_json::from_str(body).ok()?;
        Some(message["content"].as_str()?.to_owned())
    };
    user(&bodies.iter().filter_map(said).collect::<Vec<_>>().join("\n\n"))
}

/// Makes every second run of messages one.
fn paste(history: &mut History) {
    let (mut bodies, mut places) = (Vec::new(), Vec::new());
    for (nth, run) in history.bodies.chunks(PASTED).enumerate() {
        let pasted = if nth % 2 == 0 { vec![as_one(run)] } else { run.to_vec() };
        places.extend((0..run.len()).map(|at| bodies.len() + at.min(pasted.len() - 1)));
        bodies.extend(pasted);
    }
    for (_, having) in &mut history.questions {
        having.iter_mut().for_each(|at| *at = places[*at]);
        having.dedup();
    }
    history.bodies = bodies;
}

/// A history in between other conversations of so many bytes, spread evenly. `nth`: each history has others.
pub(crate) fn among(history: &History, filler: &[Vec<Body>], nth: usize, bytes: usize) -> History {
    let (mut others, mut total) = (Vec::new(), 0);
    // A step that leaves none out.
    for at in (0..filler.len()).map(|at| (at * 7 + nth * 97) % filler.len()) {
        if total >= bytes {
            break;
        }
        total += filler[at].iter().map(|body| body.len()).sum::<usize>();
        others.push(&filler[at]);
    }
    // What the user says begins a unit.
    let is_user = |body: &Body| body.contains("\"role\":\"user\"");
    let mut units: Vec<Vec<usize>> = Vec::new();
    for (at, body) in history.bodies.iter().enumerate() {
        match units.last_mut() {
            Some(unit) if !is_user(body) => unit.push(at),
            _ => units.push(vec![at]),
        }
    }
    let (mut bodies, mut places) = (Vec::new(), HashMap::new());
    let mut next = 0;
    for (done, unit) in units.iter().enumerate() {
        let to = others.len() * (done + 1) / (units.len() + 1);
        bodies.extend(others[next..to].iter().flat_map(|other| other.iter().cloned()));
        next = to;
        for at in unit {
            places.insert(*at, bodies.len());
            bodies.push(history.bodies[*at].clone());
        }
    }
    bodies.extend(others[next..].iter().flat_map(|other| other.iter().cloned()));
    let moved = |having: &Vec<usize>| having.iter().map(|at| places[at]).collect();
    let questions =
        history.questions.iter().map(|(question, having)| (question.clone(), moved(having))).collect();
    History { format: history.format, bodies, questions }
}
