//! The rules of the SDK (AI1 to AI6) with the change that mends each, and those of some versions only (AI1, AI7).

use super::ui::{self, State};
use super::{Shape, is_true, kind, model, options, output, parts, read, role, text_of};
use crate::order;
use crate::rules::Finding;
use crate::{Past, Problem, tagged};
use serde_json_borrow::Value;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// What mends a message. A message's fixes are applied from the greatest to the least.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fix {
    /// Take it out.
    Drop,
    /// Take out a part.
    Part(usize),
    /// Give an output the tag that its value has.
    Tag(usize),
    /// Say that the model made the call, and not its code.
    Direct(usize),
    /// Replace lone surrogates.
    WellFormed,
}

/// A part and where it stands.
struct Place<'a> {
    shape: Shape,
    position: usize,
    nth: usize,
    part: &'a Value<'a>,
}

impl<'a> Place<'a> {
    fn id(&self, key: &str) -> Cow<'a, str> {
        text_of(self.part, key).unwrap_or_default()
    }
}

#[derive(Default)]
struct Findings(Vec<Finding<Fix>>);

impl Findings {
    fn add(&mut self, position: usize, rule: &'static str, what: impl Into<String>, fix: Fix) {
        self.0.push(Finding { position, rule, what: what.into(), fix });
    }

    fn part(&mut self, place: &Place<'_>, rule: &'static str, what: impl std::fmt::Display) {
        let path = format!("{}[{}]", place.shape.parts_key(), place.nth);
        self.add(place.position, rule, format!("{path}: {what}"), Fix::Part(place.nth));
    }
}

pub(super) fn find(messages: &[&Value<'_>]) -> Vec<Finding<Fix>> {
    judge(messages, None).0
}

/// The last UI message may be unfinished, and model messages may wait for others until the user speaks.
pub(super) fn grows(past: &mut Past, window: &[&Value<'_>]) -> bool {
    let shape = past.is_ui.map(|is_ui| if is_ui { Shape::Ui } else { Shape::Model });
    let (findings, shape, rests) = judge(window, shape);
    let clean = findings.is_empty();
    if clean {
        let begins = |message: &&Value<'_>| matches!(role(message).as_ref(), "user" | "system");
        past.is_ui = shape.map(|shape| shape == Shape::Ui);
        past.messages += match shape {
            Some(Shape::Model) if rests => window.len(),
            Some(Shape::Model) => window.iter().rposition(begins).unwrap_or(0),
            Some(Shape::Ui) | None => window.len().saturating_sub(1),
        };
    }
    clean
}

/// What is wrong with messages, the shape of the history that they are in, and whether nothing in them waits.
fn judge(messages: &[&Value<'_>], mut shape: Option<Shape>) -> (Vec<Finding<Fix>>, Option<Shape>, bool) {
    let mut findings = Findings::default();
    // Callers are looked for among all calls before theirs.
    let mut calls = HashSet::new();
    let mut exchanges = Open::default();
    for (position, message) in messages.iter().enumerate() {
        if let Err(error) = read::message(position, message) {
            findings.add(position, "AI0", format!("the message cannot be read: {error}"), Fix::Drop);
            continue;
        }
        let of_message = Shape::of(message);
        if *shape.get_or_insert(of_message) != of_message {
            let what = "UI messages and model messages do not mix; convert the whole history, or remove it";
            findings.add(position, "AI0", what, Fix::Drop);
            continue;
        }
        if tagged::is_ill_formed(message) {
            let what = "a text has a lone surrogate, which providers refuse; replace it by U+FFFD";
            findings.add(position, "AI0", what, Fix::WellFormed);
        }
        if let Some(what) = emptiness(message) {
            findings.add(position, "AI4", what, Fix::Drop);
        } else if answers_nothing(message) {
            let what =
                "a tool message must have a tool-result part; write the result as one, or remove the message";
            findings.add(position, "AI1", what, Fix::Drop);
        }
        callers(position, message, &mut calls, &mut findings);
        let last = position + 1 == messages.len();
        match of_message {
            Shape::Ui => ui_tools(position, message, last, &mut findings),
            Shape::Model => exchanges.take(position, message, last, &mut findings),
        }
    }
    let rests = exchanges.rests();
    exchanges.end(&mut findings);
    (findings.0, shape, rests)
}

/// AI4: what is wrong with a message that says nothing.
fn emptiness(message: &Value<'_>) -> Option<&'static str> {
    let content = tagged::given(message, Shape::of(message).parts_key());
    let by_assistant = role(message) == "assistant";
    let says_nothing = match content {
        Some(Value::Array(parts)) => {
            parts.iter().all(|part| kind(part) == "step-start" || is_empty_text(part, by_assistant))
        }
        Some(text) => tagged::text(text).is_some_and(|text| text.is_empty()),
        None => true,
    };
    if says_nothing {
        return Some("the message has no content; remove it");
    }
    let is_reasoning = |kind: Cow<'_, str>| kind == "step-start" || kind.starts_with("reasoning");
    let parts = parts(message);
    let only_reasoning = !parts.is_empty() && parts.iter().map(kind).all(is_reasoning);
    only_reasoning.then_some("the message is reasoning only; remove it")
}

/// True for a message of a tool without a result, or a response; of a type to come, too.
fn answers_nothing(message: &Value<'_>) -> bool {
    let answers = |part| ["-result", "-response", "-output"].iter().any(|end| kind(part).ends_with(end));
    role(message) == "tool" && !parts(message).iter().any(answers)
}

/// True for a text that the SDK leaves out: an empty one, unless it carries something of the assistant's provider.
fn is_empty_text(part: &Value<'_>, by_assistant: bool) -> bool {
    let carries = |key| by_assistant && tagged::given(part, key).is_some();
    kind(part) == "text"
        && text_of(part, "text").is_some_and(|text| text.is_empty())
        && !carries("providerOptions")
        && !carries("providerMetadata")
}

/// True for a part with a call, whoever runs it.
pub(super) fn is_call(kind: &str, shape: Shape) -> bool {
    match shape {
        Shape::Ui => ui::is_tool(kind),
        Shape::Model => kind == "tool-call",
    }
}

/// AI3
fn callers<'a>(
    position: usize,
    message: &'a Value<'a>,
    calls: &mut HashSet<Cow<'a, str>>,
    findings: &mut Findings,
) {
    let shape = Shape::of(message);
    for (nth, part) in parts(message).iter().enumerate() {
        if let Some(caller) = options::caller(part)
            && !calls.contains(&caller)
        {
            let what = format!(
                "{}[{nth}]: was made by the code of the call `{caller}`, which does not stand before it; make its caller `direct`",
                shape.parts_key()
            );
            findings.add(position, "AI3", what, Fix::Direct(nth));
        }
        if is_call(&kind(part), shape) {
            calls.extend(text_of(part, "toolCallId"));
        }
    }
}

/// AI1, AI2, AI5 and AI6 of a UI message, whose calls and results never part.
fn ui_tools(position: usize, message: &Value<'_>, last: bool, findings: &mut Findings) {
    let parts = parts(message);
    let last_step = parts.iter().rposition(|part| ui::ends_step(&kind(part))).unwrap_or(0);
    let mut ids = HashSet::new();
    for (nth, part) in parts.iter().enumerate() {
        let place = Place { shape: Shape::Ui, position, nth, part };
        let kind = kind(part);
        if ui::ends_step(&kind) {
            ids.clear();
        }
        if !ui::is_tool(&kind) {
            continue;
        }
        let id = place.id("toolCallId");
        let state = text_of(part, "state").unwrap_or_default();
        let approval = tagged::given(part, "approval");
        if !ids.insert(id.clone()) {
            findings.part(
                &place,
                "AI1",
                format!("the id `{id}` stands on two calls of one step; remove one"),
            );
        } else if is_unfinished(part, &state) && !(last && nth >= last_step) {
            let what = format!(
                "the call `{id}` is in state {state} and the conversation went on; finish it or remove it"
            );
            findings.part(&place, "AI6", what);
        } else if (state.starts_with("approval-") || state == "output-denied")
            && approval.and_then(|approval| text_of(approval, "id")).is_none()
        {
            findings.part(
                &place,
                "AI2",
                format!("the call `{id}` must have the id of its approval; remove it"),
            );
        } else if !matches!(state.as_ref(), "input-streaming" | "output-error")
            && tagged::field(part, "input").is_none()
        {
            findings.part(&place, "AI5", format!("the call `{id}` must have an input; remove it"));
        }
    }
}

/// True for a call that the model cannot be told the end of. What the provider asked the approval of ends with the
/// answer, when that is no.
fn is_unfinished(part: &Value<'_>, state: &str) -> bool {
    let decided = is_true(part, "providerExecuted") && state == "approval-responded";
    State::of(part) == State::Incomplete && !decided
}

/// A call of the model messages, until it has its result.
struct Call<'a> {
    place: Place<'a>,
    /// The provider runs it: its result may stand in a later message of the assistant.
    of_provider: bool,
    answered: bool,
    /// Position of the message that answers its request for approval.
    decided: Option<usize>,
}

/// A request for the approval of a call, until it has its answer.
struct Request<'a> {
    place: Place<'a>,
    call: usize,
    answered: bool,
}

/// Exchanges of model messages since the user last spoke.
#[derive(Default)]
struct Open<'a> {
    calls: Vec<Call<'a>>,
    requests: Vec<Request<'a>>,
    /// Calls that wait for a result, by id; the newest last.
    waiting: HashMap<Cow<'a, str>, Vec<usize>>,
    /// Requests that wait for an answer, by id of the approval.
    undecided: HashMap<Cow<'a, str>, Vec<usize>>,
    /// The newest call with an id.
    by_id: HashMap<Cow<'a, str>, usize>,
    /// First call of the step, which ends with the message of its results.
    step: usize,
    /// Position of the last message, when it is a tool's.
    last_of_tool: Option<usize>,
}

impl<'a> Open<'a> {
    fn take(&mut self, position: usize, message: &'a Value<'a>, last: bool, findings: &mut Findings) {
        let role = role(message);
        if matches!(role.as_ref(), "user" | "system") {
            self.close(false, findings);
        }
        if role == "tool" {
            self.step = self.calls.len();
            self.last_of_tool = last.then_some(position);
        }
        for (nth, part) in parts(message).iter().enumerate() {
            let place = Place { shape: Shape::Model, position, nth, part };
            match (kind(part).as_ref(), role.as_ref()) {
                ("tool-call", "assistant") => self.call(place, findings),
                ("tool-result", "assistant") => self.result(&place, true, findings),
                ("tool-result", "tool") => {
                    self.result(&place, false, findings);
                    self.check_output(&place, findings);
                }
                ("tool-approval-request", "assistant") => self.request(place, findings),
                ("tool-approval-response", "tool") => self.response(&place, findings),
                (kind @ ("tool-call" | "tool-result"), _) => {
                    findings.part(&place, "AI1", misplaced(kind, &role));
                }
                (kind @ ("tool-approval-request" | "tool-approval-response"), _) => {
                    findings.part(&place, "AI2", misplaced(kind, &role));
                }
                (kind @ ("reasoning" | "reasoning-file"), "user" | "tool") => {
                    findings.part(&place, "AI4", misplaced(kind, &role));
                }
                _ => {}
            }
        }
    }

    fn call(&mut self, place: Place<'a>, findings: &mut Findings) {
        let id = place.id("toolCallId");
        if tagged::field(place.part, "input").is_none() {
            findings.part(&place, "AI5", format!("the call `{id}` must have an input; remove it"));
        }
        let waits = self.waiting.get(&id).and_then(|calls| calls.last());
        if waits.is_some_and(|&call| call >= self.step) {
            findings.part(
                &place,
                "AI1",
                format!("the id `{id}` stands on two calls of one step; remove one"),
            );
            return;
        }
        let at = self.calls.len();
        self.by_id.insert(id.clone(), at);
        self.waiting.entry(id).or_default().push(at);
        let of_provider = !model::is_app_call(place.part);
        self.calls.push(Call { place, of_provider, answered: false, decided: None });
    }

    fn result(&mut self, place: &Place<'a>, by_assistant: bool, findings: &mut Findings) {
        let id = place.id("toolCallId");
        // The result of a provider's call comes from the provider, unless the app denied the call.
        let denied =
            tagged::given(place.part, "output").is_some_and(|output| kind(output) == "execution-denied");
        let calls = &self.calls;
        let fits = |&call: &usize| match calls.get(call) {
            Some(call) if call.of_provider => by_assistant || denied,
            Some(_) => !by_assistant,
            None => false,
        };
        let waiting = self.waiting.get_mut(&id);
        let found = waiting.and_then(|waiting| {
            let at = waiting.iter().rposition(fits)?;
            Some(waiting.remove(at))
        });
        match found.and_then(|at| self.calls.get_mut(at)) {
            Some(call) => call.answered = true,
            None => {
                let what = if by_assistant {
                    format!(
                        "answers the call `{id}`, which the provider was not asked to run before it; remove it"
                    )
                } else {
                    format!("answers the call `{id}`, which does not wait for an answer before it; remove it")
                };
                findings.part(place, "AI1", what);
            }
        }
    }

    /// AI5
    fn check_output(&self, place: &Place<'a>, findings: &mut Findings) {
        let output = tagged::field(place.part, "output");
        let Some(what) = output::problem(output) else { return };
        if output.is_some_and(|output| !output.is_null()) {
            let what = format!("content[{}].output: {what}", place.nth);
            findings.add(place.position, "AI5", what, Fix::Tag(place.nth));
        } else {
            findings.part(place, "AI5", what);
        }
    }

    fn request(&mut self, place: Place<'a>, findings: &mut Findings) {
        let Some(&call) = self.by_id.get(&place.id("toolCallId")) else {
            let id = place.id("toolCallId");
            findings.part(
                &place,
                "AI2",
                format!(
                    "asks for the approval of the call `{id}`, which does not stand before it; remove it"
                ),
            );
            return;
        };
        self.undecided.entry(place.id("approvalId")).or_default().push(self.requests.len());
        self.requests.push(Request { place, call, answered: false });
    }

    fn response(&mut self, place: &Place<'a>, findings: &mut Findings) {
        let id = place.id("approvalId");
        let found = self.undecided.get_mut(&id).and_then(Vec::pop);
        let Some(request) = found.and_then(|at| self.requests.get_mut(at)) else {
            findings.part(
                place,
                "AI2",
                format!("answers the request `{id}`, which does not wait for an answer before it; remove it"),
            );
            return;
        };
        request.answered = true;
        if let Some(call) = self.calls.get_mut(request.call) {
            call.decided = Some(place.position);
        }
    }

    /// The conversation went on, or ended: whatever waits does so in vain.
    fn close(&mut self, at_end: bool, findings: &mut Findings) {
        let last_of_tool = self.last_of_tool.filter(|_| at_end);
        let settled = |call: &Call<'_>| {
            call.answered
                || if call.of_provider {
                    // A paused turn goes on; one that was denied has no result.
                    at_end || call.decided.is_some()
                } else {
                    // The SDK runs what the last message approves.
                    call.decided.is_some() && call.decided == last_of_tool
                }
        };
        for call in self.calls.iter().filter(|call| !settled(call)) {
            let id = call.place.id("toolCallId");
            let what = if call.of_provider {
                format!("the provider's call `{id}` has no result; remove it")
            } else {
                format!("the call `{id}` has no result in the tool messages behind it; add one or remove it")
            };
            findings.part(&call.place, "AI1", what);
        }
        for request in self.requests.iter().filter(|request| !request.answered) {
            if self.calls.get(request.call).is_some_and(|call| call.answered) {
                let id = request.place.id("approvalId");
                findings.part(
                    &request.place,
                    "AI2",
                    format!("the request `{id}` has no answer, and its call has a result; remove it"),
                );
            }
        }
        *self = Open::default();
    }

    /// True when no call waits for its result. A request that has no answer then is reported.
    fn rests(&self) -> bool {
        self.calls.iter().all(|call| call.answered)
    }

    fn end(mut self, findings: &mut Findings) {
        self.close(true, findings);
    }
}

fn misplaced(kind: &str, role: &str) -> String {
    format!("a {kind} part has no place in a message of the {role}; remove it")
}

/// Rules of some versions and providers only. AI7: version 7 takes no system messages unless it is told to; version 6
/// does. AI1: the SDK lets messages stand between calls and their results, many providers do not.
pub(super) fn strict(messages: &[Value<'_>]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut waiting: HashSet<Cow<'_, str>> = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        if read::message(index, message).is_err() {
            continue;
        }
        let mut report = |rule, message| problems.push(Problem { rule, index, message });
        let role = role(message);
        if role == "system" {
            let what = "version 7 refuses system messages; use `instructions`, or `system` in version 6";
            report("AI7", what.to_owned());
        }
        if role == "assistant" && !waiting.is_empty() {
            report("AI1", "stands between calls and their results; move it behind them".to_owned());
        }
        if role != "tool" {
            waiting.clear();
        }
        let of_kind = |name: &'static str| parts(message).iter().filter(move |part| kind(part) == name);
        match (Shape::of(message), role.as_ref()) {
            (Shape::Model, "assistant") => {
                let calls = of_kind("tool-call").filter(|part| model::is_app_call(part));
                waiting.extend(calls.filter_map(|part| text_of(part, "toolCallId")));
            }
            (Shape::Model, "tool") => {
                of_kind("tool-result").filter_map(|part| text_of(part, "toolCallId")).for_each(|id| {
                    waiting.remove(&id);
                })
            }
            _ => {}
        }
    }
    order::by_key(problems, |problem| problem.index as u64)
}
