//! Rows of other sessions, and of no release, in the place of a session's own (I7).

use crate::support::browser::*;
use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::keys::batch::Key;
use context_compactor_core::session::Session;
use context_compactor_core::step::LossKind;
use context_compactor_store_tests::conversation::{Body, assistant, user};
use serde_json::json;

#[test]
fn d21_the_row_of_another_session_in_the_place_of_its_own_is_damage() {
    let mut browser = Browser::new();
    let log = {
        let mut harness = browser.rich();
        history(&mut harness)
    };
    let key = browser.keys("sessions")[0].clone();
    let mut host = browser.host();
    let (other, _) = host.run(Session::open(settings(options()), Some("t".into()), 10_000)).unwrap();
    host.run(other.append(vec![user("else")])).unwrap();
    let rows = browser.memory.rows();
    let (_, foreign) =
        rows.iter().find(|(row, _)| row.to_string().starts_with("sessions/") && *row != key).unwrap();
    browser.memory.damage(&key, Some(foreign.clone()));
    survives_every_kill(&browser, |_| {});
    let mut harness = browser.open();
    assert_eq!(kinds(&harness), [(LossKind::Repaired, None)]);
    assert_eq!(history(&mut harness), log);
    assert_eq!(problems(&mut harness), [""; 0]);
    harness.append(&[user("go on")]);
}

/// The disk put another session's name in the place of this one's: it leads to no rows of this one.
#[test]
fn d21_the_name_of_another_session_in_the_place_of_its_own_is_damage() {
    for also in ["", "its own row is damaged", "its own row is gone"] {
        let mut browser = Browser::new();
        with_two_sessions(&mut browser, 3);
        let names = browser.keys("meta");
        let of = |id: &str| {
            let says = format!("\"id\":\"{id}\"");
            let is_of =
                |key: &&Key| String::from_utf8(value(&browser, key).unwrap()).unwrap().contains(&says);
            names.iter().find(is_of).unwrap().clone()
        };
        let (own, other) = (of("s"), of("t"));
        browser.memory.damage(&own, value(&browser, &other));
        let row = browser
            .keys("sessions")
            .into_iter()
            .find(|key| String::from_utf8(value(&browser, key).unwrap()).unwrap().contains("\"id\":\"s\""));
        match also {
            "its own row is damaged" => browser.flip(&row.unwrap()),
            "its own row is gone" => browser.memory.damage(&row.unwrap(), None),
            _ => {}
        }
        let whole = [0, 1, 2].map(|nth| say("s", nth).to_string());
        let mut marked = browser.copy();
        let mut harness = marked.open();
        assert!(
            kinds(&harness).iter().all(|(kind, _)| *kind == LossKind::Repaired),
            "{also}: {:?}",
            kinds(&harness)
        );
        assert_eq!(history(&mut harness), whole, "{also}: a mark says whose the rows are");
        browser.marks.borrow_mut().clear();
        if also.is_empty() {
            assert_eq!(history(&mut browser.open()), whole);
            continue;
        }
        let rows = browser.memory.rows();
        let error = browser.open_with(json!({ "acceptDataLoss": true })).err().unwrap();
        assert_eq!(error.code, Code::StoreCorrupt, "{also}: {error}");
        assert_eq!(browser.memory.rows(), rows, "{also}");
    }
}

/// The disk put an earlier row of the session in its place: the store counts on, and no commit would ever be of that row.
#[test]
fn d21_an_earlier_row_of_the_session_in_its_own_place_is_mended() {
    let mut browser = Browser::new();
    let mut harness = browser.open();
    let mut earlier = Vec::new();
    for nth in 0..4 {
        harness.append(&[say("s", nth)]);
        let key = browser.keys("sessions")[0].clone();
        earlier.push(value(&browser, &key).unwrap());
    }
    let key = browser.keys("sessions")[0].clone();
    for (nth, row) in earlier.iter().enumerate().take(3) {
        let mut other = browser.copy();
        other.memory.damage(&key, Some(row.clone()));
        let mut harness = other.open();
        assert!(
            kinds(&harness).iter().all(|(kind, _)| *kind == LossKind::Repaired),
            "row {nth}: {:?}",
            kinds(&harness)
        );
        assert_eq!(history(&mut harness).len(), 4, "row {nth}");
        harness.append(&[user("go on")]);
        assert_eq!(history(&mut other.open()).len(), 5, "row {nth}");
    }
}

/// The disk put a row in the place of a name that was written more often than any name.
#[test]
fn d21_a_name_in_whose_place_is_a_row_of_many_versions_is_written_again() {
    let mut browser = Browser::new();
    with_two_sessions(&mut browser, 12);
    let name = browser
        .keys("meta")
        .into_iter()
        .find(|key| String::from_utf8(value(&browser, key).unwrap()).unwrap().contains("\"id\":\"s\""));
    let (name, row) = (name.unwrap(), browser.keys("sessions")[0].clone());
    browser.memory.damage(&name, value(&browser, &row));
    browser.memory.count(&name, 40);
    let mut harness = browser.open();
    assert_eq!(kinds(&harness), [(LossKind::Repaired, None)]);
    assert_eq!(history(&mut harness).len(), 12);
    harness.append(&[user("go on")]);
    assert_eq!(history(&mut browser.open()).len(), 13);
}

fn say(who: &str, nth: usize) -> Body {
    if nth.is_multiple_of(2) { user(&format!("{who} {nth}")) } else { assistant(&format!("{who} {nth}")) }
}

/// Two sessions of `count` messages: the keys of their logs.
fn with_two_sessions(browser: &mut Browser, count: usize) -> Vec<Vec<Key>> {
    let mut own: Vec<Vec<Key>> = Vec::new();
    for who in ["s", "t"] {
        let mut host = browser.host();
        let (session, _) = host.run(Session::open(settings(options()), Some(who.into()), 10_000)).unwrap();
        for nth in 0..count {
            host.run(session.append(vec![say(who, nth)])).unwrap();
        }
        let keys = browser.keys("log").into_iter();
        own.push(keys.filter(|key| !own.concat().contains(key)).collect::<Vec<Key>>());
    }
    own
}

fn value(browser: &Browser, key: &Key) -> Option<Vec<u8>> {
    browser.memory.rows().into_iter().find(|(known, _)| known == key).map(|(_, value)| value)
}

/// Sound rows of another session, each in the place of this one's: never read as this session's, and told as lost.
#[test]
fn d21_log_rows_of_another_session_are_never_read_as_its_own() {
    for count in [1, 2, 3, 4, 7] {
        for place in 0..count {
            let mut browser = Browser::new();
            let own = with_two_sessions(&mut browser, count);
            browser.memory.damage(&own[0][place], value(&browser, &own[1][place]));
            let opened = browser.open_with(json!({}));
            let mut harness = match opened {
                Ok(harness) => harness,
                Err(error) => {
                    assert_eq!((error.code, count), (Code::DataLoss, 1));
                    continue;
                }
            };
            assert_eq!(kinds(&harness), [(LossKind::Records, Some(1))], "row {place} of {count}");
            let left = (0..count).filter(|nth| *nth != place).map(|nth| say("s", nth).to_string());
            let left: Vec<String> = left.collect();
            assert_eq!(history(&mut harness), left, "row {place} of {count}");
            harness.append(&[user("go on")]);
            assert_eq!(history(&mut browser.open()).len(), count);
        }
    }
}

/// The rows around it, which might tell, are damaged before anything is opened.
#[test]
fn d21_a_row_of_another_session_between_damaged_ones_is_never_read_as_its_own() {
    for place in 0..5 {
        let mut browser = Browser::new();
        let own = with_two_sessions(&mut browser, 5);
        browser.memory.damage(&own[0][place], value(&browser, &own[1][place]));
        let beside = [place.checked_sub(1), Some(place + 1)];
        let beside: Vec<usize> = beside.into_iter().flatten().filter(|nth| *nth < 5).collect();
        for nth in &beside {
            browser.flip(&own[0][*nth]);
        }
        let mut harness = browser.open();
        let lost = 1 + beside.len();
        let told: u64 = kinds(&harness).into_iter().filter_map(|(_, lost)| lost).sum();
        assert_eq!(told, lost as u64, "row {place}: {:?}", kinds(&harness));
        let gone = |nth: usize| nth == place || beside.contains(&nth);
        let left = (0..5).filter(|nth| !gone(*nth)).map(|nth| say("s", nth).to_string());
        assert_eq!(history(&mut harness), left.collect::<Vec<String>>(), "row {place}");
        harness.append(&[user("go on")]);
        assert_eq!(history(&mut browser.open()).len(), 6 - lost, "row {place}");
    }
}

/// Its own row, from another place of its log, and none of its neighbors is there to tell.
#[test]
fn d21_a_row_of_another_place_of_the_log_is_never_read_in_this_one() {
    let mut browser = Browser::new();
    let own = with_two_sessions(&mut browser, 5);
    browser.memory.damage(&own[0][2], value(&browser, &own[0][3]));
    let mut harness = browser.open();
    assert_eq!(kinds(&harness), [(LossKind::Records, Some(1))]);
    let left: Vec<String> = [0, 1, 3, 4].map(|nth| say("s", nth).to_string()).to_vec();
    assert_eq!(history(&mut harness), left);
}

/// Any bit of a row is what was written or the row is damage: also those that say which key it has.
#[test]
fn d21_a_log_row_of_which_any_bit_changed_is_lost_and_told() {
    let mut browser = Browser::new();
    let own = with_two_sessions(&mut browser, 3);
    let row = value(&browser, &own[0][1]).unwrap();
    for bit in (0..row.len() * 8).rev().step_by(3) {
        let mut flipped = row.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let mut other = browser.copy();
        other.memory.damage(&own[0][1], Some(flipped));
        let mut harness = other.open();
        assert_eq!(kinds(&harness), [(LossKind::Records, Some(1))], "bit {bit}");
        let left: Vec<String> = [0, 2].map(|nth| say("s", nth).to_string()).to_vec();
        assert_eq!(history(&mut harness), left, "bit {bit}");
    }
}

/// A row that the store reports as damaged may be read another time, or by another copy: it stays where it is.
#[test]
fn d15_a_row_that_cannot_be_read_is_told_and_not_taken_out() {
    let mut browser = Browser::new();
    let own = with_two_sessions(&mut browser, 5);
    browser.memory.report_damage(&own[0][2]);
    assert_eq!(kinds(&browser.open()), [(LossKind::Records, Some(1))]);
    assert!(value(&browser, &own[0][2]).is_some());
}

/// Bits of a name's row and of its session's flipped: neither says any more what it was, and none is of a newer schema.
#[test]
fn d15_a_schema_that_flipped_bits_made_a_newer_one_is_damage() {
    let mut browser = Browser::new();
    browser.rich();
    let (name, session) = (browser.keys("meta")[0].clone(), browser.keys("sessions")[0].clone());
    let before = String::from_utf8(value(&browser, &name).unwrap()).unwrap();
    browser.memory.damage(&name, Some(before.replace("\"v\":2", "\"v\":9").into_bytes()));
    let mut other = browser.copy();
    assert_eq!(
        kinds(&other.open()),
        [(LossKind::Repaired, None)],
        "the session's row says what it is called"
    );
    browser.flip(&session);
    let mut marked = browser.copy();
    assert_eq!(kinds(&marked.open()), [(LossKind::Repaired, None); 2], "a mark says whose the log is");
    browser.marks.borrow_mut().clear();
    let error = browser.open_with(json!({})).err().unwrap();
    assert_eq!(error.code, Code::StoreCorrupt, "{error}");
    // What a release wrote that seals nothing says its schema itself.
    let unsealed = before.split(",\"seal\"").next().unwrap().replace("\"v\":2", "\"v\":9");
    browser.memory.damage(&name, Some(format!("{unsealed}}}").into_bytes()));
    let rows = browser.memory.rows();
    let error = browser.open_with(json!({})).err().unwrap();
    assert_eq!(error.code, Code::SchemaTooNew, "{error}");
    assert_eq!(browser.memory.rows(), rows);
}
