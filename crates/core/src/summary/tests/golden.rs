//! Prompts and built-in summaries as files, to be read in review. `BLESS=1 cargo test` rewrites them; a changed
//! prompt also raises `PROMPT_VERSION`.

use super::super::{
    CHECKPOINT, FACTOR3, Focus, LAYERED, OFFLOAD, PROMPT_VERSION, PromptOptions, SECTIONS, SummaryRequest,
    extractive,
};
use super::{build, sample};
use crate::checkpoint::{Goal, LEVELS, Level, Mode};
use crate::tokens::Estimator;
use std::path::Path;

fn golden(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/summary/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(actual, expected, "{name} differs; if that is meant, run with BLESS=1 and review the change");
}

fn page(request: &SummaryRequest) -> String {
    let mut out = format!(
        "prompt version {PROMPT_VERSION}, max tokens {}, truncated {}\n=== system\n{}\n=== user\n{}\n=== facts\n",
        request.max_tokens, request.truncated, request.system, request.messages[0].content
    );
    for fact in &request.facts {
        let index = fact.index.unwrap();
        out.push_str(&format!("{:?} {} @{index} {:?}\n", fact.kind, fact.weight, fact.text));
    }
    out
}

// Sizes in the golden files are those of the documents' estimator, which never changes.
const OPTIONS: PromptOptions<'static> = PromptOptions {
    target_tokens: 8_000,
    max_input_tokens: None,
    instructions: None,
    previous_summary: None,
    estimator: Estimator::Chars4,
    rejected: None,
    indices: None,
    focus: None,
    goal: None,
    keep: &[],
};

#[test]
fn s4_3_what_must_be_kept_is_quoted_and_fenced_behind_the_conversation() {
    let keep = [(3, "Never push </message> to main.".into()), (7, "必须使用 UTF-8 编码。".into())];
    let request = build(&sample(), &PromptOptions { keep: &keep, ..OPTIONS }).unwrap();
    let content = &request.messages[0].content;
    assert!(
        content.ends_with(
            "like the conversation:\n<message index=\"3\" role=\"user\">\nNever push &lt;/message> to main.\n</message>\n\
             <message index=\"7\" role=\"user\">\n必须使用 UTF-8 编码。\n</message>"
        ),
        "{content}"
    );
    let told: Vec<&str> = request.facts.iter().map(|fact| fact.text.as_str()).collect();
    assert_eq!(told[0], keep[0].1);
    assert_eq!(told.iter().filter(|text| **text == keep[1].1).count(), 1, "known already");
    // Never so much that nothing is left for the conversation: the newest.
    let many: Vec<(usize, String)> =
        (0..500).map(|nth| (nth, "Never push to main, whoever asks.".into())).collect();
    let options = PromptOptions { keep: &many, max_input_tokens: Some(4_000), ..OPTIONS };
    let content = build(&sample(), &options).unwrap().messages.remove(0).content;
    assert!(content.contains("index=\"499\"") && !content.contains("index=\"450\""));
    assert!(Estimator::Chars4.text(&content) < 4_000);
}

#[test]
fn s1_7_the_prompt() {
    golden("offload.txt", &page(&build(&sample(), &OPTIONS).unwrap()));
}

#[test]
fn s3_4_s4_2_the_prompts_of_other_presets() {
    for prompt in [&LAYERED, &FACTOR3] {
        let request = prompt.build(&sample(), &OPTIONS).unwrap();
        golden(&format!("{}.txt", prompt.name), &page(&request));
        let headings: Vec<&str> =
            request.system.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(headings, prompt.sections);
    }
}

#[test]
fn s5_10_s5_13_the_prompts_of_checkpoints() {
    let goal = r#"{ "id": "g", "description": "Ship the exporter </goal>", "priority": "high",
        "checkpoints": [{ "description": "Test it", "status": "in-progress" }],
        "decisions": [{ "id": "d", "description": "UTF-8 only", "locked": true }] }"#;
    let goal: Goal = crate::wire::record::from_str(goal).unwrap();
    for (name, mode) in Mode::ALL {
        for level in [Level::Compact, Level::Moderate, Level::Detailed] {
            let focus = Some(Focus { level, range: LEVELS.target(level, 8_000), mode });
            let options = PromptOptions { focus, goal: Some(&goal), target_tokens: 500, ..OPTIONS };
            let request = CHECKPOINT.build(&sample(), &options).unwrap();
            let name = format!("checkpoint_{}_{}.txt", name.to_lowercase(), u8::from(level));
            golden(&name, &request.system);
        }
    }
    let texts = ["First </previous_summary> part.".to_string(), "Second part.".to_string()];
    for (name, texts) in [("age", &texts[..1]), ("merge", &texts[..])] {
        let request = super::super::again(texts, Level::Compact, LEVELS.target(Level::Compact, 8_000), None);
        golden(&format!("checkpoint_{name}.txt"), &page(&request));
    }
}

#[test]
fn f30_a_prompt_with_a_goal_asks_for_every_marker() {
    let goal: Goal = crate::wire::record::from_str(r#"{ "id": "g", "description": "Ship it" }"#).unwrap();
    let request = build(&sample(), &PromptOptions { goal: Some(&goal), ..OPTIONS }).unwrap();
    let all = format!("{}{}", request.system, request.messages[0].content);
    for marker in [
        "\"[CHECKPOINT] ",
        "\"[DECISION] ",
        " - LOCKED",
        "\"[ARTIFACT] Created\"",
        "[ARTIFACT]\nModified\"",
        "\"[ARTIFACT] Deleted\"",
    ] {
        assert!(all.contains(marker), "{marker}: {all}");
    }
}

#[test]
fn s1_7_the_prompt_with_everything() {
    let options = PromptOptions {
        target_tokens: 1_001,
        max_input_tokens: Some(1_500),
        instructions: Some("Focus on {targetTokens} and $& in the exporter."),
        previous_summary: Some("## Project Overview\nAn exporter. </previous_summary> {count}"),
        rejected: Some("The answer was empty."),
        ..OPTIONS
    };
    golden("offload_full.txt", &page(&build(&sample(), &options).unwrap()));
}

#[test]
fn the_built_in_summary() {
    golden("extractive.txt", &extractive(&sample(), 400, Estimator::Chars4));
}

#[test]
fn s1_7_sections_length_and_output_ceiling() {
    let request = build(&sample(), &OPTIONS).unwrap();
    let headings: Vec<&str> = request.system.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(headings, SECTIONS);
    assert_eq!(OFFLOAD.sections, SECTIONS);
    assert!(request.system.contains("Target length: approximately 8000 tokens"));
    assert_eq!((request.max_tokens, request.target_tokens), (9_600, 8_000));
    let odd = build(&[], &PromptOptions { target_tokens: 1_001, ..OPTIONS }).unwrap();
    assert_eq!(odd.max_tokens, 1_202);
    assert_eq!(build(&[], &PromptOptions { target_tokens: 0, ..OPTIONS }).unwrap().max_tokens, 0);
}

#[test]
fn the_request_is_in_camel_case() {
    let json = serde_json::to_value(build(&sample(), &OPTIONS).unwrap()).unwrap();
    let mut keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["facts", "maxTokens", "messages", "system", "targetTokens", "truncated"]);
    assert_eq!(json["messages"][0]["role"], "user");
    assert_eq!(json["facts"][0]["kind"], "constraint");
}
