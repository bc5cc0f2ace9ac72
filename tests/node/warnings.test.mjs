/** Nothing is chosen silently: what is assumed, and what goes wrong, is told on the console where nobody listens. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { compact, encryptedStore, importSession, memoryStore, openSession } from "context-compactor";
import { estimateTokens, estimateTokensDetailed, ready } from "context-compactor/tokens";
import { chat, fails } from "../support/api.mjs";

const folder = fileURLToPath(new URL("../node", import.meta.url));

/** Runs a program in a process of its own: what it prints, and its lines on the console of errors. */
async function run(program, args = []) {
  const script = `import * as cc from "context-compactor"; import { chat } from "../support/api.mjs"; ${program}`;
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ["--no-warnings", "--input-type=module", "--eval", script, ...args],
    { cwd: folder },
  );
  return { out: stdout.trim(), lines: stderr.split("\n").filter(Boolean) };
}

test("E9, F11: a session with an id and no store is refused where there is no IndexedDB, and the error names the stores", async () => {
  for (const options of [{ id: "chat-1" }, { id: "chat-1", store: undefined }, { parent: "chat-1" }]) {
    await assert.rejects(openSession(options), (error) => {
      fails("store_unavailable", { field: "store" })(error);
      for (const name of ["fileStore(", "sqlStore(", "redisStore(", "durableObjectStore(", 'store: "memory"']) assert.ok(error.message.includes(name), name);
      return true;
    });
  }
  await assert.rejects(importSession("{}", { id: "chat-1" }), fails("store_unavailable"));
});

test("E9: a path is no store, and the error has the store of files with it", async () => {
  const message = /fileStore\("\.\/dir"\) of "context-compactor\/node"/;
  await assert.rejects(openSession({ id: "chat-1", store: "./dir" }), fails("invalid_option", { field: "store", message }));
});

test("F11: without an id a session is in memory, without a word", async () => {
  const { out, lines } = await run(`
    const session = await cc.openSession({ contextWindow: 32_000 });
    await session.append(...chat(1));
    await new Promise((resolve) => setTimeout(resolve, 5));
    console.log(session.archive.durability, (await session.prepare()).messages.length);`);
  assert.deepEqual([out, lines], ["none 2", []]);
});

test("F11: sessions in memory of one id are one, as long as the process; those without an id are none of them", async () => {
  const options = { id: "F11 shared", store: "memory", contextWindow: 32_000 };
  const first = await openSession(options);
  await first.append(...chat(1));
  const second = await openSession(options);
  assert.equal(second.archive.metadata().totalMessages, 2);
  await first.close();
  await second.close();
  const third = await openSession(options);
  assert.equal(third.archive.metadata().totalMessages, 2);
  const child = await openSession({ store: "memory", contextWindow: 32_000, parent: options.id });
  assert.deepEqual((await third.archive.children()).map(({ id }) => id), [child.id]);
  assert.equal((await openSession({ ...options, id: undefined })).archive.metadata().totalMessages, 0);
  await third.close({ delete: true });
  assert.equal((await openSession(options)).archive.metadata().totalMessages, 0);
});

test("F11: a window that nobody said is told, once, and usage says that it is assumed", async () => {
  const program = (options, listen = "") => `
    const session = await cc.openSession(${options});
    ${listen}
    await session.append(...chat(1));
    await session.prepare();
    await session.prepare();
    console.log(session.context.usage().maxTokens, session.context.usage().assumed);`;
  const assumed = await run(program('{ id: "a", store: "memory" }'));
  assert.equal(assumed.out, "200000 true");
  assert.equal(assumed.lines.length, 1);
  assert.match(assumed.lines[0], /^context-compactor: the window of the model is not known.*200,000.*give contextWindow.*session\.on\("warning"\).*logger/);
  const listened = await run(program("{}", 'session.on("warning", ({ code }) => console.log(code));'));
  assert.deepEqual([listened.out, listened.lines], ["unknown_model\n200000 true", []]);
  const logged = await run(program("{ logger: (level) => level === 'warn' && console.log(level) }"));
  assert.deepEqual([logged.out, logged.lines], ["warn\n200000 true", []]);
  for (const [known, size] of [["{ contextWindow: 32_000 }", 32_000], ['{ model: "gpt-4o" }', 128_000]]) {
    assert.deepEqual(await run(program(known)), { out: `${size} undefined`, lines: [] });
  }
});

test("F11: compact tells once in a process what it assumed, and what to pass", async () => {
  const { lines } = await run(`
    for (let nth = 0; nth < 3; nth++) await cc.compact(chat(2));
    await cc.compact(chat(2), { contextWindow: 32_000 });`);
  assert.equal(lines.length, 1);
  assert.match(lines[0], /^context-compactor: compact: the window of the model is not known.*give contextWindow.*logger/);
  const told = [];
  await compact(chat(2), { logger: (level, line) => level === "warn" && told.push(line) });
  assert.equal(told.length, 1);
});

test("F11: a warning that meets neither a listener nor a logger goes to the console, once for each code and session", async () => {
  const program = (options, listen = "") => `
    const failing = () => Promise.reject(new Error("401"));
    const session = await cc.openSession({ contextWindow: 32_000, preset: "offload",
      summarize: { call: failing, fallback: "extractive", attempts: 1 }, ${options} });
    ${listen}
    for (let nth = 0; nth < 3; nth++) {
      await session.append(...chat(10, nth * 10));
      await session.compact();
    }`;
  const told = await run(program(""));
  assert.equal(told.lines.length, 1);
  assert.match(told.lines[0], /^context-compactor: the summarizer failed .*401/);
  assert.deepEqual((await run(program("logger: () => {}"))).lines, []);
  assert.deepEqual((await run(program("", 'session.on("warning", () => {});'))).lines, []);
  const once = await run(`
    const call = () => Promise.reject(new Error("401"));
    const summarize = { call, fallback: "extractive", attempts: 1 };
    for (let nth = 0; nth < 2; nth++) await cc.compact(chat(10), { contextWindow: 32_000, preset: "offload", summarize });`);
  assert.equal(once.lines.length, 1);
  assert.match(once.lines[0], /^context-compactor: compact: the summarizer failed .*401.*logger/);
});

test("F11: a second process finds what the first one said, with the store that the error names", async () => {
  const path = await mkdtemp(join(tmpdir(), "cc-f11-"));
  try {
    const program = `
      import { fileStore } from "context-compactor/node";
      const session = await cc.openSession({ id: "chat-1", store: fileStore(process.argv[1]), contextWindow: 32_000 });
      await session.append(...chat(1));
      console.log(session.archive.metadata().totalMessages);`;
    assert.equal((await run(program, [join(path, "store")])).out, "2");
    assert.equal((await run(program, [join(path, "store")])).out, "4");
  } finally {
    await rm(path, { recursive: true });
  }
});

test("F11: estimateTokens refuses a model that says nothing, with the names nearest to it, and says the family", async () => {
  for (const [model, near] of [["gtp-4o", /gpt-4o/], ["cluade-sonnet-4", /claude-sonnet/]]) {
    for (const input of ["Hello", "long enough to be counted by the engine itself, and not here", chat(1)]) {
      const named = fails("unknown_model", { field: "model", message: near });
      assert.throws(() => estimateTokens(input, { model }), named);
      assert.throws(() => estimateTokensDetailed(input, { model }), named);
    }
    await assert.rejects(openSession({ model }), fails("unknown_model", { field: "model", message: near }));
  }
  for (const model of ["gpt-4", "claude-3-5-haiku", "claude-opus-4-7"]) await ready({ model });
  const family = (model, input = "Hello") => estimateTokensDetailed(input, { model }).family;
  assert.deepEqual(
    [family(undefined), family("gpt-4"), family("claude-3-5-haiku"), family("claude-opus-4-7", chat(1)), family("mistral-large")],
    ["o200k", "cl100k", "claude3", "claude47", "o200k"],
  );
  assert.equal(estimateTokensDetailed("Hello", { estimator: "chars4" }).family, undefined);
});

test("D8: a store that turns out to be for reading alone is told when it is opened, encrypted or not", async () => {
  const encryptionKey = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
  for (const over of [(store) => store, (store) => encryptedStore(store, { encryptionKey })]) {
    const memory = memoryStore();
    let durable = "synced";
    const learns = (work) => ((durable = "none"), work());
    const store = over({
      get caps() {
        return { ...memory.caps, durable };
      },
      read: (keys) => learns(() => memory.read(keys)),
      scan: (prefix, options) => learns(() => memory.scan(prefix, options)),
      commit: (batch) => memory.commit(batch),
    });
    const session = await openSession({ id: "s", store, contextWindow: 32_000 });
    const told = [];
    session.on("warning", ({ code, message }) => told.push([code, message]));
    await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal(session.archive.durability, "none");
    assert.equal(told.length, 1);
    assert.equal(told[0][0], "store_unavailable");
    assert.match(told[0][1], /every append will fail/);
  }
});
