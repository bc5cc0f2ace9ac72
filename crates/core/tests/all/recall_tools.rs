//! The tools with which a model reads back and searches what is no longer in its context, in every format (`S1.6`,
//! lesson: offload traps).

use crate::support::*;
use context_compactor_core::context::Fate;
use context_compactor_core::policy::Trigger;
use context_compactor_core::recall::{TOOLS, definitions};
use context_compactor_core::session::Session;
use context_compactor_core::wire::Format;
use context_compactor_core::{Code, Error};
use context_compactor_store_tests::conversation::{Body, assistant, body, calls, results, user};
use context_compactor_store_tests::{Host, How, MemoryStore};
use serde_json::{Value, json};
use std::rc::Rc;

/// Offloads at 100 tokens and never summarises.
pub(crate) fn only_offload() -> Value {
    json!({ "compactAt": { "tokens": 100 }, "presetOptions": { "preserveCount": 1_000 } })
}

/// A call as the format's provider returns it.
pub(crate) fn call(format: Format, name: &str, arguments: &Value) -> Value {
    match format {
        Format::OpenaiChat => json!({
            "id": "c", "type": "function", "function": { "name": name, "arguments": arguments.to_string() },
        }),
        Format::Anthropic => json!({ "type": "tool_use", "id": "c", "name": name, "input": arguments }),
        Format::OpenaiResponses => json!({
            "type": "function_call", "id": "fc_1", "call_id": "c", "name": name, "arguments": arguments.to_string(),
        }),
        Format::Gemini => json!({ "functionCall": { "id": "c", "name": name, "args": arguments } }),
        Format::AiSdk => {
            json!({ "type": "tool-call", "toolCallId": "c", "toolName": name, "input": arguments })
        }
        Format::React => json!({ "tool": name, "args": arguments }),
    }
}

/// The message that answers [`call`], as the format has it.
pub(crate) fn answer(format: Format, name: &str, arguments: &Value, text: &str, is_error: bool) -> Value {
    match format {
        Format::OpenaiChat => json!({ "role": "tool", "tool_call_id": "c", "content": text }),
        Format::Anthropic => {
            let mut block = json!({ "type": "tool_result", "tool_use_id": "c", "content": text });
            if is_error {
                block["is_error"] = json!(true);
            }
            json!({ "role": "user", "content": [block] })
        }
        Format::OpenaiResponses => json!({ "type": "function_call_output", "call_id": "c", "output": text }),
        Format::Gemini => {
            let response = json!({ if is_error { "error" } else { "output" }: text });
            let response = json!({ "id": "c", "name": name, "response": response });
            json!({ "role": "user", "parts": [{ "functionResponse": response }] })
        }
        Format::AiSdk => {
            let output = json!({ "type": if is_error { "error-text" } else { "text" }, "value": text });
            let part =
                json!({ "type": "tool-result", "toolCallId": "c", "toolName": name, "output": output });
            json!({ "role": "tool", "content": [part] })
        }
        Format::React => json!({ "thought": "", "action": call(format, name, arguments), "result": text }),
    }
}

/// The message in which the model calls a tool.
fn asks(format: Format, call: &Value) -> Body {
    body(&match format {
        Format::OpenaiChat => json!({ "role": "assistant", "content": null, "tool_calls": [call] }),
        _ => json!({ "role": "assistant", "content": [call] }),
    })
}

impl Harness {
    pub(crate) fn answer(&mut self, call: &Value, format: Option<Format>) -> Result<Value, Error> {
        let format = format.map_or_else(|| self.session.tools(None).map(|tools| tools.format), Ok)?;
        let text = self.host.run(self.session.answer(call.to_string(), format))?;
        Ok(serde_json::from_str(&text).unwrap())
    }

    /// What a call of `name` is answered, in the session's own format.
    pub(crate) fn told(&mut self, name: &str, arguments: &Value) -> String {
        let answer =
            self.answer(&call(Format::OpenaiChat, name, arguments), Some(Format::OpenaiChat)).unwrap();
        answer["content"].as_str().unwrap().to_owned()
    }
}

/// The first reference to a message in an answer.
fn reference_in(answer: &str) -> String {
    let (_, rest) = answer.split_once("[m").unwrap();
    format!("m{}", rest.split_once(']').unwrap().0)
}

/// A session with one result of this text in the store, and its reference.
pub(crate) fn offloaded(format: Format, text: &str, over: Value) -> (Harness, String) {
    let mut harness = Harness::new(over);
    harness.append(&[user("go")]);
    harness.append(&calls(format, &[("a", "x")]));
    harness.append(&results(format, &[("a", text)]));
    harness.append(&talk(3, 100));
    harness.prepare();
    let entry = harness.session.explain().unwrap()[2].clone();
    assert_eq!(entry.fate, Fate::Offloaded);
    (harness, entry.reference.unwrap())
}

/// The definition of a tool, as the format's provider takes it.
fn definition(format: Format, name: &str, description: &str, schema: &Value) -> Value {
    match format {
        Format::OpenaiChat => json!({
            "type": "function", "function": { "name": name, "description": description, "parameters": schema },
        }),
        Format::Anthropic => {
            json!({ "name": name, "description": description, "input_schema": schema })
        }
        Format::OpenaiResponses => json!({
            "type": "function", "name": name, "description": description, "parameters": schema, "strict": false,
        }),
        Format::Gemini => {
            json!({ "name": name, "description": description, "parametersJsonSchema": schema })
        }
        Format::AiSdk => {
            json!({ "type": "function", "name": name, "description": description, "inputSchema": schema })
        }
        Format::React => json!({ "name": name, "description": description, "parameters": schema }),
    }
}

#[test]
fn definitions_are_what_each_provider_takes() {
    for tool in TOOLS {
        assert!((1..=64).contains(&tool.name.len()));
        assert!(tool.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
        let schema: Value = serde_json::from_str(tool.parameters).unwrap();
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)));
        for required in schema["required"].as_array().unwrap() {
            assert!(schema["properties"][required.as_str().unwrap()]["description"].is_string());
        }
        assert!(!tool.description.contains("  "), "{}", tool.description);
    }
    for format in Format::ALL {
        let found: Vec<Value> = definitions(format, false, false)
            .iter()
            .map(|definition| serde_json::to_value(definition).unwrap())
            .collect();
        let expected = TOOLS.map(|tool| {
            let schema: Value = serde_json::from_str(tool.parameters).unwrap();
            definition(format, tool.name, tool.description, &schema)
        });
        assert_eq!(found, expected, "{format:?}");
    }
}

#[test]
fn a_call_is_answered_with_a_message_of_its_format() {
    let text = "the answer is 42, 다음은 43 🎉\n".repeat(3);
    let (mut harness, reference) = offloaded(Format::OpenaiChat, &text, only_offload());
    let total = text.chars().count();
    for format in Format::ALL {
        let arguments = json!({ "ref": reference });
        let read = harness.answer(&call(format, "recall_read", &arguments), Some(format)).unwrap();
        let told = format!("{text}\n[{reference}: all {total} characters]");
        assert_eq!(read, answer(format, "recall_read", &arguments, &told, false), "{format:?}");

        let arguments = json!({ "query": "다음은" });
        let found = harness.answer(&call(format, "recall_search", &arguments), Some(format)).unwrap();
        let lines = text.trim_end().replace('\n', "\n> ");
        let hit = harness.session.search("다음은".into(), 1);
        let hit = harness.host.run(hit).unwrap().remove(0);
        let reference = reference_in(&found.to_string());
        let told = format!(
            "1 found in {} messages, best first; a higher number is later. recall_read gives the whole text.\n\n\
             [{reference}] result of read_file: x · moved out of your context\n> {lines}",
            harness.session.metadata().unwrap().total_messages,
        );
        assert_eq!((hit.reference.starts_with("off_"), hit.tool.as_deref()), (true, Some("read_file")));
        assert_eq!(found, answer(format, "recall_search", &arguments, &told, false), "{format:?}");
    }
    // The session's own format is what holds when none is named.
    let own = call(Format::OpenaiChat, "recall_read", &json!({ "ref": reference }));
    assert_eq!(harness.answer(&own, None).unwrap(), harness.answer(&own, Some(Format::OpenaiChat)).unwrap());
    let tools = harness.session.tools(None).unwrap();
    assert_eq!(
        (tools.format, tools.definitions),
        (Format::OpenaiChat, definitions(Format::OpenaiChat, false, false))
    );
}

#[test]
fn what_a_model_gets_wrong_is_told_to_it() {
    let (mut harness, reference) = offloaded(Format::OpenaiChat, &long("result", 100), only_offload());
    let wrong = [
        ("read_file", json!({ "path": "x" }), "There is no such tool here"),
        ("recall_read", json!({}), "ref must be a text"),
        ("recall_read", json!({ "ref": 5 }), "ref must be a text"),
        ("recall_read", json!({ "ref": "off_x" }), "Nothing in this conversation has this reference."),
        ("recall_read", json!({ "ref": format!("off_{}", "a".repeat(26)) }), "Nothing in this conversation"),
        ("recall_read", json!({ "ref": "m999a" }), "Nothing in this conversation"),
        ("recall_read", json!({ "ref": "m999a..m1000b" }), "Nothing in this conversation"),
        ("recall_read", json!({ "ref": "m0..m5" }), "Nothing in this conversation"),
        ("recall_read", json!({ "ref": reference, "offset": -1 }), "offset must be a whole number from 0."),
        ("recall_read", json!({ "ref": reference, "offset": 1e9 }), "There are "),
        ("recall_read", json!({ "ref": reference, "limit": 0 }), "limit must be a whole number from 1."),
        ("recall_read", json!({ "ref": reference, "limit": "many" }), "limit must be a whole number from 1."),
        ("recall_search", json!({}), "query must be a text"),
        ("recall_search", json!({ "query": " ?! " }), "query must be a text"),
        ("recall_search", json!({ "query": "x", "limit": 1.5 }), "limit must be a whole number from 1."),
    ];
    for format in Format::ALL {
        for (name, arguments, told) in &wrong {
            let found = harness.answer(&call(format, name, arguments), Some(format)).unwrap();
            let expected = answer(format, name, arguments, "?", true);
            let text = found.to_string();
            assert!(text.contains(told), "{format:?} {name} {arguments}: {text}");
            // Same shape, marked as an error where the format can.
            let strings = |value: &Value| value.to_string().split('"').map(str::to_owned).collect::<Vec<_>>();
            let differ = strings(&found).into_iter().zip(strings(&expected)).filter(|(a, b)| a != b);
            assert_eq!(differ.count(), 1, "{format:?}: {found} {expected}");
        }
    }
    // Arguments that are no JSON, where they are a text.
    let broken = json!({ "id": "c", "function": { "name": "recall_read", "arguments": "{\"ref\": " } });
    let told = harness.answer(&broken, None).unwrap();
    assert_eq!(told["content"], "The arguments must be a JSON object.");
    // What models write that can be understood all the same.
    let odd = json!({ "ref": format!(" `{reference}`."), "offset": "2", "limit": 3.0, "why": "I need it" });
    assert_eq!(
        harness.told("recall_read", &odd),
        format!("sul\n[{reference}: characters 2 to 5 of 407; next: offset 5]")
    );
}

#[test]
fn what_is_no_call_of_the_format_is_the_apps_mistake() {
    let mut harness = Harness::new(json!({}));
    let wrong = [
        (Format::OpenaiChat, json!({ "id": "c", "function": { "arguments": "{}" } }), "call.function.name"),
        (Format::OpenaiChat, json!({ "role": "assistant", "tool_calls": [] }), "call.id"),
        (Format::Anthropic, json!({ "type": "text", "text": "x" }), "call.type"),
        (Format::Anthropic, json!({ "type": "tool_use", "id": "c", "name": "x" }), "call.input"),
        (
            Format::OpenaiResponses,
            json!({ "type": "function_call", "name": "x", "arguments": "" }),
            "call.call_id",
        ),
        (Format::Gemini, json!({ "text": "x" }), "call.name"),
        (Format::Gemini, json!({ "functionCall": { "name": "x", "args": "{}" } }), "call.functionCall.args"),
        (Format::AiSdk, json!({ "type": "tool-recall_read", "toolCallId": "c" }), "call.input"),
        (Format::AiSdk, json!({ "toolName": "recall_read", "input": {} }), "call.toolCallId"),
        (Format::React, json!({ "thought": "x", "action": { "path": "y" } }), "call.tool"),
        (Format::React, json!([1]), "call"),
    ];
    for (format, call, field) in wrong {
        let error = harness.answer(&call, Some(format)).unwrap_err();
        assert_eq!(
            (error.code, error.index, error.field.as_deref()),
            (Code::InvalidMessage, None, Some(field)),
            "{format:?} {call}"
        );
    }
}

#[test]
fn calls_come_in_every_shape_that_a_provider_has() {
    let (mut harness, reference) = offloaded(Format::OpenaiChat, &"y".repeat(60), only_offload());
    let arguments = json!({ "ref": reference });
    let told = format!("{}\n[{reference}: all 60 characters]", "y".repeat(60));
    // Gemini: the call alone, without an id.
    let bare = json!({ "name": "recall_read", "args": arguments });
    assert_eq!(
        harness.answer(&bare, Some(Format::Gemini)).unwrap()["parts"][0]["functionResponse"],
        json!({ "name": "recall_read", "response": { "output": told } })
    );
    let snake = json!({ "function_call": bare, "thought_signature": "AA" });
    assert_eq!(
        harness.answer(&snake, Some(Format::Gemini)).unwrap()["parts"][0],
        json!({ "function_response": { "name": "recall_read", "response": { "output": told } } })
    );
    // Responses: a call that a program made.
    let caller = json!({ "type": "program", "caller_id": "p" });
    let mut called = call(Format::OpenaiResponses, "recall_read", &arguments);
    called["caller"] = caller.clone();
    assert_eq!(harness.answer(&called, Some(Format::OpenaiResponses)).unwrap()["caller"], caller);
    // AI SDK: what `execute` has at hand, a model's own call, and the parts of a UI message.
    let plain = json!({ "toolCallId": "c", "toolName": "recall_read", "input": arguments });
    let expected = answer(Format::AiSdk, "recall_read", &arguments, &told, false);
    assert_eq!(harness.answer(&plain, Some(Format::AiSdk)).unwrap(), expected);
    let mut model = call(Format::AiSdk, "recall_read", &arguments);
    model["input"] = json!(arguments.to_string());
    assert_eq!(harness.answer(&model, Some(Format::AiSdk)).unwrap(), expected);
    for name in
        [json!({ "type": "tool-recall_read" }), json!({ "type": "dynamic-tool", "toolName": "recall_read" })]
    {
        let mut part =
            json!({ "toolCallId": "c", "state": "input-available", "input": arguments, "title": "T" });
        part.as_object_mut().unwrap().extend(name.as_object().unwrap().clone());
        let mut done = part.clone();
        done["state"] = json!("output-available");
        done["output"] = json!(told);
        assert_eq!(harness.answer(&part, Some(Format::AiSdk)).unwrap(), done);
        part["input"] = json!({});
        let failed = harness.answer(&part, Some(Format::AiSdk)).unwrap();
        assert_eq!((&failed["state"], failed.get("output")), (&json!("output-error"), None));
        assert!(failed["errorText"].as_str().unwrap().starts_with("ref must be"));
    }
    // A trajectory: an action with its arguments inside or beside its name, alone or in its turn.
    for action in [
        json!({ "tool": "recall_read", "input": arguments }),
        json!({ "name": "recall_read", "arguments": arguments.to_string() }),
        json!({ "type": "recall_read", "ref": reference }),
        json!({ "action": "recall_read", "ref": reference }),
        json!({ "type": "function", "function": { "name": "recall_read", "arguments": arguments.to_string() } }),
    ] {
        assert_eq!(
            harness.answer(&action, Some(Format::React)).unwrap(),
            json!({ "thought": "", "action": action, "result": told })
        );
        let turn = json!({ "thought": "I need it", "action": action, "step": 4 });
        assert_eq!(
            harness.answer(&turn, Some(Format::React)).unwrap(),
            json!({ "thought": "I need it", "action": action, "step": 4, "result": told })
        );
    }
}

#[test]
fn a_long_text_is_read_in_parts_that_fit_the_window() {
    let cluster = "👨‍👩‍👧‍👦각e\u{301}字שָׁ";
    let text: String = (0..2_000).map(|nth| format!("{nth}{cluster}")).collect();
    let (mut harness, reference) = offloaded(Format::OpenaiChat, &text, only_offload());
    let total = text.chars().count();
    for limit in [Value::Null, json!(7), json!(1_000_000)] {
        let (mut whole, mut offset, mut reads) = (String::new(), 0, 0);
        while offset < total && reads < 300 {
            let told =
                harness.told("recall_read", &json!({ "ref": reference, "offset": offset, "limit": limit }));
            let (piece, foot) = told.rsplit_once('\n').unwrap();
            let end = offset + piece.chars().count();
            let next = if end < total { format!("; next: offset {end}]") } else { ": the end]".into() };
            assert!(
                foot.starts_with(&format!("[{reference}: characters ")) && foot.ends_with(&next),
                "{foot}"
            );
            // A quarter of a window of 8,000 tokens.
            assert!(
                end > offset && piece.chars().count() <= limit.as_u64().unwrap_or(2_000).min(2_000) as usize
            );
            whole.push_str(piece);
            (offset, reads) = (end, reads + 1);
        }
        assert!(text.starts_with(&whole) && (limit == json!(7) || whole == text));
    }
    // One cluster without end does not fill the window either.
    let (mut harness, reference) =
        offloaded(Format::OpenaiChat, &format!("e{}", "\u{301}".repeat(50_000)), only_offload());
    let told = harness.told("recall_read", &json!({ "ref": reference }));
    assert!(
        told.contains("characters 0 to 2,000 of 50,001; next: offset 2000") && told.chars().count() < 2_100
    );
}

#[test]
fn lesson_offload_traps_what_was_read_back_is_not_offloaded_again() {
    for format in FORMATS {
        let text = long("the needle", 400);
        let (mut harness, reference) = offloaded(format, &text, only_offload());
        // The ids of this turn are those of an earlier one.
        let call = match format {
            Format::OpenaiChat => {
                let arguments = json!({ "ref": reference }).to_string();
                json!({ "id": "a", "type": "function", "function": { "name": "recall_read", "arguments": arguments } })
            }
            _ => {
                json!({ "type": "tool_use", "id": "a", "name": "recall_read", "input": { "ref": reference } })
            }
        };
        let answered = harness.answer(&call, None).unwrap();
        harness.append(&[asks(format, &call), body(&answered), assistant("so it is")]);
        let at = harness.session.explain().unwrap().len() - 2;
        // A result of another tool under the same id, behind it.
        harness.append(&turn(format, 1, 400));
        harness.append(&calls(format, &[("a", "y")]));
        harness.append(&results(format, &[("a", &long("another", 400))]));
        harness.append(&talk(20, 10));
        for _ in 0..3 {
            let sent = harness.sent();
            assert_eq!(result_text(format, &sent[at]), result_text(format, &answered), "{format:?}");
            assert_valid(format, &sent);
        }
        let fates: Vec<Fate> = harness.session.explain().unwrap().iter().map(|entry| entry.fate).collect();
        let offloads = fates.iter().filter(|fate| **fate == Fate::Offloaded).count();
        assert_eq!((fates[at], offloads), (Fate::Verbatim, 3), "{format:?}: every other result goes");
        // A session that is read anew knows it too.
        let mut again = Harness::over(harness.memory.clone(), "b", only_offload());
        again.append(&talk(20, 10));
        again.prepare();
        assert_eq!(again.session.explain().unwrap()[at].fate, Fate::Verbatim, "{format:?}");
    }
}

#[test]
fn s1_6_references_of_another_session_are_of_no_use() {
    let memory: Rc<MemoryStore> = Rc::default();
    let mut host = Host::new(Rc::clone(&memory) as _, "h");
    let mut open =
        |name: &str| host.run(Session::open(settings(only_offload()), Some(name.into()), 10_000)).unwrap().0;
    let (one, other) = (open("one"), open("other"));
    host.run(one.append(vec![user("the needle")])).unwrap();
    host.run(other.append(vec![user("another one's needle")])).unwrap();
    let found = host.run(one.search("needle".into(), 10)).unwrap().remove(0);
    assert_eq!(
        (host.run(one.read(found.reference.clone(), 0, None)).unwrap(), found.seq),
        ("the needle".into(), 0)
    );
    let forged = [
        found.reference.clone(),
        found.reference.replace("m0", "m1"),
        found.reference.replace("m0", "m00"),
        found.reference.replace("m0", "m+0"),
        found.reference.replace("m0", "m"),
        found.reference.replace("m0", "m99999999999999999999999"),
        found.reference.replace(|letter: char| letter != 'm' && letter.is_ascii_lowercase(), ""),
        found.reference.to_uppercase(),
        format!("{} ", found.reference),
    ];
    for (nth, reference) in forged.into_iter().enumerate() {
        let session = if nth == 0 { &other } else { &one };
        match host.run(session.read(reference.clone(), 0, None)) {
            // One letter in 26 is that of its own message.
            Ok(text) => assert_eq!((nth, text.as_str()), (0, "another one's needle")),
            Err(error) => assert_eq!(error.code, Code::NotFound, "{reference}"),
        }
    }
    // Offloads of one store are of one session each.
    host.run(one.append(turn(Format::OpenaiChat, 0, 200))).unwrap();
    host.run(one.append(talk(4, 10))).unwrap();
    host.run(one.prepare(Trigger::Auto, Vec::new())).unwrap();
    let reference = one.explain().unwrap().into_iter().find_map(|entry| entry.reference).unwrap();
    assert_eq!(host.run(one.read(reference.clone(), 0, None)).unwrap(), long("result 0", 200));
    let error = host.run(other.read(reference, 0, None)).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
}

#[test]
fn a_store_that_fails_is_the_apps_business_and_a_damaged_text_the_models() {
    let (mut harness, reference) = offloaded(Format::OpenaiChat, &long("result", 100), only_offload());
    let read = call(Format::OpenaiChat, "recall_read", &json!({ "ref": reference }));
    let is_read = |effect: &context_compactor_core::step::Effect| {
        matches!(effect, context_compactor_core::step::Effect::Read(_))
    };
    harness.host.fault(1, is_read, How::Fail(Code::StoreUnavailable));
    assert_eq!(harness.answer(&read, None).unwrap_err().code, Code::StoreUnavailable);
    let part = harness.memory.rows().into_iter().find(|(key, _)| {
        let key = key.to_string();
        key.starts_with("blobs/") && key.ends_with("/0")
    });
    harness.memory.damage(&part.unwrap().0, Some(b"something else".to_vec()));
    let whole = harness.answer(&read, None).unwrap();
    assert!(whole["content"].as_str().unwrap().contains(&long("result", 100)), "the log has it");
    for (key, _) in harness.memory.rows().into_iter().filter(|(key, _)| key.to_string().starts_with("log/")) {
        harness.memory.damage(&key, Some(b"something else".to_vec()));
    }
    assert_eq!(
        harness.answer(&read, None).unwrap()["content"],
        format!("[Content unavailable: {reference}]")
    );
    harness.session.close();
    assert_eq!(harness.answer(&read, None).unwrap_err().code, Code::Closed);
}

#[test]
fn h17_what_a_model_is_told_of_the_tools_is_english() {
    for tool in TOOLS {
        let text = format!("{} {}", tool.description, tool.parameters);
        assert!(!text.contains("Placeholder"), "{text}");
        assert!(text.contains("How many "), "{text}");
    }
}
