/** The app's options as the engine and the driver want them: numbers and texts here, functions there. */

import { checkFunction, checkObject, checkOptions, checkSignal, checkWhole, invalidOption, plainOptions } from "./checks.js";
import { toError, type EngineError, type Host } from "./driver.js";
import { plainProvider } from "./provider.js";
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
] as const;

/** Options that are functions. */
const FUNCTIONS = ["summarize", "summarizeResult", "fetch", "tokenCounter", "pinned", "readFile", "redact", "onProgress", "logger"] as const;

/** Values that only a session has a use for. */
const OF_SESSIONS = ["background", "parent", "acceptDataLoss", "mustExist"] as const;

/** What every call takes. A plan takes what the compaction would that it tells of. */
const EVERY = [...VALUES, ...FUNCTIONS, "signal", "runtime"] as const;
const SESSION = [...EVERY, "id", "store", "systemPrompt", "watermark", "background", "limits"] as const;

/** The options of each call: what it has no use for, it refuses. */
const CALLS = {
  compact: EVERY,
  planCompaction: EVERY,
  openSession: [...SESSION, "parent", "acceptDataLoss", "mustExist"],
  importSession: SESSION,
} as const;

/** What to do about an option that is another call's. */
const REMEDIES: Partial<Record<keyof SessionOptions, string>> = {
  id: "compact and planCompaction keep nothing; a session of this id is opened with openSession",
  store: "compact and planCompaction store nothing; give it to openSession",
  systemPrompt: "count it in reserveTokens, or give it to openSession",
  watermark: "compact and planCompaction store nothing; give it to openSession",
  background: "only a session goes on meanwhile; give it to openSession",
  limits: "compact and planCompaction call no store; give it to openSession",
  parent: "a session that is imported has the parent that it had; to begin one from a parent, use openSession",
  acceptDataLoss: "it is about a session that was stored; give it to openSession",
  mustExist: "it is about a session that was stored; give it to openSession",
};

/** The options for the engine. */
export function engineOptions(options: SessionOptions, used: keyof typeof CALLS): object {
  checkObject(options);
  const known: readonly string[] = CALLS[used];
  for (const name of CALLS.openSession) {
    if (options[name] === undefined || known.includes(name)) continue;
    throw invalidOption(name, `${used} has no use for it: ${REMEDIES[name] ?? "leave it out"}`);
  }
  checkOptions(options, known);
  for (const name of FUNCTIONS) checkFunction(name, options[name]);
  if (options.fetch !== undefined && options.provider === undefined) {
    throw invalidOption("fetch", "only the requests to `provider` go through it: give provider too, or call your model in summarize");
  }
  checkSignal(options.signal);
  if (options.limits !== undefined) {
    const { storeTimeoutMs } = Object(options.limits) as { storeTimeoutMs?: unknown };
    if (typeof options.limits !== "object") throw invalidOption("limits", "must be an object");
    if (storeTimeoutMs !== undefined) checkWhole("limits.storeTimeoutMs", storeTimeoutMs, 1);
  }
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
  for (const name of [...VALUES, ...OF_SESSIONS]) {
    if (options[name] === null) throw invalidOption(name, "is null: leave it out for the default");
    values[name] = options[name];
  }
  values["provider"] = plainProvider(options.provider, options.fetch !== undefined);
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
export type EngineResult = Omit<CompactionResult, "messages" | "error" | "fellBack"> & {
  error?: EngineError;
  fellBack?: EngineError;
};

/** The result of the public API. */
export function toResult<M = Message>(
  result: EngineResult,
  messages: M[],
  thrown: Map<number, unknown>,
): CompactionResult<M> {
  const { error, fellBack, ...rest } = result;
  return {
    ...rest,
    messages,
    ...(error && { error: toError(error, thrown) }),
    ...(fellBack && { fellBack: toError(fellBack, thrown) }),
  };
}
