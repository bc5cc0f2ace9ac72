//! Valid histories of every format, made from a seed: parallel calls, reasoning, media, approvals, blocks and fields
//! that nobody has heard of, empty texts where the format lets them be. And histories that are not valid.

mod ai_sdk;
mod anthropic;
mod anything;
mod broken;
mod gemini;
mod openai_chat;
mod openai_responses;
mod react;

pub use anything::anything;
pub use broken::broken;

use context_compactor_core::wire::Format;
use fastrand::Rng;
use serde_json::{Value, json};

/// Formats whose messages cannot be told from another's: only their name chooses them.
pub const NAMED: &[Format] = &[];

/// A history that the format's provider accepts, as an agent would have written it.
pub fn valid(format: Format, rng: &mut Rng) -> Vec<Value> {
    match format {
        Format::OpenaiChat => openai_chat::history(rng),
        Format::OpenaiResponses => openai_responses::history(rng),
        Format::Anthropic => anthropic::history(rng),
        Format::Gemini => gemini::history(rng),
        Format::AiSdk => ai_sdk::history(rng),
        Format::React => react::history(rng),
    }
}

/// A text of one to a few sentences, in one of several scripts.
pub(crate) fn prose(rng: &mut Rng) -> String {
    let sentences = [
        "The parser keeps its state in memory.",
        "파서는 상태를 메모리에 둡니다.",
        "解析器把状态放在内存里。",
        "המנתח שומר את מצבו בזיכרון.",
        "Done 👩‍👩‍👧!",
        "$& $1 {{goal}} </message>",
    ];
    let count = rng.usize(1..4);
    let said: Vec<&str> = (0..count).map(|_| sentences[rng.usize(..sentences.len())]).collect();
    said.join(" ")
}

/// The input of a call: short as a rule, at times with texts that are long enough to leave the context.
pub(crate) fn input(rng: &mut Rng) -> Value {
    if rng.usize(..4) > 0 {
        return json!({ "path": "src/lib.rs" });
    }
    let mut content = prose(rng);
    while content.chars().count() < 320 {
        content = format!("{content}\n{}", prose(rng));
    }
    json!({ "path": "src/解析.rs", "edits": [{ "line": 3.5, "content": content }, null], "note": prose(rng) })
}

/// A tool result: often short, at times long enough to be offloaded.
pub(crate) fn output(rng: &mut Rng) -> String {
    let lines = if rng.u8(..4) > 0 { rng.usize(1..3) } else { rng.usize(10..40) };
    let line = |nth: usize| format!("{nth}: src/lib.rs {}", prose(&mut Rng::with_seed(nth as u64)));
    (0..lines).map(line).collect::<Vec<_>>().join("\n")
}
