//! Files that were read lately, put back behind a summary, so that the model need not read them again (`S3.6`).

use super::cut::Proposal;
use super::redaction::redact;
use crate::error::{Code, Result};
use crate::log::View;
use crate::message::{Message, Part};
use crate::step::{Io, LogLevel};
use crate::summary::quoted_file;
use crate::tokens::Estimator;
use crate::wire;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Where tools are told a path.
const PATH_KEYS: [&str; 6] = ["path", "file_path", "filePath", "filename", "file", "uri"];

/// A file that the model read.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    path: String,
    /// What the tool answered; nothing when it failed or its result is not in the history.
    text: Option<String>,
}

/// The reads of a history, oldest first.
fn reads(messages: &[Message<'_>], tools: &[String]) -> Vec<Read> {
    let mut waiting: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut reads = Vec::new();
    for part in messages.iter().flat_map(|message| &message.parts) {
        match part {
            Part::ToolCall(call) => {
                let path = path(&call.arguments).filter(|_| tools.contains(&call.name.to_lowercase()));
                let Some(path) = path else { continue };
                waiting.entry(&call.id).or_default().push(reads.len());
                reads.push(Read { path, text: None });
            }
            Part::ToolResult(result) => {
                let read = waiting.get_mut(result.call_id.as_ref()).and_then(Vec::pop);
                if let Some(read) = read.and_then(|read| reads.get_mut(read))
                    && !result.is_error
                {
                    read.text = Some(result.text.to_string());
                }
            }
            _ => {}
        }
    }
    reads
}

fn path(arguments: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let named = PATH_KEYS.iter().find_map(|key| arguments.get(key)?.as_str());
    named.filter(|path| !path.is_empty()).map(str::to_string)
}

/// The files to put back, as they stand behind the summary; nothing when the preset restores none. `messages` are those
/// that the summary replaces, their results in place. A file whose newest read stays in the context is not put back.
pub(super) async fn restored(
    io: &Io,
    view: &View,
    proposal: &Proposal,
    messages: &[Message<'_>],
) -> Result<String> {
    let settings = &view.settings;
    let Some(numbers) = settings.numbers.restore else { return Ok(String::new()) };
    let mut seen: HashSet<String> = {
        let kept = view.items().iter().skip(proposal.boundary);
        let values = kept.map(|item| wire::parse(0, &item.body)).collect::<Result<Vec<_>>>()?;
        let kept = values.iter().map(|value| view.format.wire().read(0, value));
        let kept = kept.collect::<Result<Vec<_>>>()?;
        reads(&kept, &settings.read_tools).into_iter().map(|read| read.path).collect()
    };
    // Files may take what the summary frees, half of it at most: it is to make room.
    let mut left = numbers.max_tokens_total.min(proposal.replaced_tokens / 2);
    let (mut out, mut count) = (String::new(), 0);
    for Read { path, text } in reads(messages, &settings.read_tools).into_iter().rev() {
        if count == numbers.max_files || left == 0 {
            break;
        }
        if !seen.insert(path.clone()) {
            continue;
        }
        let now = if settings.app_reads_files { read_file(io, &path).await? } else { None };
        let Some(text) = now.or(text).filter(|text| !text.trim().is_empty()) else { continue };
        let (path, text) = (redact(io, view, path).await?, redact(io, view, text).await?);
        let file = clipped(&path, &text, numbers.max_tokens_per_file.min(left), settings.estimator);
        let Some((file, tokens)) = file else { continue };
        left = left.saturating_sub(tokens);
        out.push_str("\n\n");
        out.push_str(&file);
        count += 1;
    }
    Ok(out)
}

/// The app's own content of a file; what fails is logged, and the recorded result will do.
async fn read_file(io: &Io, path: &str) -> Result<Option<String>> {
    match io.read_file(path.to_string()).await {
        Ok(text) => Ok(Some(text)),
        Err(failure) if failure.code == Some(Code::Aborted) => Err(failure.into_error(Code::Aborted)),
        Err(failure) => {
            io.log(LogLevel::Debug, format!("readFile failed: {}", failure.message));
            Ok(None)
        }
    }
}

/// A file in its fence with its tokens, cut to `limit` tokens; nothing when even the fence does not fit.
fn clipped(path: &str, text: &str, limit: usize, estimator: Estimator) -> Option<(String, usize)> {
    let frame = estimator.text(&quoted_file(path, "", 0));
    let room = limit.checked_sub(frame)?;
    let chars = text.chars().count();
    // Evenly dense text fits at the first try.
    let mut keep = (chars * room).checked_div(estimator.text(text)).map_or(chars, |keep| keep.min(chars));
    loop {
        let head = crate::text::range(text, 0, Some(keep));
        let file = quoted_file(path, &head, chars - head.chars().count());
        let tokens = estimator.text(&file);
        if tokens <= limit {
            return Some((file, tokens));
        }
        keep = keep.checked_sub((keep / 8).max(1)).filter(|keep| *keep > 0)?;
    }
}

#[cfg(test)]
mod tests {
    use super::{Estimator, clipped};

    /// Characters that are kept of a file of as many, and the tokens of all: four characters are one.
    fn kept(chars: usize, limit: usize) -> Option<(usize, usize)> {
        let (file, tokens) = clipped("abc", &"x".repeat(chars), limit, Estimator::Chars4)?;
        let kept = file.matches('x').count();
        let left_out = format!("\n[… {} characters left out …]", chars - kept);
        let cut = if kept < chars { left_out.as_str() } else { "" };
        assert_eq!(file, format!("<file path=\"abc\">\n{}{cut}\n</file>", "x".repeat(kept)));
        Some((kept, tokens))
    }

    #[test]
    fn f39_s3_6_a_file_is_cut_to_its_limit_of_tokens_with_its_fence() {
        for (chars, limit, expected) in [
            (100, 99, Some((100, 32))),
            (100, 32, Some((100, 32))),
            (100, 31, Some((65, 30))),
            (100, 30, Some((63, 30))),
            (100, 20, Some((25, 20))),
            (100, 15, Some((6, 15))),
            (100, 14, Some((2, 14))),
            (100, 13, None),
            (1, 7, Some((1, 7))),
            (1, 6, None),
            (1, 5, None),
            (0, 7, Some((0, 7))),
            (10000, 200, Some((676, 183))),
            (10000, 201, Some((679, 184))),
            (10000, 1500, Some((5226, 1321))),
        ] {
            assert_eq!(kept(chars, limit), expected, "{chars} {limit}");
        }
    }
}
