/** A history that is handed over again and is another one: an error with its place, or recognized; never silence. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { openSession } from "context-compactor";
import { fails } from "../support/api.mjs";

const history = () => [
  { role: "user", content: "Read a.", meta: { at: 1, by: { id: "u", name: "n" } } },
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c", type: "function", function: { name: "read", arguments: "{}" } }],
  },
  { role: "tool", tool_call_id: "c", content: "text of a" },
  { role: "assistant", content: "Done." },
  { role: "user", content: "Thanks." },
  { role: "assistant", content: "Welcome." },
];
const reversed = (value) =>
  Array.isArray(value)
    ? value.map(reversed)
    : typeof value === "object" && value !== null
      ? Object.fromEntries(Object.entries(value).reverse().map(([key, field]) => [key, reversed(field)]))
      : value;
const changed = (make, at, change) => {
  const messages = make();
  messages[at] = change(messages[at]);
  return messages;
};

/** Name, the history before, the one after, and where it differs; nothing where it is the same. */
const KINDS = [
  ["fields in another order", history(), history().map((m) => Object.fromEntries(Object.entries(m).reverse()))],
  ["fields inside fields in another order", history(), reversed(history())],
  ["what JSON has not is gone", changed(history, 4, (m) => ({ ...m, name: undefined })), history()],
  ["a field was added", history(), changed(history, 3, (m) => ({ ...m, usage: { tokens: 5 } })), 3],
  ["a mark for a cache was added", history(), changed(history, 3, (m) => ({ ...m, cache_control: { type: "ephemeral" } }))],
  ["a field was added deep inside", history(), changed(history, 0, (m) => ({ ...m, meta: { ...m.meta, seen: true } })), 0],
  ["a field was taken away", history(), changed(history, 0, ({ meta, ...m }) => m), 0],
  ["a text was changed", history(), changed(history, 4, (m) => ({ ...m, content: "Thank you." })), 4],
  ["a role was changed", history(), changed(history, 4, (m) => ({ ...m, role: "system" })), 4],
  ["a message was taken away", history(), history().toSpliced(3, 1), 3],
  ["a message was put in between", history(), history().toSpliced(3, 0, { role: "user", content: "More." }), 3],
  ["two messages changed places", history(), [...history().slice(0, 4), history()[5], history()[4]], 4],
  ["the end is gone", history(), history().slice(0, 4), 4],
  ["a call has other arguments", history(), changed(history, 1, (m) => {
    const [call] = m.tool_calls;
    return { ...m, tool_calls: [{ ...call, function: { ...call.function, arguments: '{"a":1}' } }] };
  }), 1],
  ["values in an array in another order", changed(history, 4, (m) => ({ ...m, tags: [1, 2] })), changed(history, 4, (m) => ({ ...m, tags: [2, 1] })), 4],
];

for (const [name, before, after, index] of KINDS) {
  test(`F8: ${name}: ${index === undefined ? "recognized" : "an error with its place"}`, async () => {
    const session = await openSession({ contextWindow: 100_000, onDiverged: "throw" });
    await session.append(...before);
    if (index === undefined) {
      assert.deepEqual(await session.sync(after), { appended: 0, recognized: after.length });
    } else {
      const sent = (await session.prepare()).messages;
      const error = await session.sync(after).catch((error) => error);
      assert.ok(fails("diverged", { index })(error));
      assert.match(error.message, /session\.snapshots\.rewind\(\d+\)/);
      assert.deepEqual((await session.prepare()).messages, sent, "nothing was taken over");
      return;
    }
    const { messages } = await session.prepare();
    messages.forEach((message, at) => assert.equal(message, after[at], "the newest objects"));
    await session.close();
  });
}

test("F8: the way on that the error names is one", async () => {
  const session = await openSession({ contextWindow: 100_000, onDiverged: "throw" });
  await session.append(...history());
  for (const text of ["Thank you.", "Thank you very much."]) {
    const after = [...changed(history, 4, (m) => ({ ...m, content: text })).slice(0, 5), { role: "assistant", content: "!" }];
    const error = await session.sync(after).catch((error) => error);
    assert.equal(error.code, "diverged");
    await session.snapshots.rewind(Number(/rewind\((\d+)\)/.exec(error.message)[1]));
    assert.deepEqual(await session.sync(after), { appended: 2, recognized: 4 });
    assert.deepEqual((await session.prepare()).messages, after);
  }
  await session.close();
});
