//! Questions about the conversation itself, whose answers no word of theirs names: what came first, what the user asked for,
//! which files were changed. What answers them is told by the recordings: by the calls and results of agents' sessions, by
//! the probes' evidence, and, for what users laid down, by a person who read their messages.

use crate::half;
use crate::questions::rows_by;
use crate::sets::{History, Set, among, filler};
use crate::trials::texts;
use context_compactor_store_tests::recorded::{self, Recorded};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

/// Messages in which users of agents' sessions say how things are to be done, as a person read them.
const RULES: [(&str, &[usize]); 22] = [
    ("entireio-cc-0276a600-2f22", &[50]),
    ("entireio-cc-19abe528-a510", &[64]),
    ("entireio-cc-20b81bf8-77cd", &[72]),
    ("entireio-cc-2cfdacb8-9317", &[50]),
    ("entireio-cc-34b1e2a4-8cec", &[0]),
    ("entireio-cc-44df7d08-6bc4", &[18]),
    ("entireio-cc-45f2ccfd-0915", &[8]),
    ("entireio-cc-7f78a542-6201", &[78]),
    ("entireio-cc-768de5d6-9fad", &[20]),
    ("entireio-cc-880d23f9-86b3", &[50]),
    ("entireio-cc-aa4038a5-34b6", &[124, 194]),
    ("entireio-cc-ac8a4f1a-1917", &[44, 50]),
    ("entireio-cc-ce99376e-9bff", &[0]),
    ("entireio-cc-e4599950-b028", &[44]),
    ("entireio-cc-e8811ad6-93d9", &[20]),
    ("entireio-cc-fdd24234-3c2a", &[12, 152]),
    ("entireio-cc-e75fc7f5-30dc", &[38]),
    ("entireio-cc-79e9becd-0b83", &[428]),
    ("entireio-cc-6113e919-67d3", &[28]),
    ("entireio-cc-266b3f40-6f1d", &[66]),
    ("entireio-cc-f6833005-7be4", &[104]),
    ("pi-before-compaction", &[14, 340]),
];
const ASKING_RULES: [&str; 4] = [
    "What did I ask you never to do?",
    "Which instructions did I give you?",
    "What did I tell you to always do?",
    "List all the rules that I gave you.",
];
/// What probes of `probes/bfcl_v4_memory` are about, by the numbers in their ids, in the order of their histories.
const TOPICS: [&[(usize, &str)]; 3] = [
    &[
        (8, "the family gathering"),
        (9, "the bent steam wand"),
        (10, "the crushed corners of the box"),
        (11, "the scratch on the pitcher"),
        (12, "the toaster oven"),
        (15, "the digital scale"),
        (18, "my latte art"),
        (20, "the small-batch subscription"),
        (21, "the unexpected charge"),
    ],
    &[
        (31, "my diabetes diagnosis"),
        (33, "the emergency room"),
        (37, "my pneumonia"),
        (40, "avoiding caffeine"),
        (43, "the book club"),
        (49, "my blood pressure reading"),
    ],
    &[
        (81, "the capstone project"),
        (89, "weightlifting at the gym"),
        (90, "the paper I co-authored"),
        (95, "the VR/AR club"),
        (97, "my dorm"),
        (102, "the internship at the startup"),
        (106, "the trip to Japan"),
        (108, "the family trip to Europe"),
        (111, "my crush"),
        (116, "my sister"),
        (117, "the Saturday hike"),
        (119, "the antique vase"),
        (122, "the sailing club"),
        (129, "the Sunday study group"),
    ],
];
/// Messages of a session that is asked about, at least.
const LONG: usize = 150;
const SESSIONS: [&str; 3] =
    ["anthropic/claude_code_entire_cli", "anthropic/claude_code_entirecontext", "anthropic/pi_mono"];
/// How questions begin, and their kinds.
const KINDS: [(&str, &str); 10] = [
    ("Which file", "files that were changed"),
    ("List all files", "files that were changed"),
    ("What was the first command", "commands and commits"),
    ("Which command", "commands and commits"),
    ("List all commits", "commands and commits"),
    ("What was the last commit", "commands and commits"),
    ("What was the first error", "errors"),
    ("What was the last error", "errors"),
    ("What was the first thing", "what was asked first and last"),
    ("What was the last thing", "what was asked first and last"),
];

/// Rows of the bench, by kinds of questions, each in halves: of sessions, and of questions about what came first.
pub(crate) fn rows(facts: &[History]) -> Vec<Value> {
    let kind = |question: &str| -> &str {
        let known = KINDS.iter().find(|(begin, _)| question.starts_with(begin)).map(|(_, kind)| *kind);
        known.unwrap_or(if ASKING_RULES.contains(&question) {
            "what the user requires"
        } else {
            "what came first"
        })
    };
    let mut halves: BTreeMap<&str, Vec<History>> = BTreeMap::new();
    for line in SESSIONS.into_iter().flat_map(recorded::lines) {
        let recorded = recorded::record(&line).expect("a record can be read");
        let rules = RULES.iter().find(|(id, _)| *id == recorded.id);
        let mut questions = Vec::new();
        if recorded.bodies.len() >= LONG {
            questions.extend(of_session(&recorded));
        }
        if let Some((_, having)) = rules {
            questions.extend(ASKING_RULES.iter().map(|question| ((*question).to_owned(), having.to_vec())));
        }
        if !questions.is_empty() {
            halves.entry(half(&recorded.id)).or_default().push(history(&recorded, questions));
        }
    }
    let of_sessions = halves.into_iter().flat_map(|(half, histories)| {
        let set = Set { name: String::new(), histories };
        rows_by(&set, |question| format!("{}, sessions {half}", kind(question)))
    });
    let mut rows: Vec<Value> = of_sessions.collect();
    let filler = filler();
    let ordered = facts.iter().zip(TOPICS).enumerate().map(|(nth, (facts, topics))| {
        let questions = ordered(facts, topics);
        among(&History { questions, ..facts.clone() }, &filler, nth, 2_000_000)
    });
    let set = Set { name: String::new(), histories: ordered.collect() };
    rows.extend(rows_by(&set, |question| format!("{}, questions {}", kind(question), half(question))));
    rows
}

fn history(recorded: &Recorded, questions: Vec<(String, Vec<usize>)>) -> History {
    History { format: recorded.format, bodies: recorded.bodies.clone(), questions }
}

/// In which order the user spoke of two and three things.
fn ordered(history: &History, topics: &[(usize, &str)]) -> Vec<(String, Vec<usize>)> {
    let evidence = |number: usize| -> Vec<usize> {
        let mark = format!("#{number}");
        history
            .questions
            .iter()
            .filter(|(id, _)| *id == mark)
            .flat_map(|(_, having)| having.clone())
            .collect()
    };
    let mut questions = Vec::new();
    let known: Vec<(&str, Vec<usize>)> = topics
        .iter()
        .map(|(number, topic)| (*topic, evidence(*number)))
        .filter(|(_, at)| !at.is_empty())
        .collect();
    for (step, form) in [
        (1, "Which did I mention first, A or B?"),
        (2, "What came first: A or B?"),
        (3, "In which order did I bring up A, B and C?"),
    ] {
        for at in 0..known.len() {
            let of = |nth: usize| &known[(at + nth * step) % known.len()];
            let asked: Vec<_> =
                if form.contains('C') { vec![of(0), of(1), of(2)] } else { vec![of(0), of(1)] };
            let mut question = form.to_owned();
            for (name, (topic, _)) in ["A", "B", "C"].iter().zip(&asked) {
                question = question.replacen(name, topic, 1);
            }
            let having: HashSet<usize> = asked.iter().flat_map(|(_, at)| at.clone()).collect();
            questions.push((question, having.into_iter().collect()));
        }
    }
    questions
}

/// Questions about what an agent did, by its calls and what they returned.
fn of_session(recorded: &Recorded) -> Vec<(String, Vec<usize>)> {
    let (mut files, mut known, mut edits) = (Vec::new(), HashSet::new(), Vec::new());
    let (mut commands, mut commits, mut errors, mut asked) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (at, (body, texts)) in
        recorded.bodies.iter().zip(texts(recorded.format, &recorded.bodies)).enumerate()
    {
        let message: Value = serde_json::from_str(body).expect("a body is JSON");
        if message["role"] == "user" && !texts.said.trim().is_empty() {
            asked.push(at);
        }
        for block in message["content"].as_array().into_iter().flatten() {
            let name = block["name"].as_str().unwrap_or_default().to_lowercase();
            let input = &block["input"];
            if ["edit", "multiedit", "write"].contains(&name.as_str()) {
                edits.push(at);
                let path = input["file_path"].as_str().or(input["path"].as_str()).unwrap_or_default();
                if known.insert(path.to_owned()) {
                    files.push(at);
                }
            }
            if name == "bash" {
                commands.push(at);
                if input["command"].as_str().is_some_and(|command| command.contains("git commit")) {
                    commits.push(at);
                }
            }
            let told = block["content"].to_string();
            let is_refusal =
                ["doesn't want", "rejected", "permission", "does not exist", "not been read", "Sibling"];
            if block["is_error"] == true && !is_refusal.iter().any(|phrase| told.contains(phrase)) {
                errors.push(at);
            }
        }
    }
    let first = |question: &str, at: &[usize]| Some((question.to_owned(), vec![*at.first()?]));
    let last = |question: &str, at: &[usize]| Some((question.to_owned(), vec![*at.last()?]));
    let all = |question: &str, at: &[usize]| (!at.is_empty()).then(|| (question.to_owned(), at.to_vec()));
    let questions = [
        first("Which file did you edit first?", &edits),
        last("Which file did you change last?", &edits),
        all("List all files that you changed, in order.", &files),
        first("What was the first command that you ran?", &commands),
        last("Which command did you run last?", &commands),
        all("List all commits that you made.", &commits),
        last("What was the last commit you made?", &commits),
        first("What was the first error we ran into?", &errors),
        last("What was the last error that you got?", &errors),
        first("What was the first thing I asked you to do?", &asked),
        last("What was the last thing I asked you?", &asked),
    ];
    questions.into_iter().flatten().collect()
}
