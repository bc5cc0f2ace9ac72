//! The rules of the API (GM1 to GM3, GM5) with the change that mends each, and those of some models and servers only.

use super::names;
use super::read;
use super::turns::{self, CallSide, Turn};
use crate::rules::Finding;
use crate::{Past, Problem, tagged};
use serde_json_borrow::Value;
use std::collections::{HashMap, HashSet, VecDeque};

/// What mends a message. A message's fixes are applied from the greatest to the least.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fix {
    /// Take it out.
    Drop,
    /// Put a user's message before it.
    OpenWithUser,
    /// Make the messages of its turn one.
    Join(Vec<usize>),
    /// Put the responses of its turn before everything else in it.
    ResponsesFirst(Vec<usize>),
    /// Take out a part.
    Part(usize),
    /// Make the response of a part an object.
    Response(usize),
    /// Replace lone surrogates.
    WellFormed,
}

impl Fix {
    /// True for a fix that others may make needless, or whose positions they may change.
    pub(super) fn waits(&self) -> bool {
        matches!(self, Fix::OpenWithUser | Fix::Join(_) | Fix::ResponsesFirst(_))
    }
}

struct Findings(Vec<Finding<Fix>>);

impl Findings {
    fn add(&mut self, position: usize, rule: &'static str, what: impl Into<String>, fix: Fix) {
        self.0.push(Finding { position, rule, what: what.into(), fix });
    }

    fn half(&mut self, half: &CallSide<'_>, what: &str) {
        let what = format!("parts[{}]: {what}; remove it", half.nth);
        self.add(half.position, "GM2", what, Fix::Part(half.nth));
    }
}

pub(super) fn find(messages: &[&Value<'_>]) -> Vec<Finding<Fix>> {
    judge(messages, true).0
}

/// A turn of the model depends on nothing before it.
pub(super) fn grows(past: &mut Past, window: &[&Value<'_>]) -> bool {
    let (findings, seam) = judge(window, past.messages == 0);
    let clean = findings.is_empty();
    past.messages += if clean { seam } else { 0 };
    clean
}

/// What is wrong with a history, or (`begins` is false) with the end of one from a turn of the model on, and where the last
/// turn of the model begins.
fn judge(messages: &[&Value<'_>], begins: bool) -> (Vec<Finding<Fix>>, usize) {
    let mut findings = Findings(Vec::new());
    let mut unreadable = HashSet::new();
    for (position, message) in messages.iter().enumerate() {
        if let Err(error) = read::message(position, message) {
            findings.add(position, "GM0", format!("the message cannot be read: {error}"), Fix::Drop);
            unreadable.insert(position);
            continue;
        }
        if tagged::is_ill_formed(message) {
            let what = "a text has a lone surrogate, which the API refuses; replace it by U+FFFD";
            findings.add(position, "GM0", what, Fix::WellFormed);
        }
        contents(position, message, &mut findings);
    }
    let turns = turns::of(messages, |position| !unreadable.contains(&position));
    if begins && let Some(Turn { from_model: true, positions, .. }) = turns.first() {
        let what = "the first message must be the user's; put one before it";
        positions.iter().take(1).for_each(|&first| findings.add(first, "GM1", what, Fix::OpenWithUser));
    }
    pairs(&turns, &mut findings);
    turns.iter().for_each(|turn| follows_the_user(turn, &mut findings));
    let seam = turns.iter().rfind(|turn| turn.from_model).and_then(|turn| turn.positions.first());
    (findings.0, seam.copied().unwrap_or(0))
}

/// GM5
fn contents(position: usize, message: &Value<'_>, findings: &mut Findings) {
    let parts = names::parts(message);
    if parts.is_empty() {
        findings.add(position, "GM5", "the message has no parts; remove it", Fix::Drop);
    }
    for (nth, part) in parts.iter().enumerate() {
        if names::data(part).next().is_none() {
            let what = format!("parts[{nth}]: a part must hold something; remove it");
            findings.add(position, "GM5", what, Fix::Part(nth));
        }
        let args = names::FUNCTION_CALL.of(part).and_then(|call| tagged::given(call, "args"));
        if args.is_some_and(|args| tagged::object(args).is_none()) {
            let what = format!("parts[{nth}]: the args of a function call must be an object; remove it");
            findings.add(position, "GM5", what, Fix::Part(nth));
        }
        let response = names::FUNCTION_RESPONSE.of(part);
        let is_object =
            |function| tagged::given(function, "response").is_some_and(|r| tagged::object(r).is_some());
        if response.is_some_and(|function| !is_object(function)) {
            let what = format!("parts[{nth}]: the response of a function must be an object; make it one");
            findings.add(position, "GM5", what, Fix::Response(nth));
        }
    }
}

/// GM2: the calls of a turn and the responses that begin the next are as many, of the same names and ids.
fn pairs(turns: &[Turn<'_>], findings: &mut Findings) {
    for (at, turn) in turns.iter().enumerate() {
        let stray = if turn.from_model { &turn.responses } else { &turn.calls };
        let what = "calls stand only in messages of the model, and responses in messages of the user";
        stray.iter().for_each(|half| findings.half(half, what));
        // The first turn of the user answers nothing.
        let no_calls = Turn::default();
        let (asking, answering) = match (turn.from_model, at) {
            (true, _) => (turn, turns.get(at + 1)),
            (false, 0) => (&no_calls, Some(turn)),
            (false, _) => continue,
        };
        let responses = answering.map_or(&[][..], |next| &next.responses);
        let (called, answered) = partners(&asking.calls, responses);
        for (_, call) in asking.calls.iter().enumerate().filter(|(nth, _)| !called.contains(nth)) {
            findings.half(call, &format!("the call of `{}` has no response in the next message", call.name));
        }
        for (_, response) in responses.iter().enumerate().filter(|(nth, _)| !answered.contains(nth)) {
            let what =
                format!("answers a call of `{}`, which the message before did not make", response.name);
            findings.half(response, &what);
        }
        if let Some(Turn { late: Some(late), positions, .. }) = answering.filter(|_| !answered.is_empty()) {
            let what = "responses must stand together at the start of the message after their calls; move them there";
            findings.add(*late, "GM2", what, Fix::ResponsesFirst(positions.clone()));
        }
    }
}

type Key<'h> = Option<(&'h str, &'h str)>;

/// Which calls, and which responses, have a partner: by name and id, else by name and order where one has no id.
fn partners(calls: &[CallSide<'_>], responses: &[CallSide<'_>]) -> (HashSet<usize>, HashSet<usize>) {
    fn same<'h>(half: &'h CallSide<'_>) -> Key<'h> {
        half.id.as_deref().map(|id| (half.name.as_ref(), id))
    }
    fn with_id<'h>(half: &'h CallSide<'_>) -> Key<'h> {
        half.id.is_some().then_some((&half.name, ""))
    }
    fn without_id<'h>(half: &'h CallSide<'_>) -> Key<'h> {
        half.id.is_none().then_some((&half.name, ""))
    }
    fn any<'h>(half: &'h CallSide<'_>) -> Key<'h> {
        Some((&half.name, ""))
    }
    type Keys = for<'h> fn(&'h CallSide<'_>) -> Key<'h>;
    // A response with an id fits fewer calls, so it chooses first.
    let passes: [(Keys, Keys); 3] = [(same, same), (without_id, with_id), (any, without_id)];
    let (mut called, mut answered) = (HashSet::new(), HashSet::new());
    for (of_call, of_response) in passes {
        let mut open: HashMap<(&str, &str), VecDeque<usize>> = HashMap::new();
        for (nth, call) in calls.iter().enumerate().filter(|(nth, _)| !called.contains(nth)) {
            of_call(call).into_iter().for_each(|key| open.entry(key).or_default().push_back(nth));
        }
        for (nth, response) in responses.iter().enumerate() {
            let call = of_response(response).and_then(|key| open.get_mut(&key)?.pop_front());
            if let Some(call) = call {
                called.insert(call);
                answered.insert(nth);
            }
        }
    }
    (called, answered)
}

/// GM3: a message with calls follows one of the user, and its responses follow it.
fn follows_the_user(turn: &Turn<'_>, findings: &mut Findings) {
    let (true, [first, second, ..]) = (turn.from_model && !turn.calls.is_empty(), &turn.positions[..]) else {
        return;
    };
    let later = turn.calls.iter().map(|call| call.position).find(|position| position != first);
    let position = later.unwrap_or(*second);
    let what = "a function call must follow a message of the user, and its response must follow it; join the model's \
        messages";
    findings.add(position, "GM3", what, Fix::Join(turn.positions.clone()));
}

/// Rules of some models and servers only (GM1, GM4, GM5).
pub(super) fn strict(messages: &[Value<'_>]) -> Vec<Problem> {
    let values: Vec<&Value<'_>> = messages.iter().collect();
    let turns =
        turns::of(&values, |position| values.get(position).is_some_and(|m| read::message(0, m).is_ok()));
    let mut problems = Vec::new();
    let mut report = |rule, index, what: String| problems.push(Problem { rule, index, message: what });
    for turn in &turns {
        for &second in turn.positions.iter().skip(1) {
            report("GM1", second, "two neighbours of one role; join them".to_owned());
        }
    }
    if let Some(&index) = turns.last().filter(|turn| turn.from_model).and_then(|turn| turn.positions.last()) {
        report("GM1", index, "the last message must be the user's or a function's response".to_owned());
    }
    for (index, message) in messages.iter().enumerate() {
        for (nth, _) in
            names::parts(message).iter().enumerate().filter(|(_, part)| turns::is_empty_text(part))
        {
            report("GM5", index, format!("parts[{nth}]: some servers refuse an empty text; remove it"));
        }
        let fields = tagged::object(message).into_iter().flat_map(|fields| fields.keys());
        for field in fields.filter(|field| !matches!(*field, "role" | "parts")) {
            report("GM5", index, format!("Vertex AI refuses unknown fields; remove `{field}`"));
        }
    }
    unsigned_calls(messages, &mut report);
    problems
}

/// GM4, of the models that check it (Gemini 3): since the user spoke last, the first call of each step bears the
/// signature that it came with.
fn unsigned_calls(messages: &[Value<'_>], report: &mut impl FnMut(&'static str, usize, String)) {
    let speaks = |message: &Value<'_>| {
        !turns::is_from_model(message)
            && names::parts(message).iter().any(|part| names::FUNCTION_RESPONSE.of(part).is_none())
    };
    let since = messages.iter().rposition(speaks).unwrap_or(0);
    for (index, message) in messages.iter().enumerate().skip(since) {
        let first = names::parts(message).iter().find(|part| names::FUNCTION_CALL.of(part).is_some());
        if first.is_some_and(|call| !names::is_signed(call)) {
            let what = "newer models refuse the first call of a step without its thoughtSignature; keep it as it came, or \
                set it to `skip_thought_signature_validator`";
            report("GM4", index, what.to_owned());
        }
    }
}
