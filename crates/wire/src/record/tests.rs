//! Z10: a record is read and written as what is derived for it would do it.

use super::{Json, ReadJson, Unreadable, WriteJson, from_str, to_text, write_variant};
use crate::objects;
use fastrand::Rng;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Whole {
    a_number: u64,
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    other: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Piece>,
    #[serde(default)]
    pair: (usize, u32),
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    on: bool,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

crate::record!(Whole {
    a_number = "aNumber",
    text = "text" or default,
    other = "other" or nothing,
    parts = "parts" or nothing,
    pair = "pair" or default,
    on = "on" or nothing,
    .. rest
});

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Piece {
    Triple(u64, usize, usize),
    Named { name: String },
}

impl WriteJson for Piece {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Piece::Triple(one, two, three) => {
                write_variant(out, "triple", &mut |out| (*one, *two, *three).write(out));
            }
            Piece::Named { name } => {
                write_variant(out, "named", &mut |out| crate::write_fields!(out, [name = "name"]))
            }
        }
    }
}

impl ReadJson<'_> for Piece {
    fn read(json: &mut Json<'_>) -> Result<Self, Unreadable> {
        json.variant(|name, json| match name {
            "triple" => {
                <(u64, usize, usize)>::read(json).map(|(one, two, three)| Piece::Triple(one, two, three))
            }
            "named" => crate::read_fields!(json, Piece::Named, [name = "name"]),
            _ => Err(Unreadable::no("piece")),
        })
    }
}

const TEXTS: [&str; 15] = [
    r#"{"aNumber":7}"#,
    r#"{"aNumber":7,"text":"x","parts":[{"triple":[1,2,3]},{"named":{"name":"a \"b\" \\ \u00e9 \ud83d\ude00\n"}}],"pair":[1,5],"on":true}"#,
    "\t{ \"aNumber\" : 7 ,\r\n \"later\": {\"deep\":[1,{\"er\":null}, \"}\\\"]\"]} , \"text\" : null }  ",
    r#"{"aNumber":18446744073709551615,"other":"","parts":[],"on":false,"unknown":1.50}"#,
    r#"{"aNumber":18446744073709551616}"#,
    r#"{"aNumber":-0}"#,
    r#"{"aNumber":1e2}"#,
    r#"{"aNumber":"7"}"#,
    r#"{"aNumber":7} x"#,
    r#"{"aNumber":7,"aNumber":8}"#,
    r#"{"text":"x"}"#,
    r#"{"aNumber":7,"pair":[1]}"#,
    r#"{"aNumber":7,"pair":[1,2,3]}"#,
    r#"{"aNumber":7,"text":"\ud83d"}"#,
    "",
];

fn alike(text: &str) -> bool {
    let (derived, read) = (objects::from_str::<Whole>(text).ok(), from_str::<Whole>(text).ok());
    assert_eq!(read, derived, "{text}");
    if let Some(record) = &read {
        assert_eq!(to_text(record), serde_json::to_string(record).unwrap());
    }
    read.is_some()
}

#[test]
fn z10_records_are_read_and_written_as_they_are_derived() {
    assert_eq!(TEXTS.map(alike).iter().filter(|is_one| **is_one).count(), 4);
}

#[test]
fn z10_texts_in_which_anything_was_changed_are_read_as_they_are_derived() {
    let mut rng = Rng::with_seed(10);
    let signs: Vec<char> = "{}[]:,\"\\ntru0-1e.x \u{e9}\u{1f600}".chars().collect();
    let mut read = 0;
    for round in 0..40_000 {
        let mut text: Vec<char> = TEXTS[round % TEXTS.len()].chars().collect();
        for _ in 0..=rng.usize(..2) {
            let at = rng.usize(..=text.len());
            match rng.usize(..3) {
                0 => text.insert(at, *rng.choice(&signs).unwrap()),
                1 if at < text.len() => drop(text.remove(at)),
                _ if at < text.len() => text[at] = *rng.choice(&signs).unwrap(),
                _ => {}
            }
        }
        read += usize::from(alike(&text.into_iter().collect::<String>()));
    }
    assert!(read > 1_000, "{read} of them were records");
}

#[test]
fn z10_an_error_says_where_and_not_what() {
    let error = |text| from_str::<Whole>(text).unwrap_err().to_string();
    assert_eq!(error(r#"{"aNumber":"my secret"}"#), "aNumber: it is no number of its kind");
    assert_eq!(error(r#"{"text":"my secret"}"#), "aNumber is missing");
    assert_eq!(error(r#"{"aNumber":1,"parts":[{"named":{"name":1}}]}"#), "parts: name: it is no text");
    assert_eq!(error(r#"{"aNumber":1,"aNumber":1}"#), "aNumber is there twice");
    assert!(!error("{\"aNumber\":1,\"text\":\"my secret").contains("secret"));
}
