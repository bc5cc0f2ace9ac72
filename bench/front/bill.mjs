/** What calls cost under a provider's cache: what the prompt shares with the one before is read, the rest is written. */

import { estimateTokens } from "context-compactor/tokens";

/** USD per million tokens: input that is written to the cache, input that is read from it, output. */
export const PRICES = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };

/** Tokens of the system prompt and the tools, which the messages do not have: as agents have them, and less in a small window. */
export const stableOf = (contextWindow) => Math.min(20_000, contextWindow / 10);

const sizes = new WeakMap();

export async function tokensOf(message) {
  if (!sizes.has(message)) sizes.set(message, await estimateTokens([message]));
  return sizes.get(message);
}

const texts = new WeakMap();

function textOf(message) {
  if (!texts.has(message)) texts.set(message, JSON.stringify(message));
  return texts.get(message);
}

/** The sum of a conversation's calls: how many, their cost in USD, and the tokens of the largest prompt. */
export class Bill {
  calls = 0;
  cost = 0;
  largest = 0;
  #stable;
  #before = [];

  constructor(contextWindow) {
    this.#stable = stableOf(contextWindow);
  }

  async add(sent, answer) {
    const now = sent.map(textOf);
    const kept = shared(this.#before, now);
    let [cached, fresh] = this.calls === 0 ? [0, this.#stable] : [this.#stable, 0];
    for (const [at, one] of sent.entries()) {
      if (at < kept) cached += await tokensOf(one);
      else fresh += await tokensOf(one);
    }
    const output = await tokensOf(answer);
    this.cost += (cached * PRICES.cacheRead + fresh * PRICES.cacheWrite + output * PRICES.output) / 1e6;
    this.largest = Math.max(this.largest, cached + fresh);
    this.calls++;
    this.#before = now;
  }
}

/** Messages at the beginning that are those of the call before. */
function shared(before, sent) {
  let at = 0;
  while (at < before.length && at < sent.length && before[at] === sent[at]) at++;
  return at;
}
