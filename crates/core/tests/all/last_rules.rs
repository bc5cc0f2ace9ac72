//! No message is so large that it ends a session: before an overflow every preset stores and previews what does not fit by
//! itself. `CC_LAST_CASES` runs more cases or fewer.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::policy::{PRESETS, Trigger};
use context_compactor_core::session::Session;
use context_compactor_core::wire::{self, Author, Format};
use context_compactor_store_tests::checked::{problems, settings as read};
use context_compactor_store_tests::conversation::{Body, calls, exchange, results, say};
use context_compactor_store_tests::host::{summary, thrown};
use context_compactor_store_tests::{Host, MemoryStore};
use fastrand::Rng;
use serde_json::json;
use std::rc::Rc;

/// Cases of a usual run.
const CASES: u64 = 40;

/// What is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Result,
    Input,
    User,
}

/// A text of about this many tokens, in one line or many.
fn large(tokens: usize, in_lines: bool) -> String {
    let mut text = String::new();
    for line in 0..tokens / 10 {
        text += &format!("{line}: the parser reads src/file_{line}.rs{}", if in_lines { "\n" } else { " " });
    }
    text
}

fn turns(format: Format, from: usize, count: usize) -> Vec<Body> {
    let turn = |nth: usize| {
        let mut bodies = vec![say(format, Author::User, &format!("question {nth}, what is in the parser?"))];
        bodies.extend(exchange(format, &format!("call_{nth}"), "a short result"));
        bodies.push(say(format, Author::Assistant, &format!("answer {nth}: it keeps its state.")));
        bodies
    };
    (from..from + count).flat_map(turn).collect()
}

fn message(format: Format, what: What, text: &str) -> Vec<Body> {
    let ask = say(format, Author::User, "look");
    match what {
        What::User => vec![say(format, Author::User, text)],
        What::Result => [vec![ask], exchange(format, "large", text)].concat(),
        What::Input => {
            [vec![ask], calls(format, &[("large", text)]), results(format, &[("large", "ok")])].concat()
        }
    }
}

/// All texts of a message that may leave it.
fn texts(format: Format, body: &str) -> Vec<String> {
    let value = wire::parse(0, body).unwrap();
    let message = format.wire().read(0, &value).unwrap();
    let results = message.results().map(|result| result.text.to_string());
    let inputs = message.calls().map(|call| call.arguments.to_string());
    results.chain(inputs).chain(message.texts().map(str::to_string)).collect()
}

#[test]
fn f7_a_message_of_ten_windows_fits_in_every_preset_and_reads_back_byte_for_byte() {
    let count = std::env::var("CC_LAST_CASES").map_or(CASES, |count| count.parse().unwrap());
    let mut referred = 0;
    for seed in 0..count {
        let mut rng = Rng::with_seed(seed);
        let windows: &[usize] =
            if count > CASES { &[4_000, 16_000, 64_000, 200_000] } else { &[4_000, 16_000] };
        let window = windows[rng.usize(..windows.len())];
        let format = Format::ALL[rng.usize(..Format::ALL.len())];
        let preset = PRESETS[seed as usize % PRESETS.len()].name;
        let what = match format {
            // A turn of a trajectory is an action with its result.
            Format::React => What::Result,
            _ => [What::Result, What::Input, What::User][rng.usize(..3)],
        };
        let trigger = [Trigger::Auto, Trigger::Overflow, Trigger::Manual][rng.usize(..3)];
        let options = json!({
            "preset": preset, "contextWindow": window, "format": format.as_str(),
            "summarize": { "attempts": 1, "call": (rng.u8(..4) > 0).then_some(true) },
        });
        let told = format!("seed {seed}, {options}, {what:?}, {trigger:?}");
        let mut host = Host::new(Rc::<MemoryStore>::default() as _, "host");
        host.summarise = Box::new(|_, _| summary(SUMMARY));
        let settings = read(&options);
        let limit = settings.hard_limit;
        let (session, _) = host.run(Session::open(settings, Some("s".into()), 10_000)).expect(&told);
        let text = large(window * 10, rng.bool());
        let before = rng.usize(..4);
        let mut given = turns(format, 0, before);
        given.extend(message(format, what, &text));
        // The newest, or older.
        if rng.bool() {
            given.push(say(format, Author::Assistant, "I see."));
            given.extend(turns(format, before, rng.usize(..3)));
        }
        host.run(session.append(given.clone())).expect(&told);
        let (items, tokens) = match trigger {
            Trigger::Manual => {
                let compacted = host.run(session.compact(None)).expect(&told);
                let result = compacted.result;
                assert!(result.fits, "{told}: {:?}", result.error);
                // What is left may be too little for a summary.
                let is_short = result.error.as_ref().is_none_or(|error| error.code == Code::SummaryRejected);
                assert!(is_short, "{told}: {:?}", result.error);
                (compacted.items, result.current_tokens)
            }
            _ => {
                let prepared = host.run(session.prepare(trigger, Vec::new())).expect(&told);
                (prepared.items, prepared.usage.used_tokens)
            }
        };
        assert!(tokens <= limit, "{told}: {tokens}");
        let sent: Vec<Body> = items
            .iter()
            .map(|item| {
                item.body.clone().unwrap_or_else(|| session.body(item.seq.unwrap()).unwrap().unwrap())
            })
            .collect();
        assert!(problems(format, &given).unwrap().is_empty(), "{told}");
        assert!(problems(format, &sent).unwrap().is_empty(), "{told}: {sent:#?}");
        for entry in session.explain().unwrap() {
            let Some(reference) = entry.reference else { continue };
            let found = host.run(session.read(reference, 0, None)).expect(&told);
            assert!(texts(format, &given[entry.index]).contains(&found), "{told}");
            referred += 1;
        }
    }
    println!("F7: {count} cases, {referred} references read back");
    assert!(referred * 2 > count, "{referred}");
}

#[test]
fn f7_what_cannot_be_shortened_is_named() {
    for preset in PRESETS {
        let mut harness =
            Harness::new(json!({ "preset": preset.name, "contextWindow": 4_000, "format": "openai-chat" }));
        harness.append(&turns(Format::OpenaiChat, 0, 1));
        harness.append(&[say(Format::OpenaiChat, Author::User, &large(20_000, true))]);
        harness.host.run(harness.session.pin(4)).unwrap();
        let error = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())).unwrap_err();
        assert_eq!((error.code, error.index), (Code::ContextOverflow, Some(4)), "{}", preset.name);
        assert!(error.message.contains("the largest message is 4"), "{error}");
        assert!(
            harness.stored().context.iter().any(|(_, body)| body.contains("file_1999.rs")),
            "a pin stays"
        );
    }
}

#[test]
fn f39_f7_a_preview_begins_and_ends_as_the_text_does_and_takes_what_it_may_by_the_estimate() {
    // In the second a character is a token, so that fewer of them stand there.
    for (text, estimator) in [(large(20_000, true), "chars4"), ("字".repeat(100_000), "calibrated")] {
        let mut harness = Harness::new(
            json!({ "contextWindow": 16_000, "format": "openai-chat", "advanced": { "estimator": estimator } }),
        );
        let limit = read(&json!({ "preset": "offload", "contextWindow": 16_000 })).hard_limit;
        harness.append(&[say(Format::OpenaiChat, Author::User, &text)]);
        harness.prepare();
        let stands = harness.context()[0]["content"].as_str().unwrap().to_owned();
        let reference = harness.session.explain().unwrap()[0].reference.clone().unwrap();
        let chars = text.chars().count();
        let told = format!(
            "Too large to stand here ({chars} characters). All of it is at: {reference}\nIt begins:\n"
        );
        let shown = stands.strip_prefix(&told).unwrap();
        let (head, tail) = shown.split_once("\n[…]\nIt ends:\n").unwrap();
        assert!(text.starts_with(head) && text.ends_with(tail));
        let (head, tail) = (head.chars().count(), tail.chars().count());
        assert!(head.abs_diff(2 * tail) <= 2, "{head} {tail}");
        // A large text may take a quarter of the limit, and its preview half of that.
        let tokens = settings(json!({ "advanced": { "estimator": estimator } })).estimator.text(&stands);
        let most = limit / 4 / 2;
        assert!(tokens <= most && tokens > most * 2 / 3, "{tokens} of {most}");
        assert_eq!(harness.read(&reference), text);
    }
}

#[test]
fn f39_f7_what_frees_just_enough_is_done_and_one_token_less_is_not() {
    let run = |pinned: usize| {
        let mut harness = Harness::new(json!({ "contextWindow": 4_000, "format": "openai-chat" }));
        harness.append(&[say(Format::OpenaiChat, Author::User, &"abc ".repeat(pinned))]);
        harness.append(&[say(Format::OpenaiChat, Author::Assistant, "I see.")]);
        harness.append(&[say(Format::OpenaiChat, Author::User, &large(20_000, true))]);
        harness.host.run(harness.session.pin(0)).unwrap();
        let prepared = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new()));
        prepared.map(|prepared| prepared.usage.used_tokens).map_err(|error| error.code)
    };
    let limit = read(&json!({ "preset": "offload", "contextWindow": 4_000 })).hard_limit;
    // There is no room for a summary. As mildly as it takes: a paste may take 300 tokens of these, and 200 in the end.
    let (mut pinned, mut steps) = (limit - 200, 0);
    loop {
        let full = pinned + limit - run(pinned).unwrap();
        assert_eq!(run(full), Ok(limit), "the window is full to the token");
        steps += 1;
        match run(full + 1) {
            Ok(used) => assert!(used < limit, "what frees more is taken"),
            Err(code) => break assert_eq!((code, steps), (Code::ContextOverflow, 2)),
        }
        pinned = full + 1;
    }
}

#[test]
fn f7_a_prompt_that_the_provider_refused_is_shorter_the_next_time_though_the_estimate_says_that_it_fits() {
    let format = Format::OpenaiChat;
    let mut was_full = 0;
    for preset in PRESETS {
        let mut harness = Harness::new(json!({
            "preset": preset.name, "contextWindow": 16_000, "format": format.as_str(), "summarize": { "attempts": 1 },
        }));
        harness.host.summarise = Box::new(|_, _| thrown("busy", Some(503)));
        let limit = read(&json!({ "preset": preset.name, "contextWindow": 16_000 })).hard_limit;
        harness.append(&turns(format, 0, 2));
        let at = harness.prepare().usage.used_tokens;
        let text = large((limit - at) / 3 * 9 / 10, true);
        for nth in 0..3 {
            harness.append(&exchange(format, &format!("large_{nth}"), &text));
        }
        // The estimate is below the limit, and the provider says no.
        let refused = harness.prepare().usage.used_tokens;
        let after = harness
            .host
            .run(harness.session.prepare(Trigger::Overflow, Vec::new()))
            .unwrap()
            .usage
            .used_tokens;
        // Some presets had cleared all of it before.
        let most = if refused > limit / 2 { refused - refused / 20 } else { refused };
        assert!(refused <= limit && after <= most, "{}: {refused} {after}", preset.name);
        was_full += usize::from(refused > limit / 2);
    }
    assert!(was_full > 1, "{was_full}");
}
