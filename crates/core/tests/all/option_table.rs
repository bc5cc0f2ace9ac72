//! The table of options: every bound of every row through the reader, and that no option does nothing.
//!
//! The reader in JavaScript gives the same answers to the same options (`tests/node/option-bounds.test.mjs`): they are in
//! `tests/fixtures/option-bounds.json`, which `BLESS=1` writes anew.

use context_compactor_core::error::ErrorParts;
use context_compactor_core::policy::{OPTIONS, Off, OptionKind, Row, Rung, Settings, check_options};
use serde_json::{Value, json};
use std::path::Path;

/// What stands for a function; the engine sees `true`.
const FUNCTION: &str = "a function";

#[test]
fn h4_every_bound_of_every_option_has_one_answer() {
    let mut answers = Vec::new();
    for row in OPTIONS {
        for value in values(row) {
            if let Some(options) = at(row.path, value.clone()) {
                answers.push(answered(options));
            }
            for documented in row.documented_as {
                let (preset, name) = documented.name.split_once('.').unwrap();
                answers.push(answered(json!({ "preset": preset, "presetOptions": { name: value } })));
            }
        }
        for documented in row.documented_as {
            let (preset, name) = documented.name.split_once('.').unwrap();
            let says: Vec<Value> = match documented.off {
                None => Vec::new(),
                Some(Off::Switch) => vec![json!(true), json!(false), json!("no")],
                Some(Off::Text(off)) => vec![json!(off)],
                Some(Off::Choice([off, on])) => vec![json!(off), json!(on), json!("loud")],
            };
            for value in says {
                answers.push(answered(json!({ "preset": preset, "presetOptions": { name: value } })));
            }
        }
    }
    for options in [
        json!({ "keepRecent": 1 }),
        json!({ "clear": { "keepRecents": 1 } }),
        json!({ "preset": "react", "presetOptions": { "keepRecent": 1 } }),
        json!({ "preset": "layered", "presetOptions": { "keepRecent": 1 }, "clear": { "keepRecent": 2 } }),
        json!({ "preset": "layered", "clear": { "keepRecent": 2 }, "presetOptions": { "keepRecent": 1 } }),
    ] {
        answers.push(answered(options));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/option-bounds.json");
    let lines: Vec<String> = answers.iter().map(Value::to_string).collect();
    let text = format!("[\n{}\n]\n", lines.join(",\n"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap_or_default(), "run with BLESS=1 and review");
}

fn answered(options: Value) -> Value {
    let text = options.to_string().replace(&json!(FUNCTION).to_string(), "true");
    let error = check_options(&serde_json::from_str(&text).unwrap()).err();
    // Names that are nearly so are JavaScript's to find.
    let told = error.map(|error| {
        let ErrorParts { field, message, .. } = error.into_parts();
        let message =
            if message.contains("is not an option") { "is not an option".to_owned() } else { message };
        json!([field, message])
    });
    json!([options, told])
}

/// The option alone; none for what only a preset has.
fn at(path: &str, value: Value) -> Option<Value> {
    if path.starts_with("presetOptions") {
        return None;
    }
    Some(path.rsplit('.').fold(value, |inner, name| json!({ name: inner })))
}

/// At, one below and one above each bound, and what is of another type.
fn values(row: &Row) -> Vec<Value> {
    let mut values = match row.kind {
        OptionKind::Count { least, most } => {
            let below = least as i64 - 1;
            vec![
                json!(least),
                json!(below),
                json!(most),
                json!(most + 1),
                json!(least as f64 + 0.5),
                json!("1"),
            ]
        }
        OptionKind::Number { least, most } => {
            vec![json!(least), json!(least - 0.0005), json!(most), json!(most + 0.5), json!(true)]
        }
        OptionKind::Flag => vec![json!(true), json!(1)],
        OptionKind::Text => vec![json!("text"), json!(" "), json!(1)],
        OptionKind::Names => vec![json!(["a"]), json!([]), json!(["a", ""]), json!("a")],
        OptionKind::Choice(names) => {
            let mut values: Vec<Value> = names().iter().map(|name| json!(name)).collect();
            values.extend([json!("nonsense"), json!(format!("{}s", names()[0])), json!(1)]);
            values
        }
        OptionKind::Function(_) => vec![json!(FUNCTION), json!(1)],
        OptionKind::Group { .. } => vec![json!({}), json!(1), json!([])],
        OptionKind::Value(_) | OptionKind::Host(_) => Vec::new(),
    };
    values.push(json!(false));
    if matches!(row.kind, OptionKind::Value(_) | OptionKind::Host(_)) { Vec::new() } else { values }
}

/// What the host performs, and the engine has no setting for.
const PERFORMED: [&str; 4] = ["summarize.fetch", "onProgress", "logger", "limits.storeTimeoutMs"];

#[test]
fn h4_every_option_changes_the_settings_in_every_preset_that_takes_it() {
    let mut idle = Vec::new();
    let mut tried = 0;
    for row in OPTIONS {
        if PERFORMED.contains(&row.path) || matches!(row.kind, OptionKind::Group { .. } | OptionKind::Host(_))
        {
            continue;
        }
        let value = match row.kind {
            // No default is any of these.
            OptionKind::Count { least, most } => json!((least + 7_777).min(most)),
            OptionKind::Number { most, .. } => json!(if most > 1.0 { 7.5 } else { 0.777 }),
            OptionKind::Names => json!(["somebody_else"]),
            OptionKind::Text => json!("something"),
            OptionKind::Function(_) => json!(true),
            _ => Value::Null,
        };
        let values = match row.kind {
            OptionKind::Flag => vec![json!(true), json!(false)],
            OptionKind::Choice(names) => names().iter().map(|name| json!(name)).collect(),
            OptionKind::Value(_) => continue,
            _ => vec![value],
        };
        for preset in ["balanced", "offload", "react", "layered", "factor3", "checkpoint"] {
            let alone = row.path.starts_with("presetOptions");
            let read = |value: Option<&Value>| {
                let mut options = beside(row.path, preset);
                if let Some(value) = value {
                    put(&mut options, row.path, value.clone());
                }
                Settings::read(&serde_json::from_str(&options.to_string()).unwrap())
            };
            let without = read(None).unwrap_or_else(|error| panic!("{} {preset}: {error}", row.path));
            let with: Vec<_> = values.iter().filter_map(|value| read(Some(value)).ok()).collect();
            let is_taken = !with.is_empty();
            if is_taken && with.iter().all(|settings| *settings == without) {
                idle.push(format!("{} in {preset}", row.path));
            }
            tried += usize::from(is_taken);
            // What only one preset has is refused by the others.
            let only = row.rung == Some(Rung::Compress) || row.rung == Some(Rung::Age) || alone;
            let own = if row.rung == Some(Rung::Compress) { "react" } else { "checkpoint" };
            if only {
                assert_eq!(is_taken, preset == own, "{} in {preset}", row.path);
            }
        }
    }
    assert_eq!(idle, Vec::<String>::new());
    assert!(tried > 400, "{tried}");
}

/// Options that have to stand beside one so that it can count.
fn beside(path: &str, preset: &str) -> Value {
    let mut options = json!({ "preset": preset });
    let group = path.strip_prefix("advanced.").unwrap_or(path).split('.').next().unwrap_or_default();
    match group {
        "digest" | "admit" | "clear" | "offload" | "restoreFiles" => options[group] = json!({}),
        "prices" => options["prices"] = json!({ "input": 1, "output": 2 }),
        "limits" => {
            options["prices"] = json!({ "input": 1, "output": 2 });
            options["limits"] = if path.ends_with("onExceed") { json!({ "usd": 1 }) } else { json!({}) };
        }
        "summarize" if path.contains("provider") => {
            options["summarize"] = json!({ "provider": { "kind": "openai", "model": "m" } });
        }
        _ => {}
    }
    if preset == "checkpoint" && path.ends_with("level1Above") {
        options["advanced"] = json!({ "checkpoints": { "level2Above": 1 } });
    }
    options
}

fn put(options: &mut Value, path: &str, value: Value) {
    let mut inner = options;
    for name in path.split('.') {
        inner = &mut inner[name];
    }
    *inner = value;
}
