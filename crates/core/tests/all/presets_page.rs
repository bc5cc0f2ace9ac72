//! `docs/presets.md` is made from the tables of presets and options. `BLESS=1` writes it anew.

use context_compactor_core::policy::{OPTIONS, OptionKind, PRESETS, Preset, Rung, When};
use std::fmt::Write as _;
use std::path::Path;

const HEAD: &str = "# Presets

One engine for all. A preset says which steps it takes, when, and with which numbers. This page is made from the tables in the code
(`crates/core/src/policy/presets.rs` and `options.rs`), and a test keeps them the same.

The numbers are defaults for a window of 200,000 tokens or more; many shrink with windows under about 48K, and
`clear.keepRecent` of `balanced` is in proportion to any window, at least 3, and 3 with `economy`. Each row is an option. A preset
has a column where it takes the step by itself. An object adds a step to any preset, as in `{ clear: {} }`, and `false` removes it.
[The five systems](systems.md) says where the numbers come from.
";

#[test]
fn the_page_is_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/presets.md");
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
    table(&mut page, "Steps, in their order", "asks a model", &rungs());
    for (title, rows) in groups() {
        table(&mut page, title, "what it is", &rows);
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
            match (removes(preset), preset.when) {
                (false, _) => "(none)",
                (true, When::Window) => {
                    "the history stays; a prompt that does not fit otherwise gets the built-in summary"
                }
                (true, _) => "the history stays, unless `summarize.fallback` is `extractive`",
            }
            .to_owned()
        }),
        row("a summary begins with", |preset| {
            let shown = preset.summary_marker.lines().next().unwrap_or("");
            if removes(preset) { format!("`{shown}`") } else { "(none)".to_owned() }
        }),
        row("summaries", |preset| {
            match (removes(preset), preset.checkpoints) {
                (false, _) => "none: no message is ever removed",
                (true, false) if preset.numbers.keep.is_some() => {
                    "one, made again from itself and what is new; beside it what is kept, made again from the messages"
                }
                (true, false) => "one, made again from itself and what is new",
                (true, true) => "checkpoints, which age and merge",
            }
            .to_owned()
        }),
        row("an acknowledgement follows the summary", |preset| {
            match (removes(preset), preset.acknowledges) {
                (false, _) => "",
                (true, true) => "if the next message is the user's",
                (true, false) => "only if the cut cannot be moved",
            }
            .to_owned()
        }),
        row("in the place of a result", |preset| {
            let has = |rung| preset.rungs.contains(&rung);
            let mut stands = Vec::new();
            if preset.stubs {
                stands.push(
                    "`Tool result is at: off_… (Read src/a.ts; 8,400 characters; read it with recall_read)` and its first line; to a model without the recall tools `Tool result left out; look it up again if needed (…)`",
                );
            } else {
                stands
                    .extend(has(Rung::Admit).then_some("`Output too large. Saved to: off_…` and a preview"));
                stands.extend(has(Rung::Clear).then_some("`[Output compacted - re-read if needed]`"));
                stands.extend(has(Rung::Offload).then_some("`Tool result is at: off_…`"));
                stands.extend(has(Rung::Compress).then_some("a shorter text"));
                stands.extend(has(Rung::Process).then_some("what matters of it"));
            }
            stands.join("; ")
        }),
        row("recent messages kept (`keep`)", |preset| match (removes(preset), preset.when) {
            (false, _) => String::new(),
            (true, When::Window) => "30 % of the window, with the summary".to_string(),
            (true, _) => format!("{} messages", preset.numbers.preserve_count),
        }),
        row("old results are cleared (`clear.when`)", |preset| {
            match (preset.rungs.contains(&Rung::Clear), preset.numbers.layered.every_turn) {
                (false, _) => "",
                (true, true) => "every turn",
                (true, false) => "break-even",
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
            format!("above window − answer (at most {}) − {}", number(output), number(fixed))
        }
        When::Window => "at 75 % of the window (above 128,000 tokens at 96,000 or half of it, whichever is more), or at 90 % of the room for messages if that is less".to_string(),
        When::Room => {
            let share = preset.numbers.checkpoint.trigger_share;
            format!("above {} of window − prompt's budget − margin", percent(share))
        }
    }
}

fn rungs() -> Vec<Row> {
    let cells = |rung: Rung| {
        let (told, model) = rung.about();
        let place = |preset: &&Preset| {
            let at = preset.rungs.iter().position(|own| *own == rung);
            at.map_or_else(String::new, |at| (at + 1).to_string())
        };
        (told.to_owned(), model.to_owned(), PRESETS.iter().map(place).collect())
    };
    Rung::ALL.into_iter().map(cells).collect()
}

/// The tables of numbers, by the group of the options.
fn groups() -> Vec<(&'static str, Vec<Row>)> {
    let mut groups: Vec<(&str, Vec<Row>)> = Vec::new();
    for option in OPTIONS {
        let cells: Vec<String> = PRESETS
            .iter()
            .map(|preset| {
                let applies = option.rung.is_none_or(|rung| preset.rungs.contains(&rung));
                let default = option.default_of(preset).filter(|_| applies);
                default.map_or_else(String::new, |default| shown(option.kind, default))
            })
            .collect();
        if cells.iter().all(String::is_empty) {
            continue;
        }
        let path = option.path.strip_prefix("advanced.").unwrap_or(option.path);
        let group = path.split_once('.').map_or("advanced", |(group, _)| group);
        let row = (format!("`{}`", option.path), first_sentence(option.doc).to_owned(), cells);
        match groups.iter_mut().find(|(name, _)| *name == group) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((group, vec![row])),
        }
    }
    groups
}

fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text.trim_end_matches('.'), |(first, _)| first)
}

fn shown(kind: OptionKind, value: f64) -> String {
    match kind {
        OptionKind::Flag => if value == 0.0 { "no" } else { "yes" }.to_owned(),
        OptionKind::Number { most, .. } if most <= 1.0 => percent(value),
        _ => number(value as usize),
    }
}

fn percent(share: f64) -> String {
    format!("{} %", (share * 1_000.0).round() / 10.0)
}

fn number(value: usize) -> String {
    let digits = value.to_string();
    let grouped: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    grouped.iter().map(|group| String::from_utf8_lossy(group)).collect::<Vec<_>>().join(",")
}
