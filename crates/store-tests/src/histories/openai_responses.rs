//! Histories of the format: items of a Responses input, with what the server stores and without.

use super::{input, output, prose};
use fastrand::Rng;
use serde_json::{Map, Value, json};

struct Writer<'r> {
    rng: &'r mut Rng,
    items: Vec<Value>,
    /// Items get ids of the server.
    stored: bool,
    /// Messages are `{ role, content }` with no type.
    easy: bool,
    ids: usize,
}

/// A history that the API accepts; now and then its only mark is one typed item.
pub(super) fn history(rng: &mut Rng) -> Vec<Value> {
    let (stored, easy) = (rng.bool(), rng.u8(..3) == 0);
    let mut writer = Writer { rng, items: Vec::new(), stored, easy, ids: 0 };
    if writer.chance(3) {
        let role = if writer.rng.bool() { "developer" } else { "system" };
        let text = prose(writer.rng);
        writer.items.push(json!({ "type": "message", "role": role, "content": text }));
    }
    for _ in 0..writer.rng.usize(1..5) {
        writer.turn();
    }
    if writer.chance(6) {
        writer.item(json!({ "type": "compaction_trigger" }));
    }
    // Kinds that nobody has heard of tell nothing.
    let news = |kind: &str| kind.starts_with("quantum") || kind == "agent_message";
    let tells = |item: &Value| item["type"].as_str().is_some_and(|kind| !news(kind));
    if !writer.items.iter().any(tells) {
        writer.items.push(json!({ "type": "message", "role": "user", "content": "" }));
    }
    writer.items
}

impl Writer<'_> {
    /// True once in `times`.
    fn chance(&mut self, times: u32) -> bool {
        self.rng.u32(..times) == 0
    }

    fn id(&mut self, prefix: &str) -> String {
        self.ids += 1;
        format!("{prefix}_{:08x}{:04}", self.rng.u32(..), self.ids)
    }

    /// A field that nobody has heard of rides along at times.
    fn item(&mut self, mut item: Value) {
        if self.chance(8)
            && let Some(fields) = item.as_object_mut()
        {
            fields.insert("x_extra".into(), json!({ "안녕": [1.5, null, { "deep": "🌱" }] }));
        }
        self.items.push(item);
    }

    /// An item of the model, with the id that the server gives it when it stores responses.
    fn said(&mut self, prefix: &str, mut item: Value) {
        if self.stored
            && let Some(fields) = item.as_object_mut()
        {
            let id = self.id(prefix);
            fields.insert("id".into(), id.into());
            fields.insert("status".into(), "completed".into());
        }
        self.item(item);
    }

    fn turn(&mut self) {
        self.user();
        for _ in 0..self.rng.usize(..4) {
            match self.rng.u8(..12) {
                0 => self.server_tools(),
                1 => self.approval(),
                2 => self.program(),
                3 => self.news(),
                4 => self.search(),
                5 => self.compaction(),
                _ => self.step(),
            }
        }
        if !self.chance(5) {
            self.reasoning();
            self.answer();
        }
    }

    fn user(&mut self) {
        let text = prose(self.rng);
        let content = match self.rng.u8(..5) {
            0 => json!([
                { "type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AAAAAAAA" },
                { "type": "input_text", "text": text },
            ]),
            1 => json!([
                { "type": "input_text", "text": "" },
                { "type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA" },
                { "type": "input_hologram", "depth": 3 },
            ]),
            2 => json!([{ "type": "input_text", "text": text }]),
            3 if self.chance(4) => json!(""),
            _ => json!(text),
        };
        self.item(if self.easy {
            json!({ "role": "user", "content": content })
        } else {
            json!({ "type": "message", "role": "user", "content": content })
        });
    }

    fn answer(&mut self) {
        let text = prose(self.rng);
        if self.easy {
            return self.item(json!({ "role": "assistant", "content": text }));
        }
        let part = match self.chance(8) {
            true => json!({ "type": "refusal", "refusal": text }),
            false => json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] }),
        };
        self.said("msg", json!({ "type": "message", "role": "assistant", "content": [part] }));
    }

    /// Reasoning of every kind; whatever calls this goes on with an item of the model.
    fn reasoning(&mut self) {
        for _ in 0..self.rng.usize(..3) {
            let mut fields = Map::new();
            fields.insert("type".into(), "reasoning".into());
            let text = prose(self.rng);
            let summary =
                if self.chance(2) { json!([]) } else { json!([{ "type": "summary_text", "text": text }]) };
            fields.insert("summary".into(), summary);
            if self.chance(4) {
                fields.insert("content".into(), json!([{ "type": "reasoning_text", "text": "Hm." }]));
            }
            if !self.stored || self.chance(2) {
                fields.insert("encrypted_content".into(), "gAAAAABo".repeat(20).into());
            }
            self.said("rs", Value::Object(fields));
        }
    }

    /// Calls at once and their outputs, in any order. The ids begin anew at every step.
    fn step(&mut self) {
        self.reasoning();
        if self.chance(3) {
            self.answer();
        }
        let kind = self.rng.usize(..6);
        let mut outputs: Vec<Value> =
            (0..self.rng.usize(1..4)).map(|nth| self.call(kind, &format!("call_{nth}"))).collect();
        self.rng.shuffle(&mut outputs);
        for output in outputs {
            self.item(output);
        }
    }

    /// Writes a call and returns its output.
    fn call(&mut self, kind: usize, call_id: &str) -> Value {
        let text = output(self.rng);
        match kind {
            0 => {
                self.said("ctc", json!({ "type": "custom_tool_call", "call_id": call_id, "name": "patch", "input": "*** Begin\n$&" }));
                json!({ "type": "custom_tool_call_output", "call_id": call_id, "output": [
                    { "type": "input_text", "text": "ok" }, { "type": "input_text", "text": text }] })
            }
            1 => {
                let action = json!({ "type": "exec", "command": ["ls", "-l"], "env": {} });
                self.said("lsh", json!({ "type": "local_shell_call", "call_id": call_id, "action": action }));
                let key = if self.chance(2) { "id" } else { "call_id" };
                let mut item = json!({ "type": "local_shell_call_output", "output": text });
                item[key] = call_id.into();
                item
            }
            2 => {
                self.said("sh", json!({ "type": "shell_call", "call_id": call_id, "action": { "commands": ["ls", "pwd"] } }));
                let exit = json!({ "type": "exit", "exit_code": 0 });
                json!({ "type": "shell_call_output", "call_id": call_id, "max_output_length": 4096, "output": [
                    { "stdout": text, "stderr": "", "outcome": exit },
                    { "stdout": "", "stderr": "late", "outcome": { "type": "timeout" } }] })
            }
            3 => {
                let operation = json!({ "type": "update_file", "path": "src/lib.rs", "diff": "@@\n-a\n+b" });
                self.said(
                    "apc",
                    json!({ "type": "apply_patch_call", "call_id": call_id, "operation": operation }),
                );
                let status = if self.chance(3) { "failed" } else { "completed" };
                let mut item =
                    json!({ "type": "apply_patch_call_output", "call_id": call_id, "status": status });
                if self.rng.bool() {
                    item["output"] = text.into();
                }
                item
            }
            4 => {
                let action = json!({ "type": "click", "button": "left", "x": 1, "y": 2 });
                self.said("cu", json!({ "type": "computer_call", "call_id": call_id, "action": action, "pending_safety_checks": [] }));
                json!({ "type": "computer_call_output", "call_id": call_id, "output": {
                    "type": "computer_screenshot", "image_url": "data:image/png;base64,AAAAAAAA" } })
            }
            _ => {
                let arguments = if self.chance(3) { "{}".to_owned() } else { input(self.rng).to_string() };
                self.said("fc", json!({ "type": "function_call", "call_id": call_id, "name": "read_file", "arguments": arguments }));
                let output = match self.rng.u8(..5) {
                    0 => {
                        json!([{ "type": "input_text", "text": text }, { "type": "input_image", "image_url": "https://example.com/a.png" }])
                    }
                    1 => {
                        json!([{ "type": "input_file", "file_id": "file-1" }, { "type": "input_novel", "x": 1 }])
                    }
                    2 => json!(""),
                    _ => json!(text),
                };
                let mut item =
                    json!({ "type": "function_call_output", "call_id": call_id, "output": output });
                if self.stored && self.rng.bool() {
                    item["id"] = self.id("fco").into();
                }
                item
            }
        }
    }

    /// What the server ran by itself, and said about it.
    fn server_tools(&mut self) {
        self.reasoning();
        let item = match self.rng.u8(..5) {
            0 => json!({ "type": "web_search_call", "action": { "type": "search", "query": "parser" } }),
            1 => {
                json!({ "type": "file_search_call", "queries": ["parser"], "results": [{ "text": "found" }] })
            }
            2 => json!({ "type": "code_interpreter_call", "code": "1+1", "container_id": "c", "outputs": [
                { "type": "image", "url": "data:image/png;base64,AAAA" }] }),
            3 => json!({ "type": "image_generation_call", "result": "AAAAAAAA" }),
            _ => json!({ "type": "mcp_list_tools", "server_label": "docs", "tools": [{ "name": "find" }] }),
        };
        self.said("ws", item);
        self.answer();
    }

    fn approval(&mut self) {
        self.reasoning();
        let id = self.id("mcpr");
        let tool = json!({ "server_label": "docs", "name": "find", "arguments": "{}" });
        let mut request = tool.clone();
        request["type"] = "mcp_approval_request".into();
        request["id"] = id.clone().into();
        self.item(request);
        let approve = self.rng.bool();
        self.item(json!({ "type": "mcp_approval_response", "approval_request_id": id, "approve": approve }));
        if approve {
            let mut call = tool;
            call["type"] = "mcp_call".into();
            call["approval_request_id"] = id.into();
            call["output"] = output(self.rng).into();
            self.said("mcp", call);
        }
    }

    /// Code that calls a function.
    fn program(&mut self) {
        self.reasoning();
        self.said(
            "prog",
            json!({ "type": "program", "call_id": "program_0", "code": "await read()", "fingerprint": "f" }),
        );
        let caller = json!({ "type": "program", "caller_id": "program_0" });
        self.said("fc", json!({ "type": "function_call", "call_id": "call_0", "name": "read_file", "arguments": "{}", "caller": caller }));
        let text = output(self.rng);
        self.item(
            json!({ "type": "function_call_output", "call_id": "call_0", "output": text, "caller": caller }),
        );
        // One that waits for more has not ended.
        if self.chance(6) {
            return;
        }
        self.said("po", json!({ "type": "program_output", "call_id": "program_0", "result": "done", "status": "completed" }));
    }

    /// Items of a kind that is yet to come, with a result that belongs to its call.
    fn news(&mut self) {
        let id = self.id("quantum");
        self.said("qc", json!({ "type": "quantum_call", "call_id": id, "qubits": [0, 1] }));
        if self.rng.bool() {
            let text = prose(self.rng);
            self.item(json!({ "type": "agent_message", "author": "/lead/a", "recipient": "/lead", "content": [
                { "type": "input_text", "text": text }, { "type": "encrypted_content", "encrypted_content": "gAAA" }] }));
        }
        let ends = ["quantum_call_output", "quantum_output", "quantum_result"];
        let end = ends[self.rng.usize(..ends.len())];
        self.item(json!({ "type": end, "call_id": id, "state": "collapsed" }));
    }

    fn search(&mut self) {
        self.reasoning();
        let tools = json!([{ "type": "function", "name": "late_tool", "parameters": { "type": "object" } }]);
        let (execution, call_id) =
            if self.rng.bool() { ("server", Value::Null) } else { ("client", "search_0".into()) };
        self.said("tsc", json!({ "type": "tool_search_call", "call_id": call_id, "execution": execution, "arguments": { "q": 1 } }));
        self.item(json!({ "type": "tool_search_output", "call_id": call_id, "execution": execution, "tools": tools }));
        if self.rng.bool() {
            self.item(json!({ "type": "additional_tools", "role": "developer", "tools": tools }));
        }
    }

    fn compaction(&mut self) {
        let kind = if self.chance(4) { "compaction_summary" } else { "compaction" };
        self.said("cmp", json!({ "type": kind, "encrypted_content": "gAAAAABp".repeat(30) }));
    }
}
