//! Results made smaller right after they were retrieved, by the type of their tool (`S4.5`), but for those that are kept
//! whatever they are (`S4.6`).

use super::replace::{Move, Replacement, moves};
use super::shape::{Digest, digest, is_error, is_structured};
use crate::error::Result;
use crate::message::Part;
use crate::session::{How, Item, State};
use std::collections::HashMap;

/// What would be stored and digested. Run before the first prompt that it would stand in.
pub(crate) fn propose(state: &State) -> Result<Option<Vec<Move>>> {
    let settings = &state.settings;
    let (numbers, tools) = (settings.numbers.process, &settings.process_tools);
    let large = |item: &Item| item.size.tokens >= numbers.min_tokens;
    if !state.context.items().iter().any(|item| large(item) && item.origin.place().is_some()) {
        return Ok(None);
    }
    let estimator = settings.estimator;
    let mut waiting: HashMap<String, Vec<(Option<Digest>, String)>> = HashMap::new();
    let found = moves(state, usize::MAX, |item, place, message| {
        let mut replaced = Vec::new();
        let mut nth = 0;
        // Calls and results are paired by order, because ids repeat across turns.
        for part in &message.parts {
            match part {
                Part::ToolCall(call) => {
                    let kind = tools.kind(&call.name);
                    let arguments = kind.map(|_| call.arguments.to_string()).unwrap_or_default();
                    waiting.entry(call.id.to_string()).or_default().push((kind, arguments));
                }
                Part::ToolResult(result) => {
                    let call = waiting.get_mut(result.call_id.as_ref()).and_then(Vec::pop);
                    let untouched = large(item) && !item.origin.is_replaced(nth) && !result.is_error;
                    if let Some((Some(kind), arguments)) = call.filter(|_| untouched) {
                        let (text, tokens) = (&result.text, estimator.text(&result.text));
                        let kept = tokens < numbers.min_tokens
                            || tokens < numbers.structured_min_tokens && is_structured(text)
                            || is_error(text);
                        let digest = (!kept).then(|| digest(kind, text, &arguments, &numbers)).flatten();
                        let write = |digest: &str, reference: &str| {
                            format!("[{}; the whole result is at: {reference}]\n{digest}", kind.as_str())
                        };
                        // A reference is as long as any other.
                        let smaller =
                            |digest: &String| estimator.text(&write(digest, &"x".repeat(30))) < tokens;
                        if let Some(digest) = digest.filter(smaller) {
                            let with = |reference: &str| write(&digest, reference);
                            replaced.push(Replacement::new(state, place, nth, text, How::Processed, with));
                        }
                    }
                    nth += 1;
                }
                _ => {}
            }
        }
        replaced
    })?;
    Ok(Some(found).filter(|moves| !moves.is_empty()))
}
