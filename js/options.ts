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

/** The error of an option. */
export function invalidOption(field: string, what: string, cause?: unknown): CompactionError {
  const message = field === "" ? `options ${what}` : `${field}: ${what}`;
  return new CompactionError("invalid_option", message, cause === undefined ? { field } : { field, cause });
}

/** Throws unless `options` can have properties at all. */
export function checkOptions(options: unknown): void {
  if (typeof options !== "object" || options === null) throw invalidOption("", "must be an object");
}

/** Throws unless the option is absent or a function. */
export function checkFunction(name: string, value: unknown): void {
  if (value !== undefined && typeof value !== "function") throw invalidOption(name, "must be a function");
}

/** Throws unless the option is absent or a signal. A signal may come from another realm or a polyfill. */
export function checkSignal(signal: unknown): void {
  if (signal === undefined) return;
  const { aborted, addEventListener } = Object(signal) as Partial<AbortSignal>;
  if (typeof aborted !== "boolean" || typeof addEventListener !== "function") {
    throw invalidOption("signal", "must be an AbortSignal");
  }
}

/** Options nest less than this; the engine reads them by recursion. */
const MAX_DEPTH = 8;

/** Options that are values, as the engine reads them: `undefined` left out, whatever it cannot read refused. */
export function plainOptions(options: object): Record<string, unknown> {
  checkOptions(options);
  return plain(options, "", 0) as Record<string, unknown>;
}

function plain(value: unknown, field: string, depth: number): unknown {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") {
    if (Number.isFinite(value)) return value;
    throw invalidOption(field, `must be a finite number, not ${value}`);
  }
  if (typeof value !== "object") throw invalidOption(field, `cannot be a ${typeof value}`);
  if (depth === MAX_DEPTH) throw invalidOption(field, "is nested too deep, or contains itself");
  if (Array.isArray(value)) return value.map((item, at) => plain(item, `${field}[${at}]`, depth + 1));
  const given = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(
    given.map(([name, item]) => [name, plain(item, field === "" ? name : `${field}.${name}`, depth + 1)]),
  );
}

/** The options for the engine. */
export function engineOptions(options: CompactOptions): object {
  checkOptions(options);
  for (const name of FUNCTIONS) checkFunction(name, options[name]);
  checkSignal(options.signal);
  if (options.runtime !== undefined) {
    const { now, id } = Object(options.runtime) as { now?: unknown; id?: unknown };
    if (typeof now !== "function") throw invalidOption("runtime.now", "must be a function");
    if (typeof id !== "function") throw invalidOption("runtime.id", "must be a function");
  }
  const values: Record<string, unknown> = {
    hasSummarize: options.summarize !== undefined,
    hasTokenCounter: options.tokenCounter !== undefined,
    hasRedact: options.redact !== undefined,
  };
  for (const name of VALUES) values[name] = options[name];
  return plainOptions(values);
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
