//! Tables: the header, the first and the last rows, and those that report an error.

use super::fit::{Lines, ends};
use super::text::{Severity, clip, is_logged, level};

/// Fewer records than this are no table.
const LEAST_ROWS: usize = 4;
/// The longest name of a column.
const LONGEST_NAME: usize = 64;

/// A table whose records were told apart.
#[derive(Debug)]
pub(super) struct Table<'t> {
    /// Lines above the rows, with the rule under them.
    pub(super) head: Vec<&'t str>,
    /// Names of the columns.
    pub(super) columns: Vec<&'t str>,
    /// One record each.
    pub(super) rows: Vec<&'t str>,
    /// What stands behind them, as `(120 rows)`.
    pub(super) foot: Vec<&'t str>,
}

/// Reads a text that is a table from its first line to its last.
pub(super) fn read(text: &str) -> Option<Table<'_>> {
    // A time or a level is no name of a column.
    if text.trim_start().lines().next().is_none_or(is_logged) {
        return None;
    }
    ruled(text).or_else(|| delimited(text)).or_else(|| aligned(text))
}

/// Markdown, and what database shells print: a rule under the header.
fn ruled(text: &str) -> Option<Table<'_>> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    // Some shells draw a line above the header too.
    let top = usize::from(lines.first().is_some_and(|line| is_rule(line)));
    let header = lines.get(top)?;
    if !header.contains('|') || !lines.get(top + 1).is_some_and(|line| is_rule(line)) {
        return None;
    }
    let columns: Vec<&str> = cells(header).collect();
    let body = lines.get(top + 2..)?;
    let end = body.iter().rposition(|line| line.contains('|') && !is_rule(line))? + 1;
    let rows: Vec<&str> = body.get(..end)?.to_vec();
    let whole = rows.iter().filter(|row| row.contains('|')).count();
    if rows.len() < LEAST_ROWS || whole * 10 < rows.len() * 9 {
        return None;
    }
    Some(Table { head: lines.get(..top + 2)?.to_vec(), columns, rows, foot: body.get(end..)?.to_vec() })
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.trim().trim_matches('|').split('|').map(str::trim)
}

fn is_rule(line: &str) -> bool {
    line.len() >= 3 && line.contains('-') && line.bytes().all(|byte| b"-+|: ".contains(&byte))
}

/// CSV and its like: as many fields in every record as in the header.
fn delimited(text: &str) -> Option<Table<'_>> {
    let first = text.trim_start().lines().next()?;
    let delimiter = *b",\t;|".iter().max_by_key(|mark| fields(first, **mark))?;
    let columns: Vec<&str> =
        first.split(char::from(delimiter)).map(|name| name.trim().trim_matches('"')).collect();
    let is_header = columns.len() >= 2 && columns.iter().all(|name| is_name(name));
    let distinct = columns.iter().collect::<std::collections::HashSet<_>>().len() == columns.len();
    if !is_header || !distinct {
        return None;
    }
    let records = records(text.trim(), delimiter);
    let rows: Vec<&str> = records.iter().skip(1).map(|(record, _)| *record).collect();
    let even = records.iter().filter(|(_, count)| *count == columns.len()).count();
    // Two columns and a comma are what many a list in prose has.
    let least = if columns.len() == 2 && delimiter == b',' { 2 * LEAST_ROWS } else { LEAST_ROWS };
    if rows.len() < least || even * 20 < records.len() * 19 {
        return None;
    }
    Some(Table { head: vec![records.first()?.0], columns, rows, foot: Vec::new() })
}

/// What a column may be called: words of letters and digits, no number, no path, no code.
fn is_name(name: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ' ' | '.' | '%' | '(' | ')' | '#');
    name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(inside)
        && !name.ends_with('.')
        && name.split(' ').count() <= 5
}

/// Fields of the first record.
fn fields(line: &str, delimiter: u8) -> usize {
    records(line, delimiter).first().map_or(0, |(_, count)| *count)
}

/// Records with their number of fields; a quoted field may hold delimiters and line breaks.
fn records(text: &str, delimiter: u8) -> Vec<(&str, usize)> {
    let mut records = Vec::new();
    let (mut start, mut count, mut quoted) = (0, 1, false);
    let mut take = |start: usize, end: usize, count: usize| {
        let record = text.get(start..end).unwrap_or("").trim_end_matches('\r');
        if !record.trim().is_empty() {
            records.push((record, count));
        }
    };
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted => {
                take(start, at, count);
                (start, count) = (at + 1, 1);
            }
            _ if byte == delimiter && !quoted => count += 1,
            _ => {}
        }
    }
    take(start, text.len(), count);
    records
}

/// Columns under a header of names with wide gaps between them, as `ps` and `kubectl` print.
fn aligned(text: &str) -> Option<Table<'_>> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let (header, rows) = lines.split_first()?;
    let columns: Vec<&str> = wide(header).collect();
    let named =
        |name: &&str| name.chars().any(char::is_alphabetic) && name.chars().all(|c| !c.is_lowercase());
    if columns.len() < 3 || rows.len() < LEAST_ROWS || !columns.iter().all(named) {
        return None;
    }
    let least = columns.len();
    let even = rows.iter().filter(|row| row.split_whitespace().take(least).count() == least).count();
    (even * 10 >= rows.len() * 8).then(|| Table {
        head: vec![header],
        columns,
        rows: rows.to_vec(),
        foot: Vec::new(),
    })
}

/// Cells between gaps of two blanks and more.
fn wide(line: &str) -> impl Iterator<Item = &str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty())
}

/// The table in at most `target` characters.
pub(super) fn shape(table: &Table<'_>, target: usize) -> String {
    let (rows, columns) = (table.rows.len(), table.columns.len());
    let mut out = format!("[table: {rows} rows, {columns} columns]\n");
    let room = target.saturating_sub(out.chars().count());
    let widest = (room / 8).max(80);
    let above = table.head.len();
    let all = table.head.iter().chain(&table.rows).chain(&table.foot);
    let mut lines = Lines::new(all.map(|line| clip(line, widest)), "rows");
    let behind = above + rows..lines.len();
    lines.take((0..above).chain(behind), room);
    let wrong = |at: &usize| table.rows.get(*at).is_some_and(|row| level(row) == Severity::Error);
    // Half of what is left is for rows that report an error: a column of errors says little.
    let half = room.saturating_add(lines.chars()) / 2;
    lines.take([0, rows - 1, 1, rows - 2].map(|nth| above + nth), room);
    lines.take((0..rows).filter(wrong).map(|at| above + at), half);
    lines.fill(ends(rows).map(|at| above + at), room);
    lines.write(&mut out);
    out
}

/// Some records, evenly spread, the first and the last among them.
pub(super) fn sample<T>(rows: &[T], count: usize) -> impl Iterator<Item = (usize, &T)> {
    let most = count.min(rows.len());
    let last = rows.len().saturating_sub(1);
    (0..most).filter_map(move |nth| {
        let at = if most > 1 { nth * last / (most - 1) } else { 0 };
        rows.get(at).map(|row| (at, row))
    })
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn f39_a_column_has_a_name_that_begins_with_a_letter() {
        for name in ["id", "_id", "größe", "CPU %", "a-b.c (d)"] {
            assert!(is_name(name), "{name}");
        }
        for other in ["9x", "-", "%", "", "ends.", "one two three four five six"] {
            assert!(!is_name(other), "{other}");
        }
    }
}
