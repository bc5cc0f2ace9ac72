//! Effects as the host gets them: JSON text, which is handed over in one call. Large values stand beside it and are not copied into
//! it: the values of a batch, a message's body, a request.

use crate::convert::{set, to_js};
use crate::error::Thrown;
use context_compactor_core::context::{MessageSource, Place};
use context_compactor_core::keys::batch::{Batch, Durability, Key};
use context_compactor_core::step::{CodeStage, Effect, LogLevel, Notice, Progress, Purpose, Scan};
use context_compactor_core::summary::ThreadRequest;
use js_sys::{Array, JSON, Object, Uint8Array};
use serde::Serialize;
use wasm_bindgen::{JsCast, JsValue};

#[derive(Serialize)]
struct Told<'e> {
    id: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    parks: bool,
    #[serde(flatten)]
    asks: Asks<'e>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Asks<'e> {
    Now,
    NewId,
    /// Beside it: the body.
    Count {
        whose: &'static str,
        at: u64,
    },
    /// Beside it: the body.
    Pin {
        whose: &'static str,
        at: u64,
        index: usize,
    },
    /// Beside it: the text.
    Redact,
    Appended {
        places: &'e [Place],
        format: &'static str,
    },
    Embed {
        texts: &'e [String],
    },
    ReadFile {
        path: &'e str,
    },
    Progress {
        progress: &'e Progress,
    },
    Log {
        level: LogLevel,
        line: &'e str,
    },
    Notify {
        notice: &'e Notice,
    },
    /// Beside it: the request.
    Summarize {
        attempt: u32,
        purpose: Purpose,
        of_result: bool,
        timeout_ms: u64,
    },
    /// Beside it: the request.
    Fetch {
        timeout_ms: u64,
    },
    WriteWatermark {
        key: &'e str,
        value: &'e str,
    },
    ReadWatermark {
        key: &'e str,
    },
    Sleep {
        ms: u64,
    },
    Read {
        keys: &'e [Key],
    },
    Scan {
        prefix: &'e Key,
        options: ScanOptions<'e>,
    },
    /// Beside it: the values of its puts.
    Commit {
        batch: BatchKeys<'e>,
    },
    Load {
        stage: CodeStage,
    },
    Prefetch {
        stage: CodeStage,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ScanOptions<'e> {
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<&'e Key>,
    limit: usize,
    max_bytes: usize,
    reverse: bool,
    keys_only: bool,
}

#[derive(Serialize)]
struct BatchKeys<'e> {
    expect: Vec<Expected<'e>>,
    puts: Vec<[&'e Key; 1]>,
    deletes: &'e [Key],
    durability: Durability,
}

#[derive(Serialize)]
struct Expected<'e> {
    key: &'e Key,
    version: Option<u64>,
}

/// An effect as `{ id, type, parks?, … }` in JSON, and what stands beside it.
pub(crate) fn effect(id: u32, effect: &Effect) -> Thrown<(JsValue, JsValue)> {
    let mut beside = JsValue::UNDEFINED;
    let asks = match effect {
        Effect::Now => Asks::Now,
        Effect::NewId => Asks::NewId,
        Effect::Count { whose, body } => {
            beside = JsValue::from_str(body);
            let (whose, at) = source(*whose);
            Asks::Count { whose, at }
        }
        Effect::Pin { whose, index, body } => {
            beside = JsValue::from_str(body);
            let (whose, at) = source(*whose);
            Asks::Pin { whose, at, index: *index }
        }
        Effect::Redact(text) => {
            beside = JsValue::from_str(text);
            Asks::Redact
        }
        Effect::Appended { places, format } => Asks::Appended { places, format: format.as_str() },
        Effect::Embed(texts) => Asks::Embed { texts },
        Effect::ReadFile(path) => Asks::ReadFile { path },
        Effect::Progress(progress) => Asks::Progress { progress },
        Effect::Log(level, line) => Asks::Log { level: *level, line },
        Effect::Notify(notice) => Asks::Notify { notice },
        Effect::Summarize { request, attempt, purpose, timeout_ms } => {
            beside = to_js(&**request)?;
            if let Some(asked) = &request.thread {
                set(beside.unchecked_ref(), "thread", thread(asked));
            }
            let (attempt, of_result) = (*attempt, purpose.is_of_result());
            Asks::Summarize { attempt, purpose: *purpose, of_result, timeout_ms: *timeout_ms }
        }
        Effect::Fetch { request, timeout_ms } => {
            beside = to_js(request)?;
            Asks::Fetch { timeout_ms: *timeout_ms }
        }
        Effect::WriteWatermark { key, value } => Asks::WriteWatermark { key, value },
        Effect::ReadWatermark(key) => Asks::ReadWatermark { key },
        // What differs is `parks`.
        Effect::Sleep(ms) | Effect::Pause(ms) => Asks::Sleep { ms: *ms },
        Effect::Read(keys) => Asks::Read { keys },
        Effect::Scan(scan) => Asks::Scan { prefix: &scan.prefix, options: options(scan) },
        Effect::Commit(batch) => {
            beside = values(batch).into();
            Asks::Commit { batch: keys(batch) }
        }
        Effect::Load(stage) => Asks::Load { stage: *stage },
        Effect::Prefetch(stage) => Asks::Prefetch { stage: *stage },
    };
    let told = serde_json::to_string(&Told { id, parks: effect.parks(), asks });
    // Numbers, texts and lists of them: what no text can be made of does not occur.
    let told = told.map_err(|error| JsValue::from_str(&error.to_string()))?;
    Ok((JsValue::from_str(&told), beside))
}

/// Which message an effect is about.
fn source(whose: MessageSource) -> (&'static str, u64) {
    match whose {
        MessageSource::New(nth) => ("new", nth as u64),
        MessageSource::Logged(seq) => ("logged", seq),
        MessageSource::Ours => ("ours", 0),
    }
}

/// What continues the conversation's prompt, as `{ messages }`.
fn thread(thread: &ThreadRequest) -> Object {
    let object = Object::new();
    let parsed = thread.messages.iter().map(|text| JSON::parse(text).unwrap_or(JsValue::UNDEFINED));
    set(&object, "messages", parsed.collect::<Array>());
    object
}

fn options(scan: &Scan) -> ScanOptions<'_> {
    let Scan { after, limit, max_bytes, reverse, keys_only, .. } = scan;
    let (limit, max_bytes) = (*limit, *max_bytes);
    ScanOptions { after: after.as_ref(), limit, max_bytes, reverse: *reverse, keys_only: *keys_only }
}

fn keys(batch: &Batch) -> BatchKeys<'_> {
    BatchKeys {
        expect: batch.expect.iter().map(|(key, version)| Expected { key, version: *version }).collect(),
        puts: batch.puts.iter().map(|(key, _)| [key]).collect(),
        deletes: &batch.deletes,
        durability: batch.durability,
    }
}

fn values(batch: &Batch) -> Array {
    batch.puts.iter().map(|(_, bytes)| Uint8Array::from(bytes.as_slice())).collect()
}
