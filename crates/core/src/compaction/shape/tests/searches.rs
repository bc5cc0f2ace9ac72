use super::super::{json, search};
use serde_json::json;

fn of_json(value: &serde_json::Value) -> Option<String> {
    search::of_json(&json::read(&value.to_string())?, 20)
}

#[test]
fn f39_s4_5_results_are_the_list_half_of_whose_items_have_an_address() {
    let hit = json!({ "url": "u" });
    let found = Some("1 results\n1. u\n   u".to_string());
    assert_eq!(of_json(&json!([hit])), found);
    assert_eq!(of_json(&json!({ "a": { "b": { "c": { "d": [hit] } } } })), found);
    assert_eq!(of_json(&json!({ "a": { "b": { "c": { "d": { "e": [hit] } } } } })), None);
    assert_eq!(of_json(&json!([[[[[hit]]]]])), found);
    assert_eq!(of_json(&json!([[[[[[hit]]]]]])), None);
    assert_eq!(of_json(&json!([hit, { "title": "t" }])), Some("2 results\n1. u\n   u".into()));
    assert_eq!(of_json(&json!([hit, {}, {}])), None);
    assert_eq!(of_json(&json!([])), None);
    let behind = |lists: usize| {
        let mut items = vec![json!([]); lists];
        items.push(json!([hit]));
        of_json(&json!(items))
    };
    assert_eq!((behind(19), behind(20)), (found, None));
    let full = json!({ "answer": "yes", "results": [
        { "title": "", "name": "n", "link": "l", "snippet": "a\n b" },
        { "heading": "x".repeat(61), "uri": "i", "body": "y".repeat(60), "text": "" },
    ] });
    let long = format!("{}… [61 characters]", "x".repeat(20));
    let snippet = "y".repeat(60);
    assert_eq!(
        of_json(&full),
        Some(format!("Answer: yes\n2 results\n1. n\n   l\n   a b\n2. {long}\n   i\n   {snippet}"))
    );
    assert_eq!(of_json(&json!({ "answer": "", "hits": [hit] })), Some("1 results\n1. u\n   u".into()));
}

#[test]
fn f39_s4_5_results_in_a_text_are_blocks_with_an_address_each() {
    for (text, expected) in [
        ("nothing\n\nat all", None),
        (
            "before\n\nA\nhttps://a.b/c, x\nsnippet\nmore\n\nbehind",
            Some("1 results\n1. A\n   https://a.b/c\n   snippet more behind"),
        ),
        (
            "Title: A\nURL: http://a\nContent: b: c\ntitle: D\nURL: <https://d>\n",
            Some("2 results\n1. A\n   http://a\n   b: c\n2. D\n   https://d"),
        ),
        (
            "1. A\nhttp://a\n2) [B](http://b)\n123. C http://c\n1234. x",
            Some("3 results\n1. A\n   http://a\n2. B\n   http://b\n3. C http://c\n   http://c\n   1234. x"),
        ),
        (
            "A\nhttp://a\n---\nB\nhttp://b\n***\n==x==",
            Some("2 results\n1. A\n   http://a\n2. B\n   http://b\n   ==x=="),
        ),
        (
            "A\nhttp://a\n1234. http://b\nabc. http://c",
            Some("1 results\n1. A\n   http://a\n   1234. http://b abc. http://c"),
        ),
        ("http://a\nb", Some("1 results\n1. http://a\n   http://a\n   b")),
        ("## **A**\nsee (http://a|b)", Some("1 results\n1. A\n   http://a")),
        ("A\nhttp://a https://b", Some("1 results\n1. A\n   http://a")),
    ] {
        assert_eq!(search::of_text(text, 20).as_deref(), expected, "{text}");
    }
}
