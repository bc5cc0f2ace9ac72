//! Recorded transcripts and requests of real agents, where they are present: `../shared/data` beside the repository, or
//! the folder that `CC_DATA` names. `CC_DATA_SET=full` asks for all of them in place of the small selection.

use crate::conversation::Body;
use context_compactor_core::wire::{self, Format};
use flate2::read::GzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

/// Folders of recordings.
pub const FOLDERS: [&str; 5] = ["anthropic", "openai", "responses", "probes", "wire"];

/// A transcript, or the messages of a request.
pub struct Recorded {
    /// Its id in the data.
    pub id: String,
    /// Its format.
    pub format: Format,
    /// Its messages.
    pub bodies: Vec<Body>,
    /// A provider has accepted it: a transcript, or a request that was answered and does not go on from one that the
    /// provider holds.
    pub accepted: bool,
}

/// A file of recordings.
pub struct Recording {
    /// Folder and name, as in `wire/pydantic_openai-chat`.
    pub name: String,
    path: PathBuf,
}

fn root() -> PathBuf {
    let set = std::env::var("CC_DATA_SET").unwrap_or_else(|_| "core".into());
    let data = std::env::var_os("CC_DATA")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    data.join(set)
}

/// The files of a folder by name; none, with a word about it, where there are none.
pub fn recordings(folder: &str) -> Vec<Recording> {
    let path = root().join(folder);
    let Ok(entries) = std::fs::read_dir(&path) else {
        println!("skipped: no recordings at {} (set CC_DATA)", path.display());
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let named = paths.into_iter().filter_map(|path| {
        let name = path.file_name()?.to_str()?.strip_suffix(".jsonl.gz")?;
        Some(Recording { name: format!("{folder}/{name}"), path })
    });
    named.collect()
}

/// The records of one file: JSON texts; none, with a word about it, where it is not there.
pub fn lines(name: &str) -> Vec<String> {
    let path = root().join(name).with_extension("jsonl.gz");
    if path.exists() {
        return Recording { name: name.into(), path }.lines().collect();
    }
    println!("skipped: no recordings at {} (set CC_DATA)", path.display());
    Vec::new()
}

impl Recording {
    /// Its records: JSON texts.
    ///
    /// # Panics
    ///
    /// When the file cannot be read.
    pub fn lines(&self) -> impl Iterator<Item = String> + use<> {
        let file = File::open(&self.path).expect("the file is there");
        BufReader::new(GzDecoder::new(file)).lines().map(|line| line.expect("the file is whole"))
    }
}

/// Reads a record.
///
/// Errors: why it is not a history of ours.
///
/// # Panics
///
/// When it is not a record.
pub fn record(line: &str) -> Result<Recorded, String> {
    let record = wire::parse(0, line).expect("a record is an object");
    let name = record.get("format").as_str().expect("a record has a format").to_owned();
    let format = match name.as_str() {
        "openai" | "openai-chat" => Format::OpenaiChat,
        "openai-responses" => Format::OpenaiResponses,
        "anthropic" | "anthropic-messages" => Format::Anthropic,
        "google-generatecontent" => Format::Gemini,
        _ => return Err(format!("{name} is no format of ours")),
    };
    if !Format::ALL.contains(&format) {
        return Err(format!("{name} is not read yet"));
    }
    let request = record.get("request");
    let holder = if request.is_object() { request } else { &record };
    let messages = ["messages", "input", "contents"].map(|field| holder.get(field));
    let messages = messages.into_iter().find_map(|field| field.as_array());
    let messages = messages.ok_or_else(|| format!("{name} without a list of messages"))?;
    let bodies = messages.iter().map(|value| Body::from(serde_json::to_string(value).unwrap_or_default()));
    Ok(Recorded {
        id: record.get("id").as_str().expect("a record has an id").to_owned(),
        format,
        bodies: bodies.collect(),
        accepted: !request.is_object()
            || (record.get("response").is_object() && request.get("previous_response_id").is_null()),
    })
}
