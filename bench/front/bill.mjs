/** What calls cost under a provider's cache: what the prompt shares with the one before is read, the rest is written. */

import { estimateTokens } from "context-compactor/tokens";

/** @typedef {import("context-compactor").Message} Message */

/** USD per million tokens: input that is written to the cache, input that is read from it, output. */
export const PRICES = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };

/** Tokens of the system prompt and the tools, which the messages do not have: as agents have them, and less in a small window.
 *  @param {number} contextWindow */
export const stableOf = (contextWindow) => Math.min(20_000, contextWindow / 10);

/** @type {WeakMap<Message, number>} */
const sizes = new WeakMap();

/** @param {Message} message @returns {Promise<number>} */
export async function tokensOf(message) {
  const known = sizes.get(message);
  if (known !== undefined) return known;
  const tokens = await estimateTokens([message]);
  sizes.set(message, tokens);
  return tokens;
}

/** @type {WeakMap<Message, string>} */
const texts = new WeakMap();

/** @param {Message} message @returns {string} */
function textOf(message) {
  const known = texts.get(message);
  if (known !== undefined) return known;
  const text = JSON.stringify(message);
  texts.set(message, text);
  return text;
}

/** The sum of a conversation's calls: how many, their cost in USD, the tokens of the last prompt and of the largest. */
export class Bill {
  calls = 0;
  cost = 0;
  tokens = 0;
  largest = 0;
  #stable;
  /** @type {readonly Message[]} */
  #before = [];

  /** @param {number} stable tokens of the system prompt and the tools */
  constructor(stable) {
    this.#stable = stable;
  }

  /** @param {readonly Message[]} sent @param {Message} answer */
  async add(sent, answer) {
    const kept = shared(this.#before, sent);
    let [cached, fresh] = this.calls === 0 ? [0, this.#stable] : [this.#stable, 0];
    for (const [at, one] of sent.entries()) {
      if (at < kept) cached += await tokensOf(one);
      else fresh += await tokensOf(one);
    }
    const output = await tokensOf(answer);
    this.cost += (cached * PRICES.cacheRead + fresh * PRICES.cacheWrite + output * PRICES.output) / 1e6;
    this.tokens = cached + fresh;
    this.largest = Math.max(this.largest, this.tokens);
    this.calls++;
    this.#before = sent;
  }
}

/** Messages at the beginning that are those of the prompt before. @param {readonly Message[]} before @param {readonly Message[]} now */
export function shared(before, now) {
  let at = 0;
  while (at < before.length && at < now.length && isSame(before[at], now[at])) at++;
  return at;
}

/** @param {Message | undefined} one @param {Message | undefined} other */
function isSame(one, other) {
  return one === other || (one !== undefined && other !== undefined && textOf(one) === textOf(other));
}
