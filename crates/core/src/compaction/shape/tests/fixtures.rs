//! Results as tools return them, of any size.

use serde_json::{Value, json};
use std::fmt::Write as _;

/// An API's list of objects, every 97th of which failed.
pub(super) fn json(count: usize) -> String {
    let item = |nth: usize| -> Value {
        let error = (nth % 97 == 50).then(|| format!("upstream refused order ord_{nth:06}"));
        json!({
            "id": format!("ord_{nth:06}"), "customer": { "name": "김민수", "mail": "👩‍👩‍👧 家" }, "total": 12.50,
            "big": 1234567890123456789_u64, "path": format!("/orders/2026/{nth}.json"), "error": error,
            "note": "ordered by phone 👩‍👩‍👧, to be delivered to the back door, please ring twice. ".repeat(4),
        })
    };
    let items: Vec<Value> = (0..count).map(item).collect();
    serde_json::to_string_pretty(
        &json!({ "status": 200, "page": { "next": "/orders?page=2" }, "orders": items }),
    )
    .unwrap()
}

pub(super) fn json_lines(count: usize) -> String {
    let line = |nth: usize| {
        let level = if nth % 50 == 33 { "error" } else { "info" };
        json!({ "ts": format!("2026-11-22T02:{:02}:00Z", nth % 60), "level": level, "msg": format!("job {nth} ended") })
            .to_string()
    };
    (0..count).map(line).collect::<Vec<_>>().join("\n")
}

pub(super) fn csv(count: usize) -> String {
    let mut out = "id,name,city,balance\n".to_string();
    for nth in 0..count {
        let _ = writeln!(out, "{nth},\"Ren, {nth}\",서울,{}", nth * 17 % 1_000);
    }
    out
}

pub(super) fn markdown(count: usize) -> String {
    let mut out = "| id | name | state |\n|----|------|-------|\n".to_string();
    for nth in 0..count {
        let _ = writeln!(out, "| {nth} | שם {nth} | ok |");
    }
    out
}

pub(super) fn processes(count: usize) -> String {
    let mut out = "NAME              READY   STATUS    RESTARTS   AGE\n".to_string();
    for nth in 0..count {
        let status = if nth % 40 == 20 { "Error  " } else { "Running" };
        let _ = writeln!(out, "worker-{nth:<10} 1/1     {status}   0          {nth}d");
    }
    out
}

/// A server's log: health checks, some warnings, an error with its stack every 200 lines.
pub(super) fn log(count: usize) -> String {
    let mut out = String::new();
    for nth in 0..count {
        let time = format!("2026-11-22T{:02}:{:02}:{:02}Z", nth / 3_600, nth / 60 % 60, nth % 60);
        let _ = match nth % 200 {
            150 => writeln!(
                out,
                "{time} ERROR request req_{nth:x} failed: connection reset\n    at Pool.acquire (/srv/app/pool.js:{nth}:7)"
            ),
            70 => writeln!(out, "{time} WARN pool nearly full: {nth} of 5000"),
            _ => writeln!(out, "{time} INFO GET /health took {}ms", nth % 9),
        };
    }
    out
}

pub(super) fn diff(files: usize) -> String {
    let mut out = "commit 4e313bb0\nAuthor: M\n\n    Rename the parser's state\n\n".to_string();
    for nth in 0..files {
        let _ = writeln!(
            out,
            "diff --git a/src/part{nth}.rs b/src/part{nth}.rs\nindex 111..222 100644\n--- a/src/part{nth}.rs\n+++ b/src/part{nth}.rs\n@@ -10,7 +10,8 @@ fn part{nth}()"
        );
        for line in 0..20 {
            let _ = writeln!(out, "     let unchanged_{line} = {line};");
        }
        let _ = writeln!(
            out,
            "-    let old_state = {nth};\n--- a removed comment of SQL\n+    let state = {nth};\n+    파서(state);"
        );
    }
    out
}

pub(super) fn page(paragraphs: usize) -> String {
    let mut out = "<!DOCTYPE html><html><head><title>Context &amp; windows</title><style>p{color:red}</style>\
        <script>if (a<b) { alert('</p>') }</script></head><body><nav><ul><li><a href=\"/home\">Home</a></li></ul></nav>"
        .to_string();
    for nth in 0..paragraphs {
        let _ = write!(
            out,
            "<h2 class='x>y'>Part {nth}</h2><p>The window of part&nbsp;{nth} is <b>small</b>; \
             see <a href=\"https://example.org/{nth}?a=1&amp;b=2\">the notes</a>. 한국어 👩‍👩‍👧 &lt;ok&gt;</p>\
             <table><tr><td>a</td><td>{nth}</td></tr></table><!-- hidden {nth} -->"
        );
    }
    out.push_str("</body></html>");
    out
}

/// All of them at a size, with what they are.
pub(super) fn all(scale: usize) -> Vec<(&'static str, String)> {
    vec![
        ("JSON", json(scale)),
        ("JSON lines", json_lines(scale)),
        ("table", csv(scale)),
        ("table", markdown(scale)),
        ("table", processes(scale)),
        ("log", log(scale)),
        ("diff", diff(scale / 4)),
        ("HTML", page(scale / 2)),
    ]
}
