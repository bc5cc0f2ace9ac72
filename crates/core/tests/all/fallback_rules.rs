//! A summariser that fails is no success, but where the app chose that the built-in one takes over; and then the result says
//! what failed.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::policy::PRESETS;
use context_compactor_core::step::{Event, Notice};
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::exchange;
use context_compactor_store_tests::host::{failed, summary, thrown};
use serde_json::json;

/// How a summariser fails, with which code, and whether it is asked again.
type Failure = (&'static str, fn() -> Event, Code, bool);

const FAILURES: [Failure; 5] = [
    ("throws", || thrown("the server is gone", None), Code::SummaryFailed, true),
    ("401", || thrown("invalid key", Some(401)), Code::SummaryFailed, false),
    ("403", || thrown("no access", Some(403)), Code::SummaryFailed, false),
    ("timeout", || failed(Code::Timeout), Code::Timeout, true),
    ("empty", || summary(""), Code::SummaryRejected, true),
];

#[test]
fn f2_a_failing_summariser_is_no_success_in_any_preset_unless_the_app_chose_a_fallback() {
    for preset in PRESETS {
        let summarises = preset.name != "react";
        for (name, fail, code, again) in FAILURES {
            for fallback in [None, Some("none"), Some("extractive")] {
                let told = format!("{}, {name}, {fallback:?}", preset.name);
                let mut options =
                    json!({ "preset": preset.name, "format": "openai-chat", "summarize": { "attempts": 3 } });
                if let Some(fallback) = fallback {
                    options["summarize"]["fallback"] = json!(fallback);
                }
                let mut harness = Harness::new(options);
                harness.append(&talk(12, 60));
                if !summarises {
                    harness.append(&exchange(Format::OpenaiChat, "c", &long("result", 1_000)));
                }
                harness.host.summarise = Box::new(move |_, _| fail());
                let before = harness.context();
                let result = harness.compact();
                assert_eq!(result.llm_calls, if again { 3 } else { 1 }, "{told}");
                assert!(result.fits, "{told}");
                let warned = |harness: &Harness| {
                    let warnings = harness.host.seen.notices.iter();
                    warnings
                        .filter(|notice| matches!(notice, Notice::Warning { code: of, .. } if *of == code))
                        .count()
                };
                if summarises && fallback == Some("extractive") {
                    assert!(result.success && result.error.is_none() && result.summary.is_some(), "{told}");
                    assert_eq!(result.fell_back.as_ref().unwrap().code, code, "{told}");
                    assert_eq!(warned(&harness), 1, "{told}: {:?}", harness.host.seen.notices);
                } else {
                    assert!(!result.success && result.fell_back.is_none(), "{told}: {result:?}");
                    assert_eq!(result.error.as_ref().unwrap().code, code, "{told}");
                    assert_eq!((harness.context(), result.freed_tokens), (before, 0), "{told}");
                    assert_eq!(warned(&harness), 0, "{told}");
                }
            }
        }
    }
}

#[test]
fn f2_without_a_summariser_the_built_in_one_writes_every_summary() {
    for preset in PRESETS.iter().filter(|preset| preset.name != "react") {
        let mut harness = Harness::new(json!({ "preset": preset.name, "summarize": { "call": null } }));
        harness.append(&talk(12, 60));
        let result = harness.compact();
        assert!(result.success && result.summary.is_some() && result.fell_back.is_none(), "{}", preset.name);
        assert_eq!((result.llm_calls, harness.host.seen.notices.len()), (0, 1), "{}", preset.name);
    }
}
