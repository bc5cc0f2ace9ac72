//! What a host asks, as JSON: [`Host::ask`] answers. One host serves one evaluation.

use crate::entities::Generic;
use crate::recall::{self, Case, Cutting, Method, methods};
use crate::replay::optimum::Search;
use crate::replay::{Action, POLICIES, Policy, Replay, SHEETS, Sheet, Trace, billed};
use crate::transcript::{Transcript, Turn};
use context_compactor_core::message::Role;
use context_compactor_core::policy::cost::{Cost, Prices};
use context_compactor_core::tokens::Estimator;
use context_compactor_core::wire::{self, Format};
use context_compactor_core::{Code, Error, Result};
use given::{Asked, GivenAction, GivenCutting, GivenPolicy, GivenTranscript};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

mod given;
#[cfg(test)]
mod tests;

/// [`Cost`] of one USD.
const USD: f64 = 1e12;

/// Transcripts, and what is under way with them.
#[derive(Default)]
pub struct Host {
    transcripts: Vec<Transcript>,
    /// Of each that was replayed.
    traces: Vec<Option<&'static Trace>>,
    /// Names that several sources have, once a transcript is cut.
    generic: Option<Generic>,
    cases: Vec<Case>,
    run: Option<Run>,
    search: Option<Search<'static>>,
}

/// A replay and what its calls were like.
struct Run {
    replay: Replay<'static>,
    steps: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    /// Tokens of the prompt.
    tokens: usize,
    /// What was paid so far, USD.
    cost: f64,
    /// What was done before.
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<&'static str>,
}

impl Host {
    /// Answers a question: `{"value": …}` or `{"error": …}`, JSON text.
    pub fn ask(&mut self, question: &str) -> String {
        let answer = serde_json::from_str::<Asked<'_>>(question)
            .map_err(|error| Error::option("", format!("cannot be read: {error}")))
            .and_then(|asked| self.answer(asked));
        match answer {
            Ok(value) => json!({ "value": value }),
            Err(error) => json!({ "error": error }),
        }
        .to_string()
    }

    fn answer(&mut self, asked: Asked<'_>) -> Result<Value> {
        match asked {
            Asked::Known => Ok(known()),
            Asked::Read(transcripts) => self.read(&transcripts),
            Asked::Replay { transcript, policy, prices } => {
                let policy = policy_of(policy)?;
                let mut run = Run::new(self.trace(transcript)?, &policy, prices_of(prices)?);
                while run.replay.call().is_some() {
                    let action = run.replay.decide();
                    run.go_on(&action);
                }
                Ok(run.report())
            }
            Asked::Begin { transcript, prices } => {
                let run = Run::new(self.trace(transcript)?, &Policy::None, prices_of(prices)?);
                Ok(self.run.insert(run).next())
            }
            Asked::Act(action) => {
                let run = self.run.as_mut().ok_or_else(nothing_begun)?;
                run.act(given("policy", action)?);
                Ok(run.next())
            }
            Asked::Billed { transcript, prices } => {
                let check = billed::check(self.transcript(transcript)?, prices_of(prices)?);
                let usd = |cost: Cost| cost as f64 / USD;
                Ok(check.map_or(Value::Null, |check| {
                    json!({ "billed": usd(check.billed), "simulated": usd(check.simulated),
                        "calls": check.calls, "misses": check.misses })
                }))
            }
            Asked::Optimum { transcript, prices } => {
                let search = Search::new(self.trace(transcript)?, prices_of(prices)?);
                Ok(found(self.search.insert(search)))
            }
            Asked::Advance => {
                let search = self.search.as_mut().ok_or_else(nothing_begun)?;
                search.advance();
                Ok(found(search))
            }
            Asked::Cases { transcript, cutting } => self.cut(transcript, given("cutting", cutting)?),
            Asked::Measure { case, compactor, budget } => {
                let compactor = method(&compactor)?;
                let case = self.case(case)?;
                scores(case, &compactor.write(&case.messages(), budget, case.estimator()), budget)
            }
            Asked::Score { case, text, messages, format, budget } => {
                let text = match messages {
                    Some(messages) => written(&messages, format.as_deref())?,
                    None => text.unwrap_or_default().into_owned(),
                };
                scores(self.case(case)?, &text, budget)
            }
        }
    }

    /// The formats of what was read.
    fn read(&mut self, transcripts: &[&RawValue]) -> Result<Value> {
        let mut formats = Vec::new();
        for (nth, json) in transcripts.iter().enumerate() {
            let given: Result<GivenTranscript<'_>> = given("", json);
            let read = given.and_then(|given| given.read(nth)).map_err(|error| within(nth, error));
            let (format, transcript) = read?;
            formats.push(format.as_str());
            self.transcripts.push(transcript);
            self.traces.push(None);
        }
        Ok(json!(formats))
    }

    fn transcript(&self, nth: usize) -> Result<&Transcript> {
        self.transcripts.get(nth).ok_or_else(nothing_begun)
    }

    /// What is replayed lives as long as the host does: the instance that both are in ends with the evaluation.
    fn trace(&mut self, nth: usize) -> Result<&'static Trace> {
        if let Some(Some(trace)) = self.traces.get(nth) {
            return Ok(trace);
        }
        let trace: &'static Trace = Box::leak(Box::new(Trace::of(self.transcript(nth)?)));
        self.traces[nth] = Some(trace);
        Ok(trace)
    }

    fn case(&self, nth: usize) -> Result<&Case> {
        self.cases.get(nth).ok_or_else(nothing_begun)
    }

    fn cut(&mut self, nth: usize, cutting: GivenCutting) -> Result<Value> {
        let generic = self.generic.get_or_insert_with(|| generic(&self.transcripts));
        let transcript = self.transcripts.get(nth).ok_or_else(nothing_begun)?;
        let cases = recall::cases(transcript, generic, Cutting::from(cutting), Estimator::default());
        let is_told = |at: &usize| transcript.messages[*at].role != Role::System;
        let of = |case: &Case| {
            let needs = &case.needs;
            let hits = |most| needs.iter().filter(|need| need.rank.is_some_and(|rank| rank < most)).count();
            json!({
                "transcript": nth,
                "at": case.prefix.end,
                "messages": case.prefix.clone().filter(is_told).collect::<Vec<_>>(),
                "tokens": case.tokens,
                "needs": needs.len(),
                "copied": case.copied.len(),
                "hits5": hits(5),
                "hits10": hits(10),
            })
        };
        let told = cases.iter().map(of).collect();
        self.cases.extend(cases);
        Ok(told)
    }
}

impl Run {
    fn new(trace: &'static Trace, policy: &Policy, prices: &'static Prices) -> Self {
        Run { replay: Replay::new(trace, policy, prices), steps: Vec::new() }
    }

    fn go_on(&mut self, action: &Action) {
        self.replay.go_on(action);
        self.steps.push(Step {
            tokens: self.replay.context.cached,
            cost: self.replay.context.done.cost as f64 / USD,
            action: match action {
                Action::None => None,
                Action::Compact { .. } => Some("compact"),
                Action::Slide { .. } => Some("slide"),
                Action::Clear { .. } => Some("clear"),
            },
        });
    }

    fn act(&mut self, action: GivenAction) {
        let Some(call) = self.replay.call() else { return };
        let action = match action {
            GivenAction::None {} => Action::None,
            GivenAction::Compact { keep } => Action::Compact { tail: keep },
            GivenAction::Slide { to } => Action::Slide { to },
            GivenAction::Clear { keep } => Action::clear(call, &self.replay.context, keep),
        };
        self.go_on(&action);
    }

    /// What is known before the next call, or the report after the last.
    fn next(&self) -> Value {
        let Some(call) = self.replay.call() else { return json!({ "report": self.report() }) };
        let context = &self.replay.context;
        let tokens = context.tokens(call);
        json!({ "moment": {
            "call": self.replay.nth,
            "calls": context.trace.calls.len(),
            "tokens": tokens,
            "cached": context.cached.min(tokens),
            "stable": context.trace.stable,
            "messages": call.upto - context.from,
            "isTurn": call.is_turn,
        } })
    }

    fn report(&self) -> Value {
        let done = self.replay.context.done;
        json!({
            "cost": done.cost as f64 / USD,
            "calls": self.replay.nth,
            "compactions": done.compactions,
            "refetches": done.faults,
            "refetchedTokens": done.fetched,
            "largestPrompt": done.largest,
            "changedPrefixes": done.broken,
            "steps": self.steps,
        })
    }
}

fn generic(transcripts: &[Transcript]) -> Generic {
    let mut generic = Generic::default();
    for transcript in transcripts {
        for turn in &transcript.messages {
            let results = turn.results.iter().map(|result| &result.text);
            let calls = turn.calls.iter().map(|call| &call.arguments);
            results.chain(calls).chain([&turn.text]).for_each(|text| generic.add(&transcript.source, text));
        }
    }
    generic
}

fn nothing_begun() -> Error {
    Error::new(Code::NotFound, "nothing of this kind was read or begun")
}

fn within(nth: usize, mut error: Error) -> Error {
    error.message = format!("transcript {nth}: {}", error.message);
    error
}

/// What can be asked for by name.
fn known() -> Value {
    let policies =
        POLICIES.map(|(name, policy)| json!({ "name": name, "policy": GivenPolicy::from(policy) }));
    let sheets = SHEETS.each_ref().map(|sheet| json!({ "name": sheet.name, "prices": option_of(sheet) }));
    let compactors: Vec<Value> =
        methods().iter().map(|method| json!({ "name": method.name, "own": method.is_ours })).collect();
    json!({ "policies": policies, "prices": sheets, "compactors": compactors })
}

/// A sheet as the option `prices`.
fn option_of(sheet: &Sheet) -> Value {
    let rates = |[input, output, read, write]: [f64; 4]| json!({ "input": input, "output": output, "cacheRead": read, "cacheWrite": write });
    let mut option = rates(sheet.rates);
    if let Some((above, prices)) = sheet.above {
        let mut tier = rates(prices);
        tier["above"] = above.into();
        option["tiers"] = json!([tier]);
    }
    option
}

/// What is given as the option `field`.
fn given<'a, T: Deserialize<'a>>(field: &str, json: &'a RawValue) -> Result<T> {
    serde_json::from_str(json.get()).map_err(|error| Error::option(field, format!("cannot be read: {error}")))
}

/// A policy, or the name of one.
fn policy_of(json: &RawValue) -> Result<Policy> {
    if !json.get().starts_with('"') {
        return Ok(given::<GivenPolicy>("policy", json)?.into());
    }
    let name: String = given("policy", json)?;
    let found = POLICIES.iter().find(|(known, _)| *known == name);
    found.map(|(_, policy)| *policy).ok_or_else(|| {
        let names: Vec<&str> = POLICIES.iter().map(|(name, _)| *name).collect();
        Error::option(
            "policy",
            format!("{name:?} is no policy that is known; there are {}", names.join("; ")),
        )
    })
}

fn method(name: &str) -> Result<Method> {
    let mut methods = methods();
    match methods.iter().position(|method| method.name == name) {
        Some(at) => Ok(methods.swap_remove(at)),
        None => {
            let names: Vec<&str> = methods.iter().map(|method| method.name).collect();
            let what = format!("{name:?} is no compactor that is known; there are {}", names.join("; "));
            Err(Error::option("compactor", what))
        }
    }
}

fn prices_of(given: &RawValue) -> Result<&'static Prices> {
    let value = self::given("prices", given)?;
    let prices = Prices::of_option(&value).map_err(|mut error| {
        let field = error.field.take().filter(|field| !field.is_empty());
        error.of_field(Some(field.map_or("prices".into(), |field| format!("prices.{field}"))))
    })?;
    // As the traces.
    Ok(Box::leak(Box::new(prices)))
}

fn found(search: &Search<'_>) -> Value {
    let done = search.calls.min(search.total());
    let cost = search.is_done().then(|| search.least as f64 / USD);
    json!({ "done": done, "total": search.total(), "cost": cost })
}

fn scores(case: &Case, context: &str, budget: usize) -> Result<Value> {
    let scores = case.score_within(context, budget);
    Ok(json!({
        "mention": scores.mention,
        "context": scores.context,
        "verbatim": scores.verbatim,
        "referenced": scores.referenced,
        "recoverable": scores.recoverable,
        "invented": scores.invented,
        "tokens": scores.tokens,
    }))
}

/// A compacted history as text: what its messages say, calls and results included.
fn written(messages: &[&RawValue], format: Option<&str>) -> Result<String> {
    let turns = turns(messages, format_of(messages, format)?)?;
    let texts = recall::texts(&recall::messages(&turns));
    Ok(texts.iter().map(|text| text.text.as_str()).collect::<Vec<_>>().join("\n"))
}

fn format_of(messages: &[&RawValue], named: Option<&str>) -> Result<Format> {
    if let Some(name) = named {
        return Format::named(name);
    }
    let values = messages.iter().enumerate().map(|(index, json)| wire::parse(index, json.get()));
    wire::detect(&values.collect::<Result<Vec<_>>>()?)
}

fn turns(messages: &[&RawValue], format: Format) -> Result<Vec<Turn>> {
    let read =
        |(index, json): (usize, &&RawValue)| Turn::read(format, index, json.get(), Estimator::default());
    messages.iter().enumerate().map(read).collect()
}

impl GivenTranscript<'_> {
    fn read(&self, nth: usize) -> Result<(Format, Transcript)> {
        let format = format_of(&self.messages, self.format.as_deref())?;
        let transcript = Transcript {
            id: self.id.clone().unwrap_or_else(|| nth.to_string()),
            source: self.source.clone().unwrap_or_default(),
            domain: String::new(),
            messages: turns(&self.messages, format)?,
            billed: self.usage.iter().map(Into::into).collect(),
            compacted: self.compactions.clone(),
            stable: self.stable_tokens,
        };
        Ok((format, transcript))
    }
}
