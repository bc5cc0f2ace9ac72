/** X11: the model says that a task is done, and its notes stand for the older messages. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { openSession } from "context-compactor";

const NOTES = "The parser in src/parse.rs is done, its 12 tests pass. Next is the printer in src/print.rs, which must keep comments.";

test("X11: a call of new_context takes the older messages out of the next prompt, and nothing is lost", async () => {
  const session = await openSession({ contextWindow: 60_000, format: "anthropic", handoff: {} });
  const given = [{ role: "user", content: "Never touch the public API. Write the parser, then the printer." }];
  for (let nth = 0; nth < 20; nth++) {
    const call = { type: "tool_use", id: `toolu_${nth}`, name: "read_file", input: { path: `src/${nth}.rs` } };
    given.push({ role: "assistant", content: [{ type: "text", text: `Reading file ${nth}.` }, call] });
    given.push({ role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: `pub fn item_${nth}() {}\n`.repeat(60) }] });
  }
  await session.append(...given);
  const { definitions, handle } = session.recall.tools();
  assert.deepEqual(definitions.map(({ name }) => name), ["recall_read", "recall_search", "new_context"]);
  const before = await session.prepare({ tools: definitions });
  assert.equal(before.messages.length, given.length);

  const call = { type: "tool_use", id: "toolu_done", name: "new_context", input: { notes: NOTES } };
  const asking = { role: "assistant", content: [{ type: "text", text: "The parser is done." }, call] };
  const answer = await handle(call);
  await session.append(asking, answer);
  assert.match((await session.context.plan()).reason, /afterwards/);

  const { messages, result, usage } = await session.prepare({ tools: definitions });
  assert.equal(result.trigger, "model");
  assert.equal(result.summary, NOTES);
  assert.equal(messages.length, 3);
  assert.equal(messages[1], asking);
  assert.equal(messages[2], answer);
  const page = JSON.stringify(messages[0]);
  assert.match(page, /Never touch the public API/);
  assert.ok(page.includes(NOTES));
  assert.ok(usage.usedTokens < before.usage.usedTokens / 4, `${usage.usedTokens} of ${before.usage.usedTokens}`);
  assert.equal((await session.prepare({ tools: definitions })).result, undefined);

  const archived = [];
  for await (const message of session.archive.history()) archived.push(message);
  assert.deepEqual(archived.slice(0, given.length), given);
  assert.ok((await session.recall.search("item_7")).length > 0);
  await session.snapshots.undo();
  assert.deepEqual((await session.prepare({ tools: definitions })).messages, [...given, asking, answer]);
  await session.close();
});
