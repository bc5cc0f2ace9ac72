/** X13: what a session may cost. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { compact, memoryStore, openSession } from "context-compactor";
import { fails } from "../support/api.mjs";

const PRICES = { input: 1, output: 10, cacheRead: 0.1, cacheWrite: 1.25 };
/** 50,000 × 1 + 50,000 × 0.1 + 1,000 × 10 millionths of a dollar. */
const USAGE = { inputTokens: 100_000, outputTokens: 1_000, cacheReadTokens: 50_000 };

const opened = (options) => openSession({ contextWindow: 200_000, logger: () => {}, ...options });
const heard = (session) => {
  const warnings = [];
  session.on("warning", (warning) => warnings.push(warning));
  return warnings;
};

async function turn(session, nth, usage = USAGE) {
  await session.append({ role: "user", content: `question ${nth}` });
  await session.prepare();
  await session.append({ role: "assistant", content: `answer ${nth}` });
  session.context.recordUsage(usage);
}

test("X13: prepare refuses a prompt once the calls have cost limits.usd; the plan says how many are left", async () => {
  const session = await opened({ prices: PRICES, limits: { usd: 0.2, onExceed: "throw" } });
  const told = [];
  for (let nth = 0; nth < 4; nth++) {
    await turn(session, nth);
    const { spent, prompts } = (await session.context.plan()).limits.usd;
    told.push([Number(spent.toFixed(6)), prompts]);
  }
  assert.deepEqual(told, [[0.065, 3], [0.13, 2], [0.195, 1], [0.26, 0]]);
  await assert.rejects(session.prepare(), fails("limit_reached", { field: "limits.usd", message: /have cost \$0\.26, and limits\.usd is \$0\.20/ }));
  await session.append({ role: "user", content: "It can still be appended to." });
  await assert.rejects(session.step([{ role: "user", content: "question 0" }]), fails("limit_reached"));
  await session.close();
});

test("X13: by default it warns once each time the session is opened, and what was spent is stored", async () => {
  const store = memoryStore();
  const options = { id: "s", store, prices: PRICES, limits: { usd: 0.1 } };
  let session = await opened(options);
  const warnings = heard(session);
  for (let nth = 0; nth < 4; nth++) await turn(session, nth);
  assert.deepEqual(warnings.map(({ code }) => code), ["limit_reached"]);
  await session.close();
  session = await opened(options);
  const again = heard(session);
  assert.equal((await session.context.plan()).limits.usd.spent.toFixed(6), "0.260000");
  await session.prepare();
  assert.deepEqual(again.map(({ code }) => code), ["limit_reached"]);
  await session.close();
});

test("X13: prices come from the catalog, and a model without prices is refused when the session is opened", async () => {
  const session = await opened({ model: "gpt-4o", limits: { usd: 1 } });
  session.context.recordUsage({ prompt_tokens: 100_000, completion_tokens: 1_000, prompt_tokens_details: { cached_tokens: 0 } });
  // 2.50 and 10 USD per million.
  assert.equal((await session.context.plan()).limits.usd.spent.toFixed(4), "0.2600");
  await session.close();
  await assert.rejects(opened({ limits: { usd: 1 } }), fails("invalid_option", { field: "limits.usd", message: /give `prices`, or a `model`/ }));
  await assert.rejects(opened({ limits: { onExceed: "throw" } }), fails("invalid_option", { field: "limits.onExceed" }));
  await assert.rejects(compact([], { limits: { usd: 1 } }), fails("invalid_option", { field: "limits" }));
});

test("X13: calls for summaries count, and an app that reports nothing is told", async () => {
  const summarize = async () => ({ text: "## Current Status\nThe parser is built, as the user wants.", usage: { inputTokens: 20_000, outputTokens: 500 } });
  const session = await opened({ prices: PRICES, limits: { usd: 10 }, summarize });
  const warnings = heard(session);
  for (let nth = 0; nth < 6; nth++) {
    await session.append({ role: "user", content: `question ${nth} ${"about the parser ".repeat(200)}` });
    await session.prepare();
    await session.append({ role: "assistant", content: `answer ${nth} ${"about the parser ".repeat(200)}` });
  }
  assert.deepEqual(warnings.map(({ code }) => code), ["invalid_option"]);
  assert.match(warnings[0].message, /context\.recordUsage/);
  assert.equal((await session.compact()).success, true);
  assert.equal((await session.context.plan()).limits.usd.spent.toFixed(3), "0.025");
  await session.close();
});
