//! Real agent sessions: every request fits its ceiling, every built-in summary its target and its own checks.

use context_compactor_core::message::{Message, Part, Role};
use context_compactor_core::summary::{
    FactKind, OFFLOAD, PromptOptions, check, constraints, extractive, facts,
};
use context_compactor_core::tokens::Estimator;
use context_compactor_core::wire::{self, Format};
use context_compactor_store_tests::recorded::lines;

fn each_history(mut see: impl FnMut(&str, &[Message<'_>])) {
    for (name, format) in [
        ("anthropic/claude_code", Format::Anthropic),
        ("openai/claude_code", Format::OpenaiChat),
        ("openai/tau_composite", Format::OpenaiChat),
    ] {
        for line in lines(name) {
            let record = wire::parse(0, &line).unwrap();
            let values = record.get("messages").as_array().unwrap();
            let messages: Vec<Message<'_>> =
                values.iter().enumerate().map(|(at, value)| format.wire().read(at, value).unwrap()).collect();
            see(record.get("id").as_str().unwrap(), &messages);
        }
    }
}

#[test]
fn lesson_compaction_requests_of_real_sessions_fit() {
    each_history(|id, messages| {
        for limit in [3_000, 20_000, 60_000] {
            let options = PromptOptions { max_input_tokens: Some(limit), ..Default::default() };
            let request = OFFLOAD.build(messages, &options).unwrap();
            let content = &request.messages[0].content;
            let used = options.estimator.text(&request.system) + options.estimator.text(content);
            assert!(used <= limit, "{id}: {used} of {limit}");
            assert!(
                !request.truncated || used * 10 > limit * 8,
                "{id}: {used} of {limit} leaves room unused"
            );
            assert_eq!(content.matches("</conversation>").count(), 1, "{id}");
        }
    });
}

#[test]
fn built_in_summaries_of_real_sessions_fit_and_keep_the_goal() {
    each_history(|id, messages| {
        let estimator = Estimator::default();
        let replaced: usize = messages.iter().map(|message| estimator.message(message)).sum();
        let target = (replaced / 10).max(200);
        let summary = extractive(messages, target, estimator);
        assert!(estimator.text(&summary) <= target, "{id}");
        assert!(summary.contains("- Goal: ") || messages.iter().all(|m| m.text().is_empty()), "{id}");
        let request = OFFLOAD.build(messages, &PromptOptions::default()).unwrap();
        if let Err(rejection) = check(&summary, &request, replaced, estimator) {
            panic!("{id}: {}", rejection.reason);
        }
    });
}

#[test]
fn lesson_lost_constraints_facts_of_real_sessions_stand_in_them() {
    each_history(|id, messages| {
        for fact in facts(messages).iter().filter(|fact| fact.kind != FactKind::Number) {
            let stands = messages[fact.index.unwrap()].parts.iter().any(|part| match part {
                Part::Text(text) => text.contains(&fact.text),
                Part::ToolResult(result) => result.text.contains(&fact.text),
                // Parsed: the raw arguments hold it in JSON's escapes.
                Part::ToolCall(_) => true,
                _ => false,
            });
            assert!(stands, "{id}: {:?} is not in message {:?}", fact.kind, fact.index);
        }
    });
}

#[test]
fn s4_3_constraints_in_real_sessions_are_the_users_own_sentences_and_few() {
    let (mut said, mut proposed) = (0, 0);
    each_history(|id, messages| {
        for message in messages {
            let found = constraints(message);
            for constraint in &found {
                assert_eq!(message.role, Role::User, "{id}");
                assert!(message.text().contains(constraint), "{id}: {constraint}");
            }
            said += usize::from(message.role == Role::User);
            proposed += usize::from(!found.is_empty());
        }
    });
    assert!(proposed * 2 <= said, "{proposed} of {said} messages");
}
