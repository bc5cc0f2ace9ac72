/** Estimates of tokens, which need no engine: plain JavaScript over a table of the model's family, with the engine's integers. */

import { checkOptions, invalidOption } from "./checks.js";
import { CompactionError } from "./errors.js";
import { o200k } from "./generated/tables/o200k.js";
import { familyOf, type Family } from "./tokens/families.js";
import { givenFormat, readHistory, tokensOfMessage } from "./tokens/history.js";
import { offBy } from "./tokens/rules.js";
import { bring, haveDefault, weightsOf } from "./tokens/tables.js";
import { charsOf, tokensOf, type Weights } from "./tokens/text.js";
import { bytesOf } from "./tokens/values.js";
import type { Message } from "./types.js";
import type { Estimator } from "./types/options.js";
import type { TokenEstimate, TokenInput, TokenOptions } from "./types/tokens.js";

haveDefault(o200k);

/** How texts are counted; by characters without weights, where the rules of the default family hold. */
interface Counter {
  family: Family;
  weights?: Weights;
}

/** What was counted with last: most apps have one model. */
let last: { estimator: Estimator | undefined; model: string | undefined; counter: Counter } | undefined;

/**
 * Loads the table of a model's family, so that tokens can be estimated for it. Only families other than that of OpenAI's
 * models since GPT-4o need it. Rejects with `unknown_model`, with similar names, and with `stage_unavailable` if the file
 * could not be loaded.
 */
export async function ready(options: { model?: string } = {}): Promise<void> {
  checkOptions(options, ["model"]);
  const family = namedFamily(options.model);
  if (family) await bring(family);
}

/**
 * Estimates the tokens of a text, a message or a history, for the tokenizer of `model`; without one, of OpenAI's models
 * since GPT-4o. Synchronous; its mean error is about 3 % with `model`. A lone surrogate counts as U+FFFD. Throws
 * `unknown_model`, with similar names, and `not_ready` for a model whose table is not loaded: await `ready({ model })` first.
 */
export function estimateTokens(input: TokenInput, options?: TokenOptions): number {
  if (options !== undefined) checkOptions(options, ["estimator", "format", "model"]);
  const { family, weights } = counterOf(options);
  if (typeof input === "string") return countOf(input, weights);
  const count = (text: string): number => countOf(text, weights);
  return readHistory(listed(input), givenFormat(options?.format)).reduce((sum, message) => sum + tokensOfMessage(message, family, count), 0);
}

/**
 * Estimates tokens as `estimateTokens` does, and adds bounds, which hold for about 99 of 100 texts, and the tokens of
 * each role and message. Message framing and media are counted by rule, with an error of up to a half.
 */
export function estimateTokensDetailed(input: TokenInput, options: TokenOptions = {}): TokenEstimate {
  checkOptions(options, ["estimator", "format", "model"]);
  const { family, weights } = counterOf(options);
  const format = givenFormat(options.format);
  const counted = { texts: 0, squares: 0, bytes: 0, beyond: 0 };
  const count = (text: string): number => {
    const [tokens, bytes] = [countOf(text, weights), bytesOf(text)];
    counted.texts += tokens;
    counted.squares += tokens * tokens;
    counted.bytes += bytes;
    counted.beyond += bytes - text.replace(/[^\0-\x7f]+/g, "").length;
    return tokens;
  };
  const messages = typeof input === "string" ? [] : readHistory(listed(input), format);
  const byMessage = typeof input === "string" ? [count(input)] : messages.map((message) => tokensOfMessage(message, family, count));
  const byRole: TokenEstimate["byRole"] = {};
  // In the order of their names, whoever speaks first.
  for (const role of messages.map(({ role }) => role).sort()) byRole[role] = 0;
  messages.forEach(({ role }, nth) => (byRole[role] = (byRole[role] as number) + (byMessage[nth] as number)));
  const tokens = byMessage.reduce((sum, each) => sum + each, 0);
  // Four characters a token may be one, or eight.
  if (!weights) return { tokens, low: Math.floor(tokens / 2), high: tokens * 6, byRole, byMessage };
  const off = tokens === 0 ? 0 : offBy(family, tokens, counted);
  return { tokens, low: Math.max(Math.min(1, tokens), tokens - off), high: tokens + off, family, byRole, byMessage };
}

function countOf(text: string, weights: Weights | undefined): number {
  return weights ? tokensOf(text, weights) : Math.floor((charsOf(text) + 2) / 4);
}

function counterOf({ estimator, model }: TokenOptions = {}): Counter {
  if (last && last.estimator === estimator && last.model === model) return last.counter;
  const counter = newCounter(estimator ?? "calibrated", model);
  last = { estimator, model, counter };
  return counter;
}

function newCounter(estimator: Estimator, model: string | undefined): Counter {
  const family = namedFamily(model) ?? "o200k";
  if (estimator === "chars4") return { family: "o200k" };
  if (estimator !== "calibrated") throw invalidOption("estimator", 'must be one of "calibrated", "chars4"');
  const weights = weightsOf(family);
  if (weights) return { family, weights };
  const first = `\`await ready({ model: ${JSON.stringify(model)} })\` of context-compactor/tokens loads it`;
  throw new CompactionError("not_ready", `model: the table of its family (${family}) is not loaded: ${first}`, { field: "model" });
}

function namedFamily(model: string | null | undefined): Family | undefined {
  if (model === undefined || model === null) return undefined;
  if (typeof model !== "string" || model.trim() === "") throw invalidOption("model", "must be a text that is not empty");
  return familyOf(model);
}

function listed(input: Message | readonly Message[]): readonly Message[] {
  return Array.isArray(input) ? (input as Message[]) : [input];
}
