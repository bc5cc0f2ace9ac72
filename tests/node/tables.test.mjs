/** Tables that tokens are counted by (Z6): the engine has that of the default family, and another's comes when it is first needed. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { copied } from "../support/package-copy.mjs";

const pkg = fileURLToPath(new URL("../../pkg/", import.meta.url));

/** A model of each family. */
const MODELS = { o200k: "gpt-5", cl100k: "gpt-4", claude3: "claude-3-5-haiku", claude47: "claude-opus-4-7", gemini: "gemini-2.5-pro", llama3: "llama-3.3-70b", qwen3: "qwen3-coder" };

const MESSAGES = [
  { role: "user", content: "Read the log, and say what failed: 上下文压缩 in Zeile 4711." },
  { role: "assistant", content: "It is the parser. ".repeat(40) },
];

/** What a script of a new process says. */
async function said(folder, script) {
  const head = `
    const library = await import("./dist/entry/main.js");
    const messages = ${JSON.stringify(MESSAGES)};
    const options = { model: ${JSON.stringify(MODELS.claude47)}, contextWindow: 8_000 };
    const told = ({ code, field, message, retryable }) => ({ code, field, message, retryable });`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", `${head}\n${script}`], { cwd: folder });
  return JSON.parse(stdout);
}

for (const [family, model] of Object.entries(MODELS)) {
  test(`Z6: ${family}: a session, a compaction and a plan count by its table, which each brings`, async () => {
    const script = (call) => `
      const counted = await (${call});
      const { estimateTokens, ready } = await import("./dist/tokens.js");
      const { model } = options;
      await ready({ model });
      console.log(JSON.stringify([counted, estimateTokens(messages, { model })]));`;
    const options = `Object.assign(options, { model: ${JSON.stringify(model)} }),`;
    const calls = {
      session: `(${options} library.openSession({ ...options, store: "memory" }).then((session) => session.append(...messages).then(() => session.context.usage().usedTokens)))`,
      compact: `(${options} library.compact(messages, options).then(({ previousTokens }) => previousTokens))`,
      plan: `(${options} library.planCompaction(messages, options).then(({ tokens }) => tokens))`,
    };
    for (const call of Object.values(calls)) {
      const [counted, estimated] = await said(pkg, script(call));
      assert.equal(counted, estimated);
    }
  });
}

test("Z6: the engine counts by no other table than the family's own", async () => {
  const refused = await said(
    pkg,
    `await library.openSession({ store: "memory", contextWindow: 8_000 });
    const { call } = await import("./dist/engine.js");
    const open = () => { try { return call(({ Session }) => Session.open({ ...options, format: "openai-chat" }, undefined, 100)) && "open"; } catch (error) { return error; } };
    const before = open();
    await library.openSession({ ...options, store: "memory" });
    console.log(JSON.stringify([before.code, before.field, open()]));`,
  );
  assert.deepEqual(refused, ["not_ready", "model", "open"]);
});

test("Z6, Z22: a table that cannot be loaded is a typed error that changes nothing, and other families go on", async (context) => {
  const folder = copied(context);
  rmSync(join(folder, "dist/generated/tables/claude47.js"));
  const done = await said(
    folder,
    `const failed = [await library.openSession({ ...options, store: "memory" }).catch(told), await library.compact(messages, options).catch(told)];
    const session = await library.openSession({ ...options, model: "gpt-5", store: "memory" });
    console.log(JSON.stringify({ failed, other: await session.append(...messages).then(() => "appended") }));`,
  );
  for (const { code, message, retryable } of done.failed) {
    assert.deepEqual([code, retryable], ["stage_unavailable", true]);
    assert.match(message, /table of claude47/);
  }
  assert.equal(done.other, "appended");
});
