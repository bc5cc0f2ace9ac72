//! What a host gets for what it asks.

use super::Host;
use crate::replay::{POLICIES, SHEETS, Trace, optimum, replay};
use crate::transcript::{Transcript, Turn};
use context_compactor_core::tokens::Estimator;
use context_compactor_core::wire::Format;
use serde_json::{Value, json};

const PRICES: &str = r#"{"input":3,"output":15,"cacheRead":0.3,"cacheWrite":3.75}"#;

/// Files that are read, and quoted twenty reads later.
fn messages() -> Vec<Value> {
    let line =
        |nth: usize| format!("export const handler_{nth} = harbour.open(\"lantern-{}\", {nth});\n", nth * 7);
    let mut messages = vec![json!({ "role": "system", "content": "You rename things." })];
    messages.push(json!({ "role": "user", "content": "Rename what the handlers of the harbour return" }));
    for nth in 0..60_usize {
        let arguments = json!({ "path": format!("src/harbour/handler{nth}.ts") }).to_string();
        let call = json!({ "id": format!("c{nth}"), "type": "function",
            "function": { "name": "read_file", "arguments": arguments } });
        let said =
            nth.checked_sub(20).map_or("Next.".into(), |old| format!("handler_{old} is in {}", line(old)));
        messages.push(json!({ "role": "assistant", "content": said, "tool_calls": [call] }));
        messages.push(
            json!({ "role": "tool", "tool_call_id": format!("c{nth}"), "content": line(nth).repeat(40) }),
        );
    }
    messages
}

fn asked(host: &mut Host, question: &str) -> Value {
    serde_json::from_str(&host.ask(question)).expect("JSON")
}

fn answered(host: &mut Host, question: &str) -> Value {
    let answer = asked(host, question);
    answer.get("value").unwrap_or_else(|| panic!("{answer}")).clone()
}

fn error(host: &mut Host, question: &str) -> (String, String, String) {
    let answer = asked(host, question);
    let text = |key: &str| answer["error"][key].as_str().unwrap_or_default().to_owned();
    (text("code"), text("message"), text("field"))
}

fn host() -> Host {
    let mut host = Host::default();
    let read = json!({ "read": [{ "messages": messages(), "id": "one", "stableTokens": 1_000 }] });
    assert_eq!(answered(&mut host, &read.to_string()), json!(["openai-chat"]));
    host
}

fn transcript() -> Transcript {
    let turns = messages().into_iter().enumerate().map(|(index, message)| {
        Turn::read(Format::OpenaiChat, index, &message.to_string(), Estimator::default()).expect("a message")
    });
    Transcript { id: "one".into(), messages: turns.collect(), stable: Some(1_000), ..Transcript::default() }
}

#[test]
fn a_policy_costs_what_its_replay_costs_whether_it_is_named_or_spelt_out() {
    let (mut host, trace, prices) = (host(), Trace::of(&transcript()), SHEETS[0].prices());
    let known = answered(&mut host, r#""known""#);
    for (nth, (name, policy)) in POLICIES.iter().enumerate() {
        let expected = replay(&trace, policy, &prices);
        for given in [json!(name), known["policies"][nth]["policy"].clone()] {
            let question = format!(r#"{{"replay":{{"transcript":0,"prices":{PRICES},"policy":{given}}}}}"#);
            let report = answered(&mut host, &question);
            assert_eq!(report["cost"], json!(expected.cost as f64 / 1e12), "{name}");
            assert_eq!(report["compactions"], json!(expected.compactions), "{name}");
            assert_eq!(report["refetchedTokens"], json!(expected.fetched), "{name}");
            let steps = report["steps"].as_array().expect("steps");
            assert_eq!(steps.len(), trace.calls.len());
            assert_eq!(steps.last().expect("a step")["cost"], report["cost"]);
        }
    }
}

#[test]
fn a_policy_of_the_host_is_asked_before_every_call_and_costs_what_the_same_rule_does() {
    let mut host = host();
    let rule = r#"{"kind":"threshold","at":12000,"keep":2000}"#;
    let replay = format!(r#"{{"replay":{{"transcript":0,"prices":{PRICES},"policy":{rule}}}}}"#);
    let expected = answered(&mut host, &replay);
    assert!(expected["compactions"].as_u64() > Some(1), "{expected}");
    let mut next = answered(&mut host, &format!(r#"{{"begin":{{"transcript":0,"prices":{PRICES}}}}}"#));
    let mut moments = 0;
    while let Some(moment) = next.get("moment") {
        let full = moment["tokens"].as_u64() >= Some(12_000);
        let action = if full { r#"{"kind":"compact","keep":2000}"# } else { r#"{"kind":"none"}"# };
        assert_eq!(moment["call"], json!(moments));
        moments += 1;
        next = answered(&mut host, &format!(r#"{{"act":{action}}}"#));
    }
    assert_eq!(next["report"], expected);
    assert_eq!(moments, 60);
}

#[test]
fn the_optimum_is_found_step_by_step() {
    let (mut host, prices) = (host(), SHEETS[0].prices());
    let least = optimum::optimum(&Trace::of(&transcript()), &prices) as f64 / 1e12;
    let mut search = answered(&mut host, &format!(r#"{{"optimum":{{"transcript":0,"prices":{PRICES}}}}}"#));
    let mut steps = 0;
    while search["cost"].is_null() {
        assert!(search["done"].as_u64() < search["total"].as_u64());
        search = answered(&mut host, r#""advance""#);
        steps += 1;
    }
    assert_eq!((search["cost"].as_f64(), steps), (Some(least), 60));
}

#[test]
fn what_a_context_holds_is_scored_whether_it_is_text_or_messages() {
    let mut host = host();
    let cutting = r#"{"prefixTokens":5000,"needs":2,"cuts":1}"#;
    let cases = answered(&mut host, &format!(r#"{{"cases":{{"transcript":0,"cutting":{cutting}}}}}"#));
    let case = &cases[0];
    assert_eq!(case["messages"][0], 1, "the app's instructions are none of them");
    let at = case["at"].as_u64().expect("a place") as usize;
    let score = |host: &mut Host, what: String| {
        answered(host, &format!(r#"{{"score":{{"case":0,"budget":1000000,{what}}}}}"#))
    };
    let whole =
        score(&mut host, format!(r#""messages":{},"format":"openai-chat""#, json!(messages()[1..at])));
    assert_eq!(whole["mention"].as_f64(), Some(1.0));
    assert!(whole["context"].as_f64() > Some(0.9), "{whole}");
    assert_eq!(whole["invented"].as_f64(), Some(0.0));
    let nothing = score(&mut host, r#""text":"""#.into());
    assert_eq!((nothing["mention"].as_f64(), nothing["tokens"].as_u64()), (Some(0.0), Some(0)));
    let none = answered(&mut host, r#"{"measure":{"case":0,"compactor":"tail","budget":0}}"#);
    assert_eq!(none["tokens"].as_u64(), Some(0));
    let tail = answered(&mut host, r#"{"measure":{"case":0,"compactor":"tail","budget":2000}}"#);
    let tokens = tail["tokens"].as_u64();
    assert!(tokens > Some(1_000) && tokens <= Some(2_000), "{tail}");
}

#[test]
fn what_is_wrong_is_named() {
    let mut host = host();
    let read = |messages: Value| json!({ "read": [{ "messages": [], "format": "openai-chat" }, { "messages": messages, "format": "openai-chat" }] });
    let answer = asked(
        &mut host,
        &read(json!([{ "role": "user", "content": "a" }, { "role": "user", "content": 5 }])).to_string(),
    );
    let of = &answer["error"];
    assert_eq!((of["code"].as_str(), of["index"].as_u64()), (Some("invalid_message"), Some(1)), "{answer}");
    assert!(of["message"].as_str().is_some_and(|message| message.starts_with("transcript 1: ")), "{answer}");
    let replay = |policy: &str, prices: &str| {
        format!(r#"{{"replay":{{"transcript":0,"policy":{policy},"prices":{prices}}}}}"#)
    };
    let (code, message, field) = error(&mut host, &replay(r#""nobody's""#, PRICES));
    assert_eq!((code.as_str(), field.as_str()), ("invalid_option", "policy"));
    assert!(message.contains("balanced"), "{message}");
    let (code, message, field) = error(&mut host, &replay(r#"{"kind":"slide","at":1}"#, PRICES));
    assert_eq!((code.as_str(), field.as_str()), ("invalid_option", "policy"));
    assert!(message.contains("`to`"), "{message}");
    let (code, _, field) = error(&mut host, &replay(r#""balanced""#, r#"{"input":1,"output":-1}"#));
    assert_eq!((code.as_str(), field.as_str()), ("invalid_option", "prices.output"));
    let (code, message, field) = error(&mut host, r#"{"measure":{"case":0,"compactor":"tail","budget":1}}"#);
    assert_eq!((code.as_str(), field.as_str()), ("not_found", ""), "{message}");
    let (code, ..) = error(&mut host, "no JSON");
    assert_eq!(code, "invalid_option");
}

#[test]
fn more_sources_than_are_told_apart_are_read() {
    let message = json!([{ "role": "user", "content": "see src/harbour/handler1.ts" }]);
    let given: Vec<Value> =
        (0..40).map(|nth| json!({ "messages": message, "source": nth.to_string() })).collect();
    let mut host = Host::default();
    answered(&mut host, &json!({ "read": given }).to_string());
    let cutting = r#"{"prefixTokens":0,"needs":0}"#;
    answered(&mut host, &format!(r#"{{"cases":{{"transcript":39,"cutting":{cutting}}}}}"#));
}
