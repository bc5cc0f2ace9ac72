/** What calls cost under a provider's cache: what a prompt shares with the one before is read from it, the rest written. */

import type { Message, ModelPrices } from "../entry/main.js";
import { estimateTokens } from "../entry/tokens-inline.js";
import type { Input } from "./input.js";

/** Prices where none are known, in USD per million tokens. */
export const USUAL: ModelPrices = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };

/** Sizes and texts of messages, each found once. */
export class Known {
  readonly #format: Input["format"];
  readonly #sizes = new WeakMap<Message, number>();
  readonly #texts = new WeakMap<Message, string>();

  constructor(format: Input["format"]) {
    this.#format = format;
  }

  tokens(message: Message): number {
    let tokens = this.#sizes.get(message);
    if (tokens === undefined) this.#sizes.set(message, (tokens = estimateTokens(message, { format: this.#format })));
    return tokens;
  }

  isSame(one: Message | undefined, other: Message | undefined): boolean {
    return one === other || (one !== undefined && other !== undefined && this.#text(one) === this.#text(other));
  }

  #text(message: Message): string {
    let text = this.#texts.get(message);
    if (text === undefined) this.#texts.set(message, (text = JSON.stringify(message)));
    return text;
  }
}

/** The sum of a conversation's calls. */
export class Bill {
  calls = 0;
  cost = 0;
  /** Calls whose prompt does not begin with the one before. */
  misses = 0;
  /** Tokens of the largest prompt. */
  largest = 0;
  /** Calls with more than the window. */
  refused = 0;
  /** Tokens of each prompt. */
  readonly prompts: number[] = [];
  #before: readonly Message[] = [];
  /** Tokens of that prompt up to each message. */
  readonly #sums: number[] = [0];

  readonly #known: Known;
  readonly #prices: ModelPrices;
  readonly #window: number;
  readonly #stable: number;

  /** `stable`: tokens of the system prompt and the tools. */
  constructor(known: Known, prices: ModelPrices, window: number, stable: number) {
    [this.#known, this.#prices, this.#window, this.#stable] = [known, prices, window, stable];
  }

  add(sent: readonly Message[], answer: readonly Message[]): void {
    let kept = 0;
    while (kept < this.#before.length && kept < sent.length && this.#known.isSame(this.#before[kept], sent[kept])) kept++;
    this.#sums.length = kept + 1;
    for (let at = kept; at < sent.length; at++) this.#sums.push((this.#sums[at] ?? 0) + this.#known.tokens(sent[at] as Message));
    const [cachedStable, freshStable] = this.calls === 0 ? [0, this.#stable] : [this.#stable, 0];
    const cached = cachedStable + (this.#sums[kept] ?? 0);
    const fresh = freshStable + (this.#sums[sent.length] ?? 0) - (this.#sums[kept] ?? 0);
    const output = answer.reduce((sum, message) => sum + this.#known.tokens(message), 0);
    const prompt = cached + fresh;
    const tier = this.#prices.tiers?.findLast(({ above }) => prompt > above);
    const { input, output: perAnswer, cacheRead = input, cacheWrite = input } = tier ?? this.#prices;
    this.cost += (cached * cacheRead + fresh * cacheWrite + output * perAnswer) / 1e6;
    if (kept < this.#before.length) this.misses++;
    if (prompt > this.#window) this.refused++;
    this.largest = Math.max(this.largest, prompt);
    this.prompts.push(prompt);
    this.calls++;
    this.#before = sent;
  }
}
