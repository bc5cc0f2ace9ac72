//! Recorded Gemini traffic: what the provider accepted is read without error and breaks no rule of ours.

use context_compactor_core::message::{Exchanges, Message};
use context_compactor_core::wire::{self, Format, Problem, detect};
use flate2::read::GzDecoder;
use serde_json_borrow::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

/// The lines of a file of transcripts; `None`, with a word about it, where there is none.
fn lines(name: &str) -> Option<Vec<String>> {
    let root = std::env::var_os("CC_DATA")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"));
    let path = root.join(name);
    let Ok(file) = std::fs::File::open(&path) else {
        println!("skipped: no transcripts at {} (set CC_DATA)", path.display());
        return None;
    };
    Some(BufReader::new(GzDecoder::new(file)).lines().map(Result::unwrap).collect())
}

fn read<'a>(format: Format, id: &str, messages: &'a [Value<'a>]) -> Vec<Message<'a>> {
    let read =
        |(index, message)| format.wire().read(index, message).unwrap_or_else(|error| panic!("{id}: {error}"));
    messages.iter().enumerate().map(read).collect()
}

/// Reads a valid history, which a repair leaves alone and detection knows.
fn assert_clean(id: &str, messages: &[Value<'_>]) {
    let rules = Format::Gemini.rules();
    read(Format::Gemini, id, messages);
    let problems: Vec<Problem> = rules.validate(messages, false);
    assert_eq!(problems, [], "{id}");
    let (kept, changes) = rules.repair(messages);
    assert_eq!((kept.len(), changes.len()), (messages.len(), 0), "{id}: a valid history is left alone");
    assert_eq!(detect(messages).unwrap(), Format::Gemini, "{id}");
}

#[test]
fn accepted_requests_are_valid() {
    for name in ["core", "full"] {
        let Some(lines) = lines(&format!("{name}/wire/pydantic_google-generatecontent.jsonl.gz")) else {
            return;
        };
        let (mut strict, mut answers) = (BTreeSet::new(), 0);
        for line in &lines {
            let record = wire::parse(0, line).unwrap();
            let id = record.get("id").as_str().unwrap();
            let contents = record.get("request").get("contents").as_array().unwrap();
            assert_clean(id, contents);
            // With the answer they are the history of the next request.
            if let Some([candidate, ..]) = record.get("response").get("candidates").as_array()
                && let Some([_, ..]) = candidate.get("content").get("parts").as_array()
            {
                let history: Vec<Value<'_>> =
                    contents.iter().chain([candidate.get("content")]).cloned().collect();
                let messages = read(Format::Gemini, id, &history);
                if Exchanges::of(&messages).unanswered.is_empty() {
                    assert_clean(id, &history);
                }
                answers += 1;
            }
            let problems = Format::Gemini.rules().validate(contents, true);
            strict.extend(problems.into_iter().map(|problem| problem.rule));
        }
        // Neighbours of one role, calls of models that sign none, an empty text: not every server minds.
        assert!(strict.iter().all(|rule| ["GM1", "GM4", "GM5"].contains(rule)), "{strict:?}");
        assert!(answers > 20 && strict.contains("GM1"), "{answers} answers, {strict:?}");
    }
}

#[test]
fn scenarios_read_the_same_in_both_formats() {
    let Some(native) = lines("full/wire/gemini_cli_compression_native.jsonl.gz") else { return };
    let Some(chat) = lines("full/probes/gemini_cli_compression.jsonl.gz") else { return };
    assert_eq!(native.len(), chat.len());
    for (native, chat) in native.iter().zip(&chat) {
        let (native, chat) = (wire::parse(0, native).unwrap(), wire::parse(0, chat).unwrap());
        let id = native.get("id").as_str().unwrap();
        assert_eq!(chat.get("id").as_str(), Some(id));
        let contents = native.get("contents").as_array().unwrap();
        assert_clean(id, contents);
        let messages = chat.get("messages").as_array().unwrap();
        assert_eq!(Format::OpenaiChat.rules().validate(messages, false), [], "{id}");
        let (ours, theirs) = (read(Format::Gemini, id, contents), read(Format::OpenaiChat, id, messages));
        assert_eq!(ours.len(), theirs.len(), "{id}");
        for (one, other) in ours.iter().zip(&theirs) {
            assert_eq!((one.role, one.text()), (other.role, other.text()), "{id}");
            let names =
                |message: &Message<'_>| message.calls().map(|call| call.name.to_string()).collect::<Vec<_>>();
            assert_eq!(names(one), names(other), "{id}");
        }
        assert_eq!(Exchanges::of(&ours).pairs(), Exchanges::of(&theirs).pairs(), "{id}");
    }
}
