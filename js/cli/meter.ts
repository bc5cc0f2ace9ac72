/** How full the context was at each call, by what it was filled with. */

import { modelFacts, type Message, type ModelPrices } from "../entry/main.js";
import { estimateTokens, estimateTokensDetailed, ready } from "../entry/tokens-inline.js";
import type { Input } from "./input.js";
import { partsOf, speakerOf } from "./said.js";

export const CATEGORIES = ["system", "tools", "user", "assistant", "tool results", "summary"] as const;
export type Category = (typeof CATEGORIES)[number];

/** Tokens of a context, by category. */
export type Meter = Record<Category, number> & { total: number };

/** The context of one call. */
export interface Point {
  /** Messages before the call. */
  index: number;
  meter: Meter;
}

export interface Window {
  tokens: number;
  model?: string;
  prices?: ModelPrices;
  /** Nobody said how large it is. */
  assumed: boolean;
}

/** The window, by what was asked for, else by the model that the history names. */
export async function windowOf(input: Input, { window, model }: { window?: number; model?: string }): Promise<Window> {
  const named = model ?? input.model;
  // A name that the person gave must be right; one in a file may be anybody's.
  const facts = named === undefined ? undefined : await modelFacts(named).catch((error: unknown) => (model === undefined ? undefined : Promise.reject(error as Error)));
  const about = { ...(facts ? { model: facts.model } : {}), ...(facts?.prices ? { prices: facts.prices } : {}) };
  // An agent that compacts long before its model's window was given a smaller one.
  const isSmaller = model === undefined && input.counted !== undefined && input.counted <= 200_000 && input.changes.length > 0;
  await learn(input.model, about.model);
  const tokens = window ?? (isSmaller ? Math.min(200_000, facts?.contextWindow ?? 200_000) : facts?.contextWindow);
  return { tokens: tokens ?? 200_000, assumed: tokens === undefined, ...about };
}

/** Loads what `modelFor` needs of these models. */
export async function learn(...models: (string | undefined)[]): Promise<void> {
  // A name that the estimate does not know is anybody's.
  await Promise.all(models.map((model) => (model === undefined ? undefined : ready({ model }).catch(() => {}))));
}

/** The tokenizers are estimated for this model, when it is one that the estimate knows. */
export function modelFor(name: string | undefined): { model?: string } {
  if (name === undefined) return {};
  try {
    estimateTokens("", { model: name });
    return { model: name };
  } catch {
    return {};
  }
}

/** Tokens of each message, and of the results in it. */
export interface Size {
  category: Category;
  tokens: number;
  results: number;
}

export function sizesOf(messages: readonly Message[], input: Input, model = input.model): Size[] {
  if (messages.length === 0) return [];
  const options = { format: input.format, ...modelFor(model) };
  const { byMessage } = estimateTokensDetailed(messages, options);
  return messages.map((message, at) => {
    const parts = partsOf(message);
    const tokens = byMessage[at] ?? 0;
    const role = speakerOf(message);
    const texts = parts.filter(({ kind }) => kind === "result").map(({ text }) => estimateTokens(text, modelFor(model)));
    const results = role === "tool" ? tokens : Math.min(tokens, texts.reduce((sum, one) => sum + one, 0));
    return { category: role === "tool" ? "tool results" : role, tokens, results };
  });
}

/** Tokens of the system prompt and the tools beside the messages, as far as the input has them. */
export function fixedOf({ system, tools, model }: Input): { system: number; tools: number } {
  const count = (text: string | undefined): number => (text === undefined ? 0 : estimateTokens(text, modelFor(model)));
  return { system: count(system), tools: count(tools === undefined ? undefined : JSON.stringify(tools)) };
}

/** The context of every call, and at the end. */
export function metersOf(input: Input, sizes: readonly Size[]): { points: Point[]; end: Meter } {
  const fixed = fixedOf(input);
  const empty = (): Meter => ({ ...fixed, user: 0, assistant: 0, "tool results": 0, summary: 0, total: fixed.system + fixed.tools });
  const add = (meter: Meter, { category, tokens, results }: Size): void => {
    meter["tool results"] += results;
    meter[category] += tokens - results;
    meter.total += tokens;
  };
  const points: Point[] = [];
  let meter = empty();
  let next = 0;
  let wasAnswer = true;
  for (let index = 0; index <= input.messages.length; index++) {
    for (let change = input.changes[next]; change?.at === index; change = input.changes[++next]) {
      meter = empty();
      for (const at of change.kept) add(meter, sizes[at] as Size);
      for (const size of sizesOf(change.shortened, input)) add(meter, size);
      for (const { tokens } of sizesOf(change.summaries, input)) add(meter, { category: "summary", tokens, results: 0 });
    }
    const size = sizes[index];
    if (!size) break;
    // Items of one answer follow each other.
    if (size.category === "assistant" && !wasAnswer) points.push({ index, meter: { ...meter } });
    wasAnswer = size.category === "assistant";
    add(meter, size);
  }
  return { points, end: meter };
}

/** The fullest of them. */
export function peakOf(points: readonly Point[], end: Meter, messages: number): Point {
  return points.reduce((most, one) => (one.meter.total > most.meter.total ? one : most), { index: messages, meter: end });
}
