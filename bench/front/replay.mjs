/** Replays recorded sessions call by call: what each call was sent under a policy, what it cost, and what it lacked. */

import { openSession } from "context-compactor";
import { estimateTokens } from "context-compactor/tokens";
import { Needs } from "./needs.mjs";

/** Tokens of the system prompt and the tools, which the recordings do not have: as agents have them, and less in a small window. */
const stableOf = (contextWindow) => Math.min(20_000, contextWindow / 10);
/** USD per million tokens: input that is written to the cache, input that is read from it, output. */
const PRICES = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };

const sizes = new WeakMap();

async function tokensOf(message) {
  if (!sizes.has(message)) sizes.set(message, await estimateTokens([message]));
  return sizes.get(message);
}

/** What the engine sends: a session that is driven as an app drives it. */
export function engine(options) {
  return async (contextWindow) => {
    const own = { store: "memory", contextWindow, reserveTokens: stableOf(contextWindow), prices: PRICES, logger: () => {} };
    const session = await openSession({ ...own, ...options });
    return {
      prompt: async (added) => {
        await session.append(...added);
        return (await session.prepare()).messages;
      },
      end: () => session.close({ delete: true }),
    };
  };
}

/** What a policy of a few lines sends: `shorten(messages, tokens)` may return fewer of them. */
export function simple(shorten) {
  return async (contextWindow) => {
    let messages = [];
    return {
      prompt: async (added) => {
        messages.push(...added);
        messages = await shorten(messages, contextWindow, tokensOf);
        return [...messages];
      },
      end: async () => {},
    };
  };
}

/** Replays one history; `calls`, `lost` of them, `cost` in USD, and the `last` prompt. */
export async function replay(messages, policy, contextWindow) {
  const { prompt, end } = await policy(contextWindow);
  const [needs, stable] = [new Needs(), stableOf(contextWindow)];
  let [calls, lost, cost, from, before] = [0, 0, 0, 0, []];
  let sent = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === "assistant" && index > 0) {
      sent = await prompt(messages.slice(from, index));
      const kept = shared(before, sent);
      let [cached, written] = calls === 0 ? [0, stable] : [stable, 0];
      for (const [at, one] of sent.entries()) {
        if (at < kept) cached += await tokensOf(one);
        else written += await tokensOf(one);
      }
      cost += cached * PRICES.cacheRead + written * PRICES.cacheWrite + (await tokensOf(message)) * PRICES.output;
      // What came since the last call was just given.
      const given = from;
      if (needs.isLost(message, messages, given, sent)) lost++;
      for (let at = from; at < index; at++) needs.read(messages[at], at);
      [calls, from, before] = [calls + 1, index, sent.map((one) => JSON.stringify(one))];
    }
  }
  if (from < messages.length) sent = await prompt(messages.slice(from));
  await end();
  return { calls, lost, cost: cost / 1e6, last: sent };
}

/** Messages at the beginning that are those of the call before. */
function shared(before, sent) {
  let at = 0;
  while (at < before.length && at < sent.length && before[at] === JSON.stringify(sent[at])) at++;
  return at;
}
