//! Options with a number: the least and the most that each takes, what one beyond says, and what holds without it in a
//! small window.

use context_compactor_core::context::Keep;
use context_compactor_core::policy::Settings;
use context_compactor_core::{Code, Error};
use serde_json::{Value, json};

fn read(options: &Value) -> Result<Settings, Error> {
    Settings::read(&serde_json::from_str(&options.to_string()).unwrap())
}

/// Options in which `path` is `value`; `preset:name` is a name of an original system.
fn with(path: &str, value: f64) -> Value {
    let value = if value.fract() == 0.0 { json!(value as i64) } else { json!(value) };
    let mut options = json!({ "contextWindow": 1_000_000_000, "maxOutputTokens": 0 });
    match path.split_once(':') {
        Some((preset, name)) => {
            options["preset"] = preset.into();
            options["presetOptions"] = json!({ name: value });
        }
        None => {
            let (group, name) = path.split_once('.').unwrap();
            options[group] = json!({ name: value });
        }
    }
    options
}

/// The name as an error has it.
fn shown(path: &str) -> String {
    path.split_once(':').map_or_else(|| path.to_owned(), |(_, name)| format!("presetOptions.{name}"))
}

const MOST: f64 = 1e9;

/// An option, the least and the most that it takes, and where it is found then.
type Range = (&'static str, f64, f64, fn(&Settings) -> f64);

const WHOLE: [Range; 44] = [
    ("summarize.concurrency", 1.0, 100.0, |all| all.concurrency as f64),
    ("summarize.timeoutMs", 1.0, 86_400_000.0, |all| all.timeout_ms as f64),
    ("summarize.attempts", 1.0, 100.0, |all| f64::from(all.numbers.retry_count)),
    ("summarize.contextWindow", 1_000.0, MOST, |all| all.summary_window.unwrap() as f64),
    ("compactAt.tokens", 1.0, MOST, |all| all.threshold.tokens as f64),
    ("offload:offloadThreshold", 1.0, MOST, |all| all.threshold.tokens as f64),
    ("offload:preserveCount", 1.0, MOST, |all| match all.keep {
        Keep::Messages(messages) => messages as f64,
        _ => 0.0,
    }),
    ("offload:targetTokens", 1.0, MOST, |all| all.numbers.target_tokens as f64),
    ("summarize.targetTokens", 1.0, MOST, |all| all.numbers.target_tokens as f64),
    ("offload:compactTriggerThreshold", 1.0, MOST, |all| all.numbers.compact_trigger_threshold as f64),
    ("offload:compactCooldownSteps", 0.0, MOST, |all| all.numbers.compact_cooldown_steps as f64),
    ("offload:minChars", 1.0, MOST, |all| all.numbers.offload.min_chars as f64),
    ("layered:minSavings", 0.0, MOST, |all| all.numbers.min_savings as f64),
    ("layered:keepRecent", 0.0, MOST, |all| all.numbers.layered.keep_recent as f64),
    ("layered:clearMinTokens", 0.0, MOST, |all| all.numbers.layered.clear_min_tokens as f64),
    ("layered:largeOutputTokens", 1.0, MOST, |all| all.numbers.layered.large_output_tokens as f64),
    ("layered:previewChars", 0.0, MOST, |all| all.numbers.layered.preview_chars as f64),
    ("layered:maxRestoreFiles", 0.0, 1_000.0, |all| all.numbers.restore.unwrap().max_files as f64),
    ("layered:maxRestoreTokensPerFile", 1.0, MOST, |all| {
        all.numbers.restore.unwrap().max_tokens_per_file as f64
    }),
    ("layered:maxRestoreTokensTotal", 1.0, MOST, |all| all.numbers.restore.unwrap().max_tokens_total as f64),
    ("checkpoint:moderateAbove", 1.0, MOST, |all| all.numbers.checkpoint.levels.moderate_above as f64),
    ("checkpoint:compactTokens", 1.0, MOST, |all| all.numbers.checkpoint.levels.compact.high as f64),
    ("checkpoint:moderateTokens", 1.0, MOST, |all| all.numbers.checkpoint.levels.moderate.high as f64),
    ("checkpoint:detailedTokens", 1.0, MOST, |all| all.numbers.checkpoint.levels.detailed.high as f64),
    ("checkpoint:ageModerate", 1.0, MOST, |all| all.numbers.checkpoint.age_moderate as f64),
    ("checkpoint:keepUserMessages", 0.0, MOST, |all| all.numbers.checkpoint.keep_user_messages as f64),
    ("checkpoint:mergeCount", 2.0, MOST, |all| all.numbers.checkpoint.merge_count as f64),
    ("checkpoint:safetyMargin", 0.0, MOST, |all| all.numbers.checkpoint.safety_margin as f64),
    ("checkpoint:promptBudget", 0.0, MOST, |all| all.numbers.checkpoint.room as f64),
    ("checkpoint:keepSnapshots", 1.0, 100.0, |all| all.numbers.checkpoint.keep_snapshots as f64),
    ("factor3:minTokens", 0.0, MOST, |all| all.numbers.process.min_tokens as f64),
    ("factor3:structuredMinTokens", 0.0, MOST, |all| all.numbers.process.structured_min_tokens as f64),
    ("factor3:snippetChars", 1.0, MOST, |all| all.numbers.process.snippet_chars as f64),
    ("factor3:fileLines", 1.0, MOST, |all| all.numbers.process.file_lines as f64),
    ("factor3:outlineLines", 1.0, MOST, |all| all.numbers.process.outline_lines as f64),
    ("factor3:queryRows", 1.0, MOST, |all| all.numbers.process.query_rows as f64),
    ("factor3:sampleRows", 1.0, MOST, |all| all.numbers.process.sample_rows as f64),
    ("factor3:apiChars", 100.0, MOST, |all| all.numbers.process.api_chars as f64),
    ("react:singleResultThreshold", 1.0, MOST, |all| all.numbers.react.single_result_threshold as f64),
    ("react:chunkSize", 1.0, MOST, |all| all.numbers.react.chunk_size as f64),
    ("react:modelContextLimit", 1.0, MOST, |all| all.numbers.react.model_context_limit.unwrap() as f64),
    ("react:systemPromptLength", 0.0, MOST, |all| all.numbers.react.system_prompt_length as f64),
    ("react:instructionLength", 0.0, MOST, |all| all.numbers.react.instruction_length as f64),
    ("react:resultCompressionMinSize", 0.0, MOST, |all| all.numbers.react.result_compression_min_size as f64),
];

const SHARES: [Range; 8] = [
    ("offload:scanRatio", 0.0, 1.0, |all| all.numbers.offload.scan_ratio),
    ("factor3:emergencyShare", 0.001, 1.0, |all| all.numbers.emergency_share),
    ("checkpoint:triggerShare", 0.001, 1.0, |all| all.numbers.checkpoint.trigger_share),
    ("react:chunkRatio", 0.001, 1.0, |all| all.numbers.react.chunk_ratio),
    ("react:secondRatio", 0.001, 1.0, |all| all.numbers.react.second_ratio),
    ("react:globalRatio", 0.001, 1.0, |all| all.numbers.react.global_ratio),
    ("react:relianceRatio", 0.001, 1.0, |all| all.numbers.react.reliance_ratio),
    ("react:globalCompressionThreshold", 0.001, 1.0, |all| all.numbers.react.global_compression_threshold),
];

#[test]
fn f39_every_number_of_the_options_is_taken_from_its_least_to_its_most_and_no_further() {
    let steps = WHOLE.iter().map(|range| (range, 1.0)).chain(SHARES.iter().map(|range| (range, 0.000_5)));
    for ((path, least, most, found), step) in steps {
        for value in [*least, *most] {
            let settings = read(&with(path, value)).unwrap_or_else(|error| panic!("{path} {value}: {error}"));
            assert_eq!(found(&settings), value, "{path}");
        }
        for value in [least - step, most + step] {
            let error = read(&with(path, value)).map(|_| ()).unwrap_err();
            assert_eq!(
                (error.code, error.field.as_deref()),
                (Code::InvalidOption, Some(&*shown(path))),
                "{value}"
            );
            assert!(
                error.message.contains(&format!("must lie in {least} to {most}, not {value}")),
                "{error}"
            );
        }
    }
    for (path, least, ..) in WHOLE {
        let error = read(&with(path, least + 0.5)).map(|_| ()).unwrap_err();
        assert_eq!(error.field.as_deref(), Some(&*shown(path)));
        assert!(error.message.contains(&format!("must be a whole number, not {}", least + 0.5)), "{error}");
    }
}

#[test]
fn f39_in_a_small_window_numbers_are_in_proportion_down_to_a_least() {
    let at =
        |preset: &str, window: usize| read(&json!({ "preset": preset, "contextWindow": window })).unwrap();
    for (window, target, trigger) in [(200_000, 8_000, 15_000), (20_000, 800, 1_500), (1_000, 200, 100)] {
        let numbers = at("offload", window).numbers;
        assert_eq!((numbers.target_tokens, numbers.compact_trigger_threshold), (target, trigger), "{window}");
    }
    for (window, savings, clear, large, file, files, reserve) in [
        (200_000, 20_000, 1_000, 40_000, 5_000, 50_000, 13_000),
        (20_000, 2_000, 100, 4_000, 500, 5_000, 1_300),
        (1_000, 100, 100, 200, 100, 250, 100),
    ] {
        let settings = at("layered", window);
        let (numbers, restore) = (settings.numbers, settings.numbers.restore.unwrap());
        assert_eq!((numbers.min_savings, numbers.layered.clear_min_tokens), (savings, clear), "{window}");
        assert_eq!(numbers.layered.large_output_tokens, large, "{window}");
        assert_eq!((restore.max_tokens_per_file, restore.max_tokens_total), (file, files), "{window}");
        assert_eq!(settings.threshold.allowance, reserve, "{window}");
    }
    for (window, savings, must, least, most) in
        [(200_000, 20_000, 500, 400, 4_000), (20_000, 2_000, 100, 100, 400), (1_000, 100, 100, 100, 200)]
    {
        let numbers = at("balanced", window).numbers;
        let beside = numbers.keep.unwrap();
        assert_eq!((numbers.min_savings, beside.must_tokens), (savings, must), "{window}");
        assert_eq!((beside.least_tokens, beside.most_tokens), (least, most), "{window}");
    }
    for (window, prompt, instruction, least) in
        [(200_000, 5_000, 3_000, 5_000), (20_000, 500, 300, 500), (1_000, 25, 15, 200)]
    {
        let numbers = at("react", window).numbers.react;
        assert_eq!(
            (numbers.system_prompt_length, numbers.instruction_length),
            (prompt, instruction),
            "{window}"
        );
        assert_eq!(numbers.result_compression_min_size, least, "{window}");
    }
    for (window, margin) in [(200_000, 1_000), (4_000, 1_000), (3_996, 999), (1_000, 250)] {
        assert_eq!(at("checkpoint", window).numbers.checkpoint.safety_margin, margin, "{window}");
    }
}

#[test]
fn f39_a_name_that_is_nearly_one_that_there_is_names_that() {
    let meant = |given: &str| {
        let error = read(&json!({ "preset": given })).map(|_| ()).unwrap_err();
        let (_, meant) = error.message.split_once("did you mean \"")?;
        Some(meant.split('"').next().unwrap().to_owned())
    };
    // A letter of another case, too few, too many, another one, and two of a longer name.
    for (given, name) in [
        ("REACT", "react"),
        ("eact", "react"),
        ("reac", "react"),
        ("rreact", "react"),
        ("reacts", "react"),
        ("reuct", "react"),
        ("xheckpointx", "checkpoint"),
        ("balancxd", "balanced"),
        ("offloa", "offload"),
    ] {
        assert_eq!(meant(given).as_deref(), Some(name), "{given}");
    }
    for given in ["", "act", "re", "r-e-a-c-t", "act0", "lay", "xcheckpointx0", "offload-all"] {
        assert_eq!(meant(given), None, "{given}");
    }
}
