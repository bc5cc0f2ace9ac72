//! `docs/presets.md` is made from the table of presets. `BLESS=1 cargo test --test presets_page` writes it anew.

use context_compactor_core::checkpoint::Range;
use context_compactor_core::policy::{
    CheckpointNumbers, KeepNumbers, LayeredNumbers, Numbers, OffloadNumbers, PRESETS, Preset, ProcessNumbers,
    ReactNumbers, RestoreNumbers, Rung, When,
};
use std::fmt::Write as _;
use std::path::Path;

const HEAD: &str = "# Presets

One engine, one ladder; a preset says which rungs are climbed, when, and with which numbers. This page is made from the
table in the code (`crates/core/src/policy/presets.rs`), and a test keeps the two the same.

Numbers are for a window of 200,000 tokens or more, in tokens unless they say otherwise. Those of a summary's length, the
least savings and the sizes of results shrink with a window under about 48K. Each is an option of that name, of the group
in the heading; `docs/systems.md` says where every one comes from.
";

const RUNGS: [(Rung, &str, &str); 9] = [
    (
        Rung::Process,
        "process: new results of search, file, query and API tools become what matters of them",
        "no",
    ),
    (Rung::Admit, "admit: new results that are too large become a preview and a reference", "no"),
    (Rung::Clear, "clear: old results of some tools become a mark", "no"),
    (Rung::Offload, "offload: old results become references", "no"),
    (Rung::Compress, "compress: results are shortened one by one", "where structure does not do"),
    (Rung::Summarise, "summarise: the older history becomes a summary", "yes"),
    (Rung::Age, "age: old checkpoints become shorter ones", "yes"),
    (Rung::Merge, "merge: several old, short checkpoints become one", "yes"),
    (Rung::Rollover, "emergency: recent messages are summarised too, then a fresh context begins", "yes"),
];

#[test]
fn the_page_is_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/presets.md");
    let page = page();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(page, written, "docs/presets.md differs; run with BLESS=1 and review the change");
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    table(&mut page, "How they differ", "", &behaviour());
    table(&mut page, "Rungs", "model", &rungs());
    for (title, rows) in groups() {
        table(&mut page, title, "", &rows);
    }
    page
}

/// A row: what it is about, a remark, and a cell for each preset.
type Row = (String, String, Vec<String>);

fn row(name: &str, cell: impl Fn(&'static Preset) -> String) -> Row {
    (name.to_owned(), String::new(), PRESETS.iter().map(|preset| cell(preset)).collect())
}

/// A preset that has nothing of what a table is about has no column in it.
fn table(page: &mut String, title: &str, remark: &str, rows: &[Row]) {
    let has = |at: &usize| rows.iter().any(|(_, _, cells)| !cells[*at].is_empty());
    let shown: Vec<usize> = (0..PRESETS.len()).filter(has).collect();
    let names: Vec<String> = PRESETS.iter().map(|preset| format!("`{}`", preset.name)).collect();
    let line = |name: &str, told: &str, cells: &[String]| {
        let told = if remark.is_empty() { String::new() } else { format!(" {told} |") };
        let cells: Vec<&str> = shown.iter().map(|at| cells[*at].as_str()).collect();
        format!("| {name} |{told} {} |\n", cells.join(" | "))
    };
    let _ = write!(page, "\n## {title}\n\n");
    page.push_str(&line("", remark, &names));
    let columns = shown.len() + 1 + usize::from(!remark.is_empty());
    let _ = writeln!(page, "|{}", "---|".repeat(columns));
    for (name, told, cells) in rows {
        page.push_str(&line(name, told, cells));
    }
}

fn behaviour() -> Vec<Row> {
    vec![
        row("acts", when),
        row("when the model's summary fails for good", |preset| {
            let stays = "the history stays, unless `fallback` is `extractive`";
            if removes(preset) { stays.to_owned() } else { "(none)".to_owned() }
        }),
        row("a summary begins with", |preset| {
            let shown = preset.summary_marker.trim_end();
            if removes(preset) { format!("`{shown}`") } else { "(none)".to_owned() }
        }),
        row("summaries", |preset| {
            match (removes(preset), preset.checkpoints) {
                (false, _) => "none: no message is ever removed",
                (true, false) if preset.numbers.keep.is_some() => {
                    "one, made again from itself and what is new; beside it what is kept, made anew from the messages"
                }
                (true, false) => "one, made again from itself and what is new",
                (true, true) => "checkpoints, which age and merge",
            }
            .to_owned()
        }),
        row("an answer stands behind the summary", |preset| {
            match (removes(preset), preset.acknowledges) {
                (false, _) => "",
                (true, true) => "before a message of the user",
                (true, false) => "before one, where the cut cannot move",
            }
            .to_owned()
        }),
        row("in the place of a result", |preset| {
            match (removes(preset), preset.stubs) {
                (false, _) => "",
                (true, true) => "its reference, length, hash and first line",
                (true, false) => "what the document says",
            }
            .to_owned()
        }),
        row("files read last are put back", |preset| {
            if preset.numbers.restore.is_some() { "yes" } else { "" }.to_owned()
        }),
    ]
}

fn removes(preset: &Preset) -> bool {
    preset.rungs.contains(&Rung::Summarise)
}

fn when(preset: &'static Preset) -> String {
    match preset.when {
        When::Tokens(tokens) => format!("at {} tokens", number(tokens)),
        When::Fraction(share) if preset.rungs == [Rung::Compress] => {
            format!("above {} of the limit, in characters", percent(share))
        }
        When::Fraction(share) => format!("at {} of the window", percent(share)),
        When::Left { output, fixed } => {
            format!("above the window less the answer (at most {}) and {}", number(output), number(fixed))
        }
        When::Price => "when the prices say so".to_string(),
        When::Room => {
            let share = preset.numbers.checkpoint.trigger_share;
            format!("above {} of the window less the prompt's budget and the margin", percent(share))
        }
    }
}

fn rungs() -> Vec<Row> {
    RUNGS
        .iter()
        .map(|(rung, told, model)| {
            let place = |preset: &&Preset| {
                let at = preset.rungs.iter().position(|own| own == rung);
                at.map_or_else(String::new, |at| (at + 1).to_string())
            };
            ((*told).to_owned(), (*model).to_owned(), PRESETS.iter().map(place).collect())
        })
        .collect()
}

/// The tables of numbers. Every field is named here, so that a new one cannot be left out.
fn groups() -> Vec<(&'static str, Vec<Row>)> {
    let each: Vec<Vec<Group>> = PRESETS.iter().map(|preset| numbers(preset)).collect();
    let Some(first) = each.first() else { return Vec::new() };
    let group = |at: usize, rows: &[(&str, String)]| {
        (0..rows.len())
            .map(|nth| {
                let cells = each.iter().map(|groups| groups[at].1[nth].1.clone()).collect();
                (rows[nth].0.to_owned(), String::new(), cells)
            })
            .collect()
    };
    first.iter().enumerate().map(|(at, (title, rows))| (*title, group(at, rows))).collect()
}

/// A table: what it is about, and a cell for each number.
type Group = (&'static str, Vec<(&'static str, String)>);

fn numbers(preset: &'static Preset) -> Vec<Group> {
    let Numbers {
        preserve_count,
        keep_tokens,
        target_tokens,
        keep,
        min_savings,
        compact_trigger_threshold,
        compact_cooldown_steps,
        retry_count,
        retry_wait_ms,
        offload: OffloadNumbers { scan_ratio, min_chars },
        react,
        restore,
        layered,
        checkpoint,
        emergency_share,
        process,
    } = preset.numbers;
    let LayeredNumbers {
        every_turn,
        cache_read,
        cache_write,
        keep_recent,
        clear_min_tokens,
        clear_inputs,
        large_output_tokens,
        preview_chars,
    } = layered;
    let summarises = |cell: String| if removes(preset) { cell } else { String::new() };
    let on = |rung: Rung, cell: String| if preset.rungs.contains(&rung) { cell } else { String::new() };
    let file =
        |cell: fn(RestoreNumbers) -> usize| restore.map_or_else(String::new, |files| number(cell(files)));
    vec![
        (
            "Numbers of every preset",
            vec![
                ("preserveCount", summarises(number(preserve_count))),
                (
                    "tokens kept at the end, instead",
                    if keep_tokens > 0 { number(keep_tokens) } else { String::new() },
                ),
                (
                    "targetTokens",
                    summarises(if preset.checkpoints {
                        "by level".to_owned()
                    } else {
                        number(target_tokens)
                    }),
                ),
                ("compactCooldownSteps", summarises(number(compact_cooldown_steps as usize))),
                ("retryCount", number(retry_count as usize)),
                ("wait between attempts, ms × attempt", number(retry_wait_ms as usize)),
            ],
        ),
        ("Kept beside a summary", kept(keep)),
        (
            "`offload`",
            vec![
                ("scanRatio", on(Rung::Offload, percent(scan_ratio))),
                ("minChars", on(Rung::Offload, number(min_chars))),
                ("compactTriggerThreshold", on(Rung::Offload, number(compact_trigger_threshold))),
            ],
        ),
        ("`react`, in characters", compress(preset, react)),
        (
            "`layered`",
            vec![
                ("clear", on(Rung::Clear, if every_turn { "every-turn" } else { "break-even" }.to_owned())),
                ("cacheRead (break-even)", on(Rung::Clear, percent(cache_read))),
                ("cacheWrite (break-even)", on(Rung::Clear, percent(cache_write))),
                ("keepRecent", on(Rung::Clear, number(keep_recent))),
                ("clearMinTokens", on(Rung::Clear, number(clear_min_tokens))),
                ("clearInputs", on(Rung::Clear, if clear_inputs { "yes" } else { "no" }.to_owned())),
                ("largeOutputTokens", on(Rung::Admit, number(large_output_tokens))),
                ("previewChars", on(Rung::Admit, number(preview_chars))),
                ("minSavings", if min_savings == 0 { String::new() } else { number(min_savings) }),
                ("maxRestoreFiles", file(|files| files.max_files)),
                ("maxRestoreTokensPerFile", file(|files| files.max_tokens_per_file)),
                ("maxRestoreTokensTotal", file(|files| files.max_tokens_total)),
            ],
        ),
        ("`factor3`", typed(preset, process, emergency_share)),
        ("`checkpoint`", checkpoints(preset, checkpoint)),
    ]
}

fn kept(keep: Option<KeepNumbers>) -> Vec<(&'static str, String)> {
    let cell = |told: fn(KeepNumbers) -> String| -> String { keep.map_or_else(String::new, told) };
    vec![
        (
            "pins, constraints, the user's newest messages",
            cell(|KeepNumbers { must_share, must_tokens, .. }| {
                format!("{} of what it replaces, or {} tokens", percent(must_share), number(must_tokens))
            }),
        ),
        (
            "files, open errors and tasks, evidence",
            cell(|KeepNumbers { share, least_tokens, most_tokens, .. }| {
                format!("{}, {} to {} tokens", percent(share), number(least_tokens), number(most_tokens))
            }),
        ),
    ]
}

fn compress(preset: &Preset, numbers: ReactNumbers) -> Vec<(&'static str, String)> {
    let ReactNumbers {
        single_enabled,
        single_result_threshold,
        chunk_size,
        chunk_ratio,
        second_ratio,
        global_enabled,
        global_compression_threshold,
        model_context_limit,
        system_prompt_length,
        instruction_length,
        result_compression_min_size,
        global_ratio,
        strategies,
        reliance_ratio,
    } = numbers;
    let on = |cell: String| if preset.rungs.contains(&Rung::Compress) { cell } else { String::new() };
    vec![
        ("singleEnabled", on(single_enabled.to_string())),
        ("singleResultThreshold", on(number(single_result_threshold))),
        ("chunkSize", on(number(chunk_size))),
        ("chunkRatio", on(percent(chunk_ratio))),
        ("secondRatio", on(percent(second_ratio))),
        ("globalEnabled", on(global_enabled.to_string())),
        ("globalCompressionThreshold", on(percent(global_compression_threshold))),
        (
            "modelContextLimit",
            on(model_context_limit.map_or_else(|| "the window, in tokens".to_owned(), number)),
        ),
        ("systemPromptLength", on(number(system_prompt_length))),
        ("instructionLength", on(number(instruction_length))),
        ("resultCompressionMinSize", on(number(result_compression_min_size))),
        ("globalRatio", on(percent(global_ratio))),
        ("strategies", on(strategies.to_string())),
        ("relianceRatio", on(percent(reliance_ratio))),
    ]
}

fn typed(preset: &Preset, numbers: ProcessNumbers, emergency_share: f64) -> Vec<(&'static str, String)> {
    let ProcessNumbers {
        min_tokens,
        structured_min_tokens,
        snippet_chars,
        file_lines,
        outline_lines,
        query_rows,
        sample_rows,
        api_chars,
    } = numbers;
    let on = |rung: Rung, cell: String| if preset.rungs.contains(&rung) { cell } else { String::new() };
    vec![
        ("emergencyShare", on(Rung::Process, percent(emergency_share))),
        ("minTokens", on(Rung::Process, number(min_tokens))),
        ("structuredMinTokens", on(Rung::Process, number(structured_min_tokens))),
        ("snippetChars", on(Rung::Process, number(snippet_chars))),
        ("fileLines", on(Rung::Process, number(file_lines))),
        ("outlineLines", on(Rung::Process, number(outline_lines))),
        ("queryRows", on(Rung::Process, number(query_rows))),
        ("sampleRows", on(Rung::Process, number(sample_rows))),
        ("apiChars", on(Rung::Process, number(api_chars))),
    ]
}

fn checkpoints(preset: &Preset, numbers: CheckpointNumbers) -> Vec<(&'static str, String)> {
    let CheckpointNumbers {
        levels,
        keep_user_messages,
        age_moderate,
        age_compact,
        merge_count,
        safety_margin,
        prompt_budget,
        // The prompt's budget again, in proportion to the window.
        room: _,
        trigger_share,
        keep_snapshots,
    } = numbers;
    let on = |cell: String| if preset.checkpoints { cell } else { String::new() };
    let length = |Range { low, high }: Range| on(format!("{low} to {high}"));
    vec![
        ("keepUserMessages", on(number(keep_user_messages))),
        ("compactAbove", on(number(levels.compact_above))),
        ("moderateAbove", on(number(levels.moderate_above))),
        ("compactTokens", length(levels.compact)),
        ("moderateTokens", length(levels.moderate)),
        ("detailedTokens", length(levels.detailed)),
        ("ageModerate", on(number(age_moderate as usize))),
        ("ageCompact", on(number(age_compact as usize))),
        ("mergeCount", on(number(merge_count))),
        ("safetyMargin", on(number(safety_margin))),
        ("promptBudget", on(number(prompt_budget))),
        ("triggerShare", on(percent(trigger_share))),
        ("keepSnapshots", on(number(keep_snapshots))),
    ]
}

fn percent(share: f64) -> String {
    format!("{} %", (share * 1_000.0).round() / 10.0)
}

fn number(value: usize) -> String {
    let digits = value.to_string();
    let grouped: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    grouped.iter().map(|group| String::from_utf8_lossy(group)).collect::<Vec<_>>().join(",")
}
