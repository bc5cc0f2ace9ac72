/** Performing the effects of an operation of the engine. Decides nothing, and does not need the engine. */

import { named } from "./advice.js";
import { ownEntries, ownValues } from "./answers.js";
import { CompactionError, type ErrorCode } from "./errors.js";
import type { Place } from "./message-cache.js";
import { isContextOverflow } from "./overflow.js";
import { send, unsent, type HttpRequest } from "./requests.js";
import { quietly } from "./quietly.js";
import { countOf, idOf, notAText, textOf, usageOf, vectorsOf, WrongReply, yesOrNo } from "./replies.js";
import type { Fixed } from "./seat.js";
import type { Stage } from "./stages.js";
import { after, isPromise, type StoreCalls } from "./store-calls.js";
import type { Batch, Damaged, Format, Key, LogLevel, MaybePromise, Message, Progress, SessionEvents, Store, Summarize, SummaryRequest } from "./types.js";

/** What an operation's effects are performed with. */
export interface Host {
  /** Absent for what stores nothing. */
  store?: Store;
  /** How long one call of the store may take, in ms. */
  storeTimeoutMs?: number | undefined;
  summarize?: Summarize | undefined;
  summarizeResult?: Summarize | undefined;
  embed?: ((texts: string[]) => Promise<number[][]>) | undefined;
  readFile?: ((path: string) => Promise<string>) | undefined;
  fetch?: typeof fetch | undefined;
  redact?: ((text: string) => string) | undefined;
  tokenCounter?: ((messages: Message[]) => number) | undefined;
  pinned?: ((message: Message, index: number) => boolean) | undefined;
  /** The app's object for a message that is counted, or asked about. */
  message(whose: Counted["whose"], at: number, body: string): Message;
  now(): number;
  id(): string;
  /** These two are the app's. */
  isTimed?: boolean;
  onProgress?: ((progress: Progress) => void) | undefined;
  logger?: ((level: LogLevel, message: string) => void) | undefined;
  notify?: ((notice: Notice) => void) | undefined;
  /** Takes the places of messages that a call appended which then prepares; what goes with them. */
  appended?: (placed: Placed) => MaybePromise<Fixed>;
  signal?: AbortSignal | undefined;
  /** What is kept of sessions outside of their store. */
  watermarks?: {
    read(key: string): Promise<{ mark: string | undefined; lost: string | undefined }>;
    write(key: string, value: string): void;
  };
  /** What else may be said of a summariser that gave no answer in time. */
  waiting?: () => string;
  /** Lets other calls on the session run while `work` takes its time. */
  park?: <T>(work: () => MaybePromise<T>) => Promise<T>;
  /** Takes effects that another thread performs: its answer, or `true` where there is none to wait for. */
  away?: ((effect: Effect) => Promise<Answer> | true | undefined) | undefined;
}

/** How long a file is waited for, in ms. */
const READ_FILE_MS = 10_000;
/** How long vectors of one call's texts are waited for, in ms. */
const EMBED_MS = 30_000;

export type Notice = { event: Exclude<keyof SessionEvents, "progress"> } & Record<string, unknown>;

/** Where messages are that were appended. */
export interface Placed {
  places: Place[];
  format: Format;
}

interface Counted {
  type: "count";
  whose: "new" | "logged" | "ours";
  at: number;
  body: string;
}

export type Effect = { id: number; parks?: true } & (
  | { type: "now" | "newId" }
  | Counted
  | (Omit<Counted, "type"> & { type: "pin"; index: number })
  | { type: "redact"; text: string }
  | ({ type: "appended" } & Placed)
  | { type: "embed"; texts: string[] }
  | { type: "readFile"; path: string }
  | { type: "progress"; progress: Progress }
  | { type: "log"; level: LogLevel; line: string }
  | { type: "notify"; notice: Notice }
  | { type: "summarize"; request: SummaryRequest; attempt: number; purpose: Parameters<Summarize>[1]["purpose"]; ofResult: boolean; timeoutMs: number }
  | { type: "fetch"; request: HttpRequest; timeoutMs: number }
  | { type: "sleep"; ms: number }
  | { type: "readWatermark"; key: string }
  | { type: "writeWatermark"; key: string; value: string }
  | { type: "read"; keys: Key[] }
  | { type: "scan"; prefix: Key; options: Parameters<Store["scan"]>[1] }
  | { type: "commit"; batch: Batch }
  | { type: "load" | "prefetch"; stage: Stage }
);

/** An effect from the engine: `told` is JSON, and `beside` a large value of it, which is not copied into the JSON. */
export function effectOf(told: string, beside: unknown): Effect {
  const effect = JSON.parse(told) as Effect;
  switch (effect.type) {
    case "count":
    case "pin":
      effect.body = beside as string;
      break;
    case "redact":
      effect.text = beside as string;
      break;
    case "summarize":
    case "fetch":
      effect.request = beside as SummaryRequest & HttpRequest;
      break;
    case "commit":
      effect.batch.puts.forEach((put, nth) => (put[1] = (beside as Uint8Array[])[nth]!));
      break;
    default:
  }
  return effect;
}

export type Answer =
  | { type: "done" }
  | { type: "number"; value: number }
  | { type: "text"; value: string }
  | { type: "texts"; texts: string[] }
  | { type: "watermark"; mark: string | undefined; lost: string | undefined }
  | { type: "summary"; text: string; usage?: string | undefined }
  | { type: "vectors"; vectors: Float64Array[] }
  | { type: "response"; status: number; headers: [string, string][]; body: string }
  | { type: "values"; values: (Uint8Array | Damaged | undefined)[] }
  | { type: "entries"; entries: [Key, Uint8Array | Damaged][] }
  | { type: "failed"; code?: string | undefined; message: string; status?: number | undefined; overflow?: boolean };

/** An error as the engine reports it; `cause` is the number of the effect that failed. */
export interface EngineError {
  code: ErrorCode;
  message: string;
  index?: number;
  field?: string;
  cause?: number;
  because?: EngineError;
  reason?: string;
  /** Where the code alone does not say so. */
  retryable?: true;
}

/** The engine's error as the public one. */
export function toError(error: EngineError, thrown?: Map<number, unknown>): CompactionError {
  // What led to an error is said first: the message that it names is not at fault.
  const place = error.because ? [] : [error.index === undefined ? "" : `message ${error.index}`, error.field ?? ""].filter(Boolean);
  const message = place.length > 0 ? `${place.join(", ")}: ${error.message}` : error.message;
  const thrownBy = error.cause === undefined ? undefined : thrown?.get(error.cause);
  // It says all that there is to say.
  if (error.code === "stage_unavailable" && CompactionError.isInstance(thrownBy)) return thrownBy;
  const cause = error.because ? toError(error.because, thrown) : thrownBy;
  const details = { index: error.index, field: error.field, reason: error.reason, retryable: error.retryable };
  return new CompactionError(error.code, message, cause === undefined ? details : { ...details, cause });
}

/** Effects without an answer. An exception of a listener does not fail the operation. */
export function tell(effect: Effect, host: Host): boolean {
  switch (effect.type) {
    case "progress":
      quietly(() => host.onProgress?.(effect.progress));
      return true;
    case "log":
      quietly(() => host.logger?.(effect.level, effect.line));
      return true;
    case "notify":
      quietly(() => host.notify?.(effect.notice));
      return true;
    case "writeWatermark":
      host.watermarks?.write(effect.key, effect.value);
      return true;
    default:
      return false;
  }
}

export function atOnce(effect: Effect, host: Host, thrown: Map<number, unknown>): Answer | undefined {
  try {
    switch (effect.type) {
      case "now":
        return { type: "number", value: host.now() };
      case "newId":
        return { type: "text", value: idOf(host.id()) };
      case "count": {
        const message = host.message(effect.whose, effect.at, effect.body);
        return { type: "number", value: countOf(host.tokenCounter?.([message])) };
      }
      case "pin": {
        const message = host.message(effect.whose, effect.at, effect.body);
        return { type: "number", value: yesOrNo(host.pinned?.(message, effect.index)) ? 1 : 0 };
      }
      case "redact":
        // What is not a text fails: what was to be redacted must not be sent as it was.
        return { type: "text", value: textOf(host.redact?.(effect.text)) };
      default:
        return undefined;
    }
  } catch (error) {
    if (!(error instanceof WrongReply)) thrown.set(effect.id, error);
    return failed(error);
  }
}

/** Performs what takes time, by `work`. What a store answers at once is there at once. */
export function perform(effect: Effect, host: Host, work: () => MaybePromise<Answer>, thrown: Map<number, unknown>): MaybePromise<Answer> {
  let sent = false;
  const fail = (error: unknown): Answer => {
    if (host.signal?.aborted && !sent) {
      thrown.set(effect.id, host.signal.reason);
      return { type: "failed", code: "aborted", message: ABORTED };
    }
    thrown.set(effect.id, error);
    const answer = failed(error, effect.type);
    if (effect.type !== "fetch" || answer.type !== "failed" || CompactionError.isInstance(error)) return answer;
    return { ...answer, message: unsent(effect.request.url, error) };
  };
  try {
    // Aborting counts up to the commit: what is being written is written.
    checkAborted(host.signal);
    sent = effect.type === "commit";
    const answer = effect.parks && host.park ? host.park(work) : work();
    return isPromise(answer) ? answer.catch(fail) : answer;
  } catch (error) {
    return fail(error);
  }
}

const ABORTED = "aborted by the caller; nothing was changed";

/** Throws `aborted` when the caller's signal is aborted already. */
export function checkAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new CompactionError("aborted", ABORTED, { cause: signal.reason as unknown });
}

/**
 * Runs `work` with a signal that is aborted with any of `signals`. Not `AbortSignal.any`, which takes none of a
 * polyfill.
 */
export async function withEither<T>(
  signals: (AbortSignal | undefined)[],
  work: (signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  const given = signals.filter((signal) => signal !== undefined);
  if (given.length < 2) return work(given[0]);
  const controller = new AbortController();
  const stops = given.map((signal) => {
    const stop = () => controller.abort(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop);
    return () => signal.removeEventListener("abort", stop);
  });
  try {
    return await work(controller.signal);
  } finally {
    for (const stop of stops) stop();
  }
}

export function awaited(effect: Effect, host: Host, store: StoreCalls): MaybePromise<Answer> {
  switch (effect.type) {
    case "read":
      return after(store.call("read", (of) => of.read(effect.keys)), (values) => ({ type: "values", values: ownValues(values, effect.keys.length) }));
    case "scan": {
      const { prefix, options } = effect;
      return after(store.call("scan", (of) => of.scan(prefix, options)), (entries) => ({ type: "entries", entries: ownEntries(entries, options.limit) }));
    }
    case "commit":
      return after(store.call("commit", (of) => of.commit(effect.batch)), () => ({ type: "done" }));
    case "appended":
      return after(host.appended?.(effect) ?? [], (texts) => ({ type: "texts", texts }));
    default:
      return later(effect, host);
  }
}

async function later(effect: Effect, host: Host): Promise<Answer> {
  switch (effect.type) {
    case "summarize": {
      const summariser = effect.ofResult ? (host.summarizeResult ?? host.summarize) : host.summarize;
      const answer: unknown = await within(effect.timeoutMs, host.signal, (signal) =>
        summariser?.(effect.request, { signal, attempt: effect.attempt, purpose: effect.purpose }),
        () => RAISE + (host.waiting?.() ?? ""),
      );
      const summary = typeof answer === "string" ? { text: answer } : answer;
      const text = (summary as { text?: unknown } | null | undefined)?.text;
      if (typeof text !== "string") {
        throw new TypeError(`summarize must resolve to a text or to { text }, and ${named(summary)} came${notAText(summary)}`);
      }
      return { type: "summary", text, usage: usageOf((summary as { usage?: unknown }).usage) };
    }
    case "embed":
      return { type: "vectors", vectors: vectorsOf(await within(EMBED_MS, host.signal, () => host.embed?.(effect.texts), () => "; it is given at most 64 texts at once")) };
    case "readFile": {
      const text: unknown = await within(READ_FILE_MS, host.signal, () => host.readFile?.(effect.path));
      return { type: "text", value: textOf(text) };
    }
    case "fetch":
      return within(effect.timeoutMs, host.signal, async (signal) => ({
        type: "response",
        ...(await send(effect.request, host.fetch, signal)),
      }));
    case "sleep":
      // A pause, which lets nobody else work, comes before another try: two that tried at once would meet again.
      await sleep(effect.parks ? effect.ms : effect.ms * (0.5 + Math.random()), host.signal);
      return { type: "done" };
    case "readWatermark":
      return { type: "watermark", mark: undefined, lost: undefined, ...(await host.watermarks?.read(effect.key)) };
    default:
      throw new TypeError(`unknown effect ${effect.type}`);
  }
}

const RAISE = "; raise timeoutMs to wait longer";

/** Runs `work` with a signal that is aborted with the caller's, or after `ms`; does not wait for it any longer. */
export async function within<T>(
  ms: number,
  outer: AbortSignal | undefined,
  work: (signal: AbortSignal) => T,
  more = () => RAISE,
): Promise<Awaited<T>> {
  const controller = new AbortController();
  const stop = () => controller.abort(outer?.reason);
  outer?.addEventListener("abort", stop);
  const timer = setTimeout(
    () => controller.abort(new CompactionError("timeout", `no answer within ${ms} ms${more()}`)),
    Math.min(ms, MAX_TIMER),
  );
  try {
    const stopped = new Promise<never>((_, reject) => {
      controller.signal.addEventListener("abort", () => reject(controller.signal.reason as Error), { once: true });
    });
    const answer = await Promise.race([work(controller.signal), stopped]);
    // Both may be there at once: an answer that came with the abort is not used.
    controller.signal.throwIfAborted();
    return answer;
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener("abort", stop);
  }
}

/** Timers hold 31 bits. */
const MAX_TIMER = 2 ** 31 - 1;

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener("abort", stop);
        resolve();
      },
      Math.min(ms, MAX_TIMER),
    );
    signal?.addEventListener("abort", stop);
  });
}

/** A failure from whatever was thrown, which may be anything. */
export function failed(error: unknown, effect?: Effect["type"]): Answer {
  try {
    const { code, status: said, statusCode, message } = Object(error) as Record<string, unknown>;
    // The AI SDK's errors have the second.
    const status = said ?? statusCode;
    // Stores speak in our codes. A model's client may use the same words for something else.
    const ofModel = effect === "summarize" || effect === "fetch" || effect === "embed";
    const ours = !ofModel || CompactionError.isInstance(error);
    return {
      type: "failed",
      code: ours && typeof code === "string" && code !== "aborted" ? code : undefined,
      message: typeof message === "string" ? message : String(error),
      status: typeof status === "number" ? status : undefined,
      overflow: ofModel && isContextOverflow(error),
    };
  } catch {
    return { type: "failed", message: "something that cannot be read was thrown; `cause` has it" };
  }
}
