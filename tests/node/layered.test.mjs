/** Preset `layered` through the package (`S3`): what is cleared, what the user sees, what is put back. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { compact, openSession, validateHistory } from "../support/offload.mjs";
import { chat, summariser } from "../support/api.mjs";

const OPTIONS = { preset: "layered", contextWindow: 200_000 };
const CLEARED = "[Output compacted - re-read if needed]";
/** About 2,500 tokens. */
const text = (nth) => Array.from({ length: 300 }, (_, at) => `${nth}:${at} words of a file`).join("\n");

function turn(nth, content, tool = "read_file") {
  const id = `call_${nth}`;
  const call = { id, type: "function", function: { name: tool, arguments: JSON.stringify({ path: `src/${nth}.rs` }) } };
  return [
    { role: "user", content: `Question ${nth}.` },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: id, content },
    { role: "assistant", content: `Answer ${nth}.` },
  ];
}

const results = (messages) => messages.filter(({ role }) => role === "tool").map(({ content }) => content);

/** The files behind the summary, as `[path, text]`. */
function files({ messages: [{ content }] }) {
  return Array.from(content.matchAll(/\n\n<file path="(.+?)">\n([^]*?)\n<\/file>/g), ([, path, file]) => [path, file]);
}

test("S3.1: the newest three are those of the compactable tools, and nothing is told of what is cleared", async () => {
  const session = await openSession({ store: "memory", ...OPTIONS, summarize: () => assert.fail("no model is asked") });
  for (const event of ["offload", "compact", "warning"]) session.on(event, () => assert.fail(`${event}: it is silent`));
  for (let nth = 0; nth < 4; nth += 1) await session.append(...turn(nth, text(nth)));
  for (let nth = 4; nth < 8; nth += 1) await session.append(...turn(nth, text(nth), "grep"));
  const { messages } = await session.prepare();
  assert.deepEqual(results(messages), [CLEARED, ...[1, 2, 3, 4, 5, 6, 7].map(text)]);
  await session.close();
});

test("S3.1: each turn clears what is one of the newest three no longer", async () => {
  const session = await openSession({ store: "memory", ...OPTIONS });
  const cleared = [];
  for (let nth = 0; nth < 6; nth += 1) {
    await session.append(...turn(nth, text(nth)));
    cleared.push((await session.prepare()).edits.flatMap(({ indices }) => indices));
  }
  assert.deepEqual(cleared, [[], [], [], [2], [6], [10]]);
  await session.close();
});

test("S3.4: a compaction of its own is told to the user, and acknowledged only where the user's message follows", async () => {
  for (const [more, roles] of [
    [[], ["user", "assistant", "user", "assistant", "user", "assistant"]],
    [[{ role: "user", content: "Go on." }], ["user", "assistant", "user", "assistant", "user", "assistant", "user"]],
  ]) {
    const session = await openSession({
      store: "memory",
      ...OPTIONS,
      compactAt: { tokens: 1_000 },
      advanced: { minSavings: 0 },
      summarize: summariser(),
    });
    const told = [];
    session.on("compact", (data) => told.push(data));
    const history = [...chat(20), ...more];
    await session.append(...history);
    const { messages, result } = await session.prepare();
    const { previousTokens, currentTokens, freedTokens } = result;
    assert.deepEqual(told, [{ previousTokens, currentTokens, freedTokens, retiredRefCount: 0 }]);
    assert.deepEqual(messages.map(({ role }) => role), roles);
    const acknowledged = messages[1].content === "Understood. Continuing with compressed context.";
    assert.equal(acknowledged, more.length > 0);
    assert.deepEqual(messages.slice(-5), history.slice(-5), "the last five, untouched");
    assert.deepEqual((await validateHistory(messages)).problems, []);
    await session.close();
  }
});

test("S3.6: a result that was cleared is put back as it was recorded, for five files", async () => {
  const session = await openSession({ store: "memory", ...OPTIONS, summarize: summariser() });
  for (let nth = 0; nth < 8; nth += 1) await session.append(...turn(nth, text(nth)));
  const { messages } = await session.prepare();
  assert.equal(results(messages).filter((result) => result === CLEARED).length, 5);
  await session.append(...chat(200));
  const result = await session.compact();
  assert.equal(result.success, true);
  assert.deepEqual(files(result), [7, 6, 5, 4, 3].map((nth) => [`src/${nth}.rs`, text(nth)]));
  await session.close();
});

test("S3.6: where readFile fails or has no text, the newest recorded result is put back", async () => {
  const summarize = summariser();
  const history = [...turn(0, "of the first"), ...turn(1, "of the second"), ...chat(20)];
  const broken = { throws: () => { throw new Error("gone"); }, rejects: async () => Promise.reject(new Error("gone")), nothing: async () => undefined };
  for (const [name, readFile] of Object.entries(broken)) {
    const result = await compact(history, { ...OPTIONS, summarize, restoreFiles: { read: readFile } });
    assert.deepEqual(files(result), [["src/1.rs", "of the second"], ["src/0.rs", "of the first"]], name);
  }
});

test("S3.8: the preview is of whole characters, and of no more than 2,000 scalar values", async () => {
  const family = "👩‍👩‍👧";
  const session = await openSession({ store: "memory", ...OPTIONS });
  const output = `a${family.repeat(20_000)}`;
  await session.append(...turn(0, output));
  const { messages } = await session.prepare();
  const [, ref, preview] = /^Output too large\. Saved to: (off_\w+)\nPreview:\n(.*)\.\.\.$/u.exec(messages[2].content);
  assert.equal(preview, `a${family.repeat(399)}`, "five scalar values each: a four-hundredth would pass 2,000");
  assert.equal(await session.recall.read(ref), output);
  await session.close();
});
