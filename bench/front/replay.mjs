/** Replays recorded sessions call by call: what each call was sent under a policy, what it cost, and what it lacked. */

import { openSession } from "context-compactor";
import { runtime } from "../../tests/support/api.mjs";
import { Bill, PRICES, stableOf, tokensOf } from "./bill.mjs";
import { Needs } from "./needs.mjs";

/**
 * What the engine sends: a session that is driven as an app drives it. With `tools` the model is given the recall tools,
 * and `recall` answers a call of them.
 */
export function engine(options, { tools = false } = {}) {
  return async (contextWindow) => {
    const reserveTokens = stableOf(contextWindow);
    // References take as many tokens in every run.
    const own = { store: "memory", contextWindow, reserveTokens, prices: PRICES, logger: () => {}, advanced: { runtime: runtime() } };
    const session = await openSession({ ...own, ...options });
    const { definitions, handle } = session.recall.tools(options.format);
    return {
      prompt: async (added) => {
        await session.append(...added);
        return (await session.prepare(tools ? { tools: definitions } : undefined)).messages;
      },
      recall: tools ? handle : undefined,
      end: () => session.close({ delete: true }),
    };
  };
}

/** What a policy of a few lines sends: `shorten(messages, window, tokensOf)` may return fewer of them. */
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
  const [needs, bill] = [new Needs(), new Bill(contextWindow)];
  let [lost, from, sent] = [0, 0, []];
  for (const [index, message] of messages.entries()) {
    if (message.role === "assistant" && index > 0) {
      sent = await prompt(messages.slice(from, index));
      await bill.add(sent, message);
      // What came since the last call was just given.
      const given = from;
      if (needs.isLost(message, messages, given, sent)) lost++;
      for (let at = from; at < index; at++) needs.read(messages[at], at);
      from = index;
    }
  }
  if (from < messages.length) sent = await prompt(messages.slice(from));
  await end();
  return { calls: bill.calls, lost, cost: bill.cost, last: sent };
}
