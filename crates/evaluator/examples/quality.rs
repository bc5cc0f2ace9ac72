//! `npm run bench -- quality`: what compactions retain, as JSON. Arguments: `odd` (reported) or `even` (for tuning), and
//! names of methods, all without.

use context_compactor_core::tokens::Estimator;
use context_compactor_evaluator::entities::Generic;
use context_compactor_evaluator::recall::{Cut, Cutting, Probe, Probed, answered, cases, measure, methods};
use context_compactor_evaluator::transcript::Transcript;
use context_compactor_store_tests::recorded::{lines, record};
use serde::Deserialize;
use serde_json::json;
use std::time::Instant;

/// Files, the row that they are reported under, and whose entities they share: a repository, a benchmark.
const FILES: [(&str, &str, &str); 6] = [
    ("anthropic/claude_code_entire_cli", "Claude Code", "entire"),
    ("anthropic/claude_code_entirecontext", "Claude Code", "entirecontext"),
    ("responses/codex_entirecontext", "Codex", "entirecontext"),
    ("anthropic/pi_mono", "pi", "pi"),
    ("openai/tau_composite_long", "tau", "tau"),
    ("openai/swe_agent_demos", "SWE-agent", "swe-agent"),
];

/// Histories with questions.
const PROBES: [(&str, &str); 2] = [
    ("probes/spliced_bfcl_in_coding", "facts in coding sessions"),
    ("probes/bfcl_v4_memory", "facts in chats"),
];

#[derive(Deserialize)]
struct Questions {
    probes: Vec<Probe>,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let half = arguments.next().unwrap_or_else(|| "odd".into());
    let wanted: Vec<String> = arguments.collect();
    let started = Instant::now();
    let estimator = Estimator::default();
    let mut transcripts: Vec<(&str, Transcript)> = Vec::new();
    let mut generic = Generic::default();
    for (file, domain, source) in FILES {
        let mut of_file: Vec<Transcript> =
            lines(file).iter().map(|line| transcript(line, source, estimator)).collect();
        of_file.sort_by(|a, b| a.id.cmp(&b.id));
        for turn in of_file.iter().flat_map(|transcript| &transcript.messages) {
            let texts = turn.results.iter().map(|result| &result.text);
            let calls = turn.calls.iter().map(|call| &call.arguments);
            texts.chain(calls).chain([&turn.text]).for_each(|text| generic.add(source, text));
        }
        // The first, third … of a file: what there is one of is reported, never tuned on.
        let odd = (0..).map(|nth| nth % 2 == 0);
        let chosen = of_file.into_iter().zip(odd).filter(|(_, odd)| *odd == (half == "odd"));
        transcripts.extend(chosen.map(|(transcript, _)| (domain, transcript)));
    }
    eprintln!("{} transcripts, {:.1?}", transcripts.len(), started.elapsed());
    let mut cuts = Vec::new();
    for (domain, transcript) in &transcripts {
        // Those of SWE-agent are short.
        let prefix = if *domain == "SWE-agent" { 3_000 } else { 20_000 };
        // There are so many sessions of Claude Code that one cut between compactions is enough.
        let cuts_each = if *domain == "Claude Code" { 1 } else { 2 };
        let cutting = Cutting { prefix, cuts: cuts_each, ..Cutting::default() };
        let session = transcript.id.clone();
        let cases = cases(transcript, &generic, cutting, estimator);
        cuts.extend(cases.into_iter().map(|case| Cut { domain, session: session.clone(), case }));
    }
    eprintln!("{} cuts, {:.1?}", cuts.len(), started.elapsed());
    let mut methods = methods();
    methods.retain(|method| wanted.is_empty() || wanted.iter().any(|name| method.name == name));
    let report = measure(&cuts, &methods);
    eprintln!("measured, {:.1?}", started.elapsed());
    let mut histories = Vec::new();
    for (file, domain) in PROBES {
        histories.extend(lines(file).iter().map(|line| Probed {
            domain,
            turns: transcript(line, domain, estimator).messages,
            probes: serde_json::from_str::<Questions>(line).expect("a record with questions").probes,
        }));
    }
    let probes = answered(&histories, &methods, estimator);
    eprintln!("asked, {:.1?}", started.elapsed());
    println!("{}", json!({ "recall": report, "probes": probes }));
}

fn transcript(line: &str, source: &str, estimator: Estimator) -> Transcript {
    let recorded = record(line).expect("a record of a transcript");
    let bodies = recorded.bodies.iter().map(|body| &**body);
    let read = Transcript::read(line, recorded.format, bodies, estimator).expect("a transcript");
    Transcript { source: source.into(), ..read }
}
