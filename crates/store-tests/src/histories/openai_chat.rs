//! Chat Completions and its dialects: parallel, custom and legacy calls, reasoning in every field that has been seen,
//! media, refusals, and fields that nobody has heard of.

use super::{input, output, prose};
use fastrand::Rng;
use serde_json::{Value, json};

pub(super) fn history(rng: &mut Rng) -> Vec<Value> {
    let mut history = Vec::new();
    if rng.usize(..4) > 0 {
        let role = if rng.bool() { "system" } else { "developer" };
        history.push(json!({ "role": role, "content": prose(rng) }));
    }
    let length = rng.usize(4..=18);
    history.push(question(rng));
    // An exchange is what only this format has.
    history.extend(step(rng));
    while history.len() < length {
        history.push(answer(rng));
        if rng.usize(..8) == 0 {
            history.push(json!({ "role": "developer", "content": [{ "type": "text", "text": prose(rng) }] }));
        }
        history.push(question(rng));
        for _ in 0..rng.usize(..3) {
            history.extend(step(rng));
        }
    }
    if rng.bool() {
        history.push(answer(rng));
    }
    history
}

fn text(rng: &mut Rng) -> Value {
    let mut block =
        json!({ "type": "text", "text": if rng.usize(..8) == 0 { String::new() } else { prose(rng) } });
    if rng.usize(..6) == 0 {
        block["cache_control"] = json!({ "type": "ephemeral" });
    }
    block
}

fn question(rng: &mut Rng) -> Value {
    let content = match rng.usize(..5) {
        0 => json!([text(rng), media(rng)]),
        1 => json!([media(rng)]),
        2 => json!([text(rng), { "type": "hologram", "data": ["값", null] }]),
        3 if rng.usize(..4) == 0 => json!(""),
        _ => json!(prose(rng)),
    };
    let mut message = json!({ "role": "user", "content": content });
    match rng.usize(..6) {
        0 => message["name"] = json!("민수"),
        1 => {
            message["mine"] = json!({ "at": { "$cc": "date", "v": "2026-01-02T03:04:05.000Z" }, "none": { "$cc": "undefined" } })
        }
        _ => {}
    }
    message
}

fn media(rng: &mut Rng) -> Value {
    match rng.usize(..6) {
        0 => {
            json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low" } })
        }
        1 => json!({ "type": "image_url", "image_url": { "url": "https://example.com/a.png" } }),
        2 => json!({ "type": "input_audio", "input_audio": { "data": "UklGRg==", "format": "wav" } }),
        3 => {
            json!({ "type": "file", "file": { "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg==" } })
        }
        4 => json!({ "type": "file", "file": { "file_id": "file_1" } }),
        _ => json!({ "type": "video_url", "video_url": { "url": "https://example.com/a.mp4" } }),
    }
}

fn answer(rng: &mut Rng) -> Value {
    let mut message = match rng.usize(..7) {
        0 => json!({ "role": "assistant", "content": null, "refusal": prose(rng) }),
        1 => json!({ "role": "assistant", "content": null, "audio": { "id": "audio_1" } }),
        2 => json!({ "role": "assistant", "content": [text(rng), { "type": "refusal", "refusal": "No." }] }),
        3 => {
            json!({ "role": "assistant", "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": prose(rng) }] }, { "type": "text", "text": "예." }] })
        }
        4 => json!({ "role": "assistant", "content": "" }),
        _ => json!({ "role": "assistant", "content": prose(rng), "annotations": [], "refusal": null }),
    };
    reasoning(rng, &mut message);
    message
}

/// Reasoning as the dialects carry it.
fn reasoning(rng: &mut Rng, message: &mut Value) {
    let said = prose(rng);
    let detail = |format: Value| json!({ "type": "reasoning.text", "text": said, "signature": "c2lnbmVk", "format": format, "index": 0 });
    match rng.usize(..10) {
        0 => message["reasoning_content"] = json!(said),
        1 => {
            message["reasoning"] = json!(said);
            message["reasoning_details"] = json!([detail(json!("anthropic-claude-v1"))]);
        }
        2 => {
            let sealed = json!({ "type": "reasoning.encrypted", "data": "ZW5j", "format": "openai-responses-v1", "id": "rs_1" });
            message["reasoning_details"] = json!([detail(json!("google-gemini-v1")), sealed]);
        }
        3 => message["reasoning_details"] = json!([detail(Value::Null)]),
        4 => {
            message["thinking_blocks"] =
                json!([{ "type": "thinking", "thinking": said, "signature": "c2lnbmVk" }]);
            message["reasoning_content"] = json!(said);
        }
        5 => message["reasoning_details"] = json!([]),
        _ => {}
    }
}

fn step(rng: &mut Rng) -> Vec<Value> {
    if rng.usize(..6) == 0 {
        let call = json!({ "name": "read_file", "arguments": "{\"path\":\"src/lib.rs\"}" });
        return vec![
            json!({ "role": "assistant", "content": null, "function_call": call }),
            json!({ "role": "function", "name": "read_file", "content": output(rng) }),
        ];
    }
    // The same ids in every step: they are unique within one only.
    let ids: Vec<String> = (0..rng.usize(1..4)).map(|nth| format!("call_{nth}")).collect();
    let calls: Vec<Value> = ids.iter().map(|id| call(rng, id)).collect();
    let content = match rng.usize(..4) {
        0 => json!(prose(rng)),
        1 => json!(""),
        2 => json!([text(rng)]),
        _ => Value::Null,
    };
    let mut asks = json!({ "role": "assistant", "content": content, "tool_calls": calls });
    reasoning(rng, &mut asks);
    let mut answers: Vec<Value> = ids.iter().map(|id| result(rng, id)).collect();
    rng.shuffle(&mut answers);
    let mut messages = vec![asks];
    messages.extend(answers);
    messages
}

fn call(rng: &mut Rng, id: &str) -> Value {
    let arguments = if rng.bool() { format!(" {}", input(rng)) } else { "{}".to_owned() };
    let function = json!({ "name": "read_file", "arguments": arguments });
    match rng.usize(..8) {
        0 => json!({ "id": id, "type": "custom", "custom": { "name": "patch", "input": prose(rng) } }),
        1 => json!({ "id": id, "type": "quantum", "quantum": { "spin": "up" } }),
        2 => json!({ "id": id, "function": function }),
        3 => {
            json!({ "id": id, "type": "function", "function": function, "extra_content": { "google": { "thought_signature": "c2ln" } } })
        }
        4 => json!({ "id": id, "type": "function", "index": 0, "function": function }),
        _ => json!({ "id": id, "type": "function", "function": function }),
    }
}

fn result(rng: &mut Rng, id: &str) -> Value {
    let content = match rng.usize(..6) {
        0 => json!(""),
        1 => json!([{ "type": "text", "text": output(rng) }, { "type": "text", "text": prose(rng) }]),
        2 => json!([media(rng), { "type": "text", "text": output(rng) }]),
        3 => json!([{ "type": "hologram", "data": 1 }]),
        _ => json!(output(rng)),
    };
    let mut message = json!({ "role": "tool", "tool_call_id": id, "content": content });
    match rng.usize(..5) {
        0 => message["name"] = json!("read_file"),
        1 => message["x_took"] = json!({ "ms": 12, "raw": { "$cc": "bytes", "v": "AAEC" } }),
        _ => {}
    }
    message
}
