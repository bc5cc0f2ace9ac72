//! Trajectories: tools named in every way, results short and long, fields of the agent's own.

use super::{output, prose};
use fastrand::Rng;
use serde_json::{Value, json};

pub(super) fn history(rng: &mut Rng) -> Vec<Value> {
    let turns = rng.usize(2..=30);
    (0..turns).map(|nth| turn(rng, nth)).collect()
}

fn turn(rng: &mut Rng, nth: usize) -> Value {
    let thought = if rng.usize(..8) == 0 { String::new() } else { prose(rng) };
    let result = if rng.usize(..8) == 0 { String::new() } else { output(rng) };
    let mut turn = json!({ "thought": thought, "action": action(rng), "result": result });
    if rng.usize(..3) == 0 {
        turn["step"] = json!(nth);
    }
    if rng.usize(..4) == 0 {
        turn["metadata"] =
            json!({ "took": nth, "tags": ["한국어", null], "raw": { "$cc": "bytes", "v": "AAEC" } });
    }
    turn
}

fn action(rng: &mut Rng) -> Value {
    let input = json!({ "path": "src/lib.rs", "query": prose(rng), "lines": [1, 40] });
    match rng.usize(..7) {
        0 => json!({ "tool": "read_file", "path": "src/lib.rs" }),
        1 => json!({ "name": "search", "arguments": input }),
        2 => json!({ "tool_name": "shell", "tool_input": input, "id": "same" }),
        3 => json!({ "action": "edit", "action_input": prose(rng) }),
        4 => json!({ "type": "function", "function": { "name": "fetch", "arguments": input.to_string() } }),
        5 => json!({ "type": "finish", "answer": prose(rng) }),
        _ => json!({}),
    }
}
