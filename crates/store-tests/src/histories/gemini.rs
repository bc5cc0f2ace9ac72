//! Histories of Gemini: `contents`, in both spellings of the API.

use super::{input, output, prose};
use fastrand::Rng;
use serde_json::{Map, Value, json};

const NAMES: [&str; 3] = ["read_file", "grep", "run_tests"];

/// What a history is made with.
struct Maker<'r> {
    rng: &'r mut Rng,
    /// `snake_case` throughout.
    snake: bool,
    /// The models give their calls ids; the app sends them back at times.
    ids: bool,
    /// The models sign.
    signs: bool,
    calls: usize,
}

pub(super) fn history(rng: &mut Rng) -> Vec<Value> {
    let (snake, ids, signs) = (rng.u8(..4) == 0, rng.bool(), rng.u8(..4) > 0);
    let length = rng.usize(2..=30);
    let mut maker = Maker { rng, snake, ids, signs, calls: 0 };
    let mut history = vec![maker.user()];
    while history.len() < length {
        match maker.rng.u8(..6) {
            0 => history.push(maker.user()),
            1 => history.push(maker.answer()),
            _ if history.last().is_some_and(|last| last["role"] == "model") => history.push(maker.user()),
            _ => history.extend(maker.exchange()),
        }
    }
    history
}

impl Maker<'_> {
    fn chance(&mut self, one_in: u8) -> bool {
        self.rng.u8(..one_in) == 0
    }

    fn key<'k>(&self, camel: &'k str, snake: &'k str) -> &'k str {
        if self.snake { snake } else { camel }
    }

    fn message(&mut self, role: &str, parts: Vec<Value>) -> Value {
        let mut message = json!({ "role": role, "parts": parts });
        if self.chance(8) {
            message["x_trace"] = json!({ "span": prose(self.rng), "at": [1, null] });
        }
        message
    }

    /// A part, at times with something beside it that nobody has heard of.
    fn part(&mut self, key: &str, value: Value) -> Value {
        let mut part = Map::from_iter([(key.to_owned(), value)]);
        if self.chance(10) {
            part.insert(
                self.key("partMetadata", "part_metadata").to_owned(),
                json!({ "source": prose(self.rng) }),
            );
        }
        part.into()
    }

    fn text(&mut self) -> Value {
        let text = prose(self.rng);
        self.part("text", json!(text))
    }

    fn sign(&mut self, part: &mut Value) {
        let signature = format!("c2lnbmF0dXJl{}", self.rng.u32(..));
        part[self.key("thoughtSignature", "thought_signature")] = json!(signature);
    }

    fn media(&mut self) -> Value {
        let kinds = ["image/png", "application/pdf", "audio/mp3", "video/mp4"];
        let kind = kinds[self.rng.usize(..kinds.len())];
        let mime = self.key("mimeType", "mime_type");
        if self.rng.bool() {
            let data = "QUJD".repeat(self.rng.usize(1..50));
            let key = self.key("inlineData", "inline_data");
            return json!({ key: { mime: kind, "data": data } });
        }
        let (key, uri) = (self.key("fileData", "file_data"), self.key("fileUri", "file_uri"));
        let mut part = json!({ key: { mime: kind, uri: "files/a" } });
        if kind == "video/mp4" {
            part[self.key("videoMetadata", "video_metadata")] = json!({ "fps": 1 });
        }
        part
    }

    fn user(&mut self) -> Value {
        let mut parts = vec![self.text()];
        if self.chance(4) {
            let media = self.media();
            parts.insert(self.rng.usize(..2), media);
        }
        if self.chance(12) {
            parts.push(json!({ "hologram": { "frames": [1, 2], "note": prose(self.rng) } }));
        }
        self.message("user", parts)
    }

    /// Reasoning before what the model says.
    fn thought(&mut self) -> Vec<Value> {
        if !self.signs || self.rng.bool() {
            return Vec::new();
        }
        let mut thought = json!({ "text": prose(self.rng), "thought": true });
        if self.chance(3) {
            self.sign(&mut thought);
        }
        vec![thought]
    }

    /// A tool that the provider runs.
    fn server_tool(&mut self) -> Vec<Value> {
        let id = format!("srv{}", self.rng.u8(..4));
        let (call, result) = match self.rng.u8(..3) {
            0 => {
                let (call, result) =
                    (self.key("toolCall", "tool_call"), self.key("toolResponse", "tool_response"));
                let kind = self.key("toolType", "tool_type");
                let said = output(self.rng);
                (
                    json!({ call: { kind: "GOOGLE_SEARCH_WEB", "id": id, "args": { "queries": ["parsers"] } } }),
                    json!({ result: { kind: "GOOGLE_SEARCH_WEB", "id": id, "response": { "found": said } } }),
                )
            }
            1 => {
                let (call, result) = (
                    self.key("executableCode", "executable_code"),
                    self.key("codeExecutionResult", "code_execution_result"),
                );
                let mut code = json!({ call: { "language": "PYTHON", "code": "print(1)" } });
                let mut done = json!({ result: { "outcome": "OUTCOME_OK", "output": "1\n" } });
                if self.rng.bool() {
                    code[call]["id"] = json!(id);
                    done[result]["id"] = json!(id);
                }
                (code, done)
            }
            _ => (
                json!({ "warpCall": { "id": id } }),
                json!({ "warpResult": { "id": id, "text": prose(self.rng) } }),
            ),
        };
        let mut call = call;
        if self.signs {
            self.sign(&mut call);
        }
        vec![call, result]
    }

    fn answer(&mut self) -> Value {
        let mut parts = self.thought();
        if self.chance(6) {
            parts.extend(self.server_tool());
        }
        let mut text = self.text();
        if self.signs && self.chance(3) {
            self.sign(&mut text);
        }
        parts.push(text);
        if self.signs && self.chance(5) {
            let mut end = json!({ "text": "" });
            self.sign(&mut end);
            parts.push(end);
        } else if self.chance(12) {
            parts.push(json!({ "text": "" }));
        }
        self.message("model", parts)
    }

    fn result(&mut self) -> Value {
        let text = output(self.rng);
        match self.rng.u8(..8) {
            0 => json!({ "output": text, "exitCode": 0 }),
            1 => json!({ "result": text, "details": { "lines": [1, 2] } }),
            2 => json!({ "error": text }),
            3 => json!({ "rows": [{ "line": text }, null], "total": 2 }),
            4 => json!({ "output": text, "error": "warning: slow" }),
            5 => json!({ "return_value": text }),
            6 => json!({}),
            _ => json!({ "output": text }),
        }
    }

    /// One to three calls of a step, and the responses to them.
    fn exchange(&mut self) -> [Value; 2] {
        let count = if self.chance(3) { self.rng.usize(2..4) } else { 1 };
        let mut said = self.thought();
        if self.chance(4) {
            said.push(self.text());
        }
        if self.chance(12) {
            said.extend(self.server_tool());
        }
        let mut responses = Vec::new();
        for nth in 0..count {
            let name = NAMES[self.rng.usize(..NAMES.len())];
            // Ids repeat across turns, and an answer may lack the one of its call.
            let id = json!(format!("call_{}_{nth}", self.calls % 3));
            let mut call = json!({ "name": name, "args": { "path": prose(self.rng), "深い": [null, true], "in": input(self.rng) } });
            let mut response = json!({ "name": name, "response": self.result() });
            if self.chance(8) {
                call.as_object_mut().into_iter().for_each(|call| drop(call.remove("args")));
            }
            if self.ids {
                call["id"] = id.clone();
                if !self.chance(4) {
                    response["id"] = id;
                }
            }
            if self.chance(8) {
                response["parts"] = json!([self.media()]);
            }
            let mut call = json!({ self.key("functionCall", "function_call"): call });
            if self.signs && nth == 0 {
                self.sign(&mut call);
            }
            said.push(call);
            responses.push(self.part(self.key("functionResponse", "function_response"), response));
        }
        self.calls += 1;
        if self.rng.bool() {
            responses.reverse();
        }
        if self.chance(6) {
            responses.push(self.text());
        }
        if self.chance(10) {
            responses.push(self.media());
        }
        let role = if self.chance(8) { "function" } else { "user" };
        [self.message("model", said), self.message(role, responses)]
    }
}
