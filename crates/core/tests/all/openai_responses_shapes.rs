//! OpenAI Responses: telling the format, new messages, replacing the text of an output, where a history can be cut.

use context_compactor_core::Code;
use context_compactor_core::message::{Exchanges, Message};
use context_compactor_core::wire::{Author, Format, Unbound, detect, parse};
use serde_json::{Value, json};

const FORMAT: Format = Format::OpenaiResponses;

fn read<T>(item: &Value, look: impl FnOnce(Message<'_>) -> T) -> T {
    let text = item.to_string();
    let parsed = parse(7, &text).unwrap();
    let read = FORMAT.wire().read(7, &parsed).unwrap_or_else(|error| panic!("{error}: {text}"));
    look(read)
}

fn detected(history: &Value) -> Result<Format, Code> {
    let texts: Vec<String> = history.as_array().unwrap().iter().map(Value::to_string).collect();
    let messages: Vec<_> = texts.iter().map(|text| parse(0, text).unwrap()).collect();
    detect(&messages).map_err(|error| error.code)
}

#[test]
fn the_format_is_told_by_its_items() {
    let plain = json!({ "role": "user", "content": "x" });
    let news = json!({ "type": "quantum_call", "call_id": "q" });
    for own in [
        json!({ "type": "message", "role": "user", "content": "x" }),
        json!({ "role": "user", "content": [{ "type": "input_text", "text": "x" }] }),
        json!({ "role": "assistant", "content": [{ "type": "output_text", "text": "x" }] }),
        json!({ "type": "reasoning", "summary": [] }),
        json!({ "type": "function_call", "call_id": "a", "name": "f", "arguments": "{}" }),
        json!({ "type": "compaction", "encrypted_content": "gAAA" }),
        json!({ "type": "item_reference", "id": "msg_1" }),
    ] {
        assert_eq!(detected(&json!([plain, own, news])), Ok(FORMAT), "{own}");
    }
    assert_eq!(detected(&json!([plain])), Ok(Format::OpenaiChat), "the same to the letter");
    for history in [
        json!([plain, news]),
        json!([{ "type": "human", "content": "x" }]),
        json!([{ "id": "x" }]),
        json!([{ "type": "reasoning", "summary": [] }, { "role": "tool", "tool_call_id": "a", "content": "x" }]),
        json!([{ "type": "compaction_trigger" }, { "role": "assistant", "content": "x", "tool_calls": [] }]),
    ] {
        assert!(detected(&history).is_err(), "{history}");
    }
    let anthropic = json!([{ "type": "message", "role": "assistant", "content": [
        { "type": "tool_use", "id": "a", "name": "f", "input": {} }] }]);
    assert_eq!(detected(&anthropic), Ok(Format::Anthropic), "a whole response of another API");
}

#[test]
fn new_messages_are_like_those_that_they_stand_among() {
    let written = |author, like: Option<Value>| -> Value {
        let like = like.map(|like| like.to_string());
        let like = like.as_deref().map(|like| parse(0, like).unwrap());
        serde_json::from_str(&FORMAT.wire().text_message(author, "한\u{2028}$1", "id", like.as_ref()))
            .unwrap()
    };
    let easy = json!({ "role": "user", "content": "x" });
    let parts =
        json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "x" }] });
    let call = json!({ "type": "function_call", "call_id": "a", "name": "f", "arguments": "{}" });
    for (author, role) in [(Author::User, "user"), (Author::Assistant, "assistant")] {
        assert_eq!(written(author, Some(easy.clone())), json!({ "role": role, "content": "한\u{2028}$1" }));
        for like in [None, Some(call.clone())] {
            let typed = json!({ "type": "message", "role": role, "content": "한\u{2028}$1" });
            assert_eq!(written(author, like), typed);
        }
    }
    let part = json!([{ "type": "input_text", "text": "한\u{2028}$1" }]);
    assert_eq!(
        written(Author::User, Some(parts.clone())),
        json!({ "type": "message", "role": "user", "content": part })
    );
    assert_eq!(written(Author::Assistant, Some(parts))["content"], "한\u{2028}$1");
}

fn replaced(item: &Value, nth: usize, text: &str) -> Option<Value> {
    let json = item.to_string();
    let parsed = parse(0, &json).unwrap();
    let edited: Value = serde_json::from_str(&FORMAT.rules().with_result_text(&parsed, nth, text)?).unwrap();
    read(&edited, |message| assert_eq!(message.results().next().unwrap().text, text));
    Some(edited)
}

#[test]
fn or4_an_edited_output_keeps_its_shape_and_loses_its_server_id() {
    let image = json!({ "type": "input_image", "image_url": "data:image/png;base64,AAAA" });
    let news = json!({ "type": "input_novel", "x": 1 });
    let exit = json!({ "type": "exit", "exit_code": 0 });
    for (before, after) in [
        (json!("long"), json!("short")),
        (
            json!([image, { "type": "input_text", "text": "a", "y": 1 }, news, { "type": "input_text", "text": "b" }]),
            json!([image, { "type": "input_text", "text": "short", "y": 1 }, news]),
        ),
        (json!([image]), json!([{ "type": "input_text", "text": "short" }, image])),
    ] {
        let item = |id: bool, output: &Value| {
            let mut item =
                json!({ "type": "function_call_output", "call_id": "a", "output": output, "x": [1] });
            if id {
                item["id"] = "fco_1".into();
            }
            item
        };
        assert_eq!(replaced(&item(true, &before), 0, "short"), Some(item(false, &after)));
        assert_eq!(replaced(&item(false, &before), 1, "short"), None);
    }
    let shell = |one: &str, two: &str| {
        json!({ "type": "shell_call_output", "call_id": "a", "max_output_length": 9, "output": [
            { "stdout": one, "stderr": two, "outcome": exit }, { "stdout": "", "stderr": two, "outcome": exit }] })
    };
    assert_eq!(replaced(&shell("long", "error"), 0, "short"), Some(shell("short", "")));
    // A text does not go to where nothing reads it.
    let torn = |text: &str| json!({ "type": "shell_call_output", "call_id": "a", "output": [null, { "stdout": text }] });
    assert_eq!(replaced(&torn("long"), 0, "short"), Some(torn("short")));
    assert_eq!(
        replaced(&json!({ "type": "shell_call_output", "call_id": "a", "output": [null] }), 0, "x"),
        None
    );
    let patch =
        json!({ "type": "apply_patch_call_output", "call_id": "a", "status": "failed", "output": "long" });
    let mut shorter = patch.clone();
    shorter["output"] = "short".into();
    assert_eq!(replaced(&patch, 0, "short"), Some(shorter));
    // The id is the call's here.
    let local = json!({ "type": "local_shell_call_output", "id": "a", "output": "long" });
    assert_eq!(replaced(&local, 0, "short").unwrap()["id"], "a");

    for item in [
        json!({ "role": "user", "content": "x" }),
        json!({ "type": "mcp_call", "id": "m", "output": "long" }),
        json!({ "type": "computer_call_output", "call_id": "a", "output": { "type": "computer_screenshot" } }),
        json!({ "type": "shell_call_output", "call_id": "a", "output": [] }),
    ] {
        assert_eq!(replaced(&item, 0, "short"), None, "{item}");
    }
}

#[test]
fn reasoning_outlives_an_edit_of_what_stood_before_it() {
    let json =
        json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA" }).to_string();
    let parsed = parse(0, &json).unwrap();
    assert_eq!(FORMAT.rules().without_bound_reasoning(&parsed), Unbound::Same);
}

fn boundaries(history: &[Value]) -> Vec<usize> {
    let texts: Vec<String> = history.iter().map(Value::to_string).collect();
    let parsed: Vec<_> = texts.iter().map(|text| parse(0, text).unwrap()).collect();
    let messages: Vec<_> = parsed.iter().map(|item| FORMAT.wire().read(0, item).unwrap()).collect();
    let exchanges = Exchanges::of(&messages);
    (0..=history.len()).filter(|&position| exchanges.is_boundary(position)).collect()
}

#[test]
fn s1_5_a_response_is_one_unit() {
    let user = || json!({ "role": "user", "content": "x" });
    let reasoning = || json!({ "type": "reasoning", "summary": [] });
    let said = || json!({ "role": "assistant", "content": "x" });
    let call = |id: &str| json!({ "type": "function_call", "call_id": id, "name": "f", "arguments": "{}" });
    let output = |id: &str| json!({ "type": "function_call_output", "call_id": id, "output": "x" });
    let refer = |id: &str| json!({ "type": "item_reference", "id": id });

    // lesson: reasoning ↔ call coupling
    let history =
        [user(), reasoning(), reasoning(), said(), call("a"), call("b"), output("b"), output("a"), said()];
    assert_eq!(boundaries(&history), [0, 1, 8, 9]);
    // Ids repeat at every step.
    assert_eq!(boundaries(&[call("a"), output("a"), reasoning(), call("a"), output("a")]), [0, 2, 5]);
    assert_eq!(boundaries(&[said(), said(), user()]), [0, 1, 2, 3]);

    // A reference may be reasoning, and a call that an output answers.
    assert_eq!(boundaries(&[user(), refer("rs_1"), refer("fc_1"), output("a"), user()]), [0, 1, 4, 5]);
    let request = |id: &str| json!({ "type": "mcp_approval_request", "id": id });
    let response = |id: &str| json!({ "type": "mcp_approval_response", "approval_request_id": id });
    let approved = |id: &str| json!({ "type": "mcp_call", "approval_request_id": id });
    assert_eq!(boundaries(&[refer("r"), response("r"), user()]), [0, 2, 3]);
    assert_eq!(boundaries(&[user(), request("r"), response("r"), approved("r"), said()]), [0, 1, 4, 5]);

    let program = || json!({ "type": "program", "call_id": "p", "code": "x" });
    let mut called = call("a");
    called["caller"] = json!({ "type": "program", "caller_id": "p" });
    assert_eq!(boundaries(&[user(), program(), called.clone(), output("a"), user()]), [0, 1, 4, 5]);
    let done = json!({ "type": "program_output", "call_id": "p", "result": "x" });
    assert_eq!(boundaries(&[program(), called, output("a"), user(), done, user()]), [0, 5, 6]);

    let news = |kind: &str| json!({ "type": kind, "call_id": "q" });
    assert_eq!(boundaries(&[news("quantum_call"), user(), news("quantum_result")]), [0, 3]);
    let search = |kind: &str| json!({ "type": kind, "call_id": null, "execution": "server" });
    assert_eq!(boundaries(&[search("tool_search_call"), search("tool_search_output"), said()]), [0, 2, 3]);
    let compaction = json!({ "type": "compaction", "encrypted_content": "gAAA" });
    assert_eq!(boundaries(&[user(), compaction, reasoning(), said()]), [0, 1, 2, 4]);
}
