//! What kind of question a query is. Some are answered by the order in which things were said and done, and by facts of one
//! kind, and not by their words: "what did I ask you never to do" has no word of the answer.
//!
//! A query is one of these only where it asks about the conversation itself. All others are ranked by their words. The
//! phrases are English, with the commonest ones of some other languages; facts are recognized in any language.

use super::phrases::{
    BEGINS, FIRST, FORBIDDEN, FORM, GIVEN, LAST, LIST, LOOKED, MADE, MET, NEVER, ORDER, RAN, RULES, SPEECH,
};
use super::search::Query;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// What somebody said.
    Said,
    /// What the user requires and forbids.
    Rules,
    /// Files that were changed; read, where that is asked.
    Files { read: bool },
    /// Commands that were run.
    Commands,
    /// Commits that were made.
    Commits,
    /// Errors that tools reported.
    Errors,
}

/// A question about the conversation.
#[derive(Debug)]
pub(super) struct Inquiry {
    pub(super) subject: Subject,
    /// Whose messages are asked for: the user's, or all others.
    pub(super) by_user: Option<bool>,
    pub(super) newest_first: bool,
    /// What it is about; several things where their order is asked.
    pub(super) topics: Vec<Query>,
}

/// A question has no more words.
const LONGEST: usize = 60;
/// More things are no longer told apart.
const MOST_TOPICS: usize = 6;

impl Inquiry {
    /// The question about the conversation that a query is; `None` for any other.
    pub(super) fn of(text: &str, is_question: bool) -> Option<Inquiry> {
        let words = Words::of(text);
        let asks = is_question || words.first().is_some_and(|word| BEGINS.contains(&word));
        if !asks || words.0.len() > LONGEST {
            return None;
        }
        let subject = words.subject()?;
        let by_user = if subject == Subject::Said { words.speaker() } else { None };
        let newest_first = words.any(LAST) && !words.any(FIRST);
        Some(Inquiry { subject, by_user, newest_first, topics: topics(text, subject) })
    }
}

/// The words of a query, in lower case.
struct Words(Vec<String>, String);

impl Words {
    fn of(text: &str) -> Words {
        let plain: String = text.to_lowercase().chars().filter(|c| !matches!(c, '\'' | '’')).collect();
        let words: Vec<String> = plain
            .split(|c: char| !c.is_alphanumeric())
            .filter(|w| !w.is_empty())
            .map(str::to_owned)
            .collect();
        let line = format!(" {} ", words.join(" "));
        Words(words, line)
    }

    fn first(&self) -> Option<&str> {
        self.0.first().map(String::as_str)
    }

    /// True where one of these stands in it; of scripts without spaces anywhere.
    fn any(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.has(phrase))
    }

    fn has(&self, phrase: &str) -> bool {
        if is_dense(phrase) { self.1.contains(phrase) } else { self.1.contains(&format!(" {phrase} ")) }
    }

    fn subject(&self) -> Option<Subject> {
        let person = self.any(&["you", "we", "i", "us", "me", "were", "was", "been", "have"]);
        let asks = self.any(FIRST) || self.any(LAST) || self.any(LIST) || self.any(ORDER);
        let asks = asks || self.any(&["which", "what", "list", "name"]);
        if self.asks_for_rules() {
            return Some(Subject::Rules);
        }
        if person && asks {
            if self.any(&["commits", "first commit", "last commit", "latest commit", "which commit"]) {
                return Some(Subject::Commits);
            }
            if self.any(&["commands", "which command", "what command", "first command", "last command"])
                && self.any(RAN)
            {
                return Some(Subject::Commands);
            }
            if self.any(&["files", "which file", "what file", "first file", "last file"])
                && (self.any(MADE) || self.any(LOOKED))
            {
                return Some(Subject::Files { read: !self.any(MADE) });
            }
            let is_run = self.any(FIRST) || self.any(LAST) || self.any(LIST) || self.any(&["list"]);
            if is_run && self.any(&["error", "errors", "failure", "failures", "exceptions"]) && self.any(MET)
            {
                return Some(Subject::Errors);
            }
        }
        let says =
            self.speaker().is_some() || self.any(&["we talk", "we talked", "we discuss", "we discussed"]);
        let is_list = self.any(LIST) || self.first() == Some("list");
        let is_first = says && self.is_said_first();
        (self.any(ORDER) || is_first || (is_list && says && self.is_past())).then_some(Subject::Said)
    }

    /// It asks for what was said, and not for what somebody says as a rule.
    fn is_past(&self) -> bool {
        let past = |word: &String| {
            word.ends_with("ed") || ["told", "said", "brought", "did", "have"].contains(&word.as_str())
        };
        self.0.iter().any(past) || self.0.iter().any(|word| is_dense(word))
    }

    fn asks_for_rules(&self) -> bool {
        let named = self.any(RULES) && self.any(GIVEN);
        let told = |at: usize| {
            // A model asks what the user told it.
            let is_whom = |word: &String| ["you", "me"].contains(&word.as_str());
            let is_order = |word: &String| NEVER.contains(&word.as_str());
            let rest = self.0.get(at + 1..).unwrap_or_default();
            match rest {
                [whom, to, word, ..] if is_whom(whom) && to == "to" => is_order(word),
                [whom, word, ..] if is_whom(whom) => is_order(word),
                _ => false,
            }
        };
        let asked =
            ["ask", "asked", "tell", "told", "instruct", "instructed", "want", "wanted", "warn", "warned"];
        let speaks = |at: usize| self.0.get(at).is_some_and(|word| asked.contains(&word.as_str()));
        named || self.any(FORBIDDEN) || (0..self.0.len()).any(|at| speaks(at) && told(at))
    }

    /// Who says what is asked for: the one before the word for speaking.
    fn speaker(&self) -> Option<bool> {
        let dense = [
            ("你推荐", false),
            ("你给我推荐", false),
            ("你告诉", false),
            ("你给过我", false),
            ("我问", true),
            ("我告诉", true),
        ];
        let in_dense = dense.iter().find(|(phrase, _)| self.1.contains(phrase)).map(|(_, by_user)| *by_user);
        let at = self.0.iter().position(|word| SPEECH.contains(&word.as_str()));
        let before = at.and_then(|at| self.0.get(at.saturating_sub(3)..at)).unwrap_or_default();
        let who = before.iter().rev().find_map(|word| match word.as_str() {
            "i" | "ive" | "user" => Some(true),
            "you" | "youve" | "assistant" => Some(false),
            _ => None,
        });
        who.or(in_dense)
    }

    /// "Did I first mention", "did I mention first", "what I told you first".
    fn is_said_first(&self) -> bool {
        let is_form = |word: &String| FIRST.contains(&word.as_str()) || LAST.contains(&word.as_str());
        let speaks = |word: &String| SPEECH.contains(&word.as_str());
        let next = |at: usize| self.0.get(at + 1).is_some_and(speaks);
        let ends = |at: usize| self.0.len() <= at + 2;
        let after = |at: usize| at.checked_sub(1).and_then(|at| self.0.get(at)).is_some_and(speaks);
        self.0.iter().enumerate().any(|(at, word)| is_form(word) && (next(at) || ends(at) || after(at)))
    }
}

fn is_dense(phrase: &str) -> bool {
    phrase.chars().next().is_some_and(|c| u32::from(c) >= 0x2E80)
}

/// What a question is about, without the words that ask.
fn topics(text: &str, subject: Subject) -> Vec<Query> {
    let mut text = text.to_owned();
    for phrase in ORDER.iter().chain(LIST).chain(RULES).chain(FORBIDDEN).filter(|phrase| is_dense(phrase)) {
        text = text.replace(phrase, " ");
    }
    let of_subject: &[&[&str]] = match subject {
        Subject::Said => &[],
        Subject::Rules => &[
            RULES,
            NEVER,
            &["want", "wanted", "forbid", "forbade", "forbidden", "allowed", "follow", "user"],
        ],
        Subject::Files { .. } => &[MADE, LOOKED, &["file", "files"]],
        Subject::Commands => &[RAN, &["command", "commands"]],
        Subject::Commits => &[&["commit", "commits", "git"]],
        Subject::Errors => &[MET, &["error", "errors", "failure", "failures", "exceptions"]],
    };
    let is_form = |term: &str| {
        SPEECH.contains(&term) || FORM.contains(&term) || of_subject.iter().any(|words| words.contains(&term))
    };
    let about = |piece: &str| Query::about(piece, is_form);
    let whole: Vec<Query> = about(&text).into_iter().collect();
    if subject != Subject::Said {
        return whole;
    }
    let pieces: Vec<Query> = text
        .split([',', ';', ':', '，', '、', '：'])
        .flat_map(|piece| piece.split(" or "))
        .flat_map(|piece| piece.split(" and "))
        .filter_map(about)
        .collect();
    if (2..=MOST_TOPICS).contains(&pieces.len()) { pieces } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(text: &str) -> Option<Subject> {
        Inquiry::of(text, text.ends_with(['?', '？'])).map(|ask| ask.subject)
    }

    #[test]
    fn x7_a_question_about_the_conversation_is_known_by_its_form() {
        let cases = [
            ("What did I ask you never to do?", Subject::Rules),
            ("What did I tell you to always do?", Subject::Rules),
            ("What did the user ask me never to do?", Subject::Rules),
            ("Which rules did I give you?", Subject::Rules),
            ("List my instructions.", Subject::Rules),
            ("我的规则有哪些？", Subject::Rules),
            ("In which order did I bring up the sailing club and the capstone?", Subject::Said),
            ("What came first, the refund or the bent wand?", Subject::Said),
            ("What was the first thing I asked you?", Subject::Said),
            ("List everything I told you about my sister.", Subject::Said),
            ("Which files did you change?", Subject::Files { read: false }),
            ("Which file did we just modify?", Subject::Files { read: false }),
            ("Which files did you read first?", Subject::Files { read: true }),
            ("List all commands that you ran.", Subject::Commands),
            ("What was the last commit you made?", Subject::Commits),
            ("What was the first error we hit?", Subject::Errors),
        ];
        for (text, expected) in cases {
            assert_eq!(subject(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn x7_any_other_query_is_ranked_by_its_words() {
        for text in [
            "On the family trip to Europe, which city did we visit first?",
            "What setting did I first connect with my crush in?",
            "What was my dorm called in the first two years?",
            "Where is the parser's error raised?",
            "Now list all files in the folder",
            "first commit of the parser",
            "In which file is calculateTotal defined?",
            "How many years am I planning to work in industry first, if at all? Give the number.",
            "What are the requirements of the course?",
            "Who do I usually tell everything to, but not this time about my crush?",
            "What must happen before we can run the start command?",
            "We tried to update package.json but it failed. What is the version in that file?",
        ] {
            assert_eq!(subject(text), None, "{text}");
        }
    }

    #[test]
    fn x7_the_words_that_ask_are_not_what_is_asked_about() {
        let terms = |text: &str| -> Vec<Vec<String>> {
            let topics = Inquiry::of(text, true).unwrap().topics;
            let sorted = |query: Query| {
                let mut terms: Vec<(usize, String)> =
                    query.terms.into_iter().map(|(term, at)| (at, term)).collect();
                terms.sort_unstable();
                terms.into_iter().map(|(_, term)| term).collect()
            };
            topics.into_iter().map(sorted).collect()
        };
        assert!(terms("What did I ask you never to do?").is_empty());
        assert!(terms("Which files did you change first?").is_empty());
        assert_eq!(terms("Which files of the parser did you change?"), [["parser"]]);
        assert_eq!(terms("Which came first, the refund or my sister?"), [["refund"], ["sister"]]);
        let ask = Inquiry::of("What was the last thing you suggested?", true).unwrap();
        assert_eq!((ask.by_user, ask.newest_first), (Some(false), true));
    }
}
