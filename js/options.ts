/** The app's options as the engine and the driver want them: numbers and texts here, functions there. */

import { toError, type EngineError, type Host } from "./driver.js";
import { CompactionError } from "./errors.js";
import type { CompactionResult, CompactOptions, Message } from "./types.js";

/** Options that are values. Functions are told to the engine as flags. */
const VALUES = [
  "preset",
  "format",
  "model",
  "summaryModel",
  "contextWindow",
  "maxOutputTokens",
  "trigger",
  "keep",
  "reserveTokens",
  "estimator",
  "provider",
  "fallback",
  "retryCount",
  "timeoutMs",
  "instructions",
  "offload",
] as const;

/** Options that are functions. */
const FUNCTIONS = ["summarize", "fetch", "tokenCounter", "redact", "onProgress", "logger"] as const;

/** The options for the engine. */
export function engineOptions(options: CompactOptions): object {
  if (typeof options !== "object" || options === null) {
    throw new CompactionError("invalid_option", "options must be an object");
  }
  for (const name of FUNCTIONS) {
    if (options[name] !== undefined && typeof options[name] !== "function") {
      throw new CompactionError("invalid_option", `${name}: must be a function`, { field: name });
    }
  }
  const values: Record<string, unknown> = {
    hasSummarize: options.summarize !== undefined,
    hasTokenCounter: options.tokenCounter !== undefined,
    hasRedact: options.redact !== undefined,
  };
  for (const name of VALUES) {
    if (options[name] !== undefined) values[name] = options[name];
  }
  return values;
}

/** What every operation with these options is performed with. */
export function hostOf(options: CompactOptions, message: Host["message"]): Host {
  const { logger, runtime } = options;
  return {
    summarize: options.summarize,
    fetch: options.fetch,
    redact: options.redact,
    tokenCounter: options.tokenCounter,
    message,
    now: runtime ? () => runtime.now() : () => Date.now(),
    id: runtime ? () => runtime.id() : () => crypto.randomUUID(),
    onProgress: options.onProgress,
    logger: logger ? (level, line) => logger(level, line) : undefined,
    signal: options.signal,
  };
}

/** An item of a context as the engine reports it: the app's own message by its log position, or JSON text of ours. */
export interface Item {
  seq?: number;
  body?: string;
}

/** A compaction as the engine reports it. */
export type EngineResult = Omit<CompactionResult, "messages" | "error"> & { error?: EngineError };

/** The result of the public API. */
export function toResult<M = Message>(
  result: EngineResult,
  messages: M[],
  thrown: Map<number, unknown>,
): CompactionResult<M> {
  const { error, ...rest } = result;
  return error ? { ...rest, messages, error: toError(error, thrown) } : { ...rest, messages };
}
