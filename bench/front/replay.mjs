/** Replays sessions call by call, for the bench and for the demo: what each call was sent under a policy, what it cost, what it lacked. */

import { openSession } from "context-compactor";
import { estimateTokens } from "context-compactor/tokens";
import { Needs } from "./needs.mjs";

/** @typedef {import("context-compactor").Message} Message */
/** @typedef {import("context-compactor").SessionOptions} SessionOptions */
/** @typedef {{ messages: Message[], edits: number }} Prompt */
/** @typedef {(contextWindow: number, stable: number) => Promise<{ prompt(added: Message[]): Promise<Prompt>, end(): Promise<void> }>} Policy */
/** What is known after a call: its own prompt and edits, and the sums so far.
 *  @typedef {{ calls: number, lost: number, cost: number, tokens: number, edits: number }} Call */

/** Tokens of the system prompt and the tools, which the recordings do not have: as agents have them, and less in a small window.
 *  @param {number} contextWindow */
const stableOf = (contextWindow) => Math.min(20_000, contextWindow / 10);
/** USD per million tokens: input that is written to the cache, input that is read from it, output. */
export const PRICES = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };

/** @type {WeakMap<Message, number>} */
const sizes = new WeakMap();

/** @param {Message} message @returns {Promise<number>} */
async function tokensOf(message) {
  const known = sizes.get(message);
  if (known !== undefined) return known;
  const tokens = await estimateTokens([message]);
  sizes.set(message, tokens);
  return tokens;
}

/** What the engine sends: a session that is driven as an app drives it. @param {SessionOptions} options @returns {Policy} */
export function engine(options) {
  return async (contextWindow, stable) => {
    const own = /** @type {SessionOptions} */ ({ store: "memory", contextWindow, reserveTokens: stable, prices: PRICES, logger: () => {} });
    const session = await openSession({ ...own, ...options });
    return {
      prompt: async (added) => {
        await session.append(...added);
        const { messages, edits } = await session.prepare();
        return { messages, edits: edits.length };
      },
      end: () => session.close({ delete: true }),
    };
  };
}

/** What a policy of a few lines sends: `shorten(messages, window, tokensOf)` may return fewer of them.
 *  @param {(messages: Message[], window: number, tokensOf: (message: Message) => Promise<number>) => Promise<Message[]>} shorten
 *  @returns {Policy} */
export function simple(shorten) {
  return async (contextWindow) => {
    /** @type {Message[]} */
    let messages = [];
    return {
      prompt: async (added) => {
        messages.push(...added);
        messages = await shorten(messages, contextWindow, tokensOf);
        return { messages: [...messages], edits: 0 };
      },
      end: async () => {},
    };
  };
}

/**
 * Replays one history; `calls`, `lost` of them, `cost` in USD, and the `last` prompt. `stable`: tokens of the system prompt
 * and the tools. `onCall` is awaited after each call, and ends the replay where it throws.
 * @param {readonly Message[]} messages @param {Policy} policy @param {number} contextWindow
 * @param {{ stable?: number, onCall?: (call: Call) => unknown }} [options]
 */
export async function replay(messages, policy, contextWindow, { stable = stableOf(contextWindow), onCall } = {}) {
  const { prompt, end } = await policy(contextWindow, stable);
  const needs = new Needs();
  let [calls, lost, cost, from] = [0, 0, 0, 0];
  /** @type {Message[]} */
  let sent = [];
  try {
    for (const [index, message] of messages.entries()) {
      if (!isCall(message, index)) continue;
      const { messages: now, edits } = await prompt(messages.slice(from, index));
      const kept = shared(sent, now);
      let [cached, written] = calls === 0 ? [0, stable] : [stable, 0];
      for (const [at, one] of now.entries()) {
        if (at < kept) cached += await tokensOf(one);
        else written += await tokensOf(one);
      }
      cost += cached * PRICES.cacheRead + written * PRICES.cacheWrite + (await tokensOf(message)) * PRICES.output;
      // What came since the last call was just given.
      if (needs.isLost(message, messages, from, now)) lost++;
      for (let at = from; at < index; at++) needs.read(/** @type {Message} */ (messages[at]), at);
      [calls, from, sent] = [calls + 1, index, now];
      await onCall?.({ calls, lost, cost: cost / 1e6, tokens: cached + written, edits });
    }
    if (from < messages.length) sent = (await prompt(messages.slice(from))).messages;
  } finally {
    await end();
  }
  return { calls, lost, cost: cost / 1e6, last: sent };
}

/** True for an answer of the model: a call came before it. @param {Message} message @param {number} index */
export function isCall(message, index) {
  return /** @type {{ role?: unknown }} */ (message).role === "assistant" && index > 0;
}

/** Messages at the beginning that are those of the prompt before. @param {readonly Message[]} before @param {readonly Message[]} now */
export function shared(before, now) {
  let at = 0;
  while (at < before.length && at < now.length && isSame(before[at], now[at])) at++;
  return at;
}

/** @param {Message | undefined} one @param {Message | undefined} other */
function isSame(one, other) {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
