//! Appending and preparing in one call (P9): what the two calls do, one after the other, and one read less.

use crate::support::*;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Prepared;
use context_compactor_core::step::{Effect, Notice};
use context_compactor_core::wire::Format;
use context_compactor_core::{Code, Error};
use context_compactor_store_tests::conversation::{Body, user};
use context_compactor_store_tests::host::How;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::rc::Rc;

fn options() -> Value {
    json!({ "preset": "balanced", "format": "openai-chat", "contextWindow": 8_000, "summarize": "extractive" })
}

fn together(harness: &mut Harness, bodies: &[Body], since: u64) -> Result<Prepared, Error> {
    harness.host.run(harness.session.append_and_prepare(bodies.to_vec(), Trigger::Auto, since))
}

fn apart(harness: &mut Harness, bodies: &[Body], since: u64) -> Result<Prepared, Error> {
    let fixed = harness.host.fixed.clone();
    harness.host.run(harness.session.append(bodies.to_vec()))?;
    harness.host.run(harness.session.prepare_since(Trigger::Auto, fixed, since))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn p9_one_call_does_what_two_do(turns in proptest::collection::vec((1usize..4, 20usize..1_500), 1..12)) {
        let [mut one, mut two] = [(); 2].map(|()| Harness::new(options()));
        for host in [&mut one.host, &mut two.host] {
            host.fixed = vec!["You are an agent.".into(), "[]".into()];
        }
        let mut since = 0;
        for (nth, (messages, tokens)) in turns.into_iter().enumerate() {
            let bodies: Vec<Body> = (0..messages).flat_map(|at| turn(Format::OpenaiChat, nth * 10 + at, tokens)).collect();
            let prepared = [together(&mut one, &bodies, since), apart(&mut two, &bodies, since)];
            let [of_one, of_two] = prepared.map(|prepared| prepared.map_err(|error| (error.code, error.message.clone())));
            prop_assert_eq!(&of_one, &of_two);
            since = of_one.map_or(0, |prepared| prepared.nth);
        }
        prop_assert_eq!(one.memory.rows(), two.memory.rows());
        let [of_one, of_two] = [one, two].map(|harness| harness.host.seen);
        prop_assert_eq!(of_one.notices, of_two.notices);
        prop_assert_eq!(of_one.progress, of_two.progress);
        prop_assert_eq!(of_one.logs, of_two.logs);
        prop_assert_eq!(of_one.commits, of_two.commits);
    }
}

#[test]
fn p9_a_refused_message_stores_and_prepares_nothing() {
    let mut harness = Harness::new(options());
    harness.append(&[user("Hello")]);
    let rows = harness.memory.rows();
    let error = together(&mut harness, &[user("One more"), Body::from("7")], 0).unwrap_err();
    assert_eq!((error.code, error.index), (Code::InvalidMessage, Some(1)));
    assert_eq!(harness.memory.rows(), rows);
    // The session goes on.
    assert_eq!(together(&mut harness, &[user("One more")], 0).unwrap().items.len(), 2);
}

#[test]
fn p9_what_is_stored_stays_where_the_rest_fails() {
    let mut harness = Harness::new(options());
    harness.append(&[user("Hello")]);
    let asked = Rc::new(RefCell::new(0));
    let count = Rc::clone(&asked);
    // The host refuses to say what goes with the messages: an app that aborted the call meanwhile.
    harness.host.gives_up = Box::new(move |effect| {
        let is_appended = matches!(effect, Effect::Appended { .. });
        *count.borrow_mut() += usize::from(is_appended);
        is_appended.then_some(Code::Aborted)
    });
    let error = together(&mut harness, &[user("One more")], 0).unwrap_err();
    assert_eq!((error.code, *asked.borrow()), (Code::Aborted, 1));
    assert_eq!(harness.stored().messages.len(), 2);
    harness.host.gives_up = Box::new(|_| None);
    assert_eq!(harness.prepare().items.len(), 2);
}

#[test]
fn p9_the_host_learns_where_messages_are_before_anything_is_prepared() {
    let mut harness = Harness::new(options());
    let seen = Rc::new(RefCell::new(Vec::new()));
    let told = Rc::clone(&seen);
    harness.host.gives_up = Box::new(move |effect| {
        told.borrow_mut().push(match effect {
            Effect::Commit(_) => "commit".to_owned(),
            Effect::Appended { places, format } => format!("{places:?} {}", format.as_str()),
            Effect::Read(_) => "read".to_owned(),
            _ => return None,
        });
        None
    });
    together(&mut harness, &[user("Hello")], 0).unwrap();
    seen.borrow_mut().clear();
    together(&mut harness, &[user("More"), user("And more")], 0).unwrap();
    let places = "[Place { seq: 1, index: 1 }, Place { seq: 2, index: 2 }] openai-chat";
    assert_eq!(*seen.borrow(), ["commit", places]);
    seen.borrow_mut().clear();
    // What others wrote is read where nothing is written.
    together(&mut harness, &[], 0).unwrap();
    assert_eq!(*seen.borrow(), ["[] openai-chat", "read"]);
}

#[test]
fn p9_what_another_handle_wrote_is_in_the_prompt() {
    let mut one = Harness::new(options());
    one.append(&[user("Hello")]);
    let mut other = Harness::over(Rc::clone(&one.memory), "b", options());
    other.append(&[user("From the other tab")]);
    let prepared = together(&mut one, &[user("From here")], 0).unwrap();
    assert_eq!(bodies(&one.session, &prepared).len(), 3);
    assert!(one.host.seen.notices.iter().any(|notice| matches!(notice, Notice::Change { .. })));
}

#[test]
fn p9_every_effect_may_fail() {
    for code in [Code::StoreUnavailable, Code::QuotaExceeded, Code::Indeterminate] {
        for nth in 1..12 {
            let [mut one, mut two] = [(); 2].map(|()| {
                let mut harness = Harness::new(options());
                harness.append(&[user("Hello")]);
                harness.prepare();
                harness.host.fault(nth, is_commit, How::Fail(code));
                harness
            });
            let bodies: Vec<Body> = (0..12).flat_map(|nth| turn(Format::OpenaiChat, nth, 900)).collect();
            let results = [together(&mut one, &bodies, 0), apart(&mut two, &bodies, 0)];
            let [of_one, of_two] =
                results.map(|result| result.map(|prepared| prepared.items).map_err(|error| error.code));
            assert_eq!(of_one, of_two, "{code:?} of commit {nth}");
            assert_eq!(one.stored().messages, two.stored().messages, "{code:?} of commit {nth}");
        }
    }
}
