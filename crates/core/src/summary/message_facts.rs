//! What each message names, found once: whichever requests show it count it again without a look at its text.

use super::facts::{Fact, FactKind, FoundFacts, SeenInPart, emphasis, look, recency};
use crate::message::{Message, Part};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

/// How many facts are kept.
const MOST: usize = 64;

/// How many of one kind, so that a history full of identifiers keeps its paths.
const MOST_OF_KIND: usize = 24;

/// The facts of a history, best first, at most 64.
pub fn facts(messages: &[Message<'_>]) -> Vec<Fact> {
    NamedFacts::of(messages.len()).facts(messages, 0..messages.len())
}

/// What the messages of a history name, each found when it is asked for first.
#[derive(Debug, Default)]
pub(crate) struct NamedFacts(Vec<OnceCell<MessageFacts>>);

impl NamedFacts {
    /// Those of so many messages.
    pub(crate) fn of(count: usize) -> Self {
        NamedFacts(vec![OnceCell::new(); count])
    }

    /// Finds what a message names; bytes that were gone through for that.
    pub(crate) fn look(&self, messages: &[Message<'_>], at: usize) -> usize {
        let (Some(named), Some(message)) = (self.0.get(at), messages.get(at)) else { return 0 };
        if named.get().is_some() {
            return 0;
        }
        named.get_or_init(|| MessageFacts::of(message));
        let parts = message.parts.iter().map(|part| match part {
            Part::Text(text) => text.len(),
            Part::ToolCall(call) => call.arguments.len(),
            Part::ToolResult(result) => result.text.len(),
            _ => 0,
        });
        parts.sum()
    }

    /// The facts of some of the messages, best first, at most 64.
    pub(crate) fn facts(&self, messages: &[Message<'_>], of: Range<usize>) -> Vec<Fact> {
        let mut found = FoundFacts::default();
        let shown = self.0.iter().zip(messages).take(of.end).skip(of.start);
        for (index, (named, message)) in shown.enumerate() {
            let named = named.get_or_init(|| MessageFacts::of(message));
            named.count(&mut found, index, recency(index, of.len()));
        }
        best(&found)
    }
}

fn best(found: &FoundFacts) -> Vec<Fact> {
    let mut facts = found.facts(|_| true);
    let mut kept: HashMap<FactKind, usize> = HashMap::new();
    facts.retain(|fact| {
        let count = kept.entry(fact.kind).or_default();
        *count += 1;
        *count <= MOST_OF_KIND
    });
    facts.truncate(MOST);
    facts
}

/// What one message names.
#[derive(Debug, Default, Clone)]
struct MessageFacts {
    /// The texts of it, one behind the other.
    texts: String,
    things: Vec<NamedThing>,
}

/// Something that a part of a message names.
#[derive(Debug, Clone)]
struct NamedThing {
    kind: FactKind,
    /// How much is made of it.
    emphasis: f64,
    /// Where its text is.
    start: u32,
    end: u32,
    /// How often the part names it.
    count: u32,
}

impl MessageFacts {
    /// What `message` names.
    fn of(message: &Message<'_>) -> Self {
        let mut all = MessageFacts::default();
        let mut known = HashMap::default();
        for part in &message.parts {
            let emphasis = emphasis(part, message.role);
            known.clear();
            look(part, message.role, &mut |named| match named {
                SeenInPart::InLine(kind, text) | SeenInPart::Apart(kind, text) => {
                    all.add(&mut known, kind, text, emphasis);
                }
                SeenInPart::Line(_) => {}
            });
        }
        all.texts.shrink_to_fit();
        all.things.shrink_to_fit();
        all
    }

    /// Counts something that a part names; `known` are things of that part by their numbers.
    fn add(&mut self, known: &mut ByNumber, kind: FactKind, text: &str, emphasis: f64) {
        let next = self.things.len();
        let at = *known.entry(quick(kind as u64, text)).or_insert(next);
        if let Some(thing) = self.things.get_mut(at)
            && thing.kind == kind
            && self.texts.get(thing.start as usize..thing.end as usize) == Some(text)
        {
            thing.count += 1;
            return;
        }
        // Also where two have the same number: things that are there twice are counted one after the other.
        let start = self.texts.len() as u32;
        self.texts.push_str(text);
        self.things.push(NamedThing { kind, emphasis, start, end: self.texts.len() as u32, count: 1 });
    }

    /// Counts what it names in `found`, as that of the message at `index`.
    fn count(&self, found: &mut FoundFacts, index: usize, recency: f64) {
        for NamedThing { kind, emphasis, start, end, count } in &self.things {
            let text = self.texts.get(*start as usize..*end as usize).unwrap_or_default();
            found.add_times(*kind, text, index, recency * emphasis, *count);
        }
    }
}

/// Places by numbers. They are hashed: who writes a text could make many that stand in one place of a table.
type ByNumber = HashMap<u64, usize>;

/// A number by which nearly all texts of a kind differ: a table of them asks for the text as well.
fn quick(kind: u64, text: &str) -> u64 {
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |hash: u64, more: u64| (hash.rotate_left(5) ^ more).wrapping_mul(MIX);
    let (eights, rest) = text.as_bytes().as_chunks::<8>();
    let hash = eights.iter().fold(kind + 1, |hash, eight| mix(hash, u64::from_le_bytes(*eight)));
    let hash = rest.iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)));
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Role, ToolCall, ToolResult};
    use std::borrow::Cow;

    /// The same, mention by mention.
    fn plainly(messages: &[Message<'_>]) -> Vec<Fact> {
        super::super::facts::collect(messages, &mut |_, _, _| {}).facts(|_| true)
    }

    #[test]
    fn p13_what_is_counted_by_messages_is_what_is_counted_by_mentions() {
        let words = [
            "src/main.rs",
            "run_all",
            "TypeError: no such file",
            "PROJ-1234",
            "v1.2.3",
            "50 MB",
            "https://a.example/x",
            "We must not push.",
            "We decided to use tokio.",
            "\n",
            "- [ ] do it",
            "`git push origin`",
            "$ cargo test",
            "E0463",
        ];
        let mut seed = 11_u32;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as usize % below
        };
        for _ in 0..200 {
            let mut messages = Vec::new();
            for nth in 0..=random(8) {
                let mut text = |most: usize| -> Cow<'_, str> {
                    (0..random(most))
                        .map(|_| format!("{} ", words[random(words.len())]))
                        .collect::<String>()
                        .into()
                };
                let parts = vec![
                    Part::Text(text(9)),
                    Part::ToolCall(ToolCall {
                        id: "1".into(),
                        name: "run".into(),
                        arguments: format!("{{\"command\":\"{}\"}}", text(4).replace('\n', " ")).into(),
                        caller: None,
                    }),
                    Part::ToolResult(ToolResult {
                        call_id: "1".into(),
                        text: text(40),
                        media: Vec::new(),
                        is_error: nth % 3 == 0,
                        mark: None,
                    }),
                    Part::Text(text(5)),
                ];
                let role = [Role::User, Role::Assistant, Role::System][nth % 3];
                messages.push(Message { role, parts });
            }
            let mut found = FoundFacts::default();
            for (index, message) in messages.iter().enumerate() {
                MessageFacts::of(message).count(&mut found, index, recency(index, messages.len()));
            }
            assert_eq!(found.facts(|_| true), plainly(&messages));
        }
    }
}
