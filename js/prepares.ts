/** What to send now, and summaries that it does not wait for. */

import { systemPromptOf } from "./arguments.js";
import { Background } from "./background.js";
import { checkOptions, checkSignal, invalidOption } from "./checks.js";
import type { Packed } from "./codec.js";
import { checkAborted, type Host, type Placed } from "./effects.js";
import { CompactionError } from "./errors.js";
import { lazily } from "./lazily.js";
import type { MessageCache, Sent } from "./message-cache.js";
import type { Compacting } from "./nouns/core.js";
import { toResult, type EngineResult } from "./options.js";
import { asSent } from "./replies.js";
import type { Fixed } from "./seat.js";
import { after, isPromise } from "./store-calls.js";
import type { Turns } from "./turns.js";
import type { ContextUsage, Edit, MaybePromise, Message, PrepareOptions, Prepared, SessionOptions } from "./types.js";
import type { Warning } from "./warnings.js";
import type { Session as Handle } from "./wasm/core.js";

/** What to send, as the engine reports it. */
interface EnginePrepared extends Sent {
  usage: ContextUsage;
  edits: Edit[];
  stillExceedsThreshold: boolean;
  stored: boolean;
  result?: EngineResult;
  putOff?: true;
  goal?: string;
  request?: string;
}

/** What it needs of the session. `seal` receives what the app's functions threw, by the number of the effect. */
interface Needs<M> {
  drive<T>(
    compacting: Omit<Compacting, "session">,
    begin: (handle: Handle) => unknown,
    host: Host,
    seal: (thrown: Map<number, unknown>) => void,
  ): Promise<T>;
  /** Sees to it that the engine takes no more memory than it needs. */
  renew(): MaybePromise<void>;
  warn(warning: Warning): void;
  /** Appends messages, as a call of its own. */
  append(messages: readonly M[]): Promise<void>;
  /** No other call changes the context, and nothing watches what is between an append and a prepare. */
  isFree(): boolean;
  pack(messages: readonly M[]): MaybePromise<Packed>;
  /** Messages are in the log. */
  placed(messages: readonly M[], placed: Placed): MaybePromise<void>;
}

const KNOWN = ["append", "signal", "tools", "force", "live"];

/** What is sent differs from what is stored, and will be lost with the process. */
function changedAt(index: number): Warning {
  const message = `message ${index} was changed after it was appended: the prompt has it as it is now, and the log as it was. \
Append a message when it is complete; to store this one as it is, call session.snapshots.rewind(${index}) and append it again`;
  return { code: "diverged", message };
}

/** Throws unless these are options of `prepare`. */
export function checkPrepare(options: PrepareOptions<unknown>): void {
  if (Array.isArray(options)) {
    throw invalidOption("", "must be an object, and an array was given: append the messages, then prepare(), or pass { append: messages }");
  }
  checkOptions(options, KNOWN);
  const { append, force, tools, live, signal } = options;
  checkSignal(signal);
  if (append !== undefined && !Array.isArray(append)) throw invalidOption("append", "must be an array of messages");
  if (force !== undefined && typeof force !== "boolean") throw invalidOption("force", "must be true or false");
  if (live !== undefined && typeof live !== "string") throw invalidOption("live", "must be a text");
  if (tools !== undefined && (typeof tools !== "object" || tools === null)) {
    throw invalidOption("tools", "must be what your provider is sent as tools: a list of definitions, and not a text of it");
  }
}

/** What goes with the messages. */
interface Around {
  prompt: string | undefined;
  fixed: Fixed;
}

function triggerOf(force: boolean): Compacting["trigger"] {
  return force ? "overflow" : "auto";
}

/** The error of a call whose messages were stored before it failed. */
function afterAppending(error: unknown): unknown {
  if (!CompactionError.isInstance(error)) return error;
  const { code, message, index, field, reason, stage, retryable, cause, stack } = error;
  const details = { index, field, reason, stage, retryable, appended: true as const };
  const made = new CompactionError(code, message, cause === undefined ? details : { ...details, cause });
  return Object.defineProperty(made, "stack", { value: stack, configurable: true, writable: true });
}

export class Prepares<M extends Message> {
  /** Definitions of the tools of the last one. */
  tools = "";
  /** Its live facts in their fence. */
  live = "";
  readonly #options: SessionOptions;
  readonly #turns: Turns;
  readonly #cache: MessageCache<M>;
  readonly #needs: Needs<M>;
  readonly #background: Background;

  constructor(options: SessionOptions, turns: Turns, cache: MessageCache<M>, needs: Needs<M>) {
    this.#options = options;
    this.#turns = turns;
    this.#cache = cache;
    this.#needs = needs;
    this.#background = new Background(turns, ({ code, message }) =>
      needs.warn({ code, message: `the summary in the background failed: ${message}` }),
    );
  }

  async prepare(given: PrepareOptions<M>): Promise<Prepared<M>> {
    checkPrepare(given);
    const { append = [], ...options } = given;
    if (append.length > 0) return this.#appended([...append], options);
    const { force = false } = options;
    if (!force && this.#background.isRunning) {
      const beside = await this.#turns.shared(options, (host) => {
        const around = this.#around(options);
        return this.#prepared("auto", host, () => around, (handle) => handle.prepareBeside(around.fixed, this.#cache.sent));
      });
      if (beside) return beside;
    }
    const prepared = await this.#turns.exclusive(options, KNOWN, async (host) => {
      const renewing = this.#needs.renew();
      if (renewing) await renewing;
      const around = this.#around(options);
      return this.#prepared(triggerOf(force), host, () => around, (handle) => handle.prepare(force, around.fixed, this.#cache.sent));
    });
    return prepared as Prepared<M>;
  }

  /** Appends, then prepares: in one operation, unless another call has the turn. Messages do not wait for a summary. */
  async #appended(messages: readonly M[], options: Omit<PrepareOptions, "append">): Promise<Prepared<M>> {
    let isStored = false;
    const stored = () => (isStored = true);
    try {
      if (this.#background.isRunning || !this.#needs.isFree()) {
        await this.#needs.append(messages);
        stored();
        return await this.prepare(options);
      }
      return await this.#turns.exclusive(options, KNOWN, (host) => this.#together(messages, options, host, stored), false);
    } catch (error) {
      throw isStored ? afterAppending(error) : error;
    }
  }

  async #together(messages: readonly M[], options: Omit<PrepareOptions, "append">, host: Host, stored: () => void): Promise<Prepared<M>> {
    const renewing = this.#needs.renew();
    if (renewing) await renewing;
    const packing = this.#needs.pack(messages);
    const packed = isPromise(packing) ? await packing : packing;
    const { bytes, ends } = packed;
    const { force = false } = options;
    const { signal } = host;
    // Messages are stored all the same where the call is aborted.
    const stop = new AbortController();
    const abort = () => stop.abort(signal?.reason);
    let around: Around = { prompt: undefined, fixed: [] };
    let refused: { error: unknown } | undefined;
    const fixed = () => {
      if (signal?.aborted) abort();
      signal?.addEventListener("abort", abort);
      try {
        checkAborted(signal);
        return (around = this.#around(options)).fixed;
      } catch (error) {
        refused = { error };
        throw error;
      }
    };
    const appended = (placed: Placed) => {
      stored();
      return after(this.#needs.placed(messages, placed), fixed);
    };
    this.#cache.coming(messages, packed);
    try {
      const prepared = await this.#prepared(triggerOf(force), { ...host, signal: stop.signal, appended }, () => around, (handle) =>
        handle.appendAndPrepare(bytes, ends, force, this.#cache.sent),
      );
      return prepared as Prepared<M>;
    } catch (error) {
      throw refused ? refused.error : error;
    } finally {
      signal?.removeEventListener("abort", abort);
      this.#cache.incoming = [];
    }
  }

  /** Ends a summary that nobody waits for. */
  stop(): void {
    this.#background.stop();
  }

  /** What goes with the messages. */
  #around({ tools, live = "" }: Omit<PrepareOptions, "append">): Around {
    const prompt = systemPromptOf(this.#options);
    return { prompt, fixed: [prompt ?? "", (this.tools = asSent("tools", tools)), live] };
  }

  /** What to send; nothing when the engine says that something else must end first. */
  async #prepared(
    trigger: Compacting["trigger"],
    host: Host,
    around: () => Around,
    begin: (handle: Handle) => unknown,
  ): Promise<Prepared<M> | undefined> {
    const { answer, thrown } = await this.#drive<EnginePrepared | null>({ trigger }, begin, host);
    if (!answer) return undefined;
    const { usage, edits, stillExceedsThreshold, stored, result, putOff, goal, request, ...sent } = answer;
    this.live = sent.live?.text ?? "";
    const coming = this.#cache.lacking(sent.items);
    if (coming) await coming;
    const { prompt } = around();
    const messages = this.#cache.prepared(sent);
    for (const index of this.#cache.changed()) this.#needs.warn(changedAt(index));
    const system = goal === undefined ? prompt : [prompt, goal].filter(Boolean).join("\n\n");
    const late = this.#background.take(messages);
    const made = result ? toResult(result, messages(), thrown) : late;
    if (putOff) this.#background.begin((host) => this.#summarise(host));
    const prepared: Prepared<M> = {
      messages: [],
      usage,
      edits,
      stillExceedsThreshold,
      stored,
      ...(system === undefined ? {} : { system }),
      ...(made ? { result: made } : {}),
      ...(this.#background.isRunning ? { pending: true } : {}),
      ...(request === undefined ? {} : { request: JSON.parse(request) as Record<string, unknown> }),
    };
    return lazily(prepared, "messages", messages);
  }

  async #summarise(host: Host) {
    const { answer, thrown } = await this.#drive<{ result?: EngineResult }>({ trigger: "auto", isLate: true }, (handle) => handle.summariseLater(), host);
    return { ...answer, thrown };
  }

  async #drive<T>(compacting: Omit<Compacting, "session">, begin: (handle: Handle) => unknown, host: Host) {
    let thrown = new Map<number, unknown>();
    const answer = await this.#needs.drive<T>(compacting, begin, host, (causes) => (thrown = causes));
    return { answer, thrown };
  }
}
