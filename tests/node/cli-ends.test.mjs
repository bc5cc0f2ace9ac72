/** How a run of the command line ends (E24): exit codes, a reader that leaves, files that were cut off, pages, stores. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import { openSession } from "context-compactor";
import { fileStore } from "context-compactor/node";
import { cli, files, program } from "../support/cli.mjs";

const folder = mkdtempSync(join(tmpdir(), "context-compactor-"));
after(() => rmSync(folder, { recursive: true }));
for (const [kind, text] of Object.entries(files)) writeFileSync(join(folder, kind), text);
for (const name of ["empty-store", "cut-off"]) mkdirSync(join(folder, name));
writeFileSync(join(folder, "cut-off", "one.jsonl"), '{"role":"user","content":"Hello."}\n{"role":"assis');

const hello = JSON.stringify([{ role: "user", content: "Hello." }]);
const orphan = JSON.stringify([{ role: "user", content: "Hello." }, { role: "tool", tool_call_id: "none", content: "x" }]);

/** Arguments, standard input, the code, and what people are told. */
const ENDS = [
  [["--help"], "", 0, /^$/, /inspect FILE/],
  [["help", "replay"], "", 0, /^$/, /--policies/],
  [["inspect", "--help"], "", 0, /^$/, /--report/],
  [["--version"], "", 0, /^$/, /^\d+\.\d+\.\d+\n$/],
  [["validate", "-"], hello, 0, /^$/, /no rule is broken/],
  [["doctor"], "", 0, /^$/, /ok +files/],
  [["validate", "-"], orphan, 1, /^$/, /#1 /],
  [["inspct", "x"], "", 2, /did you mean inspect\?/],
  [["inspect"], "", 2, /needs a FILE, or - for stdin/],
  [["inspect", "a", "b"], "", 2, /takes one FILE, and b/],
  [["inspect", "-", "--windows", "1"], hello, 2, /did you mean --window\?/],
  [["inspect", "-", "--window", "many"], hello, 2, /a number of tokens/],
  [["inspect", "-", "--window"], hello, 2, /argument missing/],
  [["inspect", "-", "--format", "openai"], hello, 2, /did you mean openai-chat\?/],
  [["inspect", "-", "--model", "gtp-4o"], hello, 2, /such as .*gpt-4o/],
  [["count", "-", "--exact", "--model", "claude-sonnet-4-5"], hello, 2, /only the tokenizers of OpenAI/],
  [["compact", "-", "--preset", "balancd"], hello, 2, /did you mean balanced\?/],
  [["compact", "-", "--provider", "antropic:x"], hello, 2, /did you mean anthropic\?/],
  [["compact", "-", "--provider", "openai:x"], hello, 2, /OPENAI_API_KEY/],
  [["replay", "-", "--policies", "nne"], hello, 2, /did you mean none\?/],
  [["replay", "-", "--policies", "balanced@2"], hello, 2, /fraction of the window/],
  [["export", "one"], "", 2, /needs --store DIR/],
  [["inspect", "nowhere.jsonl"], "", 3, /nowhere\.jsonl: there is no such file/],
  [["inspect", "empty-store"], "", 3, /no file in it ends in \.jsonl/],
  [["compact", "empty-store"], "", 3, /this is a folder: name a file in it/],
  [["count", "cut-off"], "", 3, /cut-off: none of 1 file is understood; cut-off\/one\.jsonl: line 2\b/],
  [["inspect", "cut-off", "--report", "out.html"], "", 2, /--report is of one file/],
  [["replay", "cut-off", "--optimum"], "", 2, /--optimum is of one file/],
  [["sql"], "", 2, /needs a DIALECT: postgres or sqlite/],
  [["sql", "postgre"], "", 2, /did you mean postgres\?/],
  [["sql", "sqlite", "--table", "a b"], "", 2, /table.*must be a name of letters/],
  [["inspect", "-"], "", 3, /stdin: it is empty/],
  [["inspect", "-"], "Hello.", 3, /line 1: this is no JSON/],
  [["inspect", "-"], gzipSync("Hello."), 3, /it is compressed: gunzip it first/],
  [["inspect", "-"], "[]", 3, /line 1: an empty array/],
  [["inspect", "-"], '{"model":"gpt-4o"}', 3, /line 1: /],
  [["inspect", "-"], '[\n{"role":"user"\n"content":"x"}]', 3, /line 3: /],
  [["inspect", "-"], '[{"role":"robot","content":"x"}]', 3, /robot/],
  [["export", "one", "--store", "empty-store"], "", 3, /no session called one; it has none/],
  [["export", "one", "--store", "nowhere"], "", 3, /no such folder/],
  [["compact", "-", "--window", "1000"], files["openai-body"], 4, /does not fit/],
];

for (const [args, stdin, code, told, printed] of ENDS) {
  test(`E24: ${args.join(" ")} of ${JSON.stringify(stdin.slice(0, 40))} ends with ${code}`, async () => {
    const run = await cli(args, { stdin, cwd: folder, env: { OPENAI_API_KEY: undefined } });
    assert.equal(run.code, code, run.stderr);
    assert.match(run.stderr, told);
    if (printed) assert.match(run.stdout, printed);
    else if (code === 2 || code === 3) assert.equal(run.stdout, "");
    assert.doesNotMatch(run.stderr, /\n +at /, "no stack");
  });
}

for (const kind of Object.keys(files)) {
  test(`E24: ${kind}, cut inside a line, is not understood, and the line is named`, async () => {
    const text = files[kind];
    const third = text.indexOf("\n", text.length / 3) + 1;
    // Lines: inside one that is not the first. A value: where it is long.
    const cut = text.split("\n").length > 2 ? text.slice(0, third + 40) : text.slice(0, text.length / 2);
    const line = cut.split("\n").length;
    for (const command of ["inspect", "validate"]) {
      const { code, stderr, stdout } = await cli([command, "-"], { stdin: cut });
      assert.deepEqual([code, stdout], [3, ""], stderr);
      assert.match(stderr, new RegExp(`stdin: .*line ${line}\\b`));
    }
  });
}

test("E24: a reader that leaves ends it quietly", async () => {
  const child = spawn(process.execPath, [program, "compact", "claude-code", "--window", "1000k"], { cwd: folder });
  let told = "";
  child.stderr.setEncoding("utf8").on("data", (text) => (told += text));
  child.stdout.once("data", () => child.stdout.destroy());
  const [code] = await once(child, "close");
  assert.deepEqual([code, /EPIPE|Error/.test(told)], [0, false], told);
});

test("E24: an interrupted run ends with 130", async () => {
  const child = spawn(process.execPath, [program, "inspect", "-"]);
  const ended = once(child, "close");
  // Once it reads, it listens.
  child.stdin.write("x".repeat(1 << 20));
  await once(child.stdin, "drain");
  child.kill("SIGINT");
  assert.deepEqual(await ended, [130, null]);
});

test("E24: a page needs nothing else, and has no secret unless it is asked for", async () => {
  const secret = `ghp_${"a1B2c3D4e5F6".repeat(3)}`;
  const call = { id: "c", type: "function", function: { name: "bash", arguments: JSON.stringify({ command: `GITHUB_TOKEN=${secret} deploy <all>` }) } };
  const history = [{ role: "user", content: "Deploy." }, { role: "assistant", content: null, tool_calls: [call] }, { role: "tool", tool_call_id: "c", content: "done" }, { role: "assistant", content: "Done." }];
  writeFileSync(join(folder, "secret.json"), JSON.stringify(history));
  const page = async (command, ...more) => {
    assert.equal((await cli([command, "secret.json", "--report", "out.html", ...more], { cwd: folder })).code, 0);
    return readFileSync(join(folder, "out.html"), "utf8");
  };
  for (const command of ["inspect", "compact"]) {
    const [redacted, whole] = [await page(command), await page(command, "--no-redact")];
    assert.ok(!redacted.includes(secret) && redacted.includes("[redacted"), command);
    assert.ok(whole.includes(secret) && whole.includes("&lt;all&gt;"), command);
  }
  assert.match(await page("replay"), /Cost of policies/);
  const { code } = await cli(["inspect", "claude-code", "--report", "out.html"], { cwd: folder });
  const html = readFileSync(join(folder, "out.html"), "utf8");
  assert.equal(code, 0);
  for (const part of ["<svg", "1. Before message", "Largest results"]) assert.ok(html.includes(part), part);
  assert.doesNotMatch(html, /<script|<link|<img|src=|url\(|https?:/);
});

test("E24: a session goes out and comes in; a transcript becomes one", async () => {
  const store = fileStore(join(folder, "store"));
  const session = await openSession({ id: "chat-1", store, contextWindow: 32_000 });
  await session.append({ role: "user", content: "Hello." }, { role: "assistant", content: "Hi." });
  await session.close();
  await store.close();
  const run = (...args) => cli(args, { cwd: folder });
  const exported = await run("export", "chat-1", "--store", "store");
  assert.deepEqual([exported.code, exported.stdout.split("\n").length > 3], [0, true], exported.stderr);
  assert.match(exported.stderr, /chat-1: 2 messages/);
  assert.match((await run("export", "chat-2", "--store", "store")).stderr, /did you mean chat-1\?/);
  writeFileSync(join(folder, "chat-1.jsonl"), exported.stdout);
  const again = await run("import", "chat-1.jsonl", "--store", "other", "--json");
  assert.deepEqual(JSON.parse(again.stdout), { version: 1, command: "import", id: "chat-1", kind: "context-compactor", format: "openai-chat", messages: 2, skipped: {}, store: "other" });
  const twice = await run("import", "chat-1.jsonl", "--store", "other");
  assert.deepEqual([twice.code, /--id/.test(twice.stderr)], [1, true], twice.stderr);
  const file = await run("export", "chat-1", "--store", "other", "-o", "again.jsonl", "--json");
  assert.equal(JSON.parse(file.stdout).output, "again.jsonl");
  assert.equal(readFileSync(join(folder, "again.jsonl"), "utf8").split("\n").length, exported.stdout.split("\n").length);
  for (const kind of ["claude-code", "codex", "gemini", "ai-sdk"]) {
    const { code, stdout, stderr } = await run("import", kind, "--store", "other", "--id", kind, "--json");
    assert.equal(code, 0, stderr);
    assert.ok(JSON.parse(stdout).messages > 100, kind);
  }
});
