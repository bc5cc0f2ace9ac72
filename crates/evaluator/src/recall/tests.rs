//! Section 3 of the quality goals on a small transcript: what each metric rewards, and what it does not.

use super::report::BUDGETS;
use super::*;
use crate::entities::Generic;
use crate::transcript::{Answer, Call, Transcript, Turn};
use context_compactor_core::message::Role;
use context_compactor_core::tokens::Estimator;
use serde_json::json;

const ESTIMATOR: Estimator = Estimator::Chars4;

fn turn(role: Role, text: &str) -> Turn {
    Turn {
        role,
        text: text.into(),
        reasoning: String::new(),
        calls: Vec::new(),
        results: Vec::new(),
        tokens: 0,
    }
}

fn user(text: &str) -> Turn {
    turn(Role::User, text)
}

fn assistant(text: &str) -> Turn {
    turn(Role::Assistant, text)
}

fn call(name: &str, arguments: serde_json::Value) -> Turn {
    let call = Call { id: "c".into(), name: name.into(), arguments: arguments.to_string() };
    Turn { calls: vec![call], ..assistant("") }
}

fn result(text: &str) -> Turn {
    let answer = Answer { call_id: "c".into(), text: text.into(), is_error: false };
    Turn { results: vec![answer], ..turn(Role::Tool, "") }
}

fn case(prefix: &[Turn], future: &[Turn]) -> Case {
    Case::new(prefix, future, "own", &Generic::default(), ESTIMATOR)
}

fn needs(case: &Case) -> Vec<&str> {
    case.needs.iter().map(|need| need.name.as_str()).collect()
}

/// A session of forty files, the last ten of which are what it goes on with.
fn session() -> (Vec<Turn>, Vec<Turn>) {
    const WORDS: [&str; 12] = [
        "garden", "window", "river", "mountain", "letter", "engine", "bottle", "candle", "harbour", "meadow",
        "orchard", "lantern",
    ];
    let mut prefix = vec![user("Rename what the handlers of the harbour return")];
    let mut future = Vec::new();
    for nth in 0..40_usize {
        let word = |step: usize| WORDS[(nth * 5 + step * 7) % WORDS.len()];
        let line = format!(
            "let handler_{nth} = {}_{} made of {} and {} with {nth};",
            word(1),
            nth + 60,
            word(2),
            word(3)
        );
        let filler = (0..6).map(|row| format!("the {} stands by the {} again", word(row), word(row + 2)));
        let filler: Vec<String> = filler.collect();
        prefix.push(call("read", json!({ "path": format!("src/parts/file_{nth}.rs") })));
        prefix.push(result(&format!("{}\n{line}\n{}", filler[..3].join("\n"), filler[3..].join("\n"))));
        if nth >= 30 {
            future.push(call("edit", json!({ "path": format!("src/parts/file_{nth}.rs"), "old": line })));
            future.push(result("done"));
        }
    }
    (prefix, future)
}

#[test]
fn a_need_is_what_the_agent_writes_from_memory() {
    let prefix = [
        turn(Role::System, "Never call drop_tables"),
        assistant("open_session and close_session fail, so does read_frame; drop_tables is forbidden"),
    ];
    let future = [
        result("close_session: not found"),
        assistant("I patch open_session, then close_session and new_name, not drop_tables"),
        call("edit", json!({ "text": "a\nread_frame()" })),
    ];
    assert_eq!(needs(&case(&prefix, &future)), ["open_session", "read_frame"]);
    let mut generic = Generic::default();
    generic.add("other", "open_session");
    let filtered = Case::new(&prefix, &future, "own", &generic, ESTIMATOR);
    assert_eq!(needs(&filtered), ["read_frame"]);
}

#[test]
fn a_mention_counts_in_context_only_beside_two_of_its_own_words() {
    let prefix = [assistant("The handler open_session fails because tokens expire early")];
    let case = case(&prefix, &[assistant("Now open_session")]);
    let of = |context: &str| {
        let scores = case.score(context);
        (scores.mention, scores.context)
    };
    assert_eq!(of("nothing"), (0.0, 0.0));
    assert_eq!(of("open_session"), (1.0, 0.0));
    assert_eq!(of("open_session handler handler"), (1.0, 0.0));
    assert_eq!(of("open_session bottle candle"), (1.0, 0.0));
    assert_eq!(of("the handler open_session, tokens"), (1.0, 1.0));
    assert_eq!(of(&format!("handler tokens {} open_session", "- ".repeat(140))), (1.0, 0.0));
    // Characters are counted, not bytes.
    assert_eq!(of(&format!("handler tokens {} open_session", "…".repeat(200))), (1.0, 1.0));
}

#[test]
fn spans_of_eight_tokens_are_held_whole() {
    let line = "let total = sum(first, second) + carry(third) - rest(fourth, fifth)";
    let prefix = [call("read", json!({ "path": "src/a/b.rs" })), result(&format!("   12→{line}\n   13→end"))];
    let edit = call("edit", json!({ "old": line }));
    let case_of = case(&prefix, std::slice::from_ref(&edit));
    assert_eq!(case_of.copied.len(), 3);
    assert_eq!(case_of.score(line).verbatim, Some(1.0));
    let cut = line.trim_end_matches(", fifth)");
    assert_eq!(case_of.score(cut).verbatim, Some(2.0 / 3.0));
    assert_eq!(case_of.score("sum total let first carry second third rest fourth fifth").verbatim, Some(0.0));
    // What it was told again was not copied from the prefix.
    assert_eq!(case(&prefix, &[result(line), edit]).score(line).verbatim, None);
}

#[test]
fn what_is_stored_is_recoverable_by_its_path_its_argument_or_a_search() {
    let prefix = [
        call("read", json!({ "path": "src/net/dial.rs" })),
        result("fn retry_backoff waits between attempts of a broken connection"),
        call("shell", json!({ "command": "make check-everything" })),
        result("status of nothing_else"),
        assistant("A lantern in the meadow"),
    ];
    let future = [assistant("The connection waits between attempts: retry_backoff and nothing_else")];
    let case = case(&prefix, &future);
    assert_eq!(needs(&case), ["retry_backoff", "nothing_else"]);
    let of = |context: &str| {
        let scores = case.score(context);
        (scores.mention, scores.referenced)
    };
    assert_eq!(of(""), (0.0, 0.0));
    assert_eq!(of("read: net/dial.rs"), (0.0, 0.5));
    assert_eq!(of("ran make check-everything, read src/net/dial.rs"), (0.0, 1.0));
    assert_eq!(of("retry_backoff"), (0.5, 0.5));
    // The search is asked in the agent's words without the names that it needs.
    assert_eq!((case.needs[0].rank.is_some(), case.needs[1].rank), (true, None));
    assert_eq!(case.score("").recoverable, 0.5);
}

#[test]
fn a_bag_of_names_has_mentions_and_no_context() {
    let (prefix, future) = session();
    let case = case(&prefix, &future);
    assert!(case.needs.len() >= 10, "{:?}", needs(&case));
    let scores = case.measure(&|messages, budget| bag(messages, budget, ESTIMATOR), 100);
    assert_eq!((scores.mention, scores.context, scores.verbatim), (1.0, 0.0, Some(0.0)));
    assert_eq!(scores.invented, 0.0);
}

#[test]
fn shuffled_lines_hold_less_than_the_tail() {
    let (prefix, future) = session();
    let case = case(&prefix, &future);
    let shuffled = case.measure(&|messages, budget| shuffled(messages, budget, ESTIMATOR), 20);
    let tail = case.measure(&|messages, budget| tail(messages, budget, ESTIMATOR), 20);
    assert!(tail.context > 1.3 * shuffled.context && tail.context > 0.3, "{tail:?} {shuffled:?}");
    assert!(tail.verbatim > shuffled.verbatim, "{tail:?} {shuffled:?}");
}

#[test]
fn no_method_is_better_than_the_oracle_nor_over_its_budget() {
    let (prefix, future) = session();
    let case = case(&prefix, &future);
    for tier in [Tier::Mention, Tier::Context, Tier::Verbatim] {
        let oracle = Oracle::new(&case, tier);
        for percent in BUDGETS {
            let budget = case.budget(percent);
            let best = case.score(&oracle.text(budget));
            assert!(best.tokens <= budget && best.invented == 0.0, "{tier:?} {percent} {best:?}");
            for method in methods() {
                let scores =
                    case.measure(&|messages, budget| method.write(messages, budget, ESTIMATOR), percent);
                assert!(tier.of(&scores) <= tier.of(&best), "{tier:?} {} {percent}", method.name);
                assert!(scores.tokens <= budget, "{} {percent}", method.name);
                assert_eq!(scores.invented, 0.0, "{} {percent}", method.name);
            }
        }
        assert!(tier.of(&case.score(&oracle.text(case.tokens))) > Some(0.99), "{tier:?}");
    }
}

#[test]
fn cuts_are_the_same_every_time_and_have_needs() {
    let (prefix, future) = session();
    let mut messages: Vec<Turn> = prefix.into_iter().chain(future).collect();
    messages.iter_mut().for_each(|turn| turn.tokens = 40);
    let transcript = Transcript { id: "s".into(), messages, ..Default::default() };
    let cutting = Cutting { prefix: 400, future: 400, needs: 2, cuts: 2, seed: 3 };
    let generic = Generic::default();
    let of = |cutting| cases(&transcript, &generic, cutting, ESTIMATOR);
    let first = of(cutting);
    assert!((1..=2).contains(&first.len()));
    assert!(first.iter().all(|case| case.needs.len() >= 2));
    let tokens = |cases: &[Case]| cases.iter().map(|case| case.tokens).collect::<Vec<_>>();
    assert_eq!(tokens(&first), tokens(&of(cutting)));
    assert!(of(Cutting { needs: 1_000, ..cutting }).is_empty());
    let scores = recall(&first, &|messages, budget| tail(messages, budget, ESTIMATOR), &[5, 100]);
    assert!(scores.iter().all(|of_case| of_case[1].context == 1.0 && of_case[0].mention < 1.0), "{scores:?}");
}

#[test]
fn a_report_has_a_row_for_every_method_budget_and_domain() {
    let (prefix, future) = session();
    let cut = |domain, session: &str| Cut { domain, session: session.into(), case: case(&prefix, &future) };
    let report = measure(&[cut("one", "a"), cut("two", "b"), cut("two", "c")], &methods());
    assert_eq!(report.rows.len(), 3 * BUDGETS.len() * (methods().len() + 1));
    let row = |method: &str| {
        let found =
            report.rows.iter().find(|row| row.method == method && row.domain == "all" && row.budget == 10);
        found.expect("a row").clone()
    };
    assert_eq!(row("tail").difference, [[0.0; 2]; 3]);
    assert_eq!(row("oracle").of_oracle, [1.0; 3]);
    let [low, high] = row("oracle").difference[1];
    let mean = row("oracle").context - row("tail").context;
    assert!(low <= mean + 1e-9 && mean <= high + 1e-9 && low > 0.0, "{low} {mean} {high}");
    assert_eq!(report.cuts["two"][0], 2.0);
    assert_eq!(
        report.kinds["extractive"].values().map(|kind| kind.0).sum::<usize>(),
        3 * case(&prefix, &future).needs.len()
    );
}
