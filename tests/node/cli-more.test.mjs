/** The command line beyond one file (E24): folders, terminals, the table of SQL, published thresholds and the optimum. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, test } from "node:test";
import { cli, files, isDocumented, program } from "../support/cli.mjs";

const folder = mkdtempSync(join(tmpdir(), "context-compactor-"));
after(() => rmSync(folder, { recursive: true }));
mkdirSync(join(folder, "all/deep/node_modules"), { recursive: true });
writeFileSync(join(folder, "all/claude.jsonl"), files["claude-code"]);
writeFileSync(join(folder, "all/deep/codex.jsonl"), files.codex);
writeFileSync(join(folder, "all/deep/body.JSON"), files["anthropic-body"]);
writeFileSync(join(folder, "all/deep/node_modules/package.json"), "{}");
writeFileSync(join(folder, "all/settings.json"), '{"theme":"dark"}');
writeFileSync(join(folder, "all/notes.md"), "# Notes");

const plain = (text) => text.replace(/\x1b\[\d+m/g, "");

/** Runs a command as on a terminal of so many columns. */
function onTerminal(args, columns, env = {}) {
  const setUp = `for (const one of [process.stdout, process.stderr]) Object.assign(one, { isTTY: true, columns: ${columns} })`;
  const child = spawn(process.execPath, ["--import", `data:text/javascript,${setUp}`, program, ...args], { cwd: folder, env: { ...process.env, TERM: "xterm", ...env } });
  let out = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (out += text));
  child.stdin.end();
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, out })));
}

for (const [command, args, row] of [
  ["inspect", [], /deep\/codex\.jsonl +251 /],
  ["validate", [], /deep\/codex\.jsonl +251 +0/],
  ["count", [], /deep\/codex\.jsonl +251 +[\d,]+/],
  ["replay", ["--policies", "none,balanced@0.2"], /balanced@0\.2 +\$/],
]) {
  test(`E24: ${command} of a folder is that of each file in it, and the sum`, async () => {
    const [people, json] = await Promise.all([cli([command, "all", ...args], { cwd: folder }), cli([command, "all", "--json", ...args], { cwd: folder })]);
    assert.deepEqual([people.code, json.code], [0, 0], people.stderr);
    assert.match(people.stdout, /^all: 3 files\n/);
    assert.match(people.stdout, row);
    assert.match(people.stdout, /Not understood: 1 file\n {2}all\/settings\.json: line 1: /);
    const { files: each, notUnderstood, ...object } = JSON.parse(json.stdout);
    isDocumented({ ...object, files: each, notUnderstood });
    assert.deepEqual(each.map(({ file }) => file), ["all/claude.jsonl", "all/deep/body.JSON", "all/deep/codex.jsonl"]);
    assert.deepEqual(notUnderstood.map(({ file }) => file), ["all/settings.json"]);
    for (const one of each) {
      const alone = JSON.parse((await cli([command, one.file, "--json", ...args], { cwd: folder })).stdout);
      assert.deepEqual({ version: 1, command, ...one }, alone);
    }
  });
}

test("E24: a history that breaks a rule is the folder's problem", async () => {
  mkdirSync(join(folder, "wrong"));
  writeFileSync(join(folder, "wrong/a.json"), JSON.stringify([{ role: "user", content: "Hello." }, { role: "tool", tool_call_id: "none", content: "x" }]));
  const { code, stdout } = await cli(["validate", "wrong"], { cwd: folder });
  assert.deepEqual([code, /a\.json +2 +1 /.test(stdout)], [1, true], stdout);
});

test("E24: tables are as wide as the terminal, colors are for it alone, and no text of a history steers it", async () => {
  for (const columns of [60, 80, 200]) {
    const { code, out } = await onTerminal(["inspect", "all/claude.jsonl"], columns);
    assert.equal(code, 0);
    const rows = plain(out).split("\n").filter((line) => /^ {2}.*(?:sent \d+×|[█░]|from elsewhere)/.test(line) && !/Lost and/.test(line));
    assert.ok(rows.length > 20);
    for (const row of rows) assert.ok([...row].length <= columns, `${columns}: ${row}`);
    assert.ok(out.includes("\x1b[1m"));
  }
  const { out } = await onTerminal(["inspect", "all/claude.jsonl"], 80, { NO_COLOR: "1" });
  assert.ok(!out.includes("\x1b"));

  const evil = "\x1b]0;owned\x07\x1b[2J\u202Eecho";
  const call = { id: "c", type: "function", function: { name: "bash", arguments: JSON.stringify({ command: evil }) } };
  writeFileSync(join(folder, "evil.json"), JSON.stringify([{ role: "user", content: "Hi." }, { role: "assistant", content: null, tool_calls: [call] }, { role: "tool", tool_call_id: "c", content: "x" }]));
  const steered = (await onTerminal(["inspect", "evil.json"], 80)).out;
  assert.match(steered, /owned.*echo/);
  assert.doesNotMatch(plain(steered), /[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]/);
});

test("E24: sql prints the table that sqlStore makes, and a store works over it", async (context) => {
  for (const dialect of ["postgres", "sqlite"]) {
    const [people, json] = await Promise.all([cli(["sql", dialect, "--table", "chats.sessions"]), cli(["sql", dialect, "--json"])]);
    assert.match(people.stdout, /^-- .*\nCREATE TABLE IF NOT EXISTS chats\.sessions \(key .*;\nINSERT INTO chats\.sessions .*;\n$/);
    const object = JSON.parse(json.stdout);
    isDocumented(object);
    assert.deepEqual([object.dialect, object.table, object.statements.length], [dialect, "context_compactor", 2]);
  }
  const { createClient } = await import("@libsql/client");
  const { libsqlDriver, sqlStore } = await import("context-compactor/sql");
  const { openSession } = await import("context-compactor");
  const database = createClient({ url: `file:${join(folder, "own.db")}` });
  context.after(() => database.close());
  await database.executeMultiple((await cli(["sql", "sqlite"])).stdout);
  const [{ sql: made }] = (await database.execute("SELECT sql FROM sqlite_master WHERE name = 'context_compactor'")).rows;
  const store = sqlStore(libsqlDriver(database));
  const session = await openSession({ id: "one", store, contextWindow: 8_000 });
  await session.append({ role: "user", content: "Hello." });
  await session.close();
  await store.close();
  const other = createClient({ url: `file:${join(folder, "other.db")}` });
  context.after(() => other.close());
  const second = sqlStore(libsqlDriver(other));
  await (await openSession({ id: "one", store: second, contextWindow: 8_000 })).close();
  assert.equal((await other.execute("SELECT sql FROM sqlite_master WHERE name = 'context_compactor'")).rows[0].sql, made);
});

test("E24: replay has published thresholds and the optimum, which nothing is below", async () => {
  writeFileSync(join(folder, "long.jsonl"), files["claude-code"]);
  const args = ["replay", "long.jsonl", "--policies", "none,balanced", "--optimum"];
  const [people, json] = await Promise.all([cli(args, { cwd: folder }), cli([...args, "--json"], { cwd: folder })]);
  assert.deepEqual([people.code, json.code], [0, 0], people.stderr + json.stderr);
  const object = JSON.parse(json.stdout);
  isDocumented(object);
  const { policies, optimum } = object.hindsight;
  const names = policies.map(({ policy }) => policy);
  for (const name of [/^none/, /^Claude-Code-like/, /^Codex-like/, /^Gemini-CLI/, /^balanced$/]) assert.ok(names.some((one) => name.test(one)), String(name));
  for (const { policy, usd } of policies) assert.ok(usd >= optimum && optimum > 0, policy);
  // Both ways of counting agree where nothing is compacted.
  assert.ok(Math.abs(object.outcomes[0].usd / policies[0].usd - 1) < 0.02, `${object.outcomes[0].usd} ${policies[0].usd}`);
  assert.match(people.stdout, /the optimum +\$/);
});

test("E24: without the evaluator, the package is named; one in the folder of the command is found", async () => {
  const root = fileURLToPath(new URL("../../", import.meta.url));
  const modules = join(folder, "alone/node_modules");
  mkdirSync(modules, { recursive: true });
  cpSync(join(root, "pkg"), join(modules, "context-compactor"), { recursive: true, filter: (path) => !path.endsWith("cjs") });
  const run = (cwd) =>
    new Promise((resolve) => {
      const child = spawn(process.execPath, [join(modules, "context-compactor/node/cli/main.js"), "replay", join(folder, "long.jsonl"), "--policies", "none", "--optimum"], { cwd });
      let told = "";
      for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (told += text));
      child.on("close", (code) => resolve({ code, told }));
    });
  const without = await run(folder);
  assert.deepEqual([without.code, /npx -p context-compactor -p context-compactor-evaluator/.test(without.told)], [2, true], without.told);
  const app = join(folder, "app");
  mkdirSync(join(app, "node_modules"), { recursive: true });
  symlinkSync(join(root, "pkg-evaluator"), join(app, "node_modules/context-compactor-evaluator"));
  assert.ok(existsSync(join(app, "node_modules/context-compactor-evaluator/package.json")));
  const found = await run(app);
  assert.deepEqual([found.code, /the optimum +\$/.test(found.told)], [0, true], found.told);
});

test("E24: items of Responses in a body with a system prompt are not taken for messages of Anthropic", async () => {
  const items = ["developer", "user"].map((role) => ({ type: "message", role, content: [{ type: "input_text", text: "Hello." }] }));
  const { code, stdout, stderr } = await cli(["validate", "-"], { stdin: JSON.stringify({ system: "s", messages: items }) });
  assert.equal(code, 0, stderr);
  assert.match(stdout, /openai-responses/);
});
