//! What only one message says, and texts without it.

use crate::error::Result;
use crate::message::{Message, Part};
use crate::wire::{self, ERASED, Format};
use context_compactor_scan::terms::{Kind, terms};
use std::collections::HashSet;
use std::rc::Rc;
use unicode_segmentation::UnicodeSegmentation;

/// So many words in a row distinguish a text from others with the same words.
const RUN: usize = 4;

/// The message to be erased.
pub(crate) struct Erasure {
    /// Its index.
    pub(crate) index: usize,
    /// What replaces it.
    pub(crate) blank: Rc<str>,
    pub(crate) own: Own,
}

impl Erasure {
    /// A text without what only the message says.
    pub(crate) fn without(&self, text: &str) -> String {
        self.own.without(text)
    }

    /// True for a text with something that only the message says.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.own.is_in(text)
    }
}

/// What a message says and no other message does.
#[derive(Debug, Default)]
pub(crate) struct Own {
    /// Terms.
    terms: HashSet<String>,
    /// Words in a row.
    runs: HashSet<String>,
}

impl Own {
    /// What a message says.
    pub(crate) fn of(format: Format, index: usize, body: &str) -> Result<Own> {
        let mut own = Own::default();
        let mut words = Vec::new();
        visit(format, index, body, &mut |term, is_word| {
            own.terms.insert(term.into());
            if is_word {
                words.push(term.to_string());
            }
        })?;
        own.runs = words.windows(RUN).map(|run| run.join(" ")).collect();
        Ok(own)
    }

    /// Another message says some of it, too.
    pub(crate) fn share(&mut self, format: Format, index: usize, body: &str) -> Result<()> {
        let mut last: Vec<String> = Vec::with_capacity(RUN);
        visit(format, index, body, &mut |term, is_word| {
            self.terms.remove(term);
            if is_word {
                if last.len() == RUN {
                    last.remove(0);
                }
                last.push(term.into());
                if last.len() == RUN {
                    self.runs.remove(&last.join(" "));
                }
            }
        })
    }

    /// True when `text` has something that only the message says.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        let (mut found, mut words) = (false, Vec::new());
        terms(text, &mut |term, _, kind| {
            found = found || self.terms.contains(term);
            if kind == Kind::Word {
                words.push(term.to_string());
            }
        });
        found || words.windows(RUN).any(|run| self.runs.contains(&run.join(" ")))
    }

    /// `text` without the sentences and lines that have something that only the message says.
    pub(crate) fn without(&self, text: &str) -> String {
        if !self.is_in(text) {
            return text.into();
        }
        let mut left = String::with_capacity(text.len());
        for sentence in text.split_sentence_bounds() {
            if self.is_in(sentence) {
                let end = sentence.trim_end().len();
                if !left.trim_end().ends_with(ERASED) {
                    left.push_str(ERASED);
                }
                left.push_str(sentence.get(end..).unwrap_or_default());
            } else {
                left.push_str(sentence);
            }
        }
        // What goes over the end of a sentence.
        if self.is_in(&left) { ERASED.into() } else { left }
    }
}

/// Yields each term of what a message says, and whether it is a word.
fn visit(format: Format, index: usize, body: &str, found: &mut dyn FnMut(&str, bool)) -> Result<()> {
    let value = wire::parse(index, body)?;
    let message: Message<'_> = format.wire().read(index, &value)?;
    let mut say = |text: &str| terms(text, &mut |term, _, kind| found(term, kind == Kind::Word));
    for part in &message.parts {
        match part {
            Part::Text(text) | Part::Reasoning { text, .. } => say(text),
            Part::ToolCall(call) => say(&call.arguments),
            Part::ToolResult(result) => say(&result.text),
            Part::Media(_) | Part::Opaque { .. } | Part::Compaction { .. } => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(text: &str) -> String {
        serde_json::json!({ "role": "user", "content": text }).to_string()
    }

    fn own(text: &str, others: &[&str]) -> Own {
        let mut own = Own::of(Format::OpenaiChat, 0, &body(text)).unwrap();
        for other in others {
            own.share(Format::OpenaiChat, 1, &body(other)).unwrap();
        }
        own
    }

    #[test]
    fn d24_a_sentence_with_a_term_of_the_message_alone_goes_and_the_others_stay() {
        let own = own("The password is hunter2.", &["The parser is slow. A password is wanted."]);
        let text = "The user asked about the parser. The password is Hunter2. It is slow.\n- see hunter2\n- the parser\n";
        assert_eq!(
            own.without(text),
            "The user asked about the parser. [erased] It is slow.\n[erased]\n- the parser\n"
        );
        assert_eq!(own.without("The password is wanted."), "The password is wanted.");
    }

    #[test]
    fn d24_words_that_others_use_are_told_by_their_order() {
        let own = own("never push this to main", &["push to main", "never this", "to this"]);
        assert!(own.is_in("He said: never push this to main!"));
        assert!(!own.is_in("this: push to main never"));
    }

    #[test]
    fn d24_scripts_without_spaces_are_searched_too() {
        let own = own("密码是红色房子", &["密码很长"]);
        assert_eq!(own.without("密码很长。红色房子在那里。"), "密码很长。[erased]");
    }
}
