/** The page's side of a thread with an engine: calls, and the effects that are performed here. */

import { Deadline } from "../awake.js";
import { atOnce, awaited, perform, tell, toError, type Answer, type Effect, type Host } from "../effects.js";
import { CompactionError } from "../errors.js";
import { BUILD } from "../generated/build.js";
import { StoreCalls } from "../store-calls.js";
import { channelTo, holdLock, watchLock, type Channel } from "./channel.js";
import type { EngineThread } from "../types/worker.js";
import { errorOf, type At, type Calls, type Down, type Mirror, type Up } from "./wire.js";
import type { StoreThere } from "./store.js";

/** How long its script may take to answer first, in ms. */
const START_MS = 30_000;

/** A call that is under way. */
interface Running {
  resolve(value: unknown): void;
  reject(error: unknown): void;
  /** Of an operation. */
  work?: Work;
  /** Effects under way in the page: until they end, the worker waits for it. */
  here: number;
}

/** What an operation is performed with here. */
interface Work {
  readonly host: Host;
  /** Aborted with the signal of the call, and when the thread ends. */
  readonly stop: AbortController;
  readonly thrown: Map<number, unknown>;
  readonly store: StoreCalls;
  /** Waits during which others may work on the session: how each ends, and when the session is taken again. */
  readonly parks: Map<number, { end(): void; ended: Promise<void> }>;
  /** Effects that came, and what wakes who performs them. */
  readonly inbox: Effect[];
  wake(): void;
}

/** Effects that only the page can perform. */
const APPS: readonly Effect["type"][] = ["notify", "progress", "appended", "summarize", "embed", "readFile", "count", "pin", "redact", "readWatermark", "writeWatermark"];
const OF_STORE: readonly Effect["type"][] = ["read", "scan", "commit"];

export class Thread {
  readonly #channel: Channel;
  readonly #running = new Map<number, Running>();
  #last = 0;
  /** The error of every later call. */
  #ended: CompactionError | undefined;
  #isStarted = false;
  readonly #isOwn: boolean;
  /** What is known at once, by handle and name, as JSON. */
  readonly #known = new Map<number, Map<string, string>>();
  readonly stores = new Map<number, StoreThere>();
  readonly starting: Promise<void>;

  /** `isOwn`: the package started it, and ends it when it has failed. */
  constructor(thread: EngineThread, isOwn = false) {
    this.#isOwn = isOwn;
    this.#channel = channelTo(thread);
    this.#channel.hear((message: Down) => this.#hear(message));
    this.#channel.watch(
      (cause) => this.#isStarted || this.#end(unstarted(cause)),
      (cause) => this.#end(this.#isStarted ? poisoned(cause) : unstarted(cause)),
    );
    this.starting = this.#start();
    // Whoever waits for it is told.
    this.starting.catch(() => {});
  }

  get hasEnded(): boolean {
    return this.#ended !== undefined;
  }

  /** Throws when the thread has ended. */
  check(): void {
    if (this.#ended) throw this.#ended;
  }

  async #start(): Promise<void> {
    const cause = new Error(`it did not answer within ${START_MS} ms: does its script call serve() of "context-compactor/worker-thread"?`);
    const deadline = new Deadline(START_MS, () => this.#end(unstarted(cause)));
    try {
      const { lock } = await this.call("hello", { build: BUILD, lock: await holdLock() });
      this.#isStarted = true;
      watchLock(lock, () => this.#end(poisoned(new Error("the worker was terminated"))));
    } catch (error) {
      this.#end(error as CompactionError);
      throw error;
    } finally {
      deadline.stop();
    }
  }

  /** Ends what is under way, and every later call. */
  #end(error: CompactionError): void {
    if (this.#ended) return;
    this.#ended = error;
    const running = [...this.#running.values()];
    this.#running.clear();
    for (const { reject, work } of running) {
      for (const { end } of work?.parks.values() ?? []) end();
      reject(error);
      work?.stop.abort(error);
    }
    this.#hold();
    if (this.#isOwn) this.#channel.end();
  }

  call<Name extends keyof Calls>(call: Name, of: Calls[Name]["of"], work?: Work, transfer?: ArrayBuffer[]): Promise<Calls[Name]["to"]> {
    if (this.#ended) return Promise.reject(this.#ended);
    const n = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#running.set(n, { resolve: resolve as (value: unknown) => void, reject, here: 0, ...(work && { work }) });
      this.#hold();
      try {
        this.#post({ n, call, of } as Up, transfer);
      } catch (cause) {
        this.#running.delete(n);
        reject(new CompactionError("unsupported_value", "a value cannot be sent to the worker: use plain data. `cause` says which", { cause }));
      }
    });
  }

  #post(message: Up, transfer?: ArrayBuffer[]): void {
    this.#channel.post(message, transfer);
  }

  /** Runs what `at` records of a handle, or of the engine (0). */
  async run<T>(call: "drive" | "ask", on: number, at: At, host: Host, seal?: (thrown: Map<number, unknown>) => void): Promise<T> {
    const { signal, storeTimeoutMs } = host;
    const there = [...this.stores.values()].find(({ store }) => store === host.store);
    const thrown = new Map<number, unknown>();
    const stop = new AbortController();
    const work: Work = { host: { ...host, signal: stop.signal }, stop, thrown, store: new StoreCalls(host.store, storeTimeoutMs), parks: new Map(), inbox: [], wake: () => {} };
    const away = [...APPS];
    if (host.logger) away.push("log");
    if (host.fetch) away.push("fetch");
    if (host.isTimed) away.push("now", "newId");
    if (!there) away.push(...OF_STORE);
    const n = this.#last + 1;
    const abort = () => {
      stop.abort(signal?.reason);
      if (this.#running.has(n)) this.#post({ n, abort: true });
    };
    const how = { store: there?.nth, storeTimeoutMs, away, parks: host.park !== undefined };
    const ending = this.call(call, { on, at, how }, work, buffersOf(at));
    // Here and not where they are heard: whatever follows the app's asynchronous calls, as spans do, leads from this one to its
    // functions.
    const performing = async () => {
      while (!hasEnded) {
        this.#performAll(n, work);
        await new Promise<void>((resolve) => (work.wake = resolve));
      }
    };
    let hasEnded = false;
    void performing();
    signal?.addEventListener("abort", abort);
    if (signal?.aborted) abort();
    try {
      const { done, error, thrown: there } = await ending;
      for (const [effect, what] of there) thrown.set(effect, errorOf(what, signal?.reason));
      if (error) throw toError(error, thrown);
      seal?.(thrown);
      return done as T;
    } finally {
      this.#performAll(n, work);
      hasEnded = true;
      work.wake();
      signal?.removeEventListener("abort", abort);
    }
  }

  #hear(message: Down): void {
    if ("store" in message) {
      this.stores.get(message.store)?.hear(message);
      return;
    }
    const running = this.#running.get(message.n);
    if ("mirror" in message) this.#show(message.mirror);
    if (!running) return;
    const { work } = running;
    if ("effect" in message) {
      work?.inbox.push(message.effect);
      work?.wake();
    } else if ("park" in message) park(message.park, work as Work);
    else if ("back" in message) void this.#back(message.n, message.back, work as Work);
    else {
      this.#running.delete(message.n);
      this.#hold();
      if ("value" in message) running.resolve(message.value);
      else {
        const error = errorOf(message.thrown, work?.host.signal?.reason);
        running.reject(error);
        if (CompactionError.isInstance(error) && error.code === "poisoned") this.#end(error);
      }
    }
  }

  #performAll(n: number, work: Work): void {
    for (const effect of work.inbox.splice(0)) void this.#perform(n, effect, work);
  }

  async #perform(n: number, effect: Effect, { host, thrown, store }: Work): Promise<void> {
    const running = this.#running.get(n);
    if (tell(effect, host) || !running) return;
    let answer: Answer | undefined = atOnce(effect, host, thrown);
    if (!answer) {
      running.here++;
      this.#hold();
      answer = await perform(effect, host, () => awaited(effect, host, store), thrown);
      running.here--;
      this.#hold();
    }
    if (this.#running.has(n)) this.#post({ n, answer, to: effect.id });
  }

  /** A process of Node stays while the worker works for it. */
  #hold(): void {
    this.#channel.hold(!this.#ended && [...this.#running.values()].some(({ here }) => here === 0));
  }

  async #back(n: number, back: number, { parks }: Work): Promise<void> {
    const parked = parks.get(back);
    parks.delete(back);
    parked?.end();
    await parked?.ended;
    if (this.#running.has(n)) this.#post({ n, back });
  }

  #show({ handles, stores }: Mirror): void {
    for (const [on, known] of handles) {
      const all = this.#known.get(on) ?? new Map<string, string>();
      this.#known.set(on, all);
      for (const [name, text] of Object.entries(known)) {
        if (text === undefined) all.delete(name);
        else all.set(name, text);
      }
    }
    for (const [nth, durable] of stores) this.stores.get(nth)?.set(durable);
  }

  /** What is known of a handle by this name, as an object of its own. */
  known(on: number, name: string): unknown {
    this.check();
    const text = this.#known.get(on)?.get(name);
    return text === undefined ? undefined : JSON.parse(text);
  }

  /** Forgets a handle. */
  forget(on: number): void {
    this.#known.delete(on);
    if (!this.#ended) void this.call("end", { on }).catch(() => {});
  }
}

/** Lets others work on the session until this wait ends. */
function park(nth: number, { host, parks }: Work): void {
  let end = () => {};
  const waiting = new Promise<void>((resolve) => (end = resolve));
  const ended = host.park ? host.park(() => waiting) : waiting;
  // A session that is closed meanwhile says so to its own call.
  parks.set(nth, { end, ended: ended.catch(() => {}) });
}

/** Buffers of messages: they are moved, for nobody here reads them again. */
function buffersOf({ args }: At): ArrayBuffer[] {
  return args.flatMap((argument) => (ArrayBuffer.isView(argument) ? [argument.buffer as ArrayBuffer] : []));
}

function unstarted(cause: unknown): CompactionError {
  if (CompactionError.isInstance(cause)) return cause;
  const said = String((cause as Error | undefined)?.message ?? cause);
  const message = `The worker could not be started: ${said}. Pass one of your own: openSession({ worker }), whose script calls serve() of "context-compactor/worker-thread"`;
  return new CompactionError("stage_unavailable", message, { stage: "core", cause });
}

function poisoned(cause: unknown): CompactionError {
  const message = "The worker with the engine has ended. Nothing that was stored is affected: open the session again, which starts a new one. `cause` has the failure.";
  return new CompactionError("poisoned", message, { cause });
}

/** The thread of the app's worker, or of the one that the package brings. */
const threads = new WeakMap<object, Thread>();

export function threadOf(worker: EngineThread): Thread {
  const known = threads.get(worker);
  if (known) return known;
  const thread = new Thread(worker);
  threads.set(worker, thread);
  return thread;
}

/** The one that the package brings, while it runs. */
let own: Thread | undefined;

export function ownThread(start: () => EngineThread): Thread {
  if (own && !own.hasEnded) return own;
  try {
    own = new Thread(start(), true);
  } catch (cause) {
    throw unstarted(cause);
  }
  return own;
}
