/** What left the context is held by nobody but the app. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { openSession } from "context-compactor";
import { chat } from "../support/api.mjs";

const folder = fileURLToPath(new URL("./", import.meta.url));
const MESSAGES = Number(process.env.CC_HELD_MESSAGES ?? 5_000);

/** Runs a program that can collect garbage, with a store in files; resolves to what it prints as JSON. */
async function run(program) {
  const path = await mkdtemp(join(tmpdir(), "cc-held-"));
  const script = `
    import { openSession } from "context-compactor";
    import { fileStore } from "context-compactor/node";
    const store = fileStore(process.argv[1]);
    const refs = [];
    const track = (message) => (refs.push(new WeakRef(message)), message);
    const collected = async () => {
      // A weak reference that was read holds until the turn ends.
      for (let nth = 0; nth < 4; nth++) { await new Promise((resolve) => setTimeout(resolve, 5)); gc(); }
    };
    const alive = async () => (await collected(), refs.filter((ref) => ref.deref()).length);
    ${program}`;
  try {
    const args = ["--expose-gc", "--input-type=module", "--eval", script, join(path, "store")];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder });
    return JSON.parse(stdout);
  } finally {
    await rm(path, { recursive: true });
  }
}

test("F15: of messages that left the context none is held", async () => {
  const [before, after, context] = await run(`
    const session = await openSession({ id: "s", store, contextWindow: 32_000, preset: "offload" });
    for (let nth = 0; nth < 100; nth++) {
      await session.append(
        track({ role: "user", content: "Question " + nth + " alpha beta gamma".repeat(30) }),
        track({ role: "assistant", content: "Answer " + nth + " delta epsilon".repeat(30) }));
    }
    const before = await alive();
    await session.compact();
    const { messages } = await session.prepare();
    console.log(JSON.stringify([before, await alive(), messages.length]));`);
  assert.equal(before, 200);
  assert.ok(after <= context + 10, `${after} of 200 are alive, ${context} are in the context`);
});

test("F15: of results that were offloaded none is held", async () => {
  const [after] = await run(`
    const session = await openSession({ id: "s", store, contextWindow: 200_000, preset: "offload", presetOptions: { offloadThreshold: 1_000, scanRatio: 1 } });
    for (let nth = 0; nth < 20; nth++) {
      const call = { id: "c" + nth, type: "function", function: { name: "read", arguments: "{}" } };
      await session.append({ role: "user", content: "Read." }, { role: "assistant", content: null, tool_calls: [call] });
      await session.append(track({ role: "tool", tool_call_id: "c" + nth, content: String(nth).repeat(300_000) }));
    }
    await session.append({ role: "user", content: "And?" });
    await session.prepare();
    console.log(JSON.stringify([await alive()]));`);
  assert.ok(after <= 10, `${after} of 20 are alive`);
});

test(`F15: the heap stays what it is over ${MESSAGES} messages of 1 KB`, async () => {
  const [early, late] = await run(`
    const session = await openSession({ id: "s", store, contextWindow: 16_000, preset: "offload" });
    const heaps = [];
    const size = async () => (await collected(), process.memoryUsage().heapUsed / 2 ** 20);
    for (let nth = 0; nth < ${MESSAGES}; nth += 50) {
      await session.append(...Array.from({ length: 50 }, (_, at) => ({ role: at % 2 ? "assistant" : "user", content: (nth + at + " ").repeat(200).slice(0, 1_000) })));
      await session.prepare();
      if (nth === ${Math.floor(MESSAGES / 5 / 50) * 50}) heaps.push(await size());
    }
    heaps.push(await size());
    console.log(JSON.stringify(heaps));`);
  // Four fifths of the messages came between the two, and the keys of their rows with them.
  const allowed = 1 + (MESSAGES * 0.8 * 450) / 2 ** 20;
  console.log(`heap: ${early.toFixed(1)} MB, then ${late.toFixed(1)} MB`);
  assert.ok(late - early < allowed, `${early.toFixed(1)} MB became ${late.toFixed(1)} MB`);
});

test("F15: what the app still has is handed out as the same object, also after it left the context", async () => {
  const session = await openSession({ store: "memory", contextWindow: 32_000, preset: "offload" });
  const history = chat(20);
  await session.append(...history);
  const snapshot = await session.snapshots.take();
  await session.compact();
  await session.prepare();
  const read = [];
  for await (const message of session.archive.history()) read.push(message);
  assert.ok(read.every((message, at) => message === history[at]));
  assert.deepEqual(await session.sync(history), { appended: 0, recognized: 40 });
  await session.snapshots.restore(snapshot);
  const { messages } = await session.prepare();
  assert.ok(messages.length === 40 && messages.every((message, at) => message === history[at]));
});
