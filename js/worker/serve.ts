/** The thread of the engine: performs what pages ask for. Each page has its own handles, and may ask for no others. */

import { driven, run, type Begin } from "../driver.js";
import type { Answer, Effect, Host } from "../effects.js";
import { call, isOutdated, started, type Engine } from "../engine.js";
import { checkOptions, invalidOption } from "../checks.js";
import { CompactionError } from "../errors.js";
import { BUILD } from "../generated/build.js";
import { otherBuild } from "../module.js";
import { Mutex, Turn } from "../mutex.js";
import { loadStage } from "../stages.js";
import { choosePlace, type StorePlace } from "../store/place.js";
import { bringTable } from "../table.js";
import type { Format, Store } from "../types.js";
import type { ServeOptions } from "../types/worker.js";
import type { Session as Handle } from "../wasm/core.js";
import { channelOf, holdLock, watchLock, type Channel, type Port } from "./channel.js";
import { ABORTED, MIRRORED, nameOf, thrownOf, type At, type Calls, type Down, type Ended, type How, type Mirror, type Up } from "./wire.js";

/** All of which `session.recall.tools` may be asked at once. */
const FORMATS: readonly Format[] = ["openai-chat", "anthropic", "openai-responses", "gemini", "ai-sdk", "react"];

const SHOWN: readonly At[] = [
  ...MIRRORED.map((name) => ({ path: [name], args: [] })),
  ...FORMATS.map((format) => ({ path: ["tools"], args: [format] })),
];

/** An effect that has no answer. */
const TOLD: readonly Effect["type"][] = ["progress", "log", "notify", "writeWatermark"];

/** What a page that is gone answers. */
const GONE: Answer = { type: "failed", code: "aborted", message: "the page is gone" };

/** A call that is under way. */
interface Running {
  readonly abort: AbortController;
  /** Effects that the page performs. */
  readonly waiting: Map<number, (answer: Answer) => void>;
  /** Waits after which the session is to be taken again. */
  readonly back: Map<number, () => void>;
}

interface Kept extends StorePlace {
  durable: Store["caps"]["durable"];
  /** Ends what it tells. */
  readonly ends: ((() => void) | undefined)[];
}

/** A handle, and what the page was told of it, by name. */
interface Shown {
  readonly handle: Handle;
  readonly store: number | undefined;
  readonly turns: Shared | undefined;
  readonly told: Map<string, string | undefined>;
}

/** The calls of all pages on one session, of which one works on it at a time: none loses a race. */
interface Shared {
  readonly key: string;
  readonly mutex: Mutex;
  /** The handle that worked on it last. */
  last?: Handle;
  users: number;
}

const shared = new Map<string, Shared>();
const stores = new WeakMap<Store, string>();

/** Those of a session, in whatever page it is open. */
function turnsOf(store: Store, id: string): Shared {
  const name = store.name === undefined ? (stores.get(store) ?? crypto.randomUUID()) : `database ${store.name}`;
  stores.set(store, name);
  const key = JSON.stringify([name, id]);
  const turns = shared.get(key) ?? { key, mutex: new Mutex(), users: 0 };
  shared.set(key, turns);
  turns.users++;
  return turns;
}

/** The one call that others need not wait for: it only reads what is written once. */
const BESIDE = "verify";

/** What one page has here. */
class Client {
  readonly #channel: Channel;
  readonly #options: ServeOptions;
  readonly #handles = new Map<number, Shown>();
  readonly #stores = new Map<number, Kept>();
  readonly #running = new Map<number, Running>();
  readonly #calls: { [Name in keyof Calls]: (of: Calls[Name]["of"], n: number) => Promise<Calls[Name]["to"]> | Calls[Name]["to"] };
  #last = 0;
  #isGone = false;

  constructor(channel: Channel, options: ServeOptions) {
    this.#channel = channel;
    this.#options = options;
    this.#calls = {
      hello: (of) => this.#hello(of),
      ready: async ({ values }) => {
        await started();
        await bringTable(values);
        return run((engine) => engine.assumesWindow(values));
      },
      place: (of) => this.#place(of),
      store: async ({ nth, method }) => {
        const kept = this.#stores.get(nth);
        return method === "close" ? this.#left(nth) : kept?.store[method]?.();
      },
      drive: async ({ on, at, how }, n) => {
        const { turns, handle } = this.#handles.get(on) ?? {};
        if (!turns || !handle || at.path[0] === BESIDE) return this.#ended(n, (engine) => this.#called(engine, on, at), how);
        const turn = new Turn(turns.mutex, await turns.mutex.acquire());
        try {
          // What another one wrote is read before, and not after a commit that came second. If that fails, so does the call.
          if (turns.last && turns.last !== handle) await this.#ended(n, () => handle.catchUp(), how).catch(() => undefined);
          turns.last = handle;
          return await this.#ended(n, (engine) => this.#called(engine, on, at), how, turn);
        } finally {
          await turn.end();
        }
      },
      ask: ({ on, at, how }, n) => this.#ended(n, (engine) => this.#called(engine, on, at), how),
      stage: ({ stage }) => loadStage(stage),
      bodies: ({ on, seqs }) => {
        const { handle } = this.#shown(on);
        return seqs.map((seq) => run(() => handle.body(seq)));
      },
      end: ({ on }) => this.#end(on),
    };
    channel.hear((message: Up) => this.#hear(message));
  }

  #post(message: Down): void {
    this.#channel.post(message);
  }

  #hear(message: Up): void {
    if ("call" in message) {
      void this.#answer(message);
      return;
    }
    const running = this.#running.get(message.n);
    if (!running) return;
    if ("answer" in message) {
      running.waiting.get(message.to)?.(message.answer);
      running.waiting.delete(message.to);
    } else if ("back" in message) running.back.get(message.back)?.();
    else running.abort.abort(ABORTED);
  }

  async #answer({ n, call: name, of }: Extract<Up, { call: unknown }>): Promise<void> {
    const { on } = of as { on?: number };
    try {
      const value = await this.#calls[name](of as never, n);
      const { handle } = Object((value as Ended | undefined)?.done) as { handle?: unknown };
      this.#post({ n, value, mirror: this.#mirror([on, handle]) });
    } catch (error) {
      this.#post({ n, thrown: thrownOf(error), mirror: this.#mirror([on]) });
    } finally {
      this.#running.delete(n);
    }
  }

  async #hello({ build, lock }: Calls["hello"]["of"]): Promise<Calls["hello"]["to"]> {
    if (build !== BUILD) throw otherBuild(new Error("the worker's script is of another release"));
    await started();
    // Of a page that is gone nothing stays.
    watchLock(lock, () => this.#gone());
    return { build: BUILD, lock: await holdLock() };
  }

  async #place(of: Calls["place"]["of"]): Promise<Calls["place"]["to"]> {
    const given = this.#options.store;
    const place = await choosePlace(given && of.store === undefined ? { ...of, store: given } : of);
    const nth = ++this.#last;
    const { store, own, warning } = place;
    const changes = store.changes?.((sid, ver) => {
      const isNews = [...this.#handles.values()].some((of) => of.store === nth && run(() => of.handle.isNews(sid, ver)));
      if (isNews) this.#post({ store: nth, changes: [sid, ver] });
    });
    const notices = store.notices?.((notice) => this.#post({ store: nth, notice }));
    this.#stores.set(nth, { ...place, durable: store.caps.durable, ends: [changes, notices] });
    const [asksForLoss, purges] = [store.dataLoss !== undefined, store.purge !== undefined];
    return { nth, caps: { ...store.caps }, name: store.name, own, asksForLoss, purges, warning };
  }

  /** The page is gone: what is under way ends where it would ask it. */
  #gone(): void {
    this.#isGone = true;
    for (const { abort, waiting, back } of this.#running.values()) {
      abort.abort(ABORTED);
      for (const answered of waiting.values()) answered(GONE);
      for (const isBack of back.values()) isBack();
    }
    for (const on of this.#handles.keys()) this.#end(on);
    for (const nth of this.#stores.keys()) void this.#left(nth);
  }

  /** No session uses a store any more. */
  async #left(nth: number): Promise<void> {
    const kept = this.#stores.get(nth);
    this.#stores.delete(nth);
    for (const end of kept?.ends ?? []) end?.();
    if (kept?.own) await kept.store.close?.();
  }

  /** The session of a handle. */
  #shown(on: number): Shown {
    const shown = this.#handles.get(on);
    if (!shown) throw new CompactionError("closed", "the session was closed; open it again");
    return shown;
  }

  /** What the engine answers: `on` is the number of a handle, or 0 for the engine. */
  #called(engine: Engine, on: number, { path, args }: At): unknown {
    let of: unknown = on === 0 ? engine : this.#shown(on).handle;
    const names = [...path];
    const last = names.pop() ?? "";
    for (const name of names) of = (of as Record<string, unknown>)[name];
    return (of as Record<string, (...args: unknown[]) => unknown>)[last]?.(...args);
  }

  async #ended(n: number, begin: Begin, how: How, turn?: Turn): Promise<Ended> {
    const running: Running = { abort: new AbortController(), waiting: new Map(), back: new Map() };
    // It may have been aborted while something else was done first.
    if (this.#running.get(n)?.abort.signal.aborted) running.abort.abort(ABORTED);
    this.#running.set(n, running);
    const thrown = new Map<number, unknown>();
    const { done, error } = await driven(begin, this.#host(n, running, how, turn), thrown);
    return { done: this.#opened(done, how.store), error, thrown: Array.from(thrown, ([effect, thrown]) => [effect, thrownOf(thrown)]) };
  }

  /** A session that was opened is named by a number. */
  #opened(done: unknown, store: number | undefined): unknown {
    const { handle, id } = Object(done) as { handle?: unknown; id: string };
    if (!isHandle(handle)) return done;
    const on = ++this.#last;
    const kept = store === undefined ? undefined : this.#stores.get(store);
    // A store of the page is that page's alone.
    this.#handles.set(on, { handle, store, turns: kept && turnsOf(kept.store, id), told: new Map() });
    return { ...Object(done), handle: on };
  }

  #host(n: number, { abort, waiting, back }: Running, { store, storeTimeoutMs, away, parks }: How, turn: Turn | undefined): Host {
    const kept = store === undefined ? undefined : this.#stores.get(store);
    let last = 0;
    return {
      ...(kept && { store: kept.store }),
      storeTimeoutMs,
      signal: abort.signal,
      now: () => Date.now(),
      id: () => crypto.randomUUID(),
      message: () => {
        throw new CompactionError("poisoned", "no message is counted here");
      },
      away: (effect) => {
        if (!away.includes(effect.type)) return undefined;
        if (this.#isGone) return Promise.resolve(GONE);
        this.#post({ n, effect });
        if (TOLD.includes(effect.type)) return true;
        const answer = new Promise<Answer>((answered) => waiting.set(effect.id, answered));
        return effect.parks && turn ? turn.park(() => answer) : answer;
      },
      ...(parks && {
        park: (work) => {
          const park = ++last;
          // The page takes its session again first, as it does for every call.
          const waited = async () => {
            this.#post({ n, park });
            try {
              return await work();
            } finally {
              const isBack = new Promise<void>((resolve) => back.set(park, resolve));
              this.#post({ n, back: park });
              await isBack;
            }
          };
          return turn ? turn.park(waited) : waited();
        },
      }),
    };
  }

  #end(on: number): void {
    const shown = this.#handles.get(on);
    this.#handles.delete(on);
    if (!shown) return;
    const { handle, turns } = shown;
    if (turns && --turns.users === 0) shared.delete(turns.key);
    call(() => {
      handle.close();
      handle.free();
    });
  }

  /** What differs from what the page was told last of these handles. */
  #mirror(of: unknown[]): Mirror {
    const mirror: Mirror = { handles: [], stores: [] };
    for (const [on, { handle, told }] of this.#handles) {
      if (!of.includes(on)) continue;
      const known: Record<string, string | undefined> = {};
      for (const at of SHOWN) {
        const name = nameOf(at);
        const text = shownBy(handle, at);
        if (told.has(name) && told.get(name) === text) continue;
        told.set(name, text);
        known[name] = text;
      }
      if (Object.keys(known).length > 0) mirror.handles.push([on, known]);
    }
    for (const [nth, kept] of this.#stores) {
      const { durable } = kept.store.caps;
      if (durable !== kept.durable) mirror.stores.push([nth, (kept.durable = durable)]);
    }
    return mirror;
  }
}

/** Each instance of the engine has a class of its own. */
function isHandle(value: unknown): value is Handle {
  return typeof value === "object" && value !== null && "isNews" in value;
}

/** JSON of what is known at once; nothing of a session that was deleted. */
function shownBy(handle: Handle, { path: [name = ""], args }: At): string | undefined {
  try {
    if (name === "isOutdated") return JSON.stringify(isOutdated(handle));
    return JSON.stringify(run(() => (handle as unknown as Record<string, (...args: unknown[]) => unknown>)[name]?.(...args)));
  } catch {
    return undefined;
  }
}

/** Of a shared worker, of another worker, or of Node's. */
interface Scope {
  process?: { getBuiltinModule?(name: "worker_threads"): { parentPort: Port | null } };
  onconnect?: unknown;
  WorkerGlobalScope?: unknown;
  addEventListener(event: "connect", listener: (event: { ports: Port[] }) => void): void;
}

/**
 * Runs the engine in this worker for the sessions that pages open with `openSession({ worker })` of `context-compactor/worker`. Call
 * it once, when the script of the worker begins. Throws `invalid_option` where it is called in no worker and without `port`.
 */
export function serve(options: ServeOptions = {}): void {
  checkOptions(options, ["store", "port"]);
  const scope = globalThis as unknown as Scope & Port;
  const port = (options.port as Port | undefined) ?? scope.process?.getBuiltinModule?.("worker_threads")?.parentPort;
  if (port) void new Client(channelOf(port), options);
  else if ("onconnect" in scope) scope.addEventListener("connect", ({ ports }) => ports.forEach((port) => new Client(channelOf(port), options)));
  else if (scope.WorkerGlobalScope !== undefined) void new Client(channelOf(scope), options);
  else throw invalidOption("port", "is needed where there is no worker: call serve in the script of a Worker or SharedWorker");
}
