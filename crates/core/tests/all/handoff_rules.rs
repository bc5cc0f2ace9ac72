//! The notice before the threshold (`X11`): how much room is left, at the end of one prompt.

use crate::support::*;
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Prepared;
use context_compactor_store_tests::conversation::{assistant, body, user};
use serde_json::{Value, json};

const NOTICE: &str = " tokens are left until a summary takes the place of the older messages.";

fn session(handoff: Value) -> Harness {
    let over = json!({ "preset": "balanced", "compactAt": { "tokens": 4_000 }, "handoff": handoff });
    Harness::new(over)
}

/// The end of a prompt that tells how much room is left.
fn notice(prepared: &Prepared) -> Option<String> {
    let live = prepared.live.as_ref().filter(|live| live.text.contains(NOTICE))?;
    Some(live.text.to_string())
}

/// A question and its prompt, then an answer and the prompt that goes on with it.
fn turn(harness: &mut Harness, nth: usize, tokens: usize) -> [Prepared; 2] {
    harness.append(&[user(&long(&format!("question {nth}"), tokens))]);
    let asked = harness.prepare();
    harness.append(&[assistant(&format!("answer {nth}"))]);
    [asked, harness.prepare()]
}

#[test]
fn x11_the_model_is_told_once_how_much_room_is_left_and_again_after_a_compaction() {
    let mut harness = session(json!({ "atFraction": 0.8 }));
    let mut told = Vec::new();
    for nth in 0..70 {
        let [asked, goes_on] = turn(&mut harness, nth, 200);
        assert_eq!(notice(&goes_on), None, "the model goes on with what it said");
        let compacted = asked.result.is_some() || goes_on.result.is_some();
        if let Some(text) = notice(&asked) {
            let left: usize =
                text.split("About ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
            let room = 4_000 - asked.usage.used_tokens;
            assert!((room..room + 200).contains(&left), "{left} of {room}");
            assert!(asked.usage.used_tokens >= 3_200, "{}", asked.usage.used_tokens);
            told.push(nth);
        }
        if compacted {
            told.push(1_000);
        }
    }
    let compactions = told.iter().filter(|nth| **nth == 1_000).count();
    assert!(compactions >= 2, "{told:?}");
    let before: Vec<_> = told.split(|nth| *nth == 1_000).take(compactions).map(<[usize]>::len).collect();
    assert_eq!(before, vec![1; compactions], "{told:?}");
    assert!(!harness.stored().context.iter().any(|(_, body)| body.contains(NOTICE)));
}

#[test]
fn x11_it_stands_behind_the_apps_live_facts_and_is_off_by_default() {
    for (handoff, tells) in [(json!({}), true), (json!(false), false), (Value::Null, false)] {
        let mut harness = session(handoff);
        for nth in 0..9 {
            harness.append(&[user(&long(&format!("question {nth}"), 400)), assistant("answer")]);
        }
        harness.append(&[user("What now?")]);
        let fixed = vec![String::new(), String::new(), "job 7 runs".into()];
        let prepared = harness.host.run(harness.session.prepare(Trigger::Auto, fixed)).unwrap();
        let text = prepared.live.unwrap().text;
        assert!(text.contains("job 7 runs"));
        assert_eq!(text.contains(NOTICE), tells, "{text}");
    }
}

#[test]
fn x11_no_text_follows_results_of_calls_that_code_made() {
    for by_code in [true, false] {
        let mut harness = session(json!({}));
        let code = json!({ "type": "server_tool_use", "id": "srvtoolu_a", "name": "code_execution", "input": { "code": "f()" } });
        let mut call = json!({ "type": "tool_use", "id": "toolu_b", "name": "read", "input": {} });
        if by_code {
            call["caller"] = json!({ "type": "code_execution_20250825", "tool_id": "srvtoolu_a" });
        }
        let result = json!({ "type": "tool_result", "tool_use_id": "toolu_b", "content": "x" });
        harness.append(&[user(&long("question", 3_800))]);
        harness.append(&[
            body(&json!({ "role": "assistant", "content": [code, call] })),
            body(&json!({ "role": "user", "content": [result] })),
        ]);
        assert_eq!(notice(&harness.prepare()).is_some(), !by_code);
    }
}
