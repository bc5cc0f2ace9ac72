//! OpenAI Responses: reading items.

use context_compactor_core::Code;
use context_compactor_core::error::ErrorParts;
use context_compactor_core::message::{Media, MediaKind, Message, Pairing, Part, Role, ToolCall, ToolResult};
use context_compactor_core::wire::{Format, parse};
use serde_json::{Value, json};

const FORMAT: Format = Format::OpenaiResponses;

fn read<T>(item: &Value, look: impl FnOnce(Message<'_>) -> T) -> T {
    let text = item.to_string();
    let parsed = parse(7, &text).unwrap();
    let read = FORMAT.wire().read(7, &parsed).unwrap_or_else(|error| panic!("{error}: {text}"));
    look(read)
}

#[track_caller]
fn reads(item: Value, role: Role, parts: &[Part<'_>]) {
    read(&item, |message| assert_eq!((message.role, message.parts.as_slice()), (role, parts), "{item}"));
}

fn text(text: &str) -> Part<'_> {
    Part::Text(text.into())
}

fn call<'a>(name: &'a str, arguments: &'a str) -> Part<'a> {
    Part::ToolCall(ToolCall { id: "a".into(), name: name.into(), arguments: arguments.into(), caller: None })
}

fn result<'a>(text: &'a str, media: &[Media]) -> Part<'a> {
    let media = media.to_vec();
    Part::ToolResult(ToolResult {
        call_id: "a".into(),
        text: text.into(),
        is_error: false,
        media,
        mark: None,
    })
}

fn image(bytes: usize) -> Media {
    Media { kind: MediaKind::Image, bytes, pixels: None }
}

#[test]
fn messages_of_every_role_and_shape() {
    for (name, role) in [
        ("system", Role::System),
        ("developer", Role::System),
        ("user", Role::User),
        ("assistant", Role::Assistant),
    ] {
        reads(json!({ "role": name, "content": "안녕" }), role, &[text("안녕")]);
        reads(json!({ "type": "message", "role": name, "content": "שלום" }), role, &[text("שלום")]);
    }
    reads(json!({ "role": "user", "content": "" }), Role::User, &[]);
    let content = json!([
        { "type": "input_text", "text": "one" },
        { "type": "input_text", "text": "" },
        { "type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AAAAAAAA" },
        { "type": "input_image", "detail": "auto", "image_url": "https://example.com/a-long-name.png" },
        { "type": "input_image", "file_id": "file-1" },
        { "type": "input_file", "file_data": "data:application/pdf;base64,AAAA" },
        { "type": "input_file", "file_data": "AAAAAAAA" },
        { "type": "input_audio", "input_audio": { "data": "AAAA", "format": "wav" } },
        { "type": "input_smell", "note": "ok" },
    ]);
    let document = |bytes| Part::Media(Media { kind: MediaKind::Document, bytes, pixels: None });
    reads(
        json!({ "type": "message", "role": "user", "content": content }),
        Role::User,
        &[
            text("one"),
            Part::Media(image(6)),
            Part::Media(image(0)),
            Part::Media(image(0)),
            document(3),
            document(6),
            Part::Media(Media { kind: MediaKind::Audio, bytes: 3, pixels: None }),
            Part::Opaque { kind: "input_smell".into(), chars: 35, tie: Pairing::None },
        ],
    );
    let said = json!([
        { "type": "output_text", "text": "Yes.", "annotations": [], "logprobs": [] },
        { "type": "refusal", "refusal": "No." },
        { "type": "summary_text", "text": "So." },
    ]);
    reads(
        json!({ "id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": said }),
        Role::Assistant,
        &[text("Yes."), text("No."), text("So.")],
    );
}

#[test]
fn a_text_is_borrowed_from_the_input() {
    let json = r#"{"type":"function_call_output","call_id":"a","output":"안녕 👩‍👩‍👧 你好"}"#;
    let parsed = parse(0, json).unwrap();
    let message = FORMAT.wire().read(0, &parsed).unwrap();
    let text = &message.results().next().unwrap().text;
    assert!(json.as_bytes().as_ptr_range().contains(&text.as_ptr()));
}

#[test]
fn reasoning_of_every_kind() {
    let reasoning = |text: &'static str, signed| [Part::Reasoning { text: text.into(), signed }];
    reads(
        json!({ "type": "reasoning", "id": "rs_1", "summary": [] }),
        Role::Assistant,
        &reasoning("", false),
    );
    reads(
        json!({ "type": "reasoning", "summary": [], "content": null, "encrypted_content": null }),
        Role::Assistant,
        &reasoning("", false),
    );
    let both = json!({ "type": "reasoning", "encrypted_content": "gAAA",
        "summary": [{ "type": "summary_text", "text": "one" }, { "type": "summary_text", "text": "two" }],
        "content": [{ "type": "reasoning_text", "text": "three" }] });
    reads(both, Role::Assistant, &reasoning("one\ntwo\nthree", true));
}

#[test]
fn calls_that_the_app_answers() {
    for (item, name, arguments) in [
        (json!({ "type": "function_call", "name": "f", "arguments": "{\"x\":1}" }), "f", "{\"x\":1}"),
        (
            json!({ "type": "custom_tool_call", "name": "g", "input": "say \"x\"", "namespace": "n" }),
            "g",
            r#""say \"x\"""#,
        ),
        (
            json!({ "type": "local_shell_call", "action": { "command": ["ls"] } }),
            "local_shell",
            r#"{"command":["ls"]}"#,
        ),
        (
            json!({ "type": "shell_call", "action": { "commands": ["ls"] } }),
            "shell",
            r#"{"commands":["ls"]}"#,
        ),
        (
            json!({ "type": "apply_patch_call", "operation": { "path": "a" } }),
            "apply_patch",
            r#"{"path":"a"}"#,
        ),
        (json!({ "type": "computer_call", "action": { "type": "wait" } }), "computer", r#"{"type":"wait"}"#),
        (
            json!({ "type": "computer_call", "actions": [{ "type": "wait" }] }),
            "computer",
            r#"[{"type":"wait"}]"#,
        ),
    ] {
        let mut item = item;
        item["call_id"] = "a".into();
        reads(item, Role::Assistant, &[call(name, arguments)]);
    }
    let called = json!({ "type": "function_call", "call_id": "a", "name": "f", "arguments": "{}",
        "caller": { "type": "program", "caller_id": "p" } });
    read(&called, |message| {
        assert_eq!(message.calls().next().unwrap().caller.as_deref(), Some("p"));
    });
    let direct = json!({ "type": "function_call", "call_id": "a", "name": "f", "arguments": "{}",
        "caller": { "type": "direct" } });
    reads(direct, Role::Assistant, &[call("f", "{}")]);
}

#[test]
fn outputs_of_every_shape() {
    let parts = json!([
        { "type": "input_text", "text": "one" },
        { "type": "input_image", "image_url": "data:image/png;base64,AAAAAAAA" },
        { "type": "input_text", "text": "two" },
    ]);
    for kind in ["function_call_output", "custom_tool_call_output"] {
        reads(json!({ "type": kind, "call_id": "a", "output": "done" }), Role::Tool, &[result("done", &[])]);
        reads(
            json!({ "type": kind, "call_id": "a", "output": parts }),
            Role::Tool,
            &[result("one\ntwo", &[image(6)])],
        );
    }
    let new = json!([{ "type": "input_novel" }]);
    read(&json!({ "type": "function_call_output", "call_id": "a", "output": new }), |message| {
        assert_eq!(message.parts[0], result("", &[]));
        assert!(matches!(&message.parts[1], Part::Opaque { kind, .. } if kind == "input_novel"));
    });
    // The published types have `id` here, the guides `call_id`; both mean the call.
    for key in ["id", "call_id"] {
        let mut item = json!({ "type": "local_shell_call_output", "output": "done" });
        item[key] = "a".into();
        reads(item, Role::Tool, &[result("done", &[])]);
    }
    let chunks = json!([
        { "stdout": "one", "stderr": "two", "outcome": { "type": "exit", "exit_code": 1 } },
        { "stdout": "", "stderr": "three", "outcome": { "type": "timeout" } },
    ]);
    reads(
        json!({ "type": "shell_call_output", "call_id": "a", "output": chunks }),
        Role::Tool,
        &[result("one\ntwo\nthree", &[])],
    );
    let screenshot = json!({ "type": "computer_screenshot", "image_url": "data:image/png;base64,AAAAAAAA" });
    reads(
        json!({ "type": "computer_call_output", "call_id": "a", "output": screenshot }),
        Role::Tool,
        &[result("", &[image(6)])],
    );
    for (status, is_error) in [("completed", false), ("failed", true)] {
        let item =
            json!({ "type": "apply_patch_call_output", "call_id": "a", "status": status, "output": null });
        read(&item, |message| {
            let result = message.results().next().unwrap();
            assert_eq!((result.text.as_ref(), result.is_error), ("", is_error));
        });
    }
}

fn ties<'a>(history: &'a [Value]) -> Vec<(Role, Option<Pairing<'a>>)> {
    let tie = |item: &'a Value| {
        read(item, |message| {
            let tie = message.parts.iter().find_map(|part| match part {
                Part::Opaque { tie, .. } => Some(match tie {
                    Pairing::Opens(id) => Pairing::Opens(id.to_string().into()),
                    Pairing::Closes(id) => Pairing::Closes(id.to_string().into()),
                    Pairing::None => Pairing::None,
                    Pairing::Refers => Pairing::Refers,
                }),
                _ => None,
            });
            (message.role, tie)
        })
    };
    history.iter().map(tie).collect()
}

/// lesson: server tools and new block types
#[test]
fn items_that_are_never_read_keep_their_partners() {
    let opens = |id: &'static str| Some(Pairing::Opens(id.into()));
    let closes = |id: &'static str| Some(Pairing::Closes(id.into()));
    let (model, tool) = (Role::Assistant, Role::Tool);
    let history = [
        json!({ "type": "mcp_approval_request", "id": "r", "name": "f", "arguments": "{}" }),
        json!({ "type": "mcp_approval_response", "id": "x", "approval_request_id": "r", "approve": true }),
        json!({ "type": "mcp_call", "id": "m", "approval_request_id": "r", "output": "long" }),
        json!({ "type": "mcp_call", "id": "n", "approval_request_id": null }),
        json!({ "type": "tool_search_call", "call_id": "s", "execution": "client" }),
        json!({ "type": "tool_search_output", "call_id": "s", "execution": "client", "tools": [] }),
        json!({ "type": "program", "id": "p1", "call_id": "p", "code": "x" }),
        json!({ "type": "program_output", "id": "p2", "call_id": "p", "result": "x" }),
        json!({ "type": "quantum_call", "call_id": "q" }),
        json!({ "type": "quantum_call_output", "call_id": "q" }),
        json!({ "type": "quantum_output", "call_id": "q" }),
        json!({ "type": "quantum_call_result", "call_id": "q" }),
        json!({ "type": "web_search_call", "id": "ws_1", "action": {} }),
        json!({ "type": "file_search_call", "id": "fs_1" }),
        json!({ "type": "code_interpreter_call", "id": "ci_1" }),
        json!({ "type": "mcp_list_tools", "id": "ml_1", "tools": [] }),
        json!({ "type": "compaction_trigger" }),
        json!({ "type": "additional_tools", "role": "developer", "tools": [] }),
        json!({ "type": "item_reference", "id": "msg_1" }),
        json!({ "id": "msg_1" }),
    ];
    assert_eq!(
        ties(&history),
        [
            (model, opens("r")),
            (tool, closes("r")),
            (model, closes("r")),
            (model, Some(Pairing::None)),
            (model, opens("s")),
            (tool, closes("s")),
            (model, opens("p")),
            (model, closes("p")),
            (model, opens("q")),
            (tool, closes("q")),
            (tool, closes("q")),
            (tool, closes("q")),
            (model, Some(Pairing::None)),
            (model, Some(Pairing::None)),
            (model, Some(Pairing::None)),
            (model, Some(Pairing::None)),
            (Role::System, Some(Pairing::None)),
            (Role::System, Some(Pairing::None)),
            (model, Some(Pairing::Refers)),
            (model, Some(Pairing::Refers)),
        ]
    );
    // A search that the server ran has no id. One that an app wrote down with an id may have no output.
    let search =
        |kind: &str, call_id: Value| json!({ "type": kind, "call_id": call_id, "execution": "server" });
    let history = [
        search("tool_search_call", Value::Null),
        search("tool_search_output", Value::Null),
        search("tool_search_call", "tsc_1".into()),
    ];
    let found = ties(&history);
    assert!(matches!(&found[0], (Role::Assistant, Some(Pairing::Opens(_)))), "{found:?}");
    assert!(matches!(&found[1], (Role::Assistant, Some(Pairing::Closes(_)))), "{found:?}");
    assert_eq!(found[2], (Role::Assistant, Some(Pairing::None)));
}

/// lesson: opaque server compaction
#[test]
fn compaction_items_and_pictures_are_counted_by_rule() {
    for kind in ["compaction", "compaction_summary"] {
        let item = json!({ "type": kind, "id": "cmp_1", "encrypted_content": "gAAAA" });
        read(&item, |message| {
            assert!(message.has_compaction() && message.role == Role::Assistant);
        });
    }
    let drawn = json!({ "type": "image_generation_call", "id": "ig_1", "result": "A".repeat(4_000_000) });
    read(&drawn, |message| {
        let [Part::Opaque { chars, .. }, Part::Media(media)] = message.parts.as_slice() else { panic!() };
        assert!(*chars < 100, "{chars}");
        assert_eq!(*media, image(3_000_000));
    });
}

#[test]
fn prose_in_items_that_are_news_to_us_is_read() {
    let item = json!({ "type": "agent_message", "author": "/lead/a", "recipient": "/lead", "content": [
        { "type": "input_text", "text": "The review is done." },
        { "type": "encrypted_content", "encrypted_content": "gAAA" }] });
    read(&item, |message| {
        assert_eq!((message.role, message.text().as_str()), (Role::Assistant, "The review is done."));
        let kinds = message.parts.iter().filter_map(|part| match part {
            Part::Opaque { kind, .. } => Some(kind.as_ref()),
            _ => None,
        });
        assert_eq!(kinds.collect::<Vec<_>>(), ["agent_message", "encrypted_content"]);
    });
    // Content of a shape that nobody knows is no error in an item that nobody knows.
    reads(
        json!({ "type": "aura", "content": { "x": 1 } }),
        Role::Assistant,
        &[Part::Opaque { kind: "aura".into(), chars: 35, tie: Pairing::None }],
    );
}

#[test]
fn what_cannot_be_read_is_named() {
    let output = |output: Value| json!({ "type": "function_call_output", "call_id": "a", "output": output });
    for (item, field) in [
        (json!({}), "type"),
        (json!({ "type": 1 }), "type"),
        (json!({ "type": "message" }), "role"),
        (json!({ "type": "message", "role": "robot", "content": "" }), "role"),
        (json!({ "role": "tool", "content": "" }), "role"),
        (json!({ "role": "user" }), "content"),
        (json!({ "role": "user", "content": 1 }), "content"),
        (json!({ "role": "user", "content": ["x"] }), "content[0]"),
        (json!({ "role": "user", "content": [{ "text": "x" }] }), "content[0].type"),
        (json!({ "role": "user", "content": [{ "type": "input_text" }] }), "content[0].text"),
        (json!({ "type": "function_call", "name": "f", "arguments": "{}" }), "call_id"),
        (json!({ "type": "function_call", "call_id": "a", "arguments": "{}" }), "name"),
        (json!({ "type": "function_call", "call_id": "a", "name": "f", "arguments": {} }), "arguments"),
        (json!({ "type": "custom_tool_call", "call_id": "a", "name": "f" }), "input"),
        (json!({ "type": "shell_call", "call_id": "a" }), "action"),
        (json!({ "type": "shell_call_output", "call_id": "a", "output": "x" }), "output"),
        (
            json!({ "type": "shell_call_output", "call_id": "a", "output": [{ "stdout": 1 }] }),
            "output[0].stdout",
        ),
        (json!({ "type": "apply_patch_call", "call_id": "a", "operation": "x" }), "operation"),
        (json!({ "type": "computer_call_output", "call_id": "a", "output": "x" }), "output"),
        (json!({ "type": "function_call_output", "output": "x" }), "call_id"),
        (output(Value::Null), "output"),
        (output(json!({ "x": 1 })), "output"),
        (json!({ "type": "reasoning", "summary": "x" }), "summary"),
        (json!({ "type": "item_reference" }), "id"),
    ] {
        let text = item.to_string();
        let parsed = parse(7, &text).unwrap();
        let ErrorParts { code, index, field: place, .. } =
            FORMAT.wire().read(7, &parsed).unwrap_err().into_parts();
        assert_eq!((code, index, place.as_deref()), (Code::InvalidMessage, Some(7), Some(field)), "{text}");
    }
}
