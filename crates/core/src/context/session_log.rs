//! The session log (`S4.4`): what every summary of the history saved, written for people. It is kept beside the messages
//! and never among them, so that no summariser ever sees it.

use crate::clock::iso8601;
use crate::text::{counted, grouped};
use crate::wire::record::{Json, ReadJson, Unreadable, WriteJson};

/// Entries that are kept one by one. The log is part of the session's row, which every commit writes: older entries
/// become a sum, and the views hold their figures.
const MOST: usize = 200;

/// What one summary of the history saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEntry {
    /// When it was begun, in ms since 1970.
    pub at: u64,
    /// Messages of the context that were summarised.
    pub messages: usize,
    /// Their tokens less those of the summary.
    pub saved: usize,
    /// Summaries that this entry counts: 1, more where older ones were added up.
    pub summaries: usize,
    /// Tokens of the whole prompt before.
    pub before: usize,
    /// Tokens of the whole prompt after.
    pub after: usize,
    /// The token budget: the context window.
    pub budget: usize,
}

impl From<LogEntry> for [u64; 7] {
    fn from(entry: LogEntry) -> Self {
        let LogEntry { at, messages, saved, summaries, before, after, budget } = entry;
        [at, messages as u64, saved as u64, summaries as u64, before as u64, after as u64, budget as u64]
    }
}

impl From<[u64; 7]> for LogEntry {
    fn from([at, messages, saved, summaries, before, after, budget]: [u64; 7]) -> Self {
        LogEntry {
            at,
            messages: messages as usize,
            saved: saved as usize,
            summaries: summaries as usize,
            before: before as usize,
            after: after as usize,
            budget: budget as usize,
        }
    }
}

impl LogEntry {
    /// The line of the document, as in `Summarized 8 messages → 1 summary (saved ~1,200 tokens)`.
    fn line(&self) -> String {
        format!(
            "Summarized {} → {} (saved ~{} tokens)",
            counted(self.messages, "message", "messages"),
            counted(self.summaries, "summary", "summaries"),
            grouped(self.saved)
        )
    }

    /// The monitoring block, and the line after it.
    pub fn text(&self) -> String {
        let time = iso8601(self.at);
        let savings = self.before.saturating_sub(self.after);
        let used = |tokens: usize| {
            format!("{} / {} ({})", grouped(tokens), grouped(self.budget), percent(tokens, self.budget))
        };
        format!(
            "## Token Usage @ {}\n- Pre-summarization: {}\n- Post-summarization: {}\n- Savings: {} tokens ({}% reduction)\n\n{}",
            time.trim_end_matches('Z'),
            used(self.before),
            used(self.after),
            grouped(savings),
            share(savings, self.before, 100),
            self.line()
        )
    }
}

/// The log of a session, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionLog(Vec<LogEntry>);

impl ReadJson<'_> for SessionLog {
    fn read(json: &mut Json<'_>) -> Result<Self, Unreadable> {
        ReadJson::read(json).map(SessionLog)
    }
}

impl WriteJson for SessionLog {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }

    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

impl ReadJson<'_> for LogEntry {
    fn read(json: &mut Json<'_>) -> Result<Self, Unreadable> {
        let numbers: [u64; 7] =
            Vec::read(json)?.try_into().map_err(|_| Unreadable::no("list of seven numbers"))?;
        Ok(numbers.into())
    }
}

impl WriteJson for LogEntry {
    fn write(&self, out: &mut Vec<u8>) {
        <[u64; 7]>::from(*self).to_vec().write(out);
    }
}

impl SessionLog {
    /// Notes one more.
    pub(crate) fn push(&mut self, entry: LogEntry) {
        self.0.push(entry);
        if self.0.len() > MOST
            && let [first, second, ..] = self.0.as_mut_slice()
        {
            second.messages += first.messages;
            second.saved += first.saved;
            second.summaries += first.summaries;
            self.0.remove(0);
        }
    }

    /// True when nothing was summarised yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The log as a text: Markdown, empty when nothing was summarised yet.
    pub(crate) fn text(&self) -> String {
        let entry = |entry: &LogEntry| if entry.summaries > 1 { entry.line() } else { entry.text() };
        self.0.iter().map(entry).collect::<Vec<_>>().join("\n\n")
    }
}

/// `part` of `whole` in units of `1 / of`, rounded, ties up.
fn share(part: usize, whole: usize, of: u128) -> u128 {
    let whole = whole.max(1) as u128;
    (part as u128 * of * 2 + whole) / (whole * 2)
}

/// With one decimal where it is not zero: `52.5%`, `35%`.
fn percent(part: usize, whole: usize) -> String {
    let tenths = share(part, whole, 1_000);
    match tenths % 10 {
        0 => format!("{}%", tenths / 10),
        decimal => format!("{}.{decimal}%", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: LogEntry = LogEntry {
        at: 1_762_684_522_000,
        messages: 8,
        saved: 1_200,
        summaries: 1,
        before: 4_200,
        after: 2_800,
        budget: 8_000,
    };

    #[test]
    fn s4_4_the_documents_figures_to_the_letter() {
        assert_eq!(
            ENTRY.text(),
            "## Token Usage @ 2025-11-09T10:35:22\n- Pre-summarization: 4,200 / 8,000 (52.5%)\n- Post-summarization: 2,800 / 8,000 (35%)\n- Savings: 1,400 tokens (33% reduction)\n\nSummarized 8 messages → 1 summary (saved ~1,200 tokens)"
        );
    }

    #[test]
    fn s4_4_numbers_are_grouped_and_rounded() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
        for (part, whole, text) in
            [(1, 3, "33.3%"), (2, 3, "66.7%"), (8, 8, "100%"), (9, 8, "112.5%"), (0, 0, "0%")]
        {
            assert_eq!(percent(part, whole), text);
        }
        assert_eq!((share(800, 1_200, 100), share(1, 200, 100)), (67, 1), "ties up");
        assert_eq!(
            LogEntry { messages: 1, ..ENTRY }.line(),
            "Summarized 1 message → 1 summary (saved ~1,200 tokens)"
        );
    }

    #[test]
    fn s4_4_the_oldest_entries_become_a_sum_and_no_saving_is_lost() {
        let mut log = SessionLog::default();
        for at in 0..MOST as u64 + 50 {
            log.push(LogEntry { at, ..ENTRY });
        }
        let text = log.text();
        assert!(
            text.starts_with(
                "Summarized 408 messages → 51 summaries (saved ~61,200 tokens)\n\n## Token Usage @ "
            ),
            "{text}"
        );
        assert_eq!(text.matches("## Token Usage @ ").count(), MOST - 1);
        let stored = crate::wire::record::to_text(&log);
        assert!(stored.len() < 16_000, "{}", stored.len());
        assert_eq!(crate::wire::record::from_str::<SessionLog>(&stored).unwrap(), log);
    }
}
