/** A message that the app changes after it appended it: the log has it as it was, and that is never silent. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { importSession, memoryStore, openSession } from "context-compactor";
import { chat, fails } from "../support/api.mjs";

const user = (content) => ({ role: "user", content });
const assistant = (content) => ({ role: "assistant", content });

async function all(messages) {
  const found = [];
  for await (const message of messages) found.push(message);
  return found;
}

/** A session and what it warned of. */
async function listened(options) {
  const session = await openSession({ store: "memory", contextWindow: 32_000, ...options });
  const warnings = [];
  session.on("warning", (warning) => warnings.push(warning));
  return { session, warnings };
}

for (const [what, change] of [
  ["a text that grew", (message) => (message.content += "streamed")],
  ["a field that came", (message) => (message.tool_calls = [])],
  ["a field that went", (message) => delete message.content],
  ["what cannot be stored", (message) => (message.content = () => {})],
]) {
  test(`F8: ${what} after the append is a warning that names the message and the way out, once`, async () => {
    const { session, warnings } = await listened();
    const streamed = assistant("");
    await session.append(user("q"), streamed);
    await session.prepare();
    assert.deepEqual(warnings, []);
    change(streamed);
    await session.prepare();
    await session.prepare();
    assert.deepEqual(warnings.map(({ code }) => code), ["diverged"]);
    assert.match(warnings[0].message, /message 1 was changed after it was appended.*when it is complete.*session\.snapshots\.rewind\(1\)/s);
  });
}

test("F8: a message that was not changed is no warning, however it was made", async () => {
  const { session, warnings } = await listened();
  await session.append(user("q"), { role: "assistant", content: "a", meta: { at: new Date(0), bytes: Uint8Array.of(1), none: undefined } });
  await session.append(...chat(10));
  await session.prepare();
  await session.sync([...(await all(session.archive.history())), user("more")]);
  await session.prepare();
  assert.deepEqual(warnings, []);
});

test("F8: what others wrote in another spelling is not taken for changed", async () => {
  const lines = '{ "role": "user", "content": "caf\\u00e9" }\n{"content":"a\\/b","role":"assistant"}\n';
  const session = await importSession(lines, { store: "memory", contextWindow: 32_000 });
  const warnings = [];
  session.on("warning", (warning) => warnings.push(warning));
  const { messages } = await session.prepare();
  await session.sync([...messages, user("more")]);
  await session.prepare();
  assert.deepEqual(warnings, []);
});

for (const at of [0, 3, 19]) {
  test(`F8: sync with a known message that was changed (${at}) is diverged, and nothing is appended`, async () => {
    const { session } = await listened({ onDiverged: "throw" });
    const history = chat(10);
    await session.append(...history);
    history[at].content += " and more";
    const grown = [...history, user("next")];
    await assert.rejects(session.sync(grown), fails("diverged", { index: at, message: /session\.snapshots\.rewind/ }));
    assert.equal((await session.context.explain()).length, 20);
    await session.snapshots.rewind(at);
    assert.deepEqual(await session.sync(grown), { appended: 21 - at, recognized: at });
    assert.deepEqual(await session.sync(grown), { appended: 0, recognized: 21 });
  });
}

test("F8: the history has a message as it was appended, and so has the session that is opened again", async () => {
  const store = memoryStore();
  const session = await openSession({ id: "s", store, contextWindow: 32_000, logger: () => {} });
  const [first, streamed] = [user("q"), assistant("")];
  await session.append(first, streamed);
  streamed.content += "streamed";
  const [kept, stored] = await all(session.archive.history());
  assert.equal(kept, first);
  assert.deepEqual(stored, assistant(""));
  await session.close();
  const again = await openSession({ id: "s", store, contextWindow: 32_000 });
  assert.deepEqual(await all(again.archive.history()), [first, assistant("")]);
});

test("F8: sync with what prepare gave goes on from it", async () => {
  const { session } = await listened({ contextWindow: 8_000 });
  await session.append(...chat(60));
  await session.compact();
  const { messages } = await session.prepare();
  assert.notEqual(messages.length, 120);
  assert.deepEqual(await session.sync([...messages, user("next")]), { appended: 1, recognized: messages.length });
  assert.equal((await session.context.explain()).length, 121);
});
