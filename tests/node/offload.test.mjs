/** Preset `offload` through the package (`S1`): what its report says, when a summary follows, what is retired. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { openSession } from "../support/offload.mjs";
import { chat, exchange, summariser } from "../support/api.mjs";

const exchanges = (count) => Array.from({ length: count }, (_, nth) => exchange(nth, 2_000)).flat();

test("S1.1: the total counts the system prompt and the tools, and offloading begins where they reach the threshold", async () => {
  const tools = [{ type: "function", function: { name: "read" } }];
  // Each message costs 100, the prompt and the tools as much.
  for (const [offloadThreshold, offloads] of [[1_400, true], [1_401, false]]) {
    const session = await openSession({
      store: "memory",
      contextWindow: 24_000,
      systemPrompt: "You are brief.",
      tokenCounter: () => 100,
      compactAt: { tokens: offloadThreshold },
      keep: { messages: 1_000 },
    });
    await session.append(...exchange(0), ...chat(4));
    const { edits, usage } = await session.prepare({ tools });
    assert.equal(edits.length > 0, offloads, `${usage.usedTokens} of ${offloadThreshold}`);
    await session.close();
  }
});

test("S1.2: the report has the document's fields, and prepare says what still exceeds the threshold", async () => {
  for (const [offloadThreshold, exceeds] of [[13_000, true], [18_000, false]]) {
    const session = await openSession({ store: "memory", contextWindow: 60_000, compactAt: { tokens: offloadThreshold }, keep: { messages: 1_000 } });
    await session.append(...exchanges(20));
    const previousTokens = session.context.usage().usedTokens;
    const { edits, stillExceedsThreshold, usage } = await session.prepare();
    assert.deepEqual(edits[0].offload, {
      offloadedCount: 10,
      previousTokens,
      currentTokens: usage.usedTokens,
      freedTokens: previousTokens - usage.usedTokens,
      stillExceedsThreshold: exceeds,
    });
    assert.equal(stillExceedsThreshold, exceeds);
    await session.close();
  }
});

test("S1.4: a summary follows what frees less than compactTriggerThreshold, and not what frees as much", async () => {
  // Offloading frees 300 tokens.
  const tokenCounter = ([{ role, content }]) => {
    if (role !== "tool") return 100;
    return content.startsWith("Tool result is at: ") ? 10 : 310;
  };
  for (const [compactTriggerThreshold, rungs] of [[300, ["offload"]], [301, ["offload", "summarize"]]]) {
    const session = await openSession({
      store: "memory",
      contextWindow: 24_000,
      compactAt: { tokens: 500 },
      advanced: { minOffloadGain: compactTriggerThreshold },
      tokenCounter,
      summarize: summariser(),
    });
    await session.append(...exchange(0), ...chat(4));
    const { edits } = await session.prepare();
    assert.equal(edits[0].freedTokens, 300);
    assert.deepEqual(edits.map(({ kind }) => kind), rungs, `${compactTriggerThreshold}`);
    await session.close();
  }
});

test("S1.4: a compaction by hand is an attempt too, and the steps from it on are those of prepare, not of append", async () => {
  const session = await openSession({
    store: "memory",
    contextWindow: 32_000,
    compactAt: { tokens: 500 },
    advanced: { cooldownSteps: 3 },
    summarize: summariser(),
  });
  await session.append(...chat(10));
  assert.equal((await session.compact()).success, true);
  const attempts = [];
  for (let step = 1; step <= 7; step += 1) {
    // Three appends before one prepare are one step.
    for (let nth = 0; nth < 3; nth += 1) await session.append(...chat(2, step * 10 + nth * 2));
    if ((await session.prepare()).result) attempts.push(step);
  }
  assert.deepEqual(attempts, [3, 6]);
  await session.close();
});

test("S1.9: what one compaction retired is not retired again by the next, and what it left is", async () => {
  const session = await openSession({
    store: "memory",
    contextWindow: 24_000,
    maxOutputTokens: 1_000,
    advanced: { offload: { scanFraction: 1 } },
    summarize: summariser(),
  });
  const history = exchanges(20);
  await session.append(...history);
  const [{ indices }] = (await session.prepare()).edits;
  const all = (await session.context.explain()).flatMap(({ ref }) => ref ?? []);
  assert.equal(all.length, 20);
  const first = await session.compact();
  const kept = all.filter((ref) => JSON.stringify(first.messages).includes(ref));
  assert.deepEqual(kept, all.slice(19), "a preserved message references it");
  assert.deepEqual(first.retiredRefs, all.slice(0, 19));
  assert.equal(session.context.usage().offloadCount, 1);
  await session.append(...chat(6));
  const second = await session.compact();
  assert.deepEqual(second.retiredRefs, kept);
  assert.equal(session.context.usage().offloadCount, 0);
  for (const [nth, ref] of all.entries()) assert.equal(await session.recall.read(ref), history[indices[nth]].content);
  await session.close();
});
