//! Twelve compactions of one session, in every format, one after the other as a conversation goes on, with messages that
//! arrive while each summary is written (S5.17). Every call is checked as in [`Checked`]; here is what must hold over
//! all of them: the context stays bounded, pins and the newest messages stay, and whoever opens the session sees it.

use context_compactor_core::plan::{Keep, PRESETS, Trigger};
use context_compactor_core::session::Origin;
use context_compactor_core::step::{Event, Purpose};
use context_compactor_core::wire::{Author, Format};
use context_compactor_store_tests::checked::Checked;
use context_compactor_store_tests::conversation::{Body, exchange, say};
use context_compactor_store_tests::host::summary;
use serde_json::{Value, json};

const WINDOW: usize = 8_000;
/// Compactions of one session.
const ROUNDS: u64 = 12;
/// Turns in which they must have come about.
const MOST_TURNS: usize = 400;
const PINNED: &str = "Never touch main.rs, whatever comes. 한국어 👩‍👩‍👧";

/// A question, a call with a result of some hundred tokens, and an answer.
fn turn(format: Format, nth: usize) -> Vec<Body> {
    let text = |what: &str, times: usize| {
        let line = format!("{what} {nth} says that the parser keeps its state, 解析器保存状态, in memory. ");
        line.repeat(times).trim_end().to_owned()
    };
    let mut bodies = vec![say(format, Author::User, &text("question", 2))];
    bodies.extend(exchange(format, &format!("call_{nth}"), &text("result", 12)));
    bodies.push(say(format, Author::Assistant, &text("answer", 3)));
    bodies
}

/// What a preset did, and what it needed for that.
struct Told {
    compactions: u64,
    most_tokens: usize,
    most_items: usize,
}

/// A conversation that goes on until `what` was done [`ROUNDS`] times.
fn converse(format: Format, options: &Value, what: &str) -> Result<Told, String> {
    let mut session = Checked::open(format, options)?;
    let pins = options["hasPinned"] == true;
    session.host.pinned = Box::new(move |index| pins && index == 0);
    let mut calls = 0;
    session.host.summarise = Box::new(move |_, _| -> Event {
        calls += 1;
        summary(&format!("## Current Status\nSummary {calls} tells what was asked for and what was found.\n"))
    });
    session.append(&[say(format, Author::User, PINNED), say(format, Author::Assistant, "I will not.")])?;
    let mut told = Told { compactions: 0, most_tokens: 0, most_items: 0 };
    for nth in 0..MOST_TURNS {
        session.append(&turn(format, nth * 2))?;
        session.arrive(&turn(format, nth * 2 + 1))?;
        session.prepare(Trigger::Auto)?;
        session.nothing_more_arrives()?;
        let done = session.counts.of(what);
        if done > told.compactions {
            told.compactions = done;
            holds(&session, format, options)?;
            session.reopened()?;
        }
        let context = session.context()?;
        told.most_tokens = told.most_tokens.max(context.totals().tokens);
        told.most_items = told.most_items.max(context.items().len());
        if done >= ROUNDS {
            break;
        }
    }
    session.stored()?;
    session.references(&[])?;
    let arrived = session.counts.of("messages that arrived meanwhile");
    if arrived < ROUNDS / 2 {
        return Err(format!("only {arrived} messages arrived while a summary was written"));
    }
    Ok(told)
}
