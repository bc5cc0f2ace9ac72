//! Reading, checking and mending: valid histories are left alone, broken ones are mended for good, nothing panics.

use crate::formats::harness::{Property, any, is_valid, read};
use context_compactor_core::message::Part;
use context_compactor_core::wire::{Evidence, Format, Repaired, Unbound, detect, parse};
use context_compactor_store_tests::counts::Counts;
use context_compactor_store_tests::histories::{NAMED, anything, broken, valid};
use fastrand::Rng;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

type Outcome = Result<(), String>;

/// A repaired history, where its messages come from, and how many changes were told.
fn repair(format: Format, history: &[Value]) -> (Vec<Value>, Vec<usize>, usize) {
    let (repaired, changes) = read(history, |messages| format.rules().repair(messages));
    let index = |message: &Repaired| match message {
        Repaired::Keep(index) | Repaired::Replace { index, .. } => *index,
    };
    let body = |message: &Repaired| match message {
        Repaired::Keep(index) => history[*index].clone(),
        Repaired::Replace { json, .. } => serde_json::from_str(json).expect("JSON"),
    };
    (repaired.iter().map(body).collect(), repaired.iter().map(index).collect(), changes.len())
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(what()) }
}

/// A valid history is left alone, and its format is found when it has a certain mark.
fn left_alone(format: Format, history: &[Value], _: Rng, counts: &mut Counts) -> Outcome {
    ensure(!history.is_empty(), || "a history with nothing in it".into())?;
    counts.add("messages", history.len());
    read(history, |messages| {
        let problems = format.rules().validate(messages, false);
        ensure(problems.is_empty(), || format!("it has problems: {problems:?}"))?;
        let (repaired, changes) = format.rules().repair(messages);
        let untouched = repaired.iter().enumerate().all(|(at, message)| *message == Repaired::Keep(at));
        ensure(untouched && repaired.len() == messages.len() && changes.is_empty(), || {
            format!("repaired without need: {changes:?}")
        })?;
        let (evidence, found) = (format.wire().evidence(messages), detect(messages));
        match (evidence, found) {
            (Evidence::Certain, Ok(found)) if found == format => counts.add("detected", 1),
            (Evidence::Possible, Ok(found)) if found == format => counts.add("detected", 1),
            // What could be either is told as the one that reads it to the letter.
            (Evidence::Possible, Ok(other)) if other.rules().validate(messages, false).is_empty() => {
                counts.add("read as another", 1);
            }
            (Evidence::Possible, Err(_)) => counts.add("undecided", 1),
            (Evidence::Against, _) if NAMED.contains(&format) => counts.add("only named", 1),
            (evidence, found) => return Err(format!("{evidence:?}, and detected as {found:?}")),
        }
        Ok(())
    })
}

#[test]
fn a_valid_history_is_left_alone_and_its_format_found() {
    Property {
        name: "valid",
        make: valid,
        admits: |format, history| !history.is_empty() && is_valid(format, history),
        holds: left_alone,
    }
    .check();
}

/// A repair makes a history valid, once and for all; it removes and edits, and keeps the order of all but instructions,
/// which one format wants behind the user.
fn mended(format: Format, history: &[Value], _: Rng, counts: &mut Counts) -> Outcome {
    let problems = read(history, |messages| format.rules().validate(messages, false));
    for problem in &problems {
        counts.add(problem.rule, 1);
    }
    read(history, |messages| {
        messages.iter().enumerate().try_for_each(|(at, message)| stands(format, at, message, counts))
    })?;
    let (mended, indices, changes) = repair(format, history);
    ensure(problems.is_empty() == (changes == 0), || {
        format!("{changes} changes for the problems {problems:?}")
    })?;
    counts.add(if problems.is_empty() { "still valid" } else { "mended" }, 1);
    let left = read(&mended, |messages| format.rules().validate(messages, false));
    ensure(left.is_empty(), || format!("after the repair: {left:?} of {}", Value::from(mended.clone())))?;
    let may_move = |at: usize| {
        format == Format::Anthropic && history.get(at).is_some_and(|message| message["role"] == "system")
    };
    let kept = indices.iter().filter(|&&at| !may_move(at));
    ensure(kept.is_sorted(), || format!("in another order: {indices:?}"))?;
    let (again, _, changes) = repair(format, &mended);
    ensure(again == mended && changes == 0, || format!("repaired again: {}", Value::from(again)))
}

#[test]
fn s1_15_a_repaired_history_is_valid_and_stays_as_it_is() {
    Property { name: "repair", make: broken, admits: any, holds: mended }.check();
}

/// However odd the message, a text that was put in the place of a result stands there: it may be all that leads back.
fn stands(
    format: Format,
    index: usize,
    message: &serde_json_borrow::Value<'_>,
    counts: &mut Counts,
) -> Outcome {
    let Ok(read) = format.wire().read(index, message) else { return Ok(()) };
    for (nth, result) in read.results().enumerate().filter(|(_, result)| !result.text.is_empty()) {
        let Some(json) = format.rules().with_result_text(message, nth, "new 😀") else {
            return Err(format!("result {nth} of {index}, `{}`, cannot be replaced", result.text));
        };
        let edited = parse(index, &json).map_err(|error| error.to_string())?;
        let edited = format.wire().read(index, &edited).map_err(|error| error.to_string())?;
        let is_there = edited.results().nth(nth).is_some_and(|result| result.text.contains("new 😀"));
        ensure(is_there, || format!("the text of result {nth} of {index} is lost in {json}"))?;
        counts.add("results replaced", 1);
    }
    Ok(())
}

/// Whatever a message is, every function has an answer, and an error names the message.
fn answered(format: Format, history: &[Value], rng: Rng, counts: &mut Counts) -> Outcome {
    read(history, |messages| -> Outcome {
        counts.add("detected", usize::from(detect(messages).is_ok()));
        for (index, message) in messages.iter().enumerate() {
            match format.wire().read(index, message) {
                Ok(_) => counts.add("messages read", 1),
                Err(error) => {
                    ensure(error.index == Some(index), || format!("an error elsewhere: {error:?}"))?
                }
            }
            for edited in [
                format.rules().with_result_text(message, 0, "x"),
                match format.rules().without_bound_reasoning(message) {
                    Unbound::Changed(json) => Some(json),
                    Unbound::Same | Unbound::Nothing => None,
                },
            ] {
                ensure(edited.is_none_or(|json| parse(index, &json).is_ok()), || {
                    "an edit broke JSON".into()
                })?;
            }
        }
        let _ = format.rules().validate(messages, true);
        Ok(())
    })?;
    mended(format, history, rng, &mut Counts::default())
}

#[test]
fn nothing_panics_whatever_comes_in() {
    let make = |_: Format, rng: &mut Rng| anything(rng);
    Property { name: "anything", make, admits: any, holds: answered }.check();
}

#[test]
fn nothing_panics_over_the_messages_of_another_format() {
    let make = |format: Format, rng: &mut Rng| {
        let others: Vec<Format> = Format::ALL.into_iter().filter(|other| *other != format).collect();
        broken(rng.choice(others).unwrap_or(format), rng)
    };
    Property { name: "another format", make, admits: any, holds: answered }.check();
}

/// The text of each result can be replaced, and nothing else changes.
fn replaced(format: Format, history: &[Value], _: Rng, counts: &mut Counts) -> Outcome {
    read(history, |messages| {
        for (index, message) in messages.iter().enumerate() {
            let read = format.wire().read(index, message).map_err(|error| error.to_string())?;
            let count = read.results().count();
            let beyond = format.rules().with_result_text(message, count, "x");
            ensure(beyond.is_none(), || "a result that is not there was replaced".into())?;
            for nth in 0..count {
                let was = read.results().nth(nth).map_or("", |result| &result.text);
                let Some(edited) = format.rules().with_result_text(message, nth, "new 😀") else {
                    // A picture has no text to replace.
                    ensure(was.is_empty(), || format!("result {nth} of {index} cannot be replaced"))?;
                    continue;
                };
                let value = parse(index, &edited).map_err(|error| error.to_string())?;
                let edited = format.wire().read(index, &value).map_err(|error| error.to_string())?;
                let now = edited.results().nth(nth).map_or("", |result| &result.text);
                ensure(now.contains("new 😀"), || format!("{now} is not the new text"))?;
                let mut expected = read.clone();
                let mut results = expected.parts.iter_mut().filter_map(|part| match part {
                    Part::ToolResult(result) => Some(result),
                    _ => None,
                });
                if let Some(result) = results.nth(nth) {
                    result.text = now.to_owned().into();
                }
                // Reasoning behind it is bound to what it was.
                let of = |message: &context_compactor_core::message::Message<'_>| {
                    let parts = message.parts.iter();
                    let parts = parts.filter(|part| !matches!(part, Part::Reasoning { signed: true, .. }));
                    parts.map(|part| format!("{part:?}")).collect::<Vec<_>>()
                };
                ensure(of(&expected) == of(&edited), || format!("expected {expected:?}, got {edited:?}"))?;
                counts.add("results", 1);
            }
        }
        Ok(())
    })
}

#[test]
fn the_text_of_each_result_can_be_replaced() {
    Property { name: "results", make: valid, admits: is_valid, holds: replaced }.check();
}

/// How many messages a repair took, but for those whose every part stands in a message that it joined them to.
fn lost(format: Format, before: &[Value], after: &[Value], indices: &[usize]) -> Result<usize, String> {
    let parts = |message: &Value| {
        read(std::slice::from_ref(message), |messages| match messages {
            [message] => {
                let read = format.wire().read(0, message).map_err(|error| error.to_string())?;
                Ok(read.parts.iter().map(|part| format!("{part:?}")).collect::<Vec<_>>())
            }
            _ => Err("one message".to_owned()),
        })
    };
    let mut gained: HashMap<String, usize> = HashMap::new();
    for (message, index) in after.iter().zip(indices) {
        let mut own = parts(&before[*index])?;
        for part in parts(message)? {
            match own.iter().position(|own| *own == part) {
                Some(at) => drop(own.swap_remove(at)),
                None => *gained.entry(part).or_default() += 1,
            }
        }
    }
    let mut lost = 0;
    let kept: HashSet<usize> = indices.iter().copied().collect();
    for index in (0..before.len()).filter(|index| !kept.contains(index)) {
        let parts = parts(&before[index])?;
        let stand = parts.iter().all(|part| match gained.get_mut(part) {
            Some(left @ 1..) => {
                *left -= 1;
                true
            }
            _ => false,
        });
        lost += usize::from(!stand);
    }
    Ok(lost)
}

/// A message that goes missing costs its own exchange: what stands elsewhere is untouched.
fn holed(format: Format, history: &[Value], mut rng: Rng, counts: &mut Counts) -> Outcome {
    let at = rng.usize(..history.len().max(1)).min(history.len().saturating_sub(1));
    let reads: Result<Vec<usize>, String> = read(history, |messages| {
        let read = messages.iter().enumerate().map(|(at, message)| format.wire().read(at, message));
        let read = read.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        let exchanges = context_compactor_core::message::Exchanges::of(&read);
        Ok((0..=history.len()).filter(|at| exchanges.is_boundary(*at)).collect())
    });
    let boundaries = reads?;
    let first = boundaries.iter().rev().find(|boundary| **boundary <= at).copied().unwrap_or(0);
    let last = boundaries.iter().find(|boundary| **boundary > at).copied().unwrap_or(history.len());
    let mut holed = history.to_vec();
    if history.is_empty() {
        return Ok(());
    }
    holed.remove(at);
    let (mended, indices, _) = repair(format, &holed);
    let lost = lost(format, &holed, &mended, &indices)?;
    counts.add("messages lost with it", lost);
    // Its unit, and a neighbour on each side that cannot stand where it now does.
    ensure(lost <= last - first + 2, || {
        format!("{lost} messages were lost with message {at} of the unit {first}..{last}")
    })
}

#[test]
fn lesson_orphaned_pairs_a_hole_costs_no_more_than_its_exchange() {
    Property { name: "hole", make: valid, admits: is_valid, holds: holed }.check();
}

/// Fields that nobody has heard of, in every message, stay.
fn with_news(format: Format, rng: &mut Rng) -> Vec<Value> {
    let mut history = valid(format, rng);
    for (nth, message) in history.iter_mut().enumerate() {
        message["x_vendor"] = json!({ "nth": nth, "a": [null, { "deep": "値 👩‍👩‍👧" }], "id": "off_x" });
        message["trace id"] = json!(rng.f64());
    }
    history
}

/// Fields that nobody has heard of break no rule, and no repair and no edit takes them.
fn news_stays(format: Format, history: &[Value], _: Rng, counts: &mut Counts) -> Outcome {
    let (mended, indices, _) = repair(format, history);
    let same = mended.iter().zip(&indices).all(|(message, index)| *message == history[*index]);
    ensure(same && mended.len() == history.len(), || "a message with unknown fields was changed".into())?;
    read(history, |messages| {
        for (index, message) in messages.iter().enumerate() {
            let mut edits = vec![format.rules().with_result_text(message, 0, "x")];
            if let Unbound::Changed(json) = format.rules().without_bound_reasoning(message) {
                edits.push(Some(json));
            }
            for edited in edits.into_iter().flatten() {
                let edited: Value = serde_json::from_str(&edited).map_err(|error| error.to_string())?;
                for key in ["x_vendor", "trace id"] {
                    ensure(edited[key] == history[index][key], || format!("{key} of {index} was lost"))?;
                }
                counts.add("edits", 1);
            }
        }
        Ok(())
    })
}

#[test]
fn unknown_fields_stay_as_they_are() {
    Property { name: "unknown fields", make: with_news, admits: any, holds: news_stays }.check();
}
