/** The app's options as the engine and the driver want them: numbers and texts here, functions there. */

import { checkSignal, invalidOption, plainOptions } from "./checks.js";
import { toError, type EngineError, type Host } from "./effects.js";
import { readOptions, type Call, type Given } from "./given.js";
import { lazily } from "./lazily.js";
import type { UsedFacts } from "./models.js";
import { checkUrl } from "./provider.js";
import type { CompactionReport, CompactionResult, CompactOptions, LedgerEntry, Message, SessionOptions, Summarize } from "./types.js";

/** The options of a call, checked. */
export function engineOptions(options: CompactOptions | SessionOptions, call: Call): Given {
  const given = readOptions(options, call);
  const { host } = given;
  const { provider } = Object(given.values["summarize"]) as { provider?: { url?: string } };
  if (host.has("summarize.fetch") && !provider) {
    throw invalidOption("summarize.fetch", "only the requests to `provider` go through it: give provider too, or call your model in `call`");
  }
  if (provider?.url !== undefined) checkUrl(provider.url, host.has("summarize.fetch"));
  if (host.has("signal")) checkSignal(host.get("signal"));
  checkMethods(host, "advanced.runtime", ["now", "id"]);
  checkMethods(host, "advanced.watermark", ["get", "set"]);
  return given;
}

function checkMethods(host: Given["host"], path: string, names: readonly string[]): void {
  const given = host.get(path);
  if (given === undefined) return;
  for (const name of names) {
    const method: unknown = (Object(given) as Record<string, unknown>)[name];
    if (typeof method !== "function") throw invalidOption(`${path}.${name}`, "must be a function");
  }
}

/** The options for the engine, with what is known about the model. */
export function withFacts({ values }: Given, facts: UsedFacts | undefined): Record<string, unknown> {
  if (!facts) return values;
  const { contextWindow, maxOutputTokens, prices } = facts;
  return { ...values, facts: plainOptions({ contextWindow, maxOutputTokens, prices }) };
}

/** What every operation with these options is performed with. */
export function hostOf({ host }: Pick<Given, "host">, message: Host["message"]): Host {
  const runtime = host.get("advanced.runtime") as NonNullable<CompactOptions["advanced"]>["runtime"];
  const logger = host.get("logger") as CompactOptions["logger"];
  return {
    summarize: host.get("summarize.call") as Summarize | undefined,
    summarizeResult: host.get("summarize.forResults") as Summarize | undefined,
    fetch: host.get("summarize.fetch") as typeof fetch | undefined,
    redact: host.get("redact.text") as Host["redact"],
    tokenCounter: host.get("tokenCounter") as Host["tokenCounter"],
    pinned: host.get("pins.match") as Host["pinned"],
    embed: host.get("recall.embed") as Host["embed"],
    readFile: host.get("restoreFiles.read") as Host["readFile"],
    message,
    now: runtime ? () => runtime.now() : () => Date.now(),
    id: runtime ? () => runtime.id() : () => crypto.randomUUID(),
    isTimed: runtime !== undefined,
    onProgress: host.get("onProgress") as CompactOptions["onProgress"],
    logger: logger ? (level, line) => logger(level, line) : undefined,
    signal: host.get("signal") as AbortSignal | undefined,
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
export type EngineResult = Omit<CompactionReport, "messages" | "ledger"> & {
  /** Runs of messages that have the same fate, as JSON text. */
  ledger: string;
  success: boolean;
  changed: boolean;
  reason?: string;
  error?: EngineError;
  fellBack?: EngineError;
};

/** The result of the public API. */
export function toResult<M = Message>(
  result: EngineResult,
  messages: M[],
  thrown: Map<number, unknown>,
): CompactionResult<M> {
  const { success: _, error, fellBack, reason, ...rest } = result;
  const report = { ...rest, messages, ledger: [] };
  const made: CompactionResult<M> = error
    ? { ...report, success: false, reason: reason ?? error.message, error: toError(error, thrown) }
    : {
        ...report,
        success: true,
        ...(reason !== undefined && { reason }),
        ...(fellBack && { fellBack: toError(fellBack, thrown) }),
      };
  // There are as many entries as messages, and hardly anybody asks for them.
  return lazily(made, "ledger", () => entriesOf(result.ledger));
}

function entriesOf(ledger: string): LedgerEntry[] {
  const runs = JSON.parse(ledger) as [count: number, first: LedgerEntry][];
  const entries = ([count, first]: (typeof runs)[number]) =>
    Array.from({ length: count }, (_, nth) => ({ ...first, index: first.index + nth }));
  return runs.flatMap(entries);
}
