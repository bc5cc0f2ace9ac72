/** Processes on one directory of a file store: one after the other, at the same time, killed and stopped. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileStore } from "context-compactor/node";
import { folder } from "../support/file-store.mjs";
import { run, start } from "../support/file-store-process.mjs";

/** Kills of a whole run; `CC_KILLS=500` for a long one. */
const KILLS = Number(process.env.CC_KILLS ?? 3);

async function historyOf(directory, id) {
  return JSON.parse((await run("history", directory, id)).at(-1));
}

const numbers = (count, from = 0) => Array.from({ length: count }, (_, i) => i + from);
const acknowledged = (lines) => lines.filter((line) => line.startsWith("appended ")).length;

test("a session that is compacted and closed is the same in another process", async (context) => {
  const directory = await folder(context, { onDisk: true });
  const lines = await run("append", directory, "chat", "a", 0, 40);
  assert.ok(lines.includes("compacted true"));
  const { messages, fates, prepared } = await historyOf(directory, "chat");
  assert.deepEqual(messages, numbers(40).map((at) => `a ${at}`));
  assert.deepEqual(fates, numbers(40));
  assert.ok(prepared < 40);
});

test("two processes append to one session", async (context) => {
  const directory = await folder(context);
  await Promise.all([run("append", directory, "chat", "a", 0, 20), run("append", directory, "chat", "b", 0, 20)]);
  const { messages, fates } = await historyOf(directory, "chat");
  for (const name of ["a", "b"]) {
    assert.deepEqual(
      messages.filter((message) => message.startsWith(name)),
      numbers(20).map((at) => `${name} ${at}`),
    );
  }
  assert.deepEqual(fates, numbers(40));
});

test("no increment of three processes is lost, while each of them is stopped now and then", async (context) => {
  const directory = await folder(context);
  const processes = [1, 2, 3].map(() => start(["count", directory, "row", 60]));
  for (const round of [1, 2, 3]) {
    for (const [i, { child, line }] of processes.entries()) {
      await line((text) => text === `counted ${round * 10}`);
      child.kill("SIGSTOP");
      // It goes on when another one has done something meanwhile, or has nothing left to do.
      const other = processes[(i + 1) % 3];
      const count = other.lines.length;
      await other.line(() => other.lines.length > count).catch(() => {});
      child.kill("SIGCONT");
    }
  }
  for (const { ended, errors } of processes) assert.equal(await ended, 0, errors());
  const store = fileStore(directory);
  const [value] = await store.read([["meta", "row"]]);
  assert.equal(new TextDecoder().decode(value), "180");
  await store.close();
});

test(`killed ${KILLS} times while it appends and compacts: acknowledged is stored`, async (context) => {
  const directory = await folder(context, { onDisk: true });
  let stored = 0;
  let told = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const { child, lines, line, ended } = start(["append", directory, "chat", "a", stored]);
    const wanted = 1 + Math.floor(Math.random() * 30);
    await line(() => acknowledged(lines) >= wanted);
    // In the middle of whatever comes next.
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
    child.kill("SIGKILL");
    assert.equal(await ended, "SIGKILL");
    told += acknowledged(lines);
    const { messages, fates } = await historyOf(directory, "chat");
    const least = stored + acknowledged(lines);
    assert.ok(messages.length >= least && messages.length <= least + 1, `${messages.length} of ${least}`);
    assert.deepEqual(messages, numbers(messages.length).map((at) => `a ${at}`));
    assert.deepEqual(fates, numbers(messages.length));
    stored = messages.length;
  }
  context.diagnostic(`${KILLS} kills, ${told} appends acknowledged, ${stored} stored`);
});

test("killed beside another process, which goes on", async (context) => {
  const directory = await folder(context);
  const other = start(["append", directory, "chat", "b", 0, 60]);
  for (let kill = 0; kill < KILLS; kill++) {
    const { child, lines, line, ended } = start(["append", directory, "chat", `k${kill}`, 0]);
    await line(() => acknowledged(lines) > Math.random() * 6);
    child.kill("SIGKILL");
    await ended;
    const { messages } = await historyOf(directory, "chat");
    const found = messages.filter((message) => message.startsWith(`k${kill} `));
    assert.deepEqual(found, numbers(found.length).map((at) => `k${kill} ${at}`));
    assert.ok(found.length >= acknowledged(lines), `${found.length} of ${acknowledged(lines)}`);
  }
  assert.equal(await other.ended, 0, other.errors());
  const { messages, fates } = await historyOf(directory, "chat");
  assert.equal(messages.filter((message) => message.startsWith("b ")).length, 60);
  assert.deepEqual(fates, numbers(messages.length));
});
