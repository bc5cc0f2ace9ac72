//! Messages of the Anthropic API: thinking, parallel calls, calls made by code over several turns, server tools that
//! pause a turn, compaction blocks, instructions in the middle, blocks and fields that nobody has heard of.

use super::{input, output, prose};
use fastrand::Rng;
use serde_json::{Value, json};

pub(super) fn history(rng: &mut Rng) -> Vec<Value> {
    let mut history = Vec::new();
    match rng.usize(..8) {
        0 => history.push(says(vec![compaction(rng, true)])),
        1 => history.push(says(vec![compaction(rng, false), text(rng)])),
        2 => history.push(gets(vec![compaction(rng, true), text(rng)])),
        _ => {}
    }
    let length = rng.usize(2..=22);
    loop {
        history.push(question(rng));
        if rng.usize(..6) == 0 {
            instructions(&mut history, rng);
        }
        for _ in 0..rng.usize(..4) {
            history.extend(step(rng));
        }
        history.push(answer(rng));
        if history.len() >= length {
            break;
        }
    }
    if rng.usize(..6) == 0 {
        let call = server_call("srvtoolu_last", "web_search", rng);
        history.push(says(vec![text(rng), call]));
        if rng.bool() {
            instructions(&mut history, rng);
        }
    }
    certain(&mut history, rng);
    history.truncate(30);
    finish(&mut history);
    mark(&mut history, rng);
    history
}

/// One message of the system or two, and at times one that says nothing, which may stand anywhere.
fn instructions(history: &mut Vec<Value>, rng: &mut Rng) {
    for _ in 0..rng.usize(1..3) {
        history.push(json!({ "role": "system", "content": prose(rng) }));
    }
    if rng.usize(..4) == 0 {
        let at = rng.usize(..=history.len());
        let effort = json!({ "role": "system", "content": [], "output_config": { "effort": "low" } });
        history.insert(at, effort);
    }
}

/// A request ends where it is cut: calls that are left without some of their results are not part of one, nor are those
/// results.
fn finish(history: &mut Vec<Value>) {
    let count =
        |messages: &[Value], name: &str| messages.iter().flat_map(kinds).filter(|kind| *kind == name).count();
    while let Some(asks) = history.iter().rposition(|message| kinds(message).any(|kind| kind == "tool_use")) {
        if count(&history[asks..], "tool_use") == count(&history[asks..], "tool_result") {
            break;
        }
        history.truncate(asks);
    }
}

/// Thinking that is signed is written by this API only.
fn certain(history: &mut [Value], rng: &mut Rng) {
    if let Some(message) = history.iter_mut().take(4).rfind(|message| message["role"] == "assistant") {
        let blocks = message["content"].as_array_mut();
        match blocks {
            Some(blocks) if blocks[0]["type"] == "text" => blocks.insert(0, thinking(rng)),
            Some(_) => {}
            None => {
                let said = text(rng);
                message["content"] = json!([thinking(rng), said]);
            }
        }
    }
}

/// At most four breakpoints, on blocks that may have one.
fn mark(history: &mut [Value], rng: &mut Rng) {
    let mut left = rng.usize(..=4);
    for message in history.iter_mut().rev() {
        let Some(blocks) = message["content"].as_array_mut() else { continue };
        for block in blocks.iter_mut().rev() {
            let kind = block["type"].as_str().unwrap_or_default();
            if left > 0 && !kind.ends_with("thinking") && rng.usize(..4) == 0 {
                block["cache_control"] = json!({ "type": "ephemeral" });
                left -= 1;
            }
        }
    }
}

fn kinds(message: &Value) -> impl Iterator<Item = &str> {
    let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    blocks.iter().filter_map(|block| block["type"].as_str())
}

fn says(blocks: Vec<Value>) -> Value {
    json!({ "role": "assistant", "content": blocks })
}

fn gets(blocks: Vec<Value>) -> Value {
    json!({ "role": "user", "content": blocks })
}

fn text(rng: &mut Rng) -> Value {
    let mut block = json!({ "type": "text", "text": prose(rng) });
    if rng.usize(..6) == 0 {
        block["citations"] = json!([{ "type": "page_location", "cited_text": "字", "document_index": 0 }]);
    }
    block
}

fn thinking(rng: &mut Rng) -> Value {
    match rng.usize(..4) {
        0 => json!({ "type": "redacted_thinking", "data": "RW5jcnlwdGVk" }),
        1 => json!({ "type": "thinking", "thinking": "", "signature": "c2lnbmVk" }),
        _ => json!({ "type": "thinking", "thinking": prose(rng), "signature": "c2lnbmVk" }),
    }
}

fn compaction(rng: &mut Rng, signed: bool) -> Value {
    let mut block = json!({ "type": "compaction", "content": prose(rng), "encrypted_content": null });
    if signed {
        block["signature"] = json!("c2lnbmVk");
        block["tool_changes"] = json!([]);
    }
    block
}

fn media(rng: &mut Rng) -> Value {
    let data = json!({ "$cc": "bytes", "v": "iVBORw0KGgo=" });
    match rng.usize(..4) {
        0 => {
            json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=" } })
        }
        1 => {
            json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": data } })
        }
        2 => {
            json!({ "type": "document", "source": { "type": "text", "media_type": "text/plain", "data": prose(rng) }, "title": "문서" })
        }
        _ => json!({ "type": "image", "source": { "type": "url", "url": "https://example.com/a.png" } }),
    }
}

fn question(rng: &mut Rng) -> Value {
    let mut message = match rng.usize(..3) {
        0 => json!({ "role": "user", "content": prose(rng) }),
        _ => {
            let mut blocks = vec![text(rng)];
            if rng.bool() {
                blocks.insert(rng.usize(..2), media(rng));
            }
            match rng.usize(..8) {
                0 => blocks.push(json!({ "type": "container_upload", "file_id": "file_1" })),
                1 => {
                    let content = [text(rng)];
                    blocks.push(
                        json!({ "type": "search_result", "source": "a", "title": "b", "content": content }),
                    );
                }
                2 => blocks.push(json!({ "type": "hologram", "data": [1, null, { "deep": "값" }] })),
                _ => {}
            }
            gets(blocks)
        }
    };
    if rng.usize(..5) == 0 {
        message["id"] = json!("mine");
    }
    message
}

fn answer(rng: &mut Rng) -> Value {
    match rng.usize(..4) {
        0 => json!({ "role": "assistant", "content": prose(rng) }),
        1 => says(vec![compaction(rng, false), text(rng)]),
        2 => says(vec![thinking(rng), thinking(rng), text(rng)]),
        _ => {
            let said = text(rng);
            json!({ "role": "assistant", "content": [said], "stop_reason": "end_turn", "usage": { "output_tokens": 5 } })
        }
    }
}

fn step(rng: &mut Rng) -> Vec<Value> {
    match rng.usize(..6) {
        0 => server_tools(rng),
        1 => by_code(rng),
        2 => unknown_tool(rng),
        _ => parallel(rng),
    }
}

/// The same ids in every turn: they are unique within one only.
fn parallel(rng: &mut Rng) -> Vec<Value> {
    let count = rng.usize(1..4);
    let mut blocks = Vec::new();
    if rng.bool() {
        blocks.push(thinking(rng));
    }
    if rng.bool() {
        blocks.push(text(rng));
    }
    for nth in 0..count {
        let mut call = json!({ "type": "tool_use", "id": format!("toolu_{nth}"), "name": "read_file", "input": input(rng) });
        match rng.usize(..5) {
            0 => call["caller"] = json!({ "type": "direct" }),
            1 => call["input"] = json!({}),
            2 => call["toolset_name"] = json!("browser"),
            _ => {}
        }
        blocks.push(call);
    }
    let mut answers: Vec<Value> = (0..count).map(|nth| result(rng, &format!("toolu_{nth}"))).collect();
    rng.shuffle(&mut answers);
    let mut messages = vec![says(blocks)];
    match rng.usize(..4) {
        // A message of its own for each, as some agents send them: the API joins them.
        0 => messages.extend(answers.into_iter().map(|answer| gets(vec![answer]))),
        1 => {
            answers.push(text(rng));
            messages.push(gets(answers));
        }
        _ => messages.push(gets(answers)),
    }
    messages
}

fn result(rng: &mut Rng, id: &str) -> Value {
    let mut result = json!({ "type": "tool_result", "tool_use_id": id });
    match rng.usize(..6) {
        0 => {}
        1 => result["content"] = json!(""),
        2 => result["content"] = json!([text(rng), media(rng), { "type": "text", "text": output(rng) }]),
        3 => result["content"] = json!([{ "type": "tool_reference", "tool_name": "search" }]),
        _ => result["content"] = json!(output(rng)),
    }
    if rng.usize(..4) == 0 {
        result["is_error"] = json!(rng.bool());
    }
    if rng.usize(..5) == 0 {
        result["x_took"] = json!({ "ms": 12, "at": { "$cc": "date", "v": "2026-01-02T03:04:05.000Z" } });
    }
    result
}

fn server_call(id: &str, name: &str, rng: &mut Rng) -> Value {
    json!({ "type": "server_tool_use", "id": id, "name": name, "input": { "query": prose(rng) } })
}

/// Tools of the provider, answered in their turn, also after a pause for a call of the app's.
fn server_tools(rng: &mut Rng) -> Vec<Value> {
    let call = server_call("srvtoolu_0", "web_search", rng);
    let found = json!({ "type": "web_search_tool_result", "tool_use_id": "srvtoolu_0", "content": [
        { "type": "web_search_result", "url": "https://example.com", "title": "예", "encrypted_content": "ZW5j" }] });
    let mcp = json!({ "type": "mcp_tool_use", "id": "mcptoolu_0", "name": "echo", "server_name": "s", "input": {} });
    let echoed = json!({ "type": "mcp_tool_result", "tool_use_id": "mcptoolu_0", "is_error": false, "content": [text(rng)] });
    let asks = |id: &str| json!({ "type": "tool_use", "id": id, "name": "ask", "input": {} });
    match rng.usize(..3) {
        0 => vec![says(vec![thinking(rng), call, found, mcp, echoed, text(rng)]), question(rng)],
        1 => vec![
            says(vec![call, asks("toolu_0")]),
            gets(vec![result(rng, "toolu_0")]),
            says(vec![found, text(rng)]),
            question(rng),
        ],
        _ => vec![says(vec![mcp, echoed, asks("toolu_0")]), gets(vec![result(rng, "toolu_0")])],
    }
}

/// Code that calls the app's tools, once or more often, before it has ended.
fn by_code(rng: &mut Rng) -> Vec<Value> {
    let caller = json!({ "type": "code_execution_20260120", "tool_id": "srvtoolu_code" });
    let made = |id: &str| json!({ "type": "tool_use", "id": id, "name": "query", "input": { "sql": "select 1" }, "caller": caller });
    let mut messages = Vec::new();
    let mut blocks = vec![thinking(rng), server_call("srvtoolu_code", "code_execution", rng)];
    for _ in 0..rng.usize(1..3) {
        blocks.push(made("toolu_a"));
        blocks.push(made("toolu_b"));
        messages.push(says(std::mem::take(&mut blocks)));
        messages.push(gets(vec![result(rng, "toolu_b"), result(rng, "toolu_a")]));
    }
    let content = json!({ "type": "code_execution_result", "stdout": output(rng), "stderr": "", "return_code": 0, "content": [] });
    let ended =
        json!({ "type": "code_execution_tool_result", "tool_use_id": "srvtoolu_code", "content": content });
    messages.push(says(vec![ended, text(rng)]));
    messages.push(question(rng));
    messages
}

/// A tool of a kind that is news, answered by the app or by the provider.
fn unknown_tool(rng: &mut Rng) -> Vec<Value> {
    let call = json!({ "type": "quantum_tool_use", "id": "q", "input": { "x": 1 } });
    let result = json!({ "type": "quantum_tool_result", "tool_use_id": "q", "content": [{ "type": "spin", "up": true }] });
    if rng.bool() {
        vec![says(vec![text(rng), call]), gets(vec![result])]
    } else {
        vec![says(vec![call, result, text(rng)]), question(rng)]
    }
}
