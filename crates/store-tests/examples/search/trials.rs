//! Questions to a search, made of recorded sessions of agents: at a cut of a session, what the
//! agent says next from memory. It names things that stand before the cut and that nobody just told it: *cold needs*. What
//! it says right before such a name, with the name masked, is how it would have searched for it.

use context_compactor_core::message::{Message, Part};
use context_compactor_core::summary::{FactKind, facts};
use context_compactor_core::wire::{self, Format};
use context_compactor_store_tests::conversation::Body;
use context_compactor_store_tests::recorded::{self, Recorded};
use serde_json::Value;
use std::collections::HashMap;

/// Bytes of text (four a token) between cuts, and of the future behind one.
const STRIDE: usize = 80_000;
/// Bytes before the first cut.
const FIRST: usize = 160_000;
/// Bytes of a query at most.
const QUERY: usize = 300;
/// Different words that a query has at least.
const WORDS: usize = 3;
/// Needs of one message that are asked for.
const MOST_OF_MESSAGE: usize = 3;

/// A recorded session.
pub(crate) struct Transcript {
    /// Its id in the data.
    pub(crate) id: String,
    /// Its messages.
    pub(crate) bodies: Vec<Body>,
    /// What is asked, by ascending cuts.
    pub(crate) trials: Vec<Trial>,
}

/// What an agent says before it names what it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Its prose.
    Prose,
    /// That and the arguments of the call that names it, as far as they stand before.
    Arguments,
}

/// A question.
#[derive(Debug)]
pub(crate) struct Trial {
    /// Messages before the cut.
    pub(crate) cut: usize,
    /// What is looked for.
    pub(crate) query: String,
    /// What must stand in the message that is found.
    pub(crate) need: String,
    /// How many messages before the cut it stands in.
    pub(crate) sources: usize,
    /// What the query is made of.
    pub(crate) intent: Intent,
}

/// A message's texts.
pub(crate) struct Texts {
    /// What it says: prose, then the texts of its calls' arguments.
    pub(crate) said: String,
    /// Bytes of the prose.
    pub(crate) prose: usize,
    /// Its results.
    pub(crate) results: Vec<String>,
    is_assistant: bool,
    names: Vec<String>,
}

impl Texts {
    /// True when `need` stands in it as a word of its own.
    pub(crate) fn have(&self, need: &str) -> bool {
        has(&self.said, need) || self.results.iter().any(|text| has(text, need))
    }

    fn len(&self) -> usize {
        self.said.len() + self.results.iter().map(String::len).sum::<usize>()
    }
}

/// The texts of messages.
pub(crate) fn texts(format: Format, bodies: &[Body]) -> Vec<Texts> {
    let texts = |(nth, body): (usize, &Body)| {
        let value = wire::parse(nth, body).expect("a message is an object");
        let message = format.wire().read(nth, &value).expect("a recorded message can be read");
        texts_of(&message)
    };
    bodies.iter().enumerate().map(texts).collect()
}

fn texts_of(message: &Message<'_>) -> Texts {
    let mut said = message.text();
    let prose = said.len();
    for call in message.calls() {
        if let Ok(arguments) = serde_json::from_str(&call.arguments) {
            leaves(&arguments, &mut said);
        }
    }
    let is_assistant = message.parts.iter().all(|part| !matches!(part, Part::ToolResult(_)))
        && message.role.as_str() == "assistant";
    let wanted = [
        FactKind::Path,
        FactKind::Url,
        FactKind::Id,
        FactKind::Number,
        FactKind::Error,
        FactKind::Identifier,
    ];
    let mut names = Vec::new();
    if is_assistant {
        for fact in facts(std::slice::from_ref(message)) {
            // Paths by their last two components.
            let mut name = fact.text.as_str();
            if fact.kind == FactKind::Path {
                let ends = name.trim_end_matches('/');
                name = ends.rmatch_indices('/').nth(1).map_or(ends, |(at, _)| &ends[at + 1..]);
            }
            if wanted.contains(&fact.kind) && name.len() >= 4 && !name.contains(char::is_whitespace) {
                names.push(name.to_owned());
            }
        }
    }
    Texts {
        said,
        prose,
        results: message.results().map(|result| result.text.to_string()).collect(),
        is_assistant,
        names,
    }
}

fn leaves(value: &Value, text: &mut String) {
    match value {
        Value::String(leaf) => {
            text.push('\n');
            text.push_str(leaf);
        }
        Value::Array(items) => items.iter().for_each(|item| leaves(item, text)),
        Value::Object(fields) => fields.values().for_each(|field| leaves(field, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// True when `need` stands in `text` and no word goes on before or behind it.
pub(crate) fn has(text: &str, need: &str) -> bool {
    find(text, need).is_some()
}

fn find(text: &str, need: &str) -> Option<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut matches = text.match_indices(need).map(|(at, _)| at);
    matches.find(|at| {
        !text[..*at].chars().next_back().is_some_and(is_word)
            && !text[at + need.len()..].chars().next().is_some_and(is_word)
    })
}

/// A recorded session, its texts, and the messages behind which the agent compacted it.
type Session = (Recorded, Vec<Texts>, Vec<usize>);

/// The recorded sessions of agents with what is asked of them.
pub(crate) fn transcripts() -> Vec<Transcript> {
    const SOURCES: [&str; 3] =
        ["anthropic/claude_code_entire_cli", "anthropic/claude_code_entirecontext", "anthropic/pi_mono"];
    const UNRELATED: [&str; 2] = ["openai/swe_agent_demos", "openai/openhands_logs"];
    let mut sources: Vec<(&str, Vec<Session>)> = Vec::new();
    for name in SOURCES.into_iter().chain(UNRELATED) {
        let sessions = recorded::lines(name).into_iter().filter_map(|line| {
            let record: Value = serde_json::from_str(&line).ok()?;
            let compactions = record["meta"]["compactions"].as_array().cloned().unwrap_or_default();
            let after = compactions.iter().filter_map(|it| Some(it["after_message"].as_u64()? as usize));
            let recorded = recorded::record(&line).ok()?;
            let texts = texts(recorded.format, &recorded.bodies);
            Some((recorded, texts, after.collect()))
        });
        sources.push((name, sessions.collect()));
    }
    let mut transcripts = Vec::new();
    for (source, sessions) in &sources {
        if UNRELATED.contains(source) {
            continue;
        }
        let others =
            || sources.iter().filter(|(other, _)| other != source).flat_map(|(_, sessions)| sessions);
        let mut generic: HashMap<String, bool> = HashMap::new();
        let mut is_generic = |name: &str| {
            *generic
                .entry(name.to_owned())
                .or_insert_with(|| others().any(|(_, texts, _)| texts.iter().any(|texts| texts.have(name))))
        };
        for (recorded, texts, compactions) in sessions {
            let trials = trials(texts, compactions, &mut is_generic);
            if !trials.is_empty() {
                transcripts.push(Transcript {
                    id: recorded.id.clone(),
                    bodies: recorded.bodies.clone(),
                    trials,
                });
            }
        }
    }
    transcripts
}

fn trials(texts: &[Texts], compactions: &[usize], is_generic: &mut dyn FnMut(&str) -> bool) -> Vec<Trial> {
    let mut trials = Vec::new();
    let (mut bytes, mut due) = (0, FIRST);
    for cut in 0..texts.len() {
        if bytes < due {
            bytes += texts[cut].len();
            continue;
        }
        due = bytes + STRIDE;
        let mut future = 0;
        let end = texts[cut..].iter().position(|texts| {
            future += texts.len();
            future > STRIDE
        });
        let end = end.map_or(texts.len(), |count| cut + count + 1);
        // What the agent lost on the way it may have looked up elsewhere.
        if !compactions.iter().any(|after| (cut..end).contains(after)) {
            needs(texts, cut, end, is_generic, &mut trials);
        }
        bytes += texts[cut].len();
    }
    trials
}

fn needs(
    texts: &[Texts],
    cut: usize,
    end: usize,
    is_generic: &mut dyn FnMut(&str) -> bool,
    trials: &mut Vec<Trial>,
) {
    for now in cut..end {
        let message = &texts[now];
        if !message.is_assistant {
            continue;
        }
        let is_cold = |need: &&String| {
            find(&message.said, need).is_some()
                && !texts[cut..now].iter().any(|earlier| earlier.have(need))
                && texts[..cut].iter().any(|earlier| earlier.have(need))
        };
        let cold: Vec<&String> = message.names.iter().filter(is_cold).collect();
        let mut asked = 0;
        for need in cold.iter().filter(|need| !is_generic(need)) {
            let at = find(&message.said, need).unwrap_or_default();
            let sources = texts[..cut].iter().filter(|earlier| earlier.have(need)).count();
            let mut ask = |intent, to: usize| {
                let query = masked(before(&message.said, to), &cold);
                let mut words: Vec<&str> = query.split_whitespace().collect();
                words.sort_unstable();
                words.dedup();
                if words.len() >= WORDS {
                    trials.push(Trial { cut, query, need: (*need).clone(), sources, intent });
                }
            };
            if asked < MOST_OF_MESSAGE {
                asked += 1;
                ask(Intent::Prose, at.min(message.prose));
                if at > message.prose {
                    ask(Intent::Arguments, at);
                }
            }
        }
    }
}

/// The end of what stands before `to`.
fn before(text: &str, to: usize) -> &str {
    let mut start = to.saturating_sub(QUERY);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..to).unwrap_or_default()
}

/// A text without the words that have one of the needs in them.
fn masked(text: &str, needs: &[&String]) -> String {
    let is_kept = |word: &&str| !needs.iter().any(|need| word.to_lowercase().contains(&need.to_lowercase()));
    text.split_whitespace().filter(is_kept).collect::<Vec<_>>().join(" ")
}
