/** X1–X3: failures of others with files that are read again, played through a session. `docs/torture.md` names where they were
 *  reported. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { openSession } from "context-compactor";
import { SUMMARY } from "../support/api.mjs";

const PATH = "train_gpt2.c";
const options = {
  store: "memory", format: "openai-chat", contextWindow: 64_000, maxOutputTokens: 4_000, recall: true,
  admit: { rereads: true }, summarize: async () => SUMMARY, logger: () => {},
};

const call = (id, name, input) => ({
  role: "assistant", content: null, tool_calls: [{ id, type: "function", function: { name, arguments: JSON.stringify(input) } }],
});
const answer = (id, content) => ({ role: "tool", tool_call_id: id, content });
const read = (id, text) => [call(id, "read_file", { path: PATH }), answer(id, text)];

/** A file of 600 lines, about 6,000 tokens, of which the first so many were edited. */
const file = (edits) =>
  Array.from({ length: 600 }, (_, line) => `  line_${line}(${line < edits ? "ported" : "original"});`).join("\n");

const resultOf = (messages, id) => messages.find((message) => message.tool_call_id === id)?.content;

/** The text that a unified diff makes of another. */
function patched(old, diff) {
  const [lines, out] = [old.split("\n"), []];
  let at = 0;
  for (const line of diff.split("\n")) {
    const [, from, count] = /^@@ -(\d+),(\d+) /.exec(line) ?? [];
    if (from !== undefined) {
      const begin = Number(count) === 0 ? Number(from) : Number(from) - 1;
      out.push(...lines.slice(at, begin));
      at = begin;
    } else {
      if (line[0] !== "+") assert.equal(lines[at++], line.slice(1), "a line of the diff is not that of the text");
      if (line[0] !== "-") out.push(line.slice(1));
    }
  }
  return [...out, ...lines.slice(at)].join("\n");
}

/** A session that is prepared after every step, with all that was appended. */
async function begun(over = {}) {
  const session = await openSession({ ...options, ...over });
  const given = [{ role: "user", content: "Port the file." }];
  await session.append(...given);
  const step = async (...messages) => {
    given.push(...messages);
    await session.append(...messages);
    return session.prepare();
  };
  return { session, given, step };
}

/** A text as the model can know it from a prompt: the result, or the read that stands in the prompt and the difference. */
async function known({ session, given }, messages, id) {
  const shown = resultOf(messages, id);
  if (!shown.startsWith("[")) return shown;
  const index = given.findIndex((message) => message.tool_call_id === id);
  const { basis } = (await session.context.explain()).find((entry) => entry.index === index);
  assert.ok(messages.includes(given[basis]), `what ${id} depends on is not in the prompt`);
  const [head, ...diff] = shown.split("\n");
  return head.startsWith("[Unchanged") ? given[basis].content : patched(given[basis].content, diff.join("\n"));
}

for (const rereads of [true, false]) {
  test(`X3: the newest read of a file that is read and edited 66 times is in every prompt, admit.rereads: ${rereads}`, async () => {
    const begins = await begun({ admit: { rereads } });
    const { session, step } = begins;
    for (let nth = 0; nth < 66; nth++) {
      const id = `read_${nth}`;
      const { messages } = await step(...read(id, file(nth)));
      assert.equal(await known(begins, messages, id), file(nth), id);
      await step(call(`edit_${nth}`, "edit_file", { path: PATH, line: nth }), answer(`edit_${nth}`, "done"));
      const later = await step({ role: "assistant", content: `Line ${nth} is ported.` }, { role: "user", content: "Go on." });
      assert.equal(await known(begins, later.messages, id), file(nth), `${id}, two steps later`);
    }
    const left = (await session.context.explain()).filter(({ fate }) => fate !== "verbatim");
    assert.ok(left.length >= 50, `${left.length} results left`);
  });
}

test("X2: after a compaction that took a read away, the next one is whole, and only those after it are short", async () => {
  const begins = await begun();
  const { session, step } = begins;
  await step(...read("before", file(0)));
  await step({ role: "assistant", content: "Read." }, { role: "user", content: "Note it." }, { role: "assistant", content: "Noted." });
  for (let round = 0; round < 3; round++) {
    await step(...Array.from({ length: 30 }, (_, nth) => [{ role: "user", content: `Question ${nth}: ${"why ".repeat(200)}` }, { role: "assistant", content: "Because." }]).flat());
    assert.equal((await session.compact()).success, true);
    const first = await step(...read(`first_${round}`, file(0)));
    assert.equal(resultOf(first.messages, `first_${round}`), file(0), "nothing in the prompt has it");
    const second = await step({ role: "assistant", content: "Again." }, ...read(`second_${round}`, file(0)));
    assert.match(resultOf(second.messages, `second_${round}`), /^\[Unchanged since the last result of read_file train_gpt2\.c above that is whole; /);
    assert.equal(await known(begins, second.messages, `second_${round}`), file(0));
    await step({ role: "assistant", content: "As before." });
  }
});

test("X2: after a read was cleared, the next one is whole", async () => {
  const { step } = await begun({ clear: { keepRecent: 1, minTokens: 200 }, compactAt: { tokens: 12_000 } });
  await step(...read("before", file(0)));
  for (let nth = 0; nth < 3; nth++) {
    await step(call(`log_${nth}`, "bash", { command: `git show ${nth}` }), answer(`log_${nth}`, `commit ${nth} `.repeat(1_000)));
  }
  const cleared = await step({ role: "assistant", content: "Seen." }, { role: "user", content: "Go on." });
  assert.notEqual(resultOf(cleared.messages, "before"), file(0), "it left the prompt");
  const { messages } = await step(...read("after", file(0)));
  assert.equal(resultOf(messages, "after"), file(0));
});
