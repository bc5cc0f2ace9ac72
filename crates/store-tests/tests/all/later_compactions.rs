//! Twelve compactions of one session, in every format, one after the other as a conversation goes on, with messages that
//! arrive while each summary is written (S5.17). Every call is checked as in [`Checked`]; here is what must hold over
//! all of them: the context stays bounded, pins and the newest messages stay, and whoever opens the session sees it.

use context_compactor_core::context::Origin;
use context_compactor_core::policy::Trigger;
use context_compactor_core::wire::{Author, Format};
use context_compactor_store_tests::checked::Checked;
use context_compactor_store_tests::conversation::{Body, exchange, say};
use context_compactor_store_tests::host::summary;
use context_compactor_store_tests::options::merge;
use serde_json::{Value, json};

/// Turns in which they must have come about.
const MOST_TURNS: usize = 600;
const PINNED: &str = "Never touch main.rs, whatever comes. 한국어 👩‍👩‍👧";

/// A preset, and what must hold over all of its compactions.
struct Case {
    /// Over the options that all share.
    options: Value,
    /// What is counted as a compaction.
    counts: &'static str,
    /// How many of them.
    rounds: u64,
    /// Lines of a tool's result.
    lines: usize,
    /// Newest messages that no summary may stand for.
    keeps: usize,
    /// Summaries in the context at most.
    summaries: usize,
    /// Tokens that a compaction leaves at most.
    leaves: usize,
}

/// A question, a call with its result, and an answer.
fn turn(format: Format, nth: usize, lines: usize) -> Vec<Body> {
    let text = |what: &str, times: usize| {
        let line = |at: usize| {
            format!("{what} {nth}.{at} says that the parser keeps its state, 解析器保存状态, in memory. ")
        };
        (0..times).map(line).collect::<String>().trim_end().to_owned()
    };
    let mut bodies = vec![say(format, Author::User, &text("question", 1))];
    bodies.extend(exchange(format, &format!("call_{nth}"), &text("result", lines)));
    bodies.push(say(format, Author::Assistant, &text("answer", 2)));
    bodies
}

/// What a compaction must have left.
fn holds(session: &Checked, case: &Case, messages: usize) -> Result<(), String> {
    let context = session.context()?;
    let (mut summaries, mut pins) = (0, 0);
    for item in context.items() {
        if let Origin::Summary { covers, .. } = &item.origin {
            summaries += 1;
            if covers.iter().any(|cover| cover.to + case.keeps > messages) {
                return Err(format!("a summary stands for one of the newest {} messages", case.keeps));
            }
        }
        pins += item.body.matches("한국어 👩‍👩‍👧").count();
    }
    let tokens = context.totals().tokens;
    if pins != 1 {
        return Err(format!("what is pinned stands {pins} times in the context"));
    }
    if summaries > case.summaries || tokens > case.leaves {
        return Err(format!("a compaction left {summaries} summaries and {tokens} tokens"));
    }
    session.reopened()
}

/// A conversation that goes on until it was compacted often enough.
fn converse(format: Format, case: &Case) -> Result<Checked, String> {
    let mut options = json!({
        "format": format.as_str(), "contextWindow": 8_000, "maxOutputTokens": 500,
        "summarize": { "call": true }, "pins": { "match": true }, "advanced": { "estimator": "chars4" },
    });
    merge(&mut options, &case.options);
    let mut session = Checked::open(format, &options)?;
    session.host.pinned = Box::new(|index| index == 0);
    let mut calls = 0;
    session.host.summarise = Box::new(move |_, _| {
        calls += 1;
        summary(&format!("## Current Status\nSummary {calls} tells what was asked for and what was found.\n"))
    });
    let mut messages = 2;
    session.append(&[say(format, Author::User, PINNED), say(format, Author::Assistant, "I will not.")])?;
    let mut done = 0;
    for nth in 0..MOST_TURNS {
        let (now, meanwhile) = (turn(format, nth * 2, case.lines), turn(format, nth * 2 + 1, case.lines));
        session.append(&now)?;
        messages += now.len();
        session.arrive(&meanwhile);
        session.prepare(Trigger::Auto)?;
        if session.counts.of(case.counts) > done {
            done = session.counts.of(case.counts);
            holds(&session, case, messages).map_err(|what| format!("compaction {done}: {what}"))?;
        }
        session.nothing_more_arrives()?;
        messages += meanwhile.len();
        if done >= case.rounds {
            break;
        }
    }
    session.stored()?;
    session.references(&[])?;
    let arrived = session.counts.of("messages that arrived meanwhile");
    let overflows = session.counts.of("rollover");
    if done < case.rounds || arrived < case.rounds || overflows > 0 {
        return Err(format!("{done} compactions, {arrived} messages that arrived, {overflows} emergencies"));
    }
    Ok(session)
}

fn check(case: &Case) {
    let removes = case.counts == "compactions";
    for format in Format::ALL.into_iter().filter(|format| !removes || format.wire().takes_summary()) {
        match converse(format, case) {
            Ok(session) => println!("{}", session.counts.line("later compactions", format.as_str())),
            Err(what) => panic!("{}: {what}", format.as_str()),
        }
    }
}

/// One summary that takes up the one before.
fn summarising(preset: &str) -> Case {
    Case {
        options: json!({ "preset": preset, "advanced": { "minSavings": 0 } }),
        counts: "compactions",
        rounds: 12,
        lines: 12,
        keeps: 5,
        summaries: 1,
        leaves: 4_000,
    }
}

#[test]
fn s5_17_lesson_later_compactions_twelve_of_preset_offload() {
    check(&summarising("offload"));
}

/// What is kept beside each summary is made anew, and does not grow.
#[test]
fn s5_17_lesson_later_compactions_twelve_of_preset_balanced() {
    check(&Case { keeps: 1, ..summarising("balanced") });
}

#[test]
fn s5_17_lesson_later_compactions_twelve_of_preset_layered() {
    check(&summarising("layered"));
}

#[test]
fn s5_17_lesson_later_compactions_twelve_of_preset_factor3() {
    check(&Case { keeps: 3, ..summarising("factor3") });
}

/// Its first ten stay as they are and merge from then on: that they are bounded shows later.
#[test]
fn s5_17_lesson_later_compactions_thirty_of_preset_checkpoint() {
    check(&Case { rounds: 30, summaries: 13, ..summarising("checkpoint") });
}

/// Nothing is removed (S2.5): what compressing leaves grows, and stays below what was there by far.
#[test]
fn s5_17_s2_5_lesson_later_compactions_twelve_of_preset_react() {
    let options = json!({
        "preset": "react", "contextWindow": 400_000,
        "presetOptions": {
            "modelContextLimit": 240_000, "systemPromptLength": 0, "instructionLength": 0,
            "resultCompressionMinSize": 1_000, "strategies": false,
        },
    });
    check(&Case {
        options,
        counts: "compress",
        rounds: 12,
        lines: 60,
        keeps: 0,
        summaries: 0,
        leaves: 56_000,
    });
}
