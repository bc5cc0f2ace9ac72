//! Searches by meaning: vectors that the app's function makes, stored in the session's store, beside words.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::keys::batch::{Key, KeyPart};
use context_compactor_core::recall::Hit;
use context_compactor_core::step::{Event, Notice};
use context_compactor_store_tests::conversation::{assistant, user};
use context_compactor_store_tests::host::thrown;
use serde_json::json;
use std::cell::RefCell;
use std::rc::Rc;

/// Of each text how much it has to do with pets, ships and anything else.
fn vector(text: &str) -> Vec<f64> {
    let count = |words: &[&str]| words.iter().filter(|word| text.contains(*word)).count() as f64;
    vec![count(&["cat", "dog", "kitten", "animal"]), count(&["boat", "sail", "harbor"]), 0.1]
}

/// The texts of each call so far.
type Asked = Rc<RefCell<Vec<Vec<String>>>>;

/// A session whose function makes those vectors.
fn embedding(memory: Option<Rc<context_compactor_store_tests::MemoryStore>>) -> (Harness, Asked) {
    let options = json!({ "recall": { "embed": true } });
    let mut harness = match memory {
        Some(memory) => Harness::over(memory, "b", options),
        None => Harness::new(options),
    };
    let asked = Asked::default();
    let seen = Rc::clone(&asked);
    harness.host.embed = Box::new(move |texts| {
        seen.borrow_mut().push(texts.to_vec());
        Event::Vectors(texts.iter().map(|text| vector(text)).collect())
    });
    (harness, asked)
}

fn search(harness: &mut Harness, query: &str) -> Vec<Hit> {
    harness.host.run(harness.session.search(query.into(), 5)).unwrap()
}

fn pages(harness: &Harness) -> Vec<Key> {
    let is_page = |key: &Key| key.0.get(2) == Some(&KeyPart::Text("vectors".into()));
    harness.memory.rows().into_iter().map(|(key, _)| key).filter(is_page).collect()
}

fn told(harness: &Harness) -> Vec<(Code, String)> {
    let warnings = harness.host.seen.notices.iter().filter_map(|notice| match notice {
        Notice::Warning { code, message } => Some((*code, message.clone())),
        _ => None,
    });
    warnings.collect()
}

fn talk_of_pets() -> (Harness, Asked) {
    let (mut harness, asked) = embedding(None);
    harness.append(&[user("My kitten is called Tom."), assistant("Nice.")]);
    harness.append(&[user("We went out with the boat."), assistant("The harbor is deep.")]);
    (harness, asked)
}

#[test]
fn x9_what_no_word_finds_is_found_by_its_meaning() {
    let (mut harness, asked) = talk_of_pets();
    let hits = search(&mut harness, "animal");
    assert_eq!((hits[0].index, hits[0].snippet.as_str()), (0, "My kitten is called Tom."));
    // The query with what the model is known by, and the messages.
    let texts: Vec<usize> = asked.borrow().iter().map(Vec::len).collect();
    assert_eq!(texts, [2, 4]);
    assert_eq!(pages(&harness).len(), 1);
    // Made once: another handle on the session asks for the query alone, and for what is new.
    let (mut again, asked) = embedding(Some(harness.memory.clone()));
    assert_eq!(search(&mut again, "animal")[0].index, 0);
    assert_eq!(asked.borrow().iter().map(Vec::len).collect::<Vec<_>>(), [2]);
    again.append(&[user("A dog barked.")]);
    let found: Vec<usize> = search(&mut again, "animal").iter().map(|hit| hit.index).take(2).collect();
    assert_eq!(found, [4, 0]);
    assert_eq!(asked.borrow().last().unwrap(), &["A dog barked."]);
    assert_eq!(pages(&again).len(), 1, "the last page grows");
}

#[test]
fn x9_words_and_meaning_are_ranked_together() {
    let (mut harness, _) = talk_of_pets();
    harness.append(&[user("Tom and the boat: sail at noon.")]);
    // First in one list and second in the other comes before first in one alone.
    let hits = search(&mut harness, "when does Tom sail");
    assert_eq!(hits[0].index, 4);
    assert!(hits.iter().any(|hit| hit.index == 0));
}

#[test]
fn x9_without_the_function_nothing_is_asked_and_words_decide() {
    let (mut harness, asked) = talk_of_pets();
    search(&mut harness, "animal");
    let calls = asked.borrow().len();
    let mut plain = Harness::over(harness.memory.clone(), "c", json!({}));
    assert!(search(&mut plain, "animal").is_empty());
    assert_eq!(search(&mut plain, "kitten")[0].index, 0);
    assert_eq!(asked.borrow().len(), calls);
}

#[test]
fn x9_a_function_that_fails_is_told_and_words_answer() {
    let (mut harness, _) = talk_of_pets();
    harness.host.embed = Box::new(|_| thrown("503 overloaded", Some(503)));
    assert_eq!(search(&mut harness, "kitten").len(), 1);
    let [(code, message)] = &told(&harness)[..] else { panic!("one warning") };
    assert_eq!(*code, Code::InvalidOption);
    assert!(
        message.contains("recall.embed failed: 503 overloaded") && message.contains("words alone"),
        "{message}"
    );
    assert!(pages(&harness).is_empty());
}

#[test]
fn x9_vectors_of_a_wrong_shape_are_told_with_the_fix() {
    type Wrong = fn(&[String]) -> Vec<Vec<f64>>;
    let cases: [(Wrong, &str); 5] = [
        (|_| vec![vec![1.0, 2.0]], "it resolved to 1 for 2 texts"),
        (|texts| vec![Vec::new(); texts.len()], "1 to 8192 numbers, not 0"),
        (
            |_| vec![vec![1.0, 2.0], vec![1.0]],
            "vector 1 has 1 numbers, another one 2: use one model for all texts",
        ),
        (|_| vec![vec![1.0], vec![f64::NAN]], "vector 1 must have finite numbers"),
        (|texts| vec![vec![0.0, 0.0]; texts.len()], "one of them other than 0"),
    ];
    for (wrong, expected) in cases {
        let (mut harness, _) = talk_of_pets();
        harness.host.embed = Box::new(move |texts| Event::Vectors(wrong(texts)));
        assert_eq!(search(&mut harness, "kitten").len(), 1);
        let [(code, message)] = &told(&harness)[..] else { panic!("one warning") };
        assert!(*code == Code::InvalidOption && message.contains(expected), "{message}");
    }
}

#[test]
fn x9_vectors_of_another_model_or_damaged_ones_are_made_again() {
    let (mut harness, _) = talk_of_pets();
    search(&mut harness, "animal");
    let (mut other, asked) = embedding(Some(harness.memory.clone()));
    other.host.embed = {
        let seen = Rc::clone(&asked);
        Box::new(move |texts| {
            seen.borrow_mut().push(texts.to_vec());
            Event::Vectors(texts.iter().map(|text| [vec![0.5, -3.0], vector(text)].concat()).collect())
        })
    };
    assert_eq!(search(&mut other, "animal")[0].index, 0);
    assert_eq!(asked.borrow().iter().map(Vec::len).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(pages(&other).len(), 1);
    let key = pages(&other)[0].clone();
    other.memory.damage(&key, Some(vec![1, 2, 3]));
    assert_eq!(search(&mut other, "animal")[0].index, 0);
    assert_eq!(asked.borrow().iter().map(Vec::len).collect::<Vec<_>>(), [2, 4, 2, 4]);
}

#[test]
fn x9_an_erased_message_leaves_no_vector() {
    let (mut harness, _) = talk_of_pets();
    search(&mut harness, "animal");
    harness.host.run(harness.session.erase(0, "asked to".into())).unwrap();
    assert!(pages(&harness).is_empty(), "they were of the session's old rows");
    let hits = search(&mut harness, "animal");
    assert!(hits.iter().all(|hit| !hit.snippet.contains("kitten")), "{hits:#?}");
}

#[test]
fn x9_a_question_about_the_conversation_needs_no_vectors() {
    let (mut harness, asked) = talk_of_pets();
    assert_eq!(search(&mut harness, "What was the first thing I told you?")[0].index, 0);
    assert!(asked.borrow().is_empty());
}
