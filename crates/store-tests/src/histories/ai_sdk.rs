//! Histories of the format: model messages or UI messages, never both.

use super::{input, output, prose};
use fastrand::Rng;
use serde_json::{Value, json};

pub(super) fn history(rng: &mut Rng) -> Vec<Value> {
    if rng.bool() { model::history(rng) } else { ui::history(rng) }
}

/// Ids come again from turn to turn.
fn ids(rng: &mut Rng) -> Vec<String> {
    let first = rng.usize(..3);
    (first..first + rng.usize(1..4)).map(|nth| format!("call_{nth}")).collect()
}

/// One in `many`.
fn rarely(rng: &mut Rng, many: usize) -> bool {
    rng.usize(..many) == 0
}

/// Fields that nobody has heard of ride along.
fn odd(rng: &mut Rng, mut value: Value) -> Value {
    if rarely(rng, 4) {
        value["x-odd"] = json!({ "nested": [1, "값", null], "$": "$&" });
    }
    value
}

/// What a provider notes on reasoning, under `key`.
fn reasoning(rng: &mut Rng, key: &str) -> Value {
    let notes = [
        json!({ "anthropic": { "signature": "c2lnbmVk" } }),
        json!({ "anthropic": { "redactedData": "cmVkYWN0ZWQ=" } }),
        json!({ "bedrock": { "signature": "c2lnbmVk" } }),
        json!({ "openai": { "itemId": "rs_1", "reasoningEncryptedContent": "ZW5j" } }),
        json!({ "google": { "thoughtSignature": "dGhvdWdodA==" } }),
    ];
    let mut part = json!({ "type": "reasoning", "text": prose(rng) });
    if !rarely(rng, 5) {
        part[key] = notes[rng.usize(..notes.len())].clone();
    }
    odd(rng, part)
}

/// A value as an app's tool makes one.
fn value(rng: &mut Rng) -> Value {
    match rng.usize(..7) {
        0 => json!(output(rng)),
        1 => json!({ "exitCode": rng.u8(..3), "stdout": output(rng), "stderr": "" }),
        2 => json!([{ "path": "a.rs", "text": output(rng) }, { "path": "b.rs", "text": prose(rng) }]),
        3 => {
            json!({ "content": [{ "type": "text", "text": output(rng) }, { "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" }] })
        }
        4 => json!({ "total": rng.u32(..999), "rows": (0..rng.usize(..40)).collect::<Vec<_>>() }),
        5 => json!({ "shot": "data:image/png;base64,iVBORw0KGgo=", "at": null }),
        _ => json!(rng.u32(..9)),
    }
}

mod model {
    use super::{Rng, Value, ids, input, json, odd, output, prose, rarely, reasoning, value};

    pub(super) fn history(rng: &mut Rng) -> Vec<Value> {
        let mut messages = Vec::new();
        if rarely(rng, 6) {
            messages.push(json!({ "role": "system", "content": prose(rng) }));
        }
        // One certain mark, so that the format shows.
        messages.push(
            json!({ "role": "user", "content": prose(rng), "providerOptions": { "anthropic": { "a": 1 } } }),
        );
        for _ in 0..rng.usize(1..7) {
            match rng.usize(..6) {
                0 => messages.push(user(rng)),
                1 => said(rng, &mut messages),
                2 => server(rng, &mut messages),
                3 => approved(rng, &mut messages),
                _ => exchange(rng, &mut messages),
            }
        }
        messages
    }

    fn user(rng: &mut Rng) -> Value {
        let media = match rng.usize(..5) {
            0 => json!({ "type": "image", "image": "iVBORw0KGgo=", "mediaType": "image/png" }),
            1 => json!({ "type": "image", "image": { "$cc": "bytes", "v": "iVBORw0KGgo=" } }),
            2 => {
                json!({ "type": "file", "data": { "$cc": "url", "v": "https://example.com/a.pdf" }, "mediaType": "application/pdf" })
            }
            3 => {
                json!({ "type": "file", "data": "data:text/plain;base64,eA==", "mediaType": "text/plain", "filename": "a.txt" })
            }
            _ => return json!({ "role": "user", "content": prose(rng) }),
        };
        json!({ "role": "user", "content": [{ "type": "text", "text": prose(rng) }, odd(rng, media), { "type": "text", "text": "" }] })
    }

    /// What the assistant says before it calls anything.
    fn opening(rng: &mut Rng) -> Vec<Value> {
        let mut parts = Vec::new();
        if rng.bool() {
            parts.push(reasoning(rng, "providerOptions"));
        }
        if rng.bool() {
            parts.push(json!({ "type": "text", "text": prose(rng) }));
        }
        parts
    }

    fn said(rng: &mut Rng, messages: &mut Vec<Value>) {
        if rng.bool() {
            messages.push(json!({ "role": "assistant", "content": prose(rng) }));
            return;
        }
        let mut parts = opening(rng);
        parts.push(match rng.usize(..5) {
            0 => json!({ "type": "custom", "kind": "openai.compaction", "providerOptions": { "openai": { "itemId": "cmp_1", "encryptedContent": "ZW5j" } } }),
            1 => json!({ "type": "text", "text": prose(rng), "providerOptions": { "anthropic": { "type": "compaction" } } }),
            2 => json!({ "type": "hologram", "of": prose(rng) }),
            3 => json!({ "type": "file", "data": "iVBORw0KGgo=", "mediaType": "image/png" }),
            _ => json!({ "type": "text", "text": "", "providerOptions": { "google": { "thoughtSignature": "dA==" } } }),
        });
        parts.push(json!({ "type": "text", "text": prose(rng) }));
        messages.push(json!({ "role": "assistant", "content": parts }));
    }

    fn call(rng: &mut Rng, id: &str) -> Value {
        let input = [input(rng), json!({}), json!(null), json!("free text")];
        let mut part = json!({ "type": "tool-call", "toolCallId": id, "toolName": "read", "input": input[rng.usize(..4)] });
        if rarely(rng, 3) {
            part["providerOptions"] = json!({ "openai": { "itemId": "fc_1" } });
        }
        odd(rng, part)
    }

    fn result(rng: &mut Rng, id: &str) -> Value {
        let tagged = match rng.usize(..7) {
            0 => json!({ "type": "error-text", "value": output(rng) }),
            1 => json!({ "type": "error-json", "value": value(rng) }),
            2 => json!({ "type": "execution-denied", "reason": prose(rng) }),
            3 => {
                json!({ "type": "content", "value": [{ "type": "text", "text": output(rng) }, { "type": "file-data", "data": "iVBORw0KGgo=", "mediaType": "image/png" }, { "type": "custom" }] })
            }
            4 => json!({ "type": "json", "value": value(rng) }),
            _ => json!({ "type": "text", "value": output(rng) }),
        };
        let mut part =
            json!({ "type": "tool-result", "toolCallId": id, "toolName": "read", "output": tagged });
        if rarely(rng, 3) {
            part["providerOptions"] = json!({ "openai": { "itemId": "fc_1" }, "anthropic": { "cacheControl": { "type": "ephemeral" } } });
        }
        odd(rng, part)
    }

    /// Parallel calls; their results in one message or two, in any order.
    fn exchange(rng: &mut Rng, messages: &mut Vec<Value>) {
        let mut ids = ids(rng);
        let mut parts = opening(rng);
        parts.extend(ids.iter().map(|id| call(rng, id)));
        messages.push(json!({ "role": "assistant", "content": parts }));
        rng.shuffle(&mut ids);
        let mut results: Vec<Value> = ids.iter().map(|id| result(rng, id)).collect();
        let second = results.split_off(rng.usize(1..=results.len()));
        messages.push(json!({ "role": "tool", "content": results }));
        if !second.is_empty() {
            messages.push(json!({ "role": "tool", "content": second }));
        }
    }

    /// Calls that the provider runs, at once or after a tool that its code calls.
    fn server(rng: &mut Rng, messages: &mut Vec<Value>) {
        let mut parts = opening(rng);
        let own = |kind: &str, more: (&str, Value)| {
            let mut part = json!({ "type": kind, "toolCallId": "srv_1", "toolName": "code_execution" });
            part[more.0] = more.1;
            part
        };
        let mut asked = own("tool-call", ("input", json!({ "code": "print(1)" })));
        asked["providerExecuted"] = json!(true);
        parts.push(asked);
        if rng.bool() {
            let mut by_code = call(rng, "call_9");
            by_code["providerOptions"] = json!({ "anthropic": { "caller": { "type": "code_execution_20250825", "toolId": "srv_1" } } });
            parts.push(by_code);
            messages.push(json!({ "role": "assistant", "content": parts }));
            messages.push(json!({ "role": "tool", "content": [result(rng, "call_9")] }));
            parts = Vec::new();
        }
        parts.push(own(
            "tool-result",
            ("output", json!({ "type": "json", "value": { "stdout": output(rng) } })),
        ));
        parts.push(json!({ "type": "text", "text": prose(rng) }));
        messages.push(json!({ "role": "assistant", "content": parts }));
    }

    fn approved(rng: &mut Rng, messages: &mut Vec<Value>) {
        let mut parts = opening(rng);
        parts.push(call(rng, "call_5"));
        parts.push(odd(
            rng,
            json!({ "type": "tool-approval-request", "approvalId": "approval_1", "toolCallId": "call_5" }),
        ));
        messages.push(json!({ "role": "assistant", "content": parts }));
        let approved = rng.bool();
        let answer =
            json!({ "type": "tool-approval-response", "approvalId": "approval_1", "approved": approved });
        let mut result = result(rng, "call_5");
        if !approved {
            result["output"] = json!({ "type": "execution-denied" });
        }
        if rng.bool() {
            messages.push(json!({ "role": "tool", "content": [answer, result] }));
        } else {
            messages.push(json!({ "role": "tool", "content": [answer] }));
            messages.push(json!({ "role": "tool", "content": [result] }));
        }
    }
}

mod ui {
    use super::{Rng, Value, ids, input, json, odd, output, prose, rarely, reasoning, value};

    pub(super) fn history(rng: &mut Rng) -> Vec<Value> {
        let turns = rng.usize(1..8);
        let mut messages = Vec::new();
        for turn in 0..turns {
            messages.push(message(&format!("u{turn}"), "user", user(rng), rng));
            if turn + 1 < turns || rng.bool() {
                messages.push(message(&format!("a{turn}"), "assistant", assistant(rng), rng));
            }
        }
        if let Some(last) = messages.last_mut().filter(|last| last["role"] == "assistant" && rng.bool()) {
            pending(rng, last);
        }
        messages
    }

    fn message(id: &str, role: &str, parts: Vec<Value>, rng: &mut Rng) -> Value {
        let mut message = json!({ "id": id, "role": role, "parts": parts });
        if rng.bool() {
            message["metadata"] = json!({ "at": { "$cc": "date", "v": "2026-11-22T00:00:00.000Z" } });
        }
        odd(rng, message)
    }

    fn user(rng: &mut Rng) -> Vec<Value> {
        let mut parts = vec![json!({ "type": "text", "text": prose(rng) })];
        match rng.usize(..5) {
            0 => parts.push(json!({ "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw0KGgo=" })),
            1 => parts.push(json!({ "type": "file", "mediaType": "application/pdf", "url": "https://example.com/a.pdf", "filename": "a.pdf" })),
            2 => parts.push(json!({ "type": "data-cursor", "data": { "line": 3 } })),
            _ => {}
        }
        parts
    }

    fn assistant(rng: &mut Rng) -> Vec<Value> {
        let mut parts = Vec::new();
        for _ in 0..rng.usize(..4) {
            parts.push(json!({ "type": "step-start" }));
            if rng.bool() {
                parts.push(reasoning(rng, "providerMetadata"));
            }
            match rng.usize(..4) {
                0 => parts.push(server(rng)),
                1 => parts.push(aside(rng)),
                _ => {}
            }
            parts.extend(ids(rng).iter().map(|id| answered(rng, id)));
        }
        parts.push(json!({ "type": "step-start" }));
        if rarely(rng, 3) {
            parts.push(reasoning(rng, "providerMetadata"));
        }
        let closing = json!({ "type": "text", "text": prose(rng), "state": "done" });
        parts.push(odd(rng, closing));
        parts
    }

    fn aside(rng: &mut Rng) -> Value {
        match rng.usize(..6) {
            0 => {
                json!({ "type": "source-url", "sourceId": "s", "url": "https://example.com", "title": prose(rng) })
            }
            1 => json!({ "type": "data-chart", "id": "d", "data": { "points": [1, 2] } }),
            2 => json!({ "type": "hologram", "of": prose(rng) }),
            3 => {
                json!({ "type": "custom", "kind": "openai.compaction", "providerMetadata": { "openai": { "itemId": "cmp_1" } } })
            }
            4 => {
                json!({ "type": "steering-message", "id": "m", "parts": [{ "type": "text", "text": prose(rng) }] })
            }
            _ => json!({ "type": "text", "text": "" }),
        }
    }

    fn tool(rng: &mut Rng, id: &str, state: &str) -> Value {
        let mut part = json!({ "type": "tool-read", "toolCallId": id, "state": state, "input": input(rng) });
        if rng.bool() {
            part["type"] = json!("dynamic-tool");
            part["toolName"] = json!("read");
        }
        if rarely(rng, 3) {
            part["callProviderMetadata"] = json!({ "openai": { "itemId": "fc_1" } });
        }
        odd(rng, part)
    }

    fn answered(rng: &mut Rng, id: &str) -> Value {
        let mut part = match rng.usize(..6) {
            0 => {
                let mut part = tool(rng, id, "output-error");
                part["errorText"] = json!(output(rng));
                return part;
            }
            1 => {
                let mut part = tool(rng, id, "output-denied");
                part["approval"] = json!({ "id": "approval_1", "approved": false, "reason": prose(rng) });
                return part;
            }
            _ => tool(rng, id, "output-available"),
        };
        part["output"] = value(rng);
        if rarely(rng, 4) {
            part["approval"] = json!({ "id": "approval_1", "approved": true });
            part["resultProviderMetadata"] = json!({ "openai": { "itemId": "fco_1" } });
        }
        part
    }

    fn server(rng: &mut Rng) -> Value {
        json!({ "type": "tool-web_search", "toolCallId": "srv_1", "state": "output-available", "providerExecuted": true,
            "input": { "query": prose(rng) }, "output": [{ "title": prose(rng) }] })
    }

    /// The assistant is still at work: its last calls wait for the app or the user.
    fn pending(rng: &mut Rng, message: &mut Value) {
        let Some(parts) = message["parts"].as_array_mut() else { return };
        parts.push(json!({ "type": "step-start" }));
        parts.push(match rng.usize(..4) {
            0 => json!({ "type": "tool-read", "toolCallId": "call_7", "state": "input-streaming", "input": { "pa": "" } }),
            1 => tool(rng, "call_7", "input-available"),
            2 => {
                let mut part = tool(rng, "call_7", "approval-requested");
                part["approval"] = json!({ "id": "approval_7" });
                part
            }
            _ => {
                let mut part = tool(rng, "call_7", "approval-responded");
                part["approval"] = json!({ "id": "approval_7", "approved": rng.bool() });
                part
            }
        });
    }
}
