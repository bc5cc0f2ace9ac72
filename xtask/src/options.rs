//! `js/generated/options.ts`: the types of the options, with their hover texts, and what the reader in JavaScript checks by;
//! both from the table in `crates/core/src/policy/options.rs`. And the names of formats, presets and rungs, from theirs.

use crate::Result;
use context_compactor_core::policy::{
    Calls, Documented, OPTIONS, Off, OptionKind, PRESETS, Preset, Row, Rung,
};
use context_compactor_core::wire::Format;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const HEAD: &str = "/** Made by the build from `crates/core/src/policy/options.rs`. */

import type { Format, Message } from \"../types/messages.js\";
import type { ModelPrices } from \"../types/models.js\";
import type { LogLevel, ModelProfile, Preset, Progress, ToolPolicy } from \"../types/options.js\";
import type { Goal, State } from \"../types/state.js\";
import type { Store, Watermark } from \"../types/store.js\";
import type { Summarize } from \"../types/summaries.js\";
";

const PRESET_OPTIONS: &str = "presetOptions";
const WIDTH: usize = 120;

/// Writes the file where it is not what the table says.
pub(crate) fn write(root: &Path) -> Result<()> {
    let folder = root.join("js/generated");
    let file = folder.join("options.ts");
    let text = file_text();
    if fs::read_to_string(&file).is_ok_and(|written| written == text) {
        return Ok(());
    }
    println!("build: options");
    fs::create_dir_all(&folder)?;
    Ok(fs::write(file, text)?)
}

fn file_text() -> String {
    let mut text = HEAD.to_owned();
    names(&mut text);
    let every: Vec<&Row> =
        members("").filter(|row| matches!(row.calls, Calls::Every | Calls::Compact)).collect();
    let sessions: Vec<&Row> =
        members("").filter(|row| matches!(row.calls, Calls::Sessions | Calls::Open)).collect();
    interface(&mut text, "Options of everything that plans or compacts.", "CompactOptions", &every);
    interface(&mut text, "Options of a session.", "SessionOptions extends CompactOptions", &sessions);
    for row in OPTIONS {
        if let OptionKind::Group { name: Some(name), .. } = row.kind {
            interface(&mut text, row.doc, name, &members(row.path).collect::<Vec<_>>());
        }
    }
    documented(&mut text);
    rows(&mut text);
    text
}

/// The names that tables of the engine have.
fn names(text: &mut String) {
    let mut rungs = Rung::ALL.map(Rung::as_str).to_vec();
    rungs.dedup();
    text.push('\n');
    comment(text, "", "The names of formats, presets and steps, as the engine has them.");
    text.push_str("export interface Names {\n");
    for (kind, names) in [
        ("format", Format::ALL.map(Format::as_str).to_vec()),
        ("preset", PRESETS.iter().map(|preset| preset.name).collect()),
        ("step", rungs),
    ] {
        let _ = writeln!(text, "  {kind}: {};", union(&names));
    }
    text.push_str("}\n");
}

fn union(names: &[&str]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(" | ")
}

/// The options of a group, without those of its groups.
fn members(group: &str) -> impl Iterator<Item = &'static Row> + use<'_> {
    OPTIONS.iter().filter(move |row| row.path.rsplit_once('.').map_or("", |(of, _)| of) == group)
}

fn name(row: &Row) -> &'static str {
    row.path.rsplit('.').next().unwrap_or(row.path)
}

fn interface(text: &mut String, doc: &str, name: &str, rows: &[&Row]) {
    text.push('\n');
    comment(text, "", doc);
    let _ = writeln!(text, "export interface {name} {{");
    rows.iter().for_each(|row| member(text, "  ", row));
    text.push_str("}\n");
}

fn member(text: &mut String, indent: &str, row: &Row) {
    comment(text, indent, &format!("{}{}", row.doc, default(row)));
    let or_false = match row.kind {
        OptionKind::Group { name: None, short: Some(_) } => "boolean | ",
        _ if row.or_false => "false | ",
        _ => "",
    };
    match row.kind {
        OptionKind::Group { name: None, .. } if row.path != PRESET_OPTIONS => {
            let _ = writeln!(text, "{indent}{}?: {or_false}{{", name(row));
            members(row.path).for_each(|row| member(text, &format!("{indent}  "), row));
            let _ = writeln!(text, "{indent}}};");
        }
        _ => {
            let optional = if row.is_required { "" } else { "?" };
            let _ = writeln!(text, "{indent}{}{optional}: {or_false}{};", name(row), type_of(row));
        }
    }
}

fn type_of(row: &Row) -> String {
    match row.kind {
        _ if row.path == "preset" => "Preset".to_owned(),
        _ if row.path == "format" => "Format".to_owned(),
        _ if row.path == "summarize.detail" => "1 | 2 | 3".to_owned(),
        OptionKind::Count { .. } | OptionKind::Number { .. } => "number".to_owned(),
        OptionKind::Flag => "boolean".to_owned(),
        OptionKind::Text => "string".to_owned(),
        OptionKind::Names => "string[]".to_owned(),
        OptionKind::Choice(names) => union(&names()),
        OptionKind::Function(of) | OptionKind::Value(of) | OptionKind::Host(of) => of.to_owned(),
        OptionKind::Group { name: Some(name), short: Some(_) } => {
            format!("Summarize | \"server\" | \"extractive\" | {name}")
        }
        OptionKind::Group { name: Some(name), .. } => name.to_owned(),
        OptionKind::Group { name: None, .. } => "PresetOptions".to_owned(),
    }
}

/// What stands after a text about its default: that of most presets, then where another is.
fn default(row: &Row) -> String {
    if !row.default.is_empty() {
        return format!(" Default: {}.", row.default);
    }
    let applies = |preset: &&&Preset| row.rung.is_none_or(|rung| preset.rungs.contains(&rung));
    let all: Vec<(&str, String)> = PRESETS
        .iter()
        .filter(applies)
        .filter_map(|preset| Some((preset.name, value(row, row.default_of(preset)?))))
        .collect();
    // The one that is chosen without a word differs from most.
    let Some((_, usual)) = all.iter().find(|(name, _)| *name != "balanced").or(all.first()) else {
        return String::new();
    };
    let others =
        all.iter().filter(|(_, value)| value != usual).map(|(name, value)| format!("; `{name}`: {value}"));
    format!(" Default {usual}{}.", others.collect::<String>())
}

fn value(row: &Row, value: f64) -> String {
    match row.kind {
        OptionKind::Flag => (value != 0.0).to_string(),
        OptionKind::Count { .. } => grouped(value as usize),
        _ => value.to_string(),
    }
}

fn grouped(value: usize) -> String {
    let digits = value.to_string();
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    groups.iter().map(|group| String::from_utf8_lossy(group)).collect::<Vec<_>>().join(",")
}

/// A comment, on as many lines as it takes.
fn comment(text: &mut String, indent: &str, doc: &str) {
    let mut line = format!("{indent}/**");
    for word in doc.split(' ') {
        if line.len() + 1 + word.len() + " */".len() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = format!("{indent} * ");
        }
        let _ = write!(line, "{}{word}", if line.ends_with(' ') { "" } else { " " });
    }
    let _ = writeln!(text, "{line} */");
}

/// The options of each original system by its own names.
fn documented(text: &mut String) {
    let mut types = Vec::new();
    for preset in PRESETS {
        let prefix = format!("{}.", preset.name);
        let own: Vec<(&Row, &Documented)> = OPTIONS
            .iter()
            .flat_map(|row| row.documented_as.iter().map(move |documented| (row, documented)))
            .filter(|(_, documented)| documented.name.starts_with(&prefix))
            .collect();
        if own.is_empty() {
            continue;
        }
        let [first, rest @ ..] = preset.name.as_bytes() else { continue };
        let name =
            format!("{}{}Options", char::from(first.to_ascii_uppercase()), String::from_utf8_lossy(rest));
        text.push('\n');
        comment(
            text,
            "",
            &format!("The options of preset `{}` by the names of the system it comes from.", preset.name),
        );
        let _ = writeln!(text, "export interface {name} {{");
        for (row, documented) in own {
            let short = documented.name.trim_start_matches(&prefix);
            let (doc, of) = documented_as(row, documented);
            comment(text, "  ", &doc);
            let _ = writeln!(text, "  {short}?: {of};");
        }
        text.push_str("}\n");
        types.push(name);
    }
    text.push('\n');
    comment(
        text,
        "",
        "Options by the names of the systems that the presets come from: those of the chosen preset.",
    );
    let _ = writeln!(text, "export type PresetOptions = {};", types.join(" | "));
}

fn documented_as(row: &Row, documented: &Documented) -> (String, String) {
    let same = match row.path.strip_prefix("presetOptions.") {
        Some(_) => format!("{}{}", row.doc, default(row)),
        None => format!("As `{}`: {}{}", row.path, row.doc, default(row)),
    };
    match documented.off {
        Some(Off::Switch) => (format!("`false` is `{}: false`.", row.path), "boolean".to_owned()),
        Some(Off::Choice([off, on])) => {
            (format!("`{off}` is `{}: false`.", row.path), format!("\"{off}\" | \"{on}\""))
        }
        Some(Off::Text("Infinity")) => (format!("{same} `Infinity`: none is."), "number".to_owned()),
        Some(Off::Text(off)) => (same, format!("{} | \"{off}\"", type_of(row))),
        None => match row.kind {
            OptionKind::Group { .. } => {
                let inner: Vec<String> =
                    members(row.path).map(|row| format!("{}?: {}", name(row), type_of(row))).collect();
                (same, format!("{{ {} }}", inner.join("; ")))
            }
            _ => (same, type_of(row)),
        },
    }
}

/// What the reader checks by.
fn rows(text: &mut String) {
    text.push_str(
        "
/** A name of an option in an original system, and the value that switches it off. */
export type Documented = readonly [name: string, off?: string, on?: string];

/** An option, as the reader checks it. */
export interface Option {
  path: string;
  kind: \"count\" | \"number\" | \"flag\" | \"text\" | \"names\" | \"choice\" | \"function\" | \"value\" | \"host\" | \"group\";
  least?: number;
  most?: number;
  names?: readonly string[];
  /** `false` is a value too. */
  off?: true;
  /** The member that is meant when a function is given for a group. */
  short?: string;
  was?: readonly Documented[];
  /** The calls that take it. Default: all. */
  calls?: \"compact\" | \"sessions\" | \"open\";
  /** For calls that do not take it: what to do instead. */
  remedy?: string;
}

export const OPTIONS: readonly Option[] = [\n",
    );
    for row in OPTIONS {
        let _ = write!(text, "  {{ path: \"{}\", kind: \"{}\"", row.path, kind(row));
        match row.kind {
            OptionKind::Count { least, most } => {
                let _ = write!(text, ", least: {least}, most: {most}");
            }
            OptionKind::Number { least, most } => {
                let _ = write!(text, ", least: {least}, most: {most}");
            }
            OptionKind::Choice(names) => {
                let _ = write!(text, ", names: {:?}", names());
            }
            OptionKind::Group { short: Some(short), .. } => {
                let _ = write!(text, ", short: \"{short}\"");
            }
            _ => {}
        }
        if row.or_false {
            text.push_str(", off: true");
        }
        if !row.documented_as.is_empty() {
            let names: Vec<String> = row.documented_as.iter().map(documented_row).collect();
            let _ = write!(text, ", was: [{}]", names.join(", "));
        }
        match row.calls {
            Calls::Every => {}
            Calls::Compact => text.push_str(", calls: \"compact\""),
            Calls::Sessions => text.push_str(", calls: \"sessions\""),
            Calls::Open => text.push_str(", calls: \"open\""),
        }
        if !row.remedy.is_empty() {
            let _ = write!(text, ", remedy: {:?}", row.remedy);
        }
        text.push_str(" },\n");
    }
    text.push_str("];\n");
}

fn kind(row: &Row) -> &'static str {
    match row.kind {
        OptionKind::Count { .. } => "count",
        OptionKind::Number { .. } => "number",
        OptionKind::Flag => "flag",
        OptionKind::Text => "text",
        OptionKind::Names => "names",
        OptionKind::Choice(_) => "choice",
        OptionKind::Function(_) => "function",
        OptionKind::Value(_) => "value",
        OptionKind::Host(_) => "host",
        OptionKind::Group { .. } => "group",
    }
}

fn documented_row(documented: &Documented) -> String {
    match documented.off {
        None => format!("[{:?}]", documented.name),
        Some(Off::Switch) => format!("[{:?}, \"false\"]", documented.name),
        Some(Off::Text(off)) => format!("[{:?}, {off:?}]", documented.name),
        Some(Off::Choice([off, on])) => format!("[{:?}, {off:?}, {on:?}]", documented.name),
    }
}
