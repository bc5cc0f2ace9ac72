//! `E1`: whatever an app does with its array and however it hands it over, the session's history is that array: nothing is in
//! it twice, and nothing that was ever in it is lost.

use crate::support::*;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{Body, PLAIN, assistant, body, user};
use fastrand::Rng;
use serde_json::{Map, Value, json};
use std::rc::Rc;

/// An app's array, and all that was ever in it.
struct App {
    rng: Rng,
    format: Format,
    history: Vec<Value>,
    ever: Vec<String>,
    next: usize,
}

/// What a message says, in whatever spelling.
fn said(message: &Value) -> String {
    fn words(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) => {
                found.extend(text.split_whitespace().filter(|w| w.starts_with("n-")).map(str::to_owned))
            }
            Value::Array(items) => items.iter().for_each(|item| words(item, found)),
            Value::Object(fields) => fields.values().for_each(|field| words(field, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    words(message, &mut found);
    format!("{} {}", message["role"], found.join(" "))
}

impl App {
    /// One exchange, or a message of a few, some of which say what others say.
    fn grow(&mut self) {
        self.next += 1;
        let nth = self.next;
        let json = |body: Body| serde_json::from_str::<Value>(&body).unwrap();
        let tokens = self.rng.usize(5..120);
        let new: Vec<Value> = match self.rng.usize(0..4) {
            0 => turn(self.format, nth, tokens)
                .into_iter()
                .map(|body| {
                    let text = body.replace(&format!("call_{nth}"), &format!("call_{}", nth % 3));
                    let named = text.replacen(&format!("question {nth}"), &format!("question n-{nth}q"), 1);
                    let named = named.replacen(&format!("answer {nth}"), &format!("answer n-{nth}a"), 1);
                    serde_json::from_str(&named.replacen(
                        &format!("result {nth}"),
                        &format!("result n-{nth}r"),
                        1,
                    ))
                    .unwrap()
                })
                .collect(),
            1 => vec![json(user("ok")), json(assistant(&format!("fine n-{nth}")))],
            _ => vec![
                json(user(&long(&format!("question n-{nth}q"), tokens))),
                json(assistant(&long(&format!("answer n-{nth}a"), tokens))),
            ],
        };
        self.ever.extend(new.iter().map(said));
        self.history.extend(new);
    }

    /// The history as some database or SDK hands it over.
    fn copied(&mut self, messages: &[Value]) -> Vec<Body> {
        messages.iter().map(|message| body(&self.spelt(message))).collect()
    }

    fn spelt(&mut self, message: &Value) -> Value {
        let mut fields: Vec<(String, Value)> = message.as_object().unwrap().clone().into_iter().collect();
        self.rng.shuffle(&mut fields);
        let mut spelt = Map::from_iter(fields);
        if self.rng.bool() {
            spelt.insert("metadata".into(), json!({ "at": self.rng.u32(..) }));
        }
        if self.rng.bool() {
            spelt.insert("id".into(), format!("row-{}", self.rng.u64(..)).into());
        }
        if self.rng.bool()
            && let Some(text) = spelt.get("content").and_then(Value::as_str)
        {
            let mut block = json!({ "type": "text", "text": text });
            if self.rng.bool() {
                block["cache_control"] = json!({ "type": "ephemeral" });
            }
            spelt.insert("content".into(), json!([block]));
        }
        Value::Object(spelt)
    }
}

/// The session's history: what of the log was not left behind.
fn history(harness: &Harness) -> Vec<String> {
    let branch = harness.session.branch().unwrap();
    let is_behind = |index: &usize| branch.behind.iter().any(|(from, to)| (from..to).contains(&index));
    let messages = harness.stored().messages;
    let kept = messages.iter().enumerate().filter(|(index, _)| !is_behind(index));
    kept.map(|(_, text)| said(&serde_json::from_str(text).unwrap())).collect()
}

fn run(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let options = json!({ "compactAt": { "tokens": 900 }, "presetOptions": { "compactCooldownSteps": 3 } });
    let format = PLAIN[rng.usize(..2)];
    let mut harness = Harness::new(options.clone());
    let mut app = App { rng, format, history: Vec::new(), ever: Vec::new(), next: 0 };
    app.grow();
    // What it sent last, where nothing but new messages came since: messages of ours among it, and how many of its array that was.
    let mut sent: Option<(Vec<Value>, usize)> = None;
    for step in 0..14 {
        let before = app.history.len();
        let edits = step > 0 && app.rng.u8(..6) == 0;
        if edits {
            // Exchanges are edited as a whole.
            let starts: Vec<usize> = (1..before)
                .filter(|at| {
                    said(&app.history[*at]).starts_with("\"user\" n-")
                        && app.history[*at]["content"].is_string()
                })
                .collect();
            if let Some(at) = app.rng.choice(starts) {
                app.history.truncate(at);
            }
        }
        for _ in 0..app.rng.usize(usize::from(app.history.is_empty() || edits)..3) {
            app.grow();
        }
        if app.rng.u8(..4) == 0 {
            harness = Harness::over(Rc::clone(&harness.memory), &format!("tab {step}"), options.clone());
        }
        let at = format!("seed {seed}, step {step}");
        let new = app.history.len().saturating_sub(before);
        let given = match (&sent, app.rng.u8(..3)) {
            (Some((messages, known)), 0) if !edits => {
                let messages = [messages.clone(), app.history[*known..].to_vec()].concat();
                app.copied(&messages)
            }
            // A window of messages that do not all repeat, with some that the session has.
            (_, 1) if !edits && before > 7 && step > 0 => {
                let from = app.rng.usize(1..before - 6);
                let from = (from..before).find(|at| app.history[*at]["role"] == "user").unwrap_or(0);
                if before - from > 3 {
                    let window = app.history[from..].to_vec();
                    app.copied(&window)
                } else {
                    app.copied(&app.history.clone())
                }
            }
            _ => app.copied(&app.history.clone()),
        };
        let synced = harness
            .host
            .run(harness.session.sync(0, given.clone()))
            .unwrap_or_else(|error| panic!("{at}: {error}"));
        assert_eq!(synced.appended + synced.recognized, given.len(), "{at}");
        if !edits {
            assert_eq!(
                (synced.appended, synced.branched_at),
                (if step == 0 { app.history.len() } else { new }, None),
                "{at}: {synced:?}"
            );
        }
        let expected: Vec<String> = app.history.iter().map(said).collect();
        assert_eq!(history(&harness), expected, "{at}: {synced:?}");
        let log: Vec<String> =
            harness.stored().messages.iter().map(|text| said(&serde_json::from_str(text).unwrap())).collect();
        assert!(app.ever.iter().all(|message| log.contains(message)), "{at}: something is lost");
        let again = app.copied(&app.history.clone());
        let again = harness.host.run(harness.session.sync(0, again)).unwrap();
        assert_eq!((again.appended, again.branched_at), (0, None), "{at}: and again");
        sent = Some((harness.sent(), app.history.len()));
        if app.rng.u8(..5) == 0 {
            harness.compact();
        }
    }
    assert!(harness.stored().generation > 0 || !seed.is_multiple_of(7), "something was compacted");
}

#[test]
fn e1_a_history_that_is_handed_over_is_the_sessions_nothing_twice_and_nothing_lost() {
    for seed in 0..150 {
        run(seed);
    }
}
