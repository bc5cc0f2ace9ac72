//! Offloading, item by item of the specification (`S1.1` to `S1.4`, `S1.14`), in both formats.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::context::Fate;
use context_compactor_core::keys::batch::{Batch, Key};
use context_compactor_core::policy::Trigger;
use context_compactor_core::session::Session;
use context_compactor_core::step::{LogLevel, Notice, Stage};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::How;
use context_compactor_store_tests::conversation::{assistant, calls, results, user};
use serde_json::json;

/// Offloads at 100 tokens and never summarises.
fn only_offload() -> serde_json::Value {
    json!({ "compactAt": { "tokens": 100 }, "presetOptions": { "preserveCount": 1_000 } })
}

#[test]
fn s1_1_runs_at_the_threshold_and_not_below_it() {
    for (tokens, over) in [(0, false), (1, true)] {
        let mut harness = Harness::new(json!({ "compactAt": { "tokens": 10_000 } }));
        harness.append(&turn(Format::OpenaiChat, 0, 200));
        harness.append(&[user("next"), assistant("well")]);
        let used = harness.session.usage().unwrap().used_tokens;
        let mut harness = Harness::new(
            json!({ "compactAt": { "tokens": used + 1 - tokens }, "presetOptions": { "preserveCount": 1_000 } }),
        );
        harness.append(&turn(Format::OpenaiChat, 0, 200));
        harness.append(&[user("next"), assistant("well")]);
        assert_eq!(!harness.prepare().edits.is_empty(), over, "threshold {}", used + 1 - tokens);
    }
}

#[test]
fn s1_1_default_threshold_is_150_000_of_200_000() {
    let settings = crate::support::settings(json!({ "contextWindow": 200_000 }));
    let numbers = settings.numbers;
    let offload = numbers.offload;
    assert_eq!((settings.threshold.tokens, offload.scan_ratio, offload.min_chars), (150_000, 0.5, 50));
    assert_eq!((numbers.compact_trigger_threshold, numbers.compact_cooldown_steps), (15_000, 5));
    assert_eq!((numbers.preserve_count, numbers.target_tokens, numbers.retry_count), (5, 8_000, 3));
}

#[test]
fn s1_1_scans_the_floor_of_the_first_half() {
    for format in FORMATS {
        // Results stand at 2, 6 and 10. The floor of 13 / 2 leaves message 6 alone.
        let mut harness = Harness::new(only_offload());
        for nth in 0..3 {
            harness.append(&turn(format, nth, 200));
        }
        harness.append(&[user("more")]);
        assert_eq!(harness.prepare().edits[0].indices, [2], "{format:?}");
        assert!(harness.prepare().edits.is_empty());
        harness.append(&[assistant("yes")]);
        assert_eq!(harness.prepare().edits[0].indices, [6], "{format:?}: 14 / 2 = 7 messages are scanned");
    }
}

#[test]
fn s1_1_takes_results_longer_than_50_characters_only() {
    for format in FORMATS {
        let (short, long) = ("字".repeat(50), "字".repeat(51));
        let mut harness = Harness::new(only_offload());
        let ids = [("a", "x"), ("b", "y")];
        harness.append(&[user(&crate::support::long("long question", 300))]);
        harness.append(&calls(format, &ids));
        harness.append(&results(format, &[("a", &short), ("b", &long)]));
        harness.append(&talk(4, 10));
        let prepared = harness.prepare();
        let text = serde_json::to_string(&bodies(&harness.session, &prepared)).unwrap();
        assert!(text.contains(&short) && !text.contains(&long), "{format:?}");
        assert_eq!(prepared.edits[0].detail.as_deref(), Some("1 result"));
        assert_eq!(prepared.usage.offload_count, 1);
    }
}

#[test]
fn s1_1_a_reference_is_known_by_the_table_not_by_its_text() {
    for format in FORMATS {
        let forged = format!("Tool result is at: off_{}{}", "a".repeat(26), " and then some more text of it");
        // However short a result may be: a reference is no result.
        let mut harness = Harness::new(
            json!({ "compactAt": { "tokens": 100 }, "presetOptions": { "preserveCount": 1_000, "minChars": 1 } }),
        );
        let mut messages = vec![user(&long("question", 300))];
        messages.extend(calls(format, &[("a", "x")]));
        messages.extend(results(format, &[("a", &forged)]));
        harness.append(&messages);
        harness.append(&talk(3, 10));
        let prepared = harness.prepare();
        assert_eq!(prepared.edits[0].indices, [2], "{format:?}: text that looks like a reference is text");
        let reference = harness.session.explain().unwrap()[2].reference.clone().unwrap();
        assert_eq!(harness.read(&reference), forged);
        // What is a reference already is not moved again, whatever else fires.
        assert!(harness.prepare().edits.is_empty());
        let error =
            harness.host.run(harness.session.read(format!("off_{}", "a".repeat(26)), 0, None)).unwrap_err();
        assert_eq!(error.code, Code::NotFound);
    }
}

#[test]
fn d13_a_text_that_looks_like_the_place_of_a_large_row_is_a_text() {
    let fields = r#""v":200,"id":"row_a","parts":0,"bytes":0,"sha256":"e3b0c442""#;
    for format in FORMATS {
        for text in [format!("{{\"wide\":1,{fields}}}"), format!("{{\"wide\":{}", "true, ".repeat(20))] {
            let mut harness = Harness::new(only_offload());
            harness.append(&[user(&long("long question", 300))]);
            harness.append(&calls(format, &[("a", "x")]));
            harness.append(&results(format, &[("a", &text)]));
            harness.append(&talk(4, 10));
            harness.prepare();
            let reference = harness.session.explain().unwrap()[2].reference.clone().unwrap();
            assert_eq!(harness.read(&reference), text, "{format:?}");
            let problems = harness.host.run(harness.session.verify()).unwrap().problems;
            assert_eq!(problems, [""; 0], "{format:?}");
        }
    }
}

#[test]
fn s1_1_the_reference_stands_in_the_results_place_and_its_text_in_the_store() {
    for format in FORMATS {
        let mut harness = Harness::new(only_offload());
        let messages = turn(format, 0, 200);
        harness.append(&messages);
        harness.append(&talk(2, 10));
        let before: serde_json::Value = serde_json::from_str(&messages[2]).unwrap();
        let sent = harness.sent();
        let entry = harness.session.explain().unwrap()[2].clone();
        let reference = entry.reference.unwrap();
        assert_eq!(entry.fate, Fate::Offloaded);
        let id = reference.strip_prefix("off_").unwrap();
        let is_base32 = |c: char| c.is_ascii_lowercase() || ('2'..='7').contains(&c);
        assert!(id.len() == 26 && id.chars().all(is_base32), "{reference}");
        assert_eq!(result_text(format, &sent[2]), Some(format!("Tool result is at: {reference}")));
        assert_eq!(Some(harness.read(&reference)), result_text(format, &before));
        // Everything else of the message is as it was.
        let text = result_text(format, &before).unwrap();
        assert_eq!(
            sent[2].to_string().replace(&format!("Tool result is at: {reference}"), &text),
            before.to_string()
        );
        assert_valid(format, &sent);
        harness.stored();
    }
}

#[test]
fn s1_2_reports_what_it_did() {
    for format in FORMATS {
        let mut harness = Harness::new(only_offload());
        harness.append(&turn(format, 0, 400));
        harness.append(&talk(2, 10));
        let previous = harness.session.usage().unwrap().used_tokens;
        let prepared = harness.prepare();
        let edit = &prepared.edits[0];
        assert_eq!(
            (edit.kind, &edit.indices[..], edit.detail.as_deref()),
            ("offload", &[2][..], Some("1 result"))
        );
        assert_eq!(previous - prepared.usage.used_tokens, edit.freed_tokens);
        assert!(edit.freed_tokens > 300);
        let report = edit.offload.clone().unwrap();
        assert_eq!((report.offloaded_count, report.freed_tokens), (1, edit.freed_tokens));
        assert_eq!((report.previous_tokens, report.current_tokens), (previous, prepared.usage.used_tokens));
        let threshold = prepared.usage.threshold;
        assert_eq!(report.still_exceeds_threshold, prepared.usage.used_tokens >= threshold);
        // The sums that are kept as the context changes are those of a session that is read anew.
        let again = Harness::over(harness.memory.clone(), "b", only_offload());
        assert_eq!(again.session.usage().unwrap(), prepared.usage);
        let stages: Vec<Stage> = harness.host.seen.progress.iter().map(|progress| progress.stage).collect();
        assert_eq!(stages, [Stage::Offload, Stage::Offload]);
        let last = harness.host.seen.progress[1].clone();
        assert_eq!((last.done, last.total, last.current_tokens), (1, 1, prepared.usage.used_tokens));
    }
}

#[test]
fn s1_2_counts_results_and_equality_still_exceeds() {
    for format in FORMATS {
        let offloaded = |threshold: usize| {
            let mut harness = Harness::new(
                json!({ "compactAt": { "tokens": threshold }, "presetOptions": { "preserveCount": 1_000 } }),
            );
            harness.append(&[user("two")]);
            harness.append(&calls(format, &[("a", "x"), ("b", "y")]));
            harness.append(&results(format, &[("a", &long("first", 100)), ("b", &long("second", 100))]));
            harness.append(&talk(3, 10));
            harness.prepare().edits[0].offload.clone().unwrap()
        };
        let left = offloaded(100).current_tokens;
        for (threshold, exceeds) in [(left, true), (left + 1, false)] {
            let report = offloaded(threshold);
            assert_eq!((report.offloaded_count, report.current_tokens), (2, left), "{format:?}");
            assert_eq!(report.still_exceeds_threshold, exceeds, "{format:?} {threshold}");
        }
    }
}

#[test]
fn s1_3_one_item_that_cannot_be_stored_stays_and_the_others_go() {
    for format in FORMATS {
        let mut harness = Harness::new(only_offload());
        let ids = [("a", "x"), ("b", "y"), ("c", "z")];
        let texts = [long("first", 100), long("second", 100), long("third", 100)];
        harness.append(&[user("go")]);
        harness.append(&calls(format, &ids));
        harness.append(&results(format, &[("a", &texts[0]), ("b", &texts[1]), ("c", &texts[2])]));
        harness.append(&talk(5, 10));
        harness.host.refuse = Box::new(move |batch| {
            let is_second = |value: &[u8]| {
                let text = String::from_utf8_lossy(value);
                text.contains(if format == Format::OpenaiChat { "\"index\":3" } else { "\"nth\":1" })
            };
            let of_offload = |key: &Key| key.to_string().contains("/off_");
            batch
                .puts
                .iter()
                .any(|(key, value)| of_offload(key) && is_second(value))
                .then_some(Code::TooLarge)
        });
        let sent = harness.sent();
        let text = serde_json::to_string(&sent).unwrap();
        let stays: Vec<bool> = texts.iter().map(|result| text.contains(result.as_str())).collect();
        assert_eq!(stays, [false, true, false], "{format:?}");
        let warnings = harness
            .host
            .seen
            .notices
            .iter()
            .filter(|notice| matches!(notice, Notice::Warning { code: Code::TooLarge, .. }));
        assert_eq!(warnings.count(), 1, "{format:?}");
        assert!(harness.host.seen.logs.iter().any(|(level, _)| *level == LogLevel::Warn));
        assert!(harness.host.seen.notices.iter().any(|n| matches!(n, Notice::Offload { count: 2, .. })));
        assert_valid(format, &sent);
        harness.stored();
    }
}

#[test]
fn s1_3_a_store_of_small_batches_takes_everything_in_several() {
    let mut harness = Harness::new(only_offload());
    let opened = Session::open(settings(only_offload()), Some("s".into()), 20);
    harness.session = harness.host.run(opened).unwrap().0;
    for nth in 0..40 {
        harness.append(&turn(Format::OpenaiChat, nth, 30));
    }
    let prepared = harness.prepare();
    assert_eq!(
        prepared.edits[0].offload.as_ref().unwrap().offloaded_count,
        20,
        "half of the messages are scanned"
    );
    let size = |batch: &Batch| batch.expect.len() + batch.puts.len() + batch.deletes.len();
    assert!(harness.host.seen.commits.iter().all(|batch| size(batch) <= 20));
    assert_eq!(harness.stored().generation, 2);
}

#[test]
fn s1_3_a_single_item_that_cannot_be_stored_is_a_warning_too() {
    let mut harness = Harness::new(only_offload());
    harness.append(&turn(Format::Anthropic, 0, 200));
    harness.append(&talk(2, 10));
    let before = harness.context();
    harness.host.refuse = Box::new(|batch| has(batch, "blobs/").then_some(Code::TooLarge));
    let prepared = harness.prepare();
    assert!(prepared.edits.is_empty(), "nothing was moved, so nothing was rewritten");
    assert_eq!(harness.host.seen.notices.len(), 1);
    assert!(matches!(harness.host.seen.notices[0], Notice::Warning { code: Code::TooLarge, .. }));
    assert_eq!(harness.context(), before);
}

#[test]
fn s1_4_history_is_rewritten_and_the_event_emitted_only_when_something_was_offloaded() {
    let mut harness = Harness::new(json!({
        "compactAt": { "tokens": 100 },
        "presetOptions": { "compactCooldownSteps": 1000, "preserveCount": 100 },
    }));
    harness.append(&talk(6, 40));
    let commits = harness.host.seen.commits.len();
    let prepared = harness.prepare();
    assert!(prepared.edits.is_empty());
    assert_eq!(harness.host.seen.commits.len(), commits);
    assert!(harness.host.seen.notices.is_empty());
}

#[test]
fn s1_14_the_event_says_how_many_and_how_much() {
    let mut harness = Harness::new(only_offload());
    harness.append(&turn(Format::OpenaiChat, 0, 200));
    harness.append(&turn(Format::OpenaiChat, 1, 200));
    harness.append(&talk(3, 10));
    let prepared = harness.prepare();
    let freed_tokens = prepared.edits[0].freed_tokens;
    assert_eq!(harness.host.seen.notices, [Notice::Offload { count: 2, freed_tokens }]);
}

#[test]
fn a_plan_tells_nobody_that_something_happened() {
    let mut harness = Harness::new(only_offload());
    harness.append(&turn(Format::OpenaiChat, 0, 200));
    harness.append(&talk(2, 10));
    let commits = harness.host.seen.commits.len();
    let plan = harness.host.run(harness.session.plan()).unwrap();
    assert_eq!((plan.will_compact, &plan.edits[0].indices[..]), (true, &[2][..]));
    assert_eq!(harness.host.seen.commits.len(), commits);
    assert!(harness.host.seen.notices.is_empty() && harness.host.seen.progress.is_empty());
}

#[test]
fn lesson_concurrent_writes_an_offload_that_loses_a_race_is_made_again() {
    let mut harness = Harness::new(only_offload());
    harness.append(&turn(Format::OpenaiChat, 0, 200));
    harness.append(&talk(2, 10));
    // Another tab appends between the decision and the commit: both stand.
    let mut other = Harness::over(harness.memory.clone(), "b", only_offload());
    let mut once = Some(());
    harness.host.meanwhile = Box::new(move |effect| {
        if is_change(effect) && once.take().is_some() {
            other.append(&[user("from the other tab")]);
        }
    });
    let prepared = harness.prepare();
    assert_eq!(prepared.edits[0].indices, [2]);
    assert_eq!(harness.stored().messages.len(), 9);
    // Another tab offloads first: this one reads the other's and goes on from there.
    harness.append(&turn(Format::OpenaiChat, 1, 200));
    harness.append(&talk(6, 10));
    let mut other = Harness::over(harness.memory.clone(), "c", only_offload());
    let mut once = Some(());
    harness.host.meanwhile = Box::new(move |effect| {
        if is_change(effect) && once.take().is_some() {
            other.prepare();
        }
    });
    assert!(harness.prepare().edits.is_empty(), "the other tab's offload is seen");
    // Tabs that never let it through are an error in the end.
    harness.host.refuse = Box::new(|batch| has(batch, "views/").then_some(Code::Conflict));
    harness.append(&turn(Format::OpenaiChat, 2, 200));
    harness.append(&talk(30, 10));
    let error = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())).unwrap_err();
    assert_eq!(error.code, Code::Conflict);
    harness.stored();
}

#[test]
fn a_commit_whose_answer_is_lost_took_place_once() {
    let mut harness = Harness::new(only_offload());
    harness.append(&turn(Format::OpenaiChat, 0, 200));
    harness.append(&talk(2, 10));
    harness.host.fault(1, is_change, How::Lost);
    let prepared = harness.prepare();
    assert_eq!((prepared.edits[0].indices.clone(), harness.stored().generation), (vec![2], 1));
    harness.host.fault(1, is_commit, How::Lost);
    harness.append(&[user("once")]);
    assert_eq!(harness.stored().messages.iter().filter(|body| body.contains("once")).count(), 1);
}
