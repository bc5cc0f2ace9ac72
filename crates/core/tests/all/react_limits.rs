//! What preset `react` and its strategies do at each of their limits (`S2.1`, `S2.2`, `S2.4`, `S2.11`). Sizes are characters.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::policy::Trigger;
use context_compactor_core::step::Purpose;
use context_compactor_core::summary::SummaryRequest;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::conversation::{assistant, body, calls, exchange, results, user};
use context_compactor_store_tests::host::summary;
use serde_json::{Value, json};

const CHAT: Format = Format::OpenaiChat;

fn asked(request: &SummaryRequest) -> usize {
    let asked = request.system.rsplit_once("at most ").unwrap().1;
    asked.split(' ').next().unwrap().parse().unwrap()
}

/// With these numbers over the limit of the document; the summariser writes as much as it is asked for.
fn react(over: Value) -> Harness {
    let mut group = json!({ "modelContextLimit": 200_000 });
    for (key, value) in over.as_object().unwrap() {
        group[key] = value.clone();
    }
    let mut harness = Harness::new(
        json!({ "preset": "react", "contextWindow": 200_000, "summarize": { "attempts": 1, "concurrency": 1 },
            "presetOptions": group }),
    );
    harness.host.summarise = Box::new(|request, _| summary(&"s".repeat(asked(request))));
    harness
}

fn tool(harness: &mut Harness, id: &str, text: &str) {
    harness.append(&[user("look")]);
    harness.append(&exchange(CHAT, id, text));
    harness.append(&[assistant("I see.")]);
}

fn shown(harness: &mut Harness, format: Format) -> Vec<String> {
    let sent = harness.sent();
    assert_valid(format, &sent);
    sent.iter().filter_map(|message| result_text(format, message)).collect()
}

#[test]
fn f39_s2_1_the_floor_counts_a_result_as_gone_from_one_character_above_its_layer_on() {
    let single = json!({ "singleResultThreshold": 1_000, "globalEnabled": false });
    let global = json!({ "singleEnabled": false, "resultCompressionMinSize": 500 });
    let none = json!({ "singleEnabled": false, "singleResultThreshold": 1_000, "globalEnabled": false, "resultCompressionMinSize": 500 });
    let both = json!({ "singleResultThreshold": 1_000, "resultCompressionMinSize": 1_200 });
    for (over, chars, goes) in [
        (&single, 1_000, false),
        (&single, 1_001, true),
        (&global, 500, false),
        (&global, 501, true),
        (&none, 5_000, false),
        (&both, 1_001, true),
    ] {
        let mut harness = react(over.clone());
        tool(&mut harness, "a", &"x".repeat(chars));
        let plan = harness.host.run(harness.session.plan()).unwrap();
        assert_eq!(plan.floor < chars / 8, goes, "{over} {chars}: {}", plan.floor);
    }
}

#[test]
fn f39_s2_2_one_chunk_is_no_part_and_the_second_level_begins_above_the_threshold() {
    for (chars, ratio, purposes, is_part) in [
        (2_000, 0.4945, vec![Purpose::Chunk], false),
        (2_000, 0.495, vec![Purpose::Chunk, Purpose::Merge], false),
        (2_001, 0.1, vec![Purpose::Chunk; 2], true),
    ] {
        let mut harness =
            react(json!({ "singleResultThreshold": 1_000, "chunkSize": 2_000, "chunkRatio": ratio }));
        tool(&mut harness, "a", &"x".repeat(chars));
        shown(&mut harness, CHAT);
        assert_eq!(harness.host.seen.purposes, purposes, "{chars} {ratio}");
        let system = &harness.host.seen.requests[0].0.system;
        assert_eq!(system.contains("(part 1 of 2"), is_part, "{system}");
        assert_eq!(system.contains("(part "), is_part, "{system}");
    }
}

#[test]
fn f39_s2_4_a_prompt_of_exactly_the_limit_fits_and_a_picture_has_no_characters() {
    // The prompt of the system and the instructions take 8,000.
    for (chars, fits) in [(1_000, true), (1_001, false)] {
        let mut harness = react(json!({ "modelContextLimit": 9_000 }));
        let picture = json!({ "type": "image_url", "image_url": { "url": "https://example.org/a.png" } });
        let text = json!({ "type": "text", "text": "x".repeat(chars) });
        harness.append(&[body(&json!({ "role": "user", "content": [text, picture] }))]);
        let error = harness.host.run(harness.session.prepare(Trigger::Auto, Vec::new())).err();
        assert_eq!(error.map(|error| error.code), (!fits).then_some(Code::ContextOverflow), "{chars}");
    }
}

/// A list of numbers as JSON of so many characters.
fn numbers(chars: usize) -> String {
    let text = format!("[{}1", "1,".repeat(chars / 2 - 2));
    format!("{text}{}]", "0".repeat(chars - 1 - text.len()))
}

#[test]
fn f39_s2_11_a_shape_needs_room_for_200_characters_and_must_be_shorter_than_the_text() {
    for (chars, ratio, calls) in [(1_999, 0.1, 1), (2_000, 0.1, 0), (2_000, 1.0, 1)] {
        let mut harness = react(
            json!({ "globalRatio": ratio, "resultCompressionMinSize": 100, "globalCompressionThreshold": 0.01 }),
        );
        let text = numbers(chars);
        assert_eq!(text.len(), chars);
        tool(&mut harness, "a", &text);
        let shown = shown(&mut harness, CHAT);
        assert_eq!(harness.host.seen.purposes.len(), calls, "{chars} {ratio}");
        assert_eq!(shown[0].starts_with('s'), chars == 1_999, "{}", shown[0]);
    }
    let mut harness = react(json!({}));
    tool(&mut harness, "a", &numbers(60_000));
    let now = shown(&mut harness, CHAT)[0].chars().count();
    let lines: Vec<&str> = harness.host.seen.logs.iter().map(|(_, line)| line.as_str()).collect();
    assert_eq!(lines[0], "Tool result too large (60000 chars), shaped as JSON without a model");
    assert_eq!(lines[1], format!("Compressed 60000 → {now} chars (5.4%)"));
}

#[test]
fn f39_s2_11_what_a_text_names_is_relied_on_though_the_same_call_follows() {
    let mut harness = react(json!({ "globalCompressionThreshold": 0.99 }));
    for later in [None, Some("Now I change docs/plan.md.")] {
        harness.append(&[user("look")]);
        harness.append(&calls(CHAT, &[("a", "docs/plan.md")]));
        harness.append(&results(CHAT, &[("a", &"word ".repeat(2_000))]));
        harness.append(&[assistant(later.unwrap_or("I see."))]);
    }
    harness.append(&[user("look")]);
    harness.append(&calls(CHAT, &[("a", "docs/plan.md")]));
    harness.append(&results(CHAT, &[("a", "done")]));
    harness.compact();
    let asks: Vec<usize> = harness.host.seen.requests.iter().map(|(request, _)| asked(request)).collect();
    assert_eq!(asks, [2_000, 2_000]);
}

#[test]
fn f39_s2_11_each_result_of_a_message_is_compressed_and_taken_over_on_its_own() {
    let mut harness = react(json!({ "globalCompressionThreshold": 0.05 }));
    harness.host.summarise = Box::new(|request, _| {
        let text = if request.messages[0].content.contains("alpha") { "first" } else { "second" };
        summary(text)
    });
    let [alpha, beta] = ["alpha ", "beta "].map(|word| word.repeat(2_000));
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "read_file", "input": {} });
    let result = |id: &str, text: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": text });
    let turn = |id: &str, texts: &[&str]| {
        let names: Vec<String> = (0..texts.len()).map(|nth| format!("{id}{nth}")).collect();
        let calls: Vec<Value> = names.iter().map(|name| call(name)).collect();
        let results: Vec<Value> = names.iter().zip(texts).map(|(name, text)| result(name, text)).collect();
        [json!({ "role": "assistant", "content": calls }), json!({ "role": "user", "content": results })]
            .map(|message| body(&message))
    };
    harness.append(&[user("look")]);
    harness.append(&turn("a", &[&alpha, "small", &beta]));
    let texts = |harness: &mut Harness| -> Vec<String> {
        let sent = harness.sent();
        let blocks = sent.iter().filter_map(|message| message["content"].as_array().cloned()).flatten();
        blocks
            .filter(|block| block["type"] == "tool_result")
            .map(|block| block["content"].as_str().unwrap_or("").to_string())
            .collect()
    };
    assert_eq!(texts(&mut harness), ["first", "small", "second"]);
    assert_eq!(harness.host.seen.purposes, [Purpose::Result; 2]);
    harness.append(&turn("b", &[&beta, &alpha]));
    harness.append(&[user("again")]);
    harness.compact();
    assert_eq!(texts(&mut harness), ["first", "small", "second", "second", "first"]);
    assert_eq!(harness.host.seen.purposes.len(), 2, "both are known");
}
