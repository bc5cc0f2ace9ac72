/** The app's options as the engine and the driver want them: numbers and texts here, functions there. */

import { checkFunction, checkOptions, checkSignal, invalidOption, plainOptions } from "./checks.js";
import { toError, type EngineError, type Host } from "./driver.js";
import type { CompactionResult, CompactOptions, Message, ModelFacts, SessionOptions } from "./types.js";

/** Options that are values. Functions are told to the engine as flags. */
const VALUES = [
  "preset",
  "format",
  "model",
  "summaryModel",
  "summaryContextWindow",
  "longHistory",
  "contextWindow",
  "maxOutputTokens",
  "trigger",
  "prices",
  "keep",
  "reserveTokens",
  "estimator",
  "provider",
  "fallback",
  "retryCount",
  "timeoutMs",
  "background",
  "instructions",
  "redactSecrets",
  "pinProposals",
  "prefixMismatchBehavior",
  "offload",
  "concurrency",
  "layered",
  "react",
  "factor3",
  "checkpoint",
  "mode",
  "level",
  "goal",
  "parent",
  "acceptDataLoss",
] as const;

/** Options that are functions. */
const FUNCTIONS = ["summarize", "summarizeResult", "fetch", "tokenCounter", "pinned", "readFile", "redact", "onProgress", "logger"] as const;

/** Names of the options of a session. They plan and compact too, as their type says. */
const SESSION = [...VALUES, ...FUNCTIONS, "signal", "runtime", "id", "store", "systemPrompt", "watermark"] as const;

/** The options for the engine. */
export function engineOptions(options: SessionOptions): object {
  checkOptions(options, SESSION);
  for (const name of FUNCTIONS) checkFunction(name, options[name]);
  checkSignal(options.signal);
  if (options.runtime !== undefined) {
    const { now, id } = Object(options.runtime) as { now?: unknown; id?: unknown };
    if (typeof now !== "function") throw invalidOption("runtime.now", "must be a function");
    if (typeof id !== "function") throw invalidOption("runtime.id", "must be a function");
  }
  if (options.watermark !== undefined) {
    const { get, set } = Object(options.watermark) as { get?: unknown; set?: unknown };
    if (typeof get !== "function") throw invalidOption("watermark.get", "must be a function");
    if (typeof set !== "function") throw invalidOption("watermark.set", "must be a function");
  }
  const values: Record<string, unknown> = {
    hasSummarize: options.summarize !== undefined,
    hasSummarizeResult: options.summarizeResult !== undefined,
    hasTokenCounter: options.tokenCounter !== undefined,
    hasReadFile: options.readFile !== undefined,
    hasPinned: options.pinned !== undefined,
    hasRedact: options.redact !== undefined,
  };
  for (const name of VALUES) values[name] = options[name];
  return plainOptions(values);
}

/** The same with what is known about the model. */
export function withFacts(given: object, facts: ModelFacts | undefined): object {
  if (!facts) return given;
  const { contextWindow, maxOutputTokens, prices } = facts;
  return { ...given, facts: plainOptions({ contextWindow, maxOutputTokens, prices }) };
}

/** What every operation with these options is performed with. */
export function hostOf(options: CompactOptions, message: Host["message"]): Host {
  const { logger, runtime } = options;
  return {
    summarize: options.summarize,
    summarizeResult: options.summarizeResult,
    fetch: options.fetch,
    redact: options.redact,
    tokenCounter: options.tokenCounter,
    pinned: options.pinned,
    readFile: options.readFile,
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
  /** Of that message among the app's. */
  index?: number;
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
