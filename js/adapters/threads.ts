/** What the adapters of all SDKs do: a session for each conversation, and one retry when the provider says "too long". */

import { CompactionError } from "../errors.js";
import { checkFunction, checkOptions, invalidOption } from "../checks.js";
import { isContextOverflow } from "../overflow.js";
import { engineOptions } from "../options.js";
import { openSession } from "../open.js";
import { memoryStore } from "../store/memory.js";
import type { OfferedTools } from "./recall-tools.js";
import type { AdapterOptions, CustomFormat, Format, Message, Prepared, Session, SessionOptions, StepOptions, Summarize } from "../types.js";
import { warnOnce } from "../warnings.js";

/** What an adapter hands over of one request of the app. */
export interface AdapterRequest {
  /** The conversation without its system prompt, whole. */
  messages: readonly Message[];
  /** The text of the system prompt. */
  system?: string | undefined;
  /** Definitions of the tools, as they are sent. */
  tools?: unknown;
  /** The model that is asked. */
  model?: string | undefined;
  /** The signal of the app's call. */
  signal?: AbortSignal | undefined;
}

/** What is sent in place of a request. `goal` is what the session adds to the system prompt; empty without a goal. */
export interface Fitted {
  prepared: Prepared;
  goal: string;
  session: Session;
  /** Reports what the provider counted for this prompt, if no other was prepared since. */
  report(usage: object, model?: string): void;
}

/** So many conversations stay open: of the others, those that were used last are opened again when they go on. */
const MAX_OPEN = 100;

/** A conversation that is open. Its requests take turns: each is prepared before the next is read. */
class OpenThread {
  readonly session: Promise<Session>;
  /** The model of its first request; without one, the app asked for the session before there was any. */
  readonly model: string | undefined;
  /** Another handle on the same session took its place. */
  isReplaced = false;
  /** The system prompt of the request at hand. */
  system: string | undefined;
  /** Asks the model of the request at hand. */
  ask: Summarize | undefined;
  /** Requests under way. */
  users = 0;
  /** What the app gave last, message by message. */
  last: number[] = [];
  #turn: Promise<unknown> = Promise.resolve();
  #newest: Prepared | undefined;

  constructor(model: string | undefined, open: (thread: OpenThread) => Promise<Session>) {
    this.model = model;
    this.session = open(this);
    // Whoever waits for it is told.
    this.session.catch(() => undefined);
  }

  fit({ messages, system, tools, signal }: AdapterRequest, ask: Summarize | undefined, options: StepOptions): Promise<Fitted> {
    const work = async (): Promise<Fitted> => {
      signal?.throwIfAborted();
      const session = await this.session;
      this.system = system;
      this.ask = ask;
      const prepared = await session.step(messages, { ...options, ...(tools ? { tools } : {}), ...(signal ? { signal } : {}) });
      this.#newest = prepared;
      const report = (usage: object, model?: string) => {
        if (this.#newest !== prepared) return;
        try {
          session.context.recordUsage(usage, model ? { model } : {});
        } catch {
          // It only makes the estimate better: an answer without counts, or a closed session, is no reason to fail.
        }
      };
      return { prepared, session, report, goal: goalOf(prepared, system) };
    };
    const turn = this.#turn.then(work, work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }
}

/** The conversations of one adapter. */
export class Threads {
  readonly #by: string;
  readonly #format: Format | CustomFormat | undefined;
  readonly #options: AdapterOptions;
  /** Sessions outlive the process. */
  readonly isKept: boolean;
  readonly #named = new Map<string, OpenThread>();
  /** Oldest first. */
  readonly #open = new Set<OpenThread>();

  /** `own` are the names of options that the adapter reads itself; `by` names it in warnings. `addsFields`: the adapter adds
   *  `Prepared.request` to the requests. */
  constructor(
    by: string,
    options: AdapterOptions & Record<string, unknown>,
    own: readonly string[],
    format?: Format | CustomFormat,
    addsFields = false,
  ) {
    this.#by = by;
    this.#format = format;
    const rest: Record<string, unknown> = { ...options };
    for (const name of own) delete rest[name];
    if (rest["summarize"] === "server" && !addsFields) {
      throw invalidOption("summarize", `"server" adds fields to requests, and ${by} cannot: use compactingFetch or openSession, or give another summarize`);
    }
    checkAdapterOptions(rest);
    this.#options = { store: memoryStore(), ...rest };
    this.isKept = rest["store"] !== undefined && rest["store"] !== "memory";
  }

  /** Whether the adapter offers the recall tools. */
  get offersTools(): boolean {
    const { recall } = this.#options;
    return recall !== false && !(typeof recall === "object" && recall.tools === false);
  }

  /** What the recall tools do beside reading and searching one conversation. */
  get offered(): OfferedTools {
    const { handoff, recall } = this.#options;
    return {
      handsOff: handoff !== undefined && handoff !== null && handoff !== false,
      searchesAll: typeof recall === "object" && recall.scope === "all",
    };
  }

  /** The session of the conversation called `id`, for all that the adapter does not do. */
  async session(id: string): Promise<Session> {
    const thread = this.#of(id, { messages: [] }, this.#format, true);
    const session = await thread.session;
    if (!isClosed(session)) return session;
    await this.#leave(thread);
    return this.session(id);
  }

  /**
   * Sends what fits: `send` is called with it, and again with less when the provider says that it was too long. A failure of
   * ours is a warning, and the request goes out as the app gave it. `id`: the app's name for the conversation; without
   * one it is recognized by its messages. `ask` asks the agent's own model for summaries; without it the
   * built-in summarizer writes them.
   */
  async send<R>(
    { id, format, ask, ...request }: AdapterRequest & { id?: string | undefined; format?: Format; ask?: Summarize },
    send: (fitted: Fitted | undefined) => Promise<R>,
  ): Promise<R> {
    // A system prompt alone.
    if (request.messages.length === 0) return send(undefined);
    let thread: OpenThread | undefined;
    const fit = async (force: boolean, isAgain = false): Promise<Fitted> => {
      if (!thread) {
        thread = this.#of(id, request, format ?? this.#format, ask !== undefined);
        thread.users++;
      }
      const used = thread;
      const live = this.#options.live?.();
      return used.fit(request, ask, { force, ...(live ? { live } : {}) }).catch(async (error: unknown) => {
        if (isAgain || !CompactionError.isInstance(error) || error.code !== "closed") throw error;
        used.users--;
        await this.#leave(used);
        thread = undefined;
        return fit(force, true);
      });
    };
    try {
      const fitted = await fit(false).catch((error: unknown) => this.#failed(error, request.signal));
      try {
        return await send(fitted);
      } catch (error) {
        if (!isTooLong(error)) throw error;
        const less = await fit(true).catch((cause: unknown) => {
          request.signal?.throwIfAborted();
          throw because(error, cause);
        });
        return await send(less);
      }
    } finally {
      if (thread) thread.users--;
      this.#closeIdle();
    }
  }

  /** Closes every session. */
  async close(): Promise<void> {
    const open = [...this.#open];
    this.#open.clear();
    this.#named.clear();
    await Promise.allSettled(open.map(async ({ session }) => (await session).close()));
  }

  warn(error: unknown, what = "the request was sent as it was given"): void {
    const { code, message } = CompactionError.isInstance(error) ? error : { code: "unknown", message: String(error) };
    const said = `${what}: ${message}`;
    if (this.#options.logger) this.#options.logger("warn", `${this.#by}: ${said}`);
    else warnOnce({ code, message: said }, this.#by);
  }

  #failed(error: unknown, signal: AbortSignal | undefined): undefined {
    signal?.throwIfAborted();
    if (this.#options.strict) throw error;
    this.warn(error);
  }

  #of(id: string | undefined, request: AdapterRequest, format: Format | CustomFormat | undefined, canAsk: boolean): OpenThread {
    if (id !== undefined) {
      let named = this.#named.get(id);
      if (named && this.#learnsModel(named, request)) {
        // The app may use the handle that it has.
        named.isReplaced = true;
        named = undefined;
      }
      named ??= this.#begin(id, request, format, canAsk);
      this.#named.set(id, named);
      return this.#used(named);
    }
    const keys = request.messages.map((message) => keyOf(typeof format === "object" ? format.read(message) : message));
    const thread = this.#recognized(keys) ?? this.#begin(undefined, request, format, canAsk);
    thread.last = keys;
    return this.#used(thread);
  }

  /** The open conversation that goes on with these messages: the longest that all are the beginning of, else one of which more
   *  than half is here, as after an edit. */
  #recognized(keys: readonly number[]): OpenThread | undefined {
    let best: OpenThread | undefined;
    let most = 0;
    for (const thread of this.#open) {
      const { last, users } = thread;
      // A conversation waits for its answer: this is another one that begins alike.
      if (users > 0) continue;
      const differs = last.findIndex((key, at) => key !== keys[at]);
      const common = differs < 0 ? last.length : differs;
      const goesOn = differs < 0 || common > Math.max(last.length, keys.length) / 2;
      if (goesOn && common > 0 && common >= most) [best, most] = [thread, common];
    }
    return best;
  }

  /** The session was opened before there was a request, which now says which model it is for, and with it the window. */
  #learnsModel(thread: OpenThread, { model }: AdapterRequest): boolean {
    const isSaid = this.#options.model !== undefined || this.#options.contextWindow !== undefined;
    return !isSaid && thread.model === undefined && model !== undefined;
  }

  #begin(id: string | undefined, { model }: AdapterRequest, format: Format | CustomFormat | undefined, canAsk: boolean): OpenThread {
    const thread = new OpenThread(model, (self) => this.#session(self, id, model, format, canAsk));
    thread.session.catch(() => this.#forget(thread));
    return thread;
  }

  async #session(thread: OpenThread, id: string | undefined, model: string | undefined, format: Format | CustomFormat | undefined, canAsk: boolean) {
    const { strict: _, recall, summarize, systemPrompt, onSession, live: __, ...rest } = this.#options;
    const own: Summarize = async (request, context) => {
      if (thread.ask) return thread.ask(request, context);
      throw new CompactionError("summary_failed", "the adapter cannot ask the agent's model by itself: give summarize");
    };
    const options: SessionOptions = {
      ...rest,
      summarize: writer(summarize, canAsk ? own : "extractive"),
      systemPrompt: () => thread.system ?? (typeof systemPrompt === "function" ? systemPrompt() : (systemPrompt ?? "")),
      ...(id === undefined ? {} : { id }),
      ...(format === undefined ? {} : { format }),
      ...(typeof recall === "boolean" ? { recall } : recall?.embed ? { recall: { embed: recall.embed } } : {}),
    };
    const named = options.model === undefined && model !== undefined ? { ...options, model } : options;
    const session = await openSession(named).catch((error: unknown) => {
      // A name that only this endpoint knows: the window is assumed, and the session says so.
      if (named !== options && CompactionError.isInstance(error) && error.code === "unknown_model") return openSession(options);
      throw error;
    });
    onSession?.(session);
    return session;
  }

  #used(thread: OpenThread): OpenThread {
    this.#open.delete(thread);
    this.#open.add(thread);
    return thread;
  }

  /** The app closed or deleted the session: once that is done, the conversation has a new one. */
  async #leave(thread: OpenThread): Promise<void> {
    await (await thread.session).close();
    this.#forget(thread);
  }

  #forget(thread: OpenThread): void {
    this.#open.delete(thread);
    for (const [id, named] of this.#named) if (named === thread) this.#named.delete(id);
  }

  #closeIdle(): void {
    for (const thread of this.#open) {
      if (this.#open.size <= MAX_OPEN) return;
      if (thread.users > 0) continue;
      this.#forget(thread);
      // What is only in memory would stay there as long as the process.
      void thread.session.then((session) => session.close({ delete: !this.isKept && !thread.isReplaced })).catch(() => undefined);
    }
  }
}

/** How summaries are written where the app did not say: by the agent's own model, or the built-in summarizer if it cannot be asked. */
function writer(given: AdapterOptions["summarize"], own: Summarize | "extractive"): NonNullable<SessionOptions["summarize"]> {
  if (given === undefined) return own;
  if (typeof given === "function" || typeof given === "string" || given.call || given.provider || own === "extractive") return given;
  return { ...given, call: own };
}

/** Whether the app closed or deleted it. */
function isClosed(session: Session): boolean {
  try {
    session.context.usage();
    return false;
  } catch (error) {
    if (CompactionError.isInstance(error) && error.code === "closed") return true;
    throw error;
  }
}

/** Throws `invalid_option` for an option that no session would take. */
export function checkAdapterOptions({ strict, recall, onSession, live, summarize, systemPrompt, ...shared }: AdapterOptions): void {
  checkFunction("live", live);
  checkFunction("onSession", onSession);
  if (strict !== undefined && typeof strict !== "boolean") throw invalidOption("strict", "must be true or false");
  if (typeof recall === "object" && recall !== null) {
    checkOptions(recall, ["tools", "embed", "scope"], "recall.");
    checkFunction("recall.embed", recall.embed);
  } else if (recall !== undefined && typeof recall !== "boolean") throw invalidOption("recall", "must be true, false or { tools, embed }");
  if (systemPrompt !== undefined && typeof systemPrompt !== "string") checkFunction("systemPrompt", systemPrompt);
  for (const name of ["id", "parent"]) {
    if (name in shared) throw invalidOption(name, "is the conversation's own: the adapter opens a session for each");
  }
  engineOptions({ ...shared, ...(summarize === undefined ? {} : { summarize }) }, "openSession");
}

/** What the session added to the system prompt. */
function goalOf({ system = "" }: Prepared, given = ""): string {
  return system.startsWith(given) ? system.slice(given.length).trim() : "";
}

/** Whether the provider says that the prompt was too long. */
export function isTooLong(error: unknown): boolean {
  try {
    return isContextOverflow(error);
  } catch {
    // The engine did not start, which was said already.
    return false;
  }
}

/** The provider's error, with ours as the cause of all. */
function because(error: unknown, cause: unknown): unknown {
  let first = error;
  while (first instanceof Error && first.cause instanceof Error) first = first.cause;
  if (first instanceof Error && first.cause === undefined) Object.defineProperty(first, "cause", { value: cause, configurable: true });
  return error;
}

/** What moves to the newest message, and is no part of what is said. */
const HINTS = new Set(["cache_control", "cacheControl", "providerOptions"]);

/** A number for what a message says. */
export function keyOf(message: Message): number {
  const text = JSON.stringify(message, (name, value: unknown) => {
    if (HINTS.has(name)) return undefined;
    return ArrayBuffer.isView(value) ? value.byteLength : value;
  });
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash;
}
