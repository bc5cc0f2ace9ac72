/**
 * The command line (E24): what each command prints of each kind of file, from a file and from stdin. What it printed is in
 * `tests/fixtures/cli/`; `UPDATE=1 node --test tests/node/cli.test.mjs` writes it anew, for a reader to look at.
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { cli, files, isDocumented } from "../support/cli.mjs";

const folder = mkdtempSync(join(tmpdir(), "context-compactor-"));
after(() => rmSync(folder, { recursive: true }));
for (const [kind, text] of Object.entries(files)) writeFileSync(join(folder, kind), text);

const COMMANDS = { inspect: [], validate: [], count: [], compact: ["--window", "16k"], replay: ["--window", "32k", "--policies", "none,balanced"] };
/** The standard output of these is data. */
const isData = (command) => command === "compact";

const goldenOf = (kind, command) => new URL(`../fixtures/cli/${kind}.${command}.json`, import.meta.url);
const sha256 = (text) => createHash("sha256").update(text).digest("hex").slice(0, 16);

/** What a golden file holds of an object: long texts as their length and hash; the archive's ids are new each time. */
function brief(value, kind, name = "") {
  if (name === "ledger") return `${value.length} entries`;
  if (name === "output" && kind === "archive") return "an archive";
  if (typeof value === "string" && value.length > 300) return `${value.length} characters, ${sha256(value)}`;
  if (Array.isArray(value)) return value.map((one) => brief(one, kind));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([field, one]) => [field, brief(one, kind, field)]));
}

for (const kind of Object.keys(files)) {
  for (const [command, options] of Object.entries(COMMANDS)) {
    test(`E24: ${command} of ${kind}, from a file, and from stdin with --json`, async () => {
      const [file, stdin] = await Promise.all([
        cli([command, kind, ...options], { cwd: folder }),
        cli([command, "-", "--json", ...options], { stdin: files[kind] }),
      ]);
      assert.deepEqual([file.code, stdin.code], [0, 0], file.stderr + stdin.stderr);
      const object = JSON.parse(stdin.stdout);
      assert.deepEqual([object.version, object.command, object.file], [1, command, "-"]);
      isDocumented(object);
      assert.equal(stdin.stderr, "", "with --json nothing is said to people");
      const text = (isData(command) ? file.stderr : file.stdout).split("\n");
      if (isData(command)) assert.ok(kind === "archive" || object.output === file.stdout, "the same data, in the object");
      else assert.equal(file.stderr, "");
      const found = { text, json: brief(object, kind) };
      if (process.env.UPDATE) writeFileSync(goldenOf(kind, command), `${JSON.stringify(found, undefined, 1)}\n`);
      assert.ok(existsSync(goldenOf(kind, command)), "no golden file: UPDATE=1 writes it");
      assert.deepEqual(found, JSON.parse(readFileSync(goldenOf(kind, command), "utf8")));
    });
  }
}

test("E24: what else is printed with --json is as the schema says", async () => {
  const run = (...args) => cli([...args, "--json"], { cwd: folder });
  const runs = [
    await run("doctor"),
    await run("import", "archive", "--store", "store"),
    await run("export", "invoicing", "--store", "store"),
    await run("export", "invoicing", "--store", "store", "-o", "out.jsonl"),
    await run("count", "openai-lines", "--exact"),
    await run("inspect", "nowhere"),
    await run("nothing"),
  ];
  assert.deepEqual(runs.map(({ code }) => code), [0, 0, 0, 0, 0, 3, 2]);
  for (const { stdout } of runs) isDocumented(JSON.parse(stdout));
});

test("E24: what came compacted comes in the format that was read, and is read again", async () => {
  for (const kind of Object.keys(files)) {
    const { stdout } = await cli(["compact", kind, "--window", "16k"], { cwd: folder });
    const [before, again] = await Promise.all([cli(["validate", kind, "--json"], { cwd: folder }), cli(["validate", "-", "--json"], { stdin: stdout })]);
    const [one, other] = [before, again].map((run) => JSON.parse(run.stdout));
    assert.deepEqual([other.valid, other.format], [true, one.format], kind);
    const isTranscript = kind === "claude-code" || kind === "codex";
    assert.equal(other.kind, isTranscript ? "messages" : one.kind, kind);
    if (kind.endsWith("-body")) {
      const [from, to] = [files[kind], stdout].map((text) => JSON.parse(text));
      assert.deepEqual(Object.keys(to), Object.keys(from));
      assert.deepEqual([to.model, to.tools], [from.model, from.tools]);
    }
  }
});

test("E24: what an agent's compaction lost is told: a path, a name, a command and a constraint that came back, and nothing that the summary has", async () => {
  const line = (type, message, more) => JSON.stringify({ type, uuid: `${Math.random()}`, sessionId: "s", message, ...more });
  const said = (text) => line("user", { role: "user", content: text });
  const answered = (content) => line("assistant", { role: "assistant", content });
  const call = (id, name, input) => answered([{ type: "tool_use", id, name, input }]);
  const result = (id, content) => line("user", { role: "user", content: [{ type: "tool_result", tool_use_id: id, content }] });
  const source = "func applySurcharge(rate float64) float64 {\n\treturn rate * 1.0375\n}";
  const lines = [
    said("Fix the surcharge. Never push to the release branch without asking me first."),
    call("a", "grep", { pattern: "urcharge" }),
    result("a", `billing/surcharge.go:\n${source}`),
    call("b", "bash", { command: "scripts/verify-billing.sh --tenant acme" }),
    result("b", "order 48217 differs"),
    answered("Order 48217 differs, of applySurcharge and keptByName."),
    line("user", { role: "user", content: "The surcharge is wrong for one order. keptByName is fine." }, { isCompactSummary: true }),
    call("c", "grep", { pattern: "urcharge" }),
    result("c", `billing/surcharge.go:\n${source}\nfunc keptByName() {}`),
    call("d", "edit", { path: "src/billing/surcharge.go", old: "applySurcharge", new: "keptByName" }),
    result("d", "done"),
    call("e", "bash", { command: "scripts/verify-billing.sh --tenant acme" }),
    result("e", "order 48217 agrees"),
    answered("Order 48217 agrees."),
    said("I said: never push to the release branch without asking me first."),
  ];
  const { stdout } = await cli(["inspect", "-", "--json"], { stdin: lines.join("\n") });
  const [{ lost, lookups, lookupTokens, repeatedTokens }] = JSON.parse(stdout).compactions;
  const found = Object.fromEntries(lost.map(({ kind, text, back, uses }) => [`${kind} ${text}`, [back, uses]]));
  assert.deepEqual(found, {
    "path billing/surcharge.go": ["result", 1],
    "name applySurcharge": ["result", 1],
    "command scripts/verify-billing.sh --tenant acme": ["none", 1],
    "path scripts/verify-billing.sh": ["none", 1],
    "number 48217": ["result", 1],
    "constraint Never push to the release branch without asking me first.": ["user", 1],
  });
  assert.equal(lookups, 2);
  assert.ok(lookupTokens > repeatedTokens && repeatedTokens > 20, `${lookupTokens}, ${repeatedTokens}`);
});
