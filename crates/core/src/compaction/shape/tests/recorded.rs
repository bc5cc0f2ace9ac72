use super::super::text::{Severity, count, level};
use super::super::{TextKind, digest, is_error, shape};
use crate::policy::{Digest, FACTOR3};
use crate::wire::{self, Format};
use flate2::read::GzDecoder;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

/// The results of the recorded transcripts of more than `least` characters.
fn results(least: usize) -> Vec<String> {
    let root = std::env::var_os("CC_DATA")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    let folders = std::fs::read_dir(root.join("core")).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten().flatten());
    let mut found = Vec::new();
    for file in files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|end| end == "gz")) {
        for line in
            BufReader::new(GzDecoder::new(std::fs::File::open(file).unwrap())).lines().map_while(Result::ok)
        {
            let Ok(record) = wire::parse(0, &line) else { continue };
            let format = match record.get("format").as_str() {
                Some("anthropic") => Format::Anthropic,
                _ => Format::OpenaiChat,
            };
            for value in record.get("messages").as_array().unwrap_or_default() {
                let Ok(message) = format.wire().read(0, value) else { continue };
                let long = message.results().filter(|result| count(&result.text) > least);
                found.extend(long.map(|result| result.text.to_string()));
            }
        }
    }
    if found.is_empty() {
        println!("skipped: no transcripts at {} (set CC_DATA)", root.display());
    }
    found
}

#[test]
fn s2_11_s4_5_recorded_results_keep_the_rules() {
    for text in results(2_000) {
        let target = count(&text) / 10;
        if let Some(shaped) = shape(&text, target) {
            assert!(count(&shaped.text) <= target, "{shaped:?}");
            assert!(shape(&shaped.text, target).is_none_or(|again| again.text == shaped.text));
            if std::env::var_os("CC_SHOW").is_some() {
                println!(
                    "@@@ {:?} {} -> {}\n{}\n--- of\n{}",
                    shaped.kind,
                    count(&text),
                    count(&shaped.text),
                    shaped.text,
                    text.chars().take(600).collect::<String>()
                );
            }
            let errors: Vec<&str> = text.lines().filter(|line| level(line) == Severity::Error).collect();
            let small = errors.iter().map(|line| line.len() + 80).sum::<usize>() * 2 < target;
            if shaped.kind == TextKind::Log && small {
                assert!(
                    errors.iter().all(|error| shaped.text.lines().any(|line| line == *error)),
                    "{shaped:?}"
                );
            }
        }
        for kind in [Digest::Search, Digest::File, Digest::Query, Digest::Api] {
            digest(kind, &text, "{}", &FACTOR3.numbers.process);
        }
        is_error(&text);
    }
}
