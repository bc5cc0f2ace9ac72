/** Sessions: the engine's handle, the app's own objects, and the order of calls. */

import { asRecord } from "./boundaries.js";
import { checkObject, checkOptions, checkSignal, checkWhole, invalidOption, plainOptions } from "./checks.js";
import { checkHistory, decode, encode, isWellFormed, pack } from "./codec.js";
import { checkAborted, drive, driveSync, run, withEither, type Host, type Notice } from "./driver.js";
import { call } from "./engine.js";
import { CompactionError } from "./errors.js";
import { factsFor } from "./models.js";
import { Mutex } from "./mutex.js";
import { engineOptions, hostOf, toResult, withFacts, type EngineResult, type Item } from "./options.js";
import { activeContext, type Active } from "./state.js";
import { indexedDbStore } from "./store/indexeddb.js";
import { byAge } from "./sessions.js";
import { memoryStore } from "./store/memory.js";
import { historyOf, streamOf, textOf, type Logged } from "./transcript.js";
import type {
  ActiveContext,
  CompactionResult,
  ContextUsage,
  Edit,
  CheckpointRecord,
  Format,
  Goal,
  LedgerEntry,
  ReactStats,
  Trajectory,
  Message,
  NewMessageAmong,
  PinProposal,
  Plan,
  Prepared,
  RecallTools,
  SearchHit,
  Session,
  SessionEvents,
  SessionInfo,
  SessionMetadata,
  SessionOptions,
  SnapshotInfo,
  Store,
  ToolDefinition,
  Validation,
} from "./types.js";
import type { Operation, Session as Handle } from "./wasm/core.js";

/** What a session tells its listeners. */
const EVENTS: readonly (keyof SessionEvents)[] = ["offload", "compact", "progress", "warning", "pin"];

export interface Opened {
  id: string;
  format?: Format;
  messages: number;
  handle: Handle;
}

/** A store and how many sessions use it: one that was made for them is closed with the last. */
interface Lease {
  readonly store: Store;
  readonly own: boolean;
  users: number;
}

interface Placed {
  places: { seq: number; index: number }[];
  format?: Format;
}

interface Synced extends Placed {
  appended: number;
  diverged?: number;
  again?: true;
}

/**
 * Opens the session called `id`, or begins it. Without a `store` it is kept in IndexedDB where there is one, else in
 * memory.
 */
export async function openSession<M extends Message = Message>(options: SessionOptions = {}): Promise<Session<M>> {
  return startSession(options, (given, id, host, maxBatchOps) =>
    drive<Opened>(
      run((engine) => engine.Session.open(given, id, maxBatchOps)),
      host,
    ),
  );
}

type Begin = (given: object, id: string | undefined, host: Host, maxBatchOps: number) => Promise<Opened>;

/** A session that `begin` opens. */
export async function startSession<M extends Message>(options: SessionOptions, begin: Begin): Promise<Session<M>> {
  const checked = engineOptions(options);
  const { id, systemPrompt } = options;
  checkId(id);
  checkSystemPrompt(systemPrompt);
  const given = withFacts(checked, await factsFor(options));
  const own = options.store === undefined || typeof options.store === "string";
  const session = new LiveSession<M>(options, { store: chooseStore(options.store), own, users: 0 });
  await session.open((host, maxBatchOps) => begin(given, id, host, maxBatchOps));
  return session;
}

/** Ids with different lone surrogates would all become the same. */
function checkId(id: unknown): void {
  if (id !== undefined && (typeof id !== "string" || id === "" || !isWellFormed(id))) {
    throw invalidOption("id", "must be a text that is well-formed and not empty");
  }
}

function checkSystemPrompt(systemPrompt: unknown): void {
  if (systemPrompt !== undefined && typeof systemPrompt !== "string" && typeof systemPrompt !== "function") {
    throw invalidOption("systemPrompt", "must be a text or a function that returns one");
  }
}

/** Definitions of tools as a provider is sent them: what JSON has not, such as their code, is left out. */
function asSent(tools: unknown): string {
  try {
    return JSON.stringify(tools) ?? "";
  } catch (error) {
    throw invalidOption("tools", "must be what a provider can be sent: JSON without cycles", error);
  }
}

/** JSON text of a model's call. It is read and not kept, but what cannot be kept cannot stand in the history either. */
function encodeCall(call: unknown): string {
  const wrong = "call: must be an object of plain data: a tool call as the model returned it";
  if (typeof call !== "object" || call === null) throw new CompactionError("invalid_message", wrong, { field: "call" });
  try {
    return encode(call, 0);
  } catch (cause) {
    throw new CompactionError("invalid_message", wrong, { field: "call", cause });
  }
}

function chooseStore(store: SessionOptions["store"]): Store {
  if (store === "memory") return memoryStore();
  if (store === "indexeddb") return indexedDbStore();
  if (store === undefined) return typeof indexedDB === "undefined" ? memoryStore() : indexedDbStore();
  if (typeof store === "object" && typeof store?.commit === "function") return store;
  throw invalidOption("store", 'must be a Store, "memory" or "indexeddb"');
}

class LiveSession<M extends Message> implements Session<M> {
  readonly #options: SessionOptions;
  readonly #lease: Lease;
  readonly #host: Host;
  /** Whole calls that change the context, one after the other. */
  readonly #turn = new Mutex();
  /** The engine's state. Given away while a summariser works, so that appends need not wait for it. */
  readonly #state = new Mutex();
  /** The app's own objects by log position. */
  readonly #held = new Map<number, M>();
  /** The same by index, to recognise a history that is handed over again. */
  #known: (M | undefined)[] = [];
  /** Messages of the operation under way that have no log position yet. */
  #incoming: readonly M[] = [];
  /** Messages of ours by their text: handed out again as the same objects. */
  #ours = new Map<string, Message>();
  /** Definitions of the tools of the last `prepare`. */
  #tools = "";
  readonly #listeners = new Map<keyof SessionEvents, Set<(data: never) => void>>();
  #handle!: Handle;
  #id = "";
  #format: Format | undefined;
  #closed = false;

  constructor(options: SessionOptions, lease: Lease) {
    this.#options = options;
    this.#lease = lease;
    lease.users++;
    const { store } = lease;
    this.#host = {
      ...hostOf(options, (whose, at, body) => this.#counted(whose, at, body)),
      store,
      notify: (notice) => this.#notify(notice),
      // The options' signal ends compactions, and no append.
      signal: undefined,
    };
    const { onProgress } = options;
    this.#host.onProgress = (progress) => {
      try {
        onProgress?.(progress);
      } finally {
        this.#emit("progress", progress);
      }
    };
  }

  async open(begin: (host: Host, maxBatchOps: number) => Promise<Opened>): Promise<void> {
    this.#begin(await begin({ ...this.#host, signal: this.#options.signal }, this.#lease.store.caps.maxBatchOps));
  }

  #begin(opened: Opened): void {
    this.#handle = opened.handle;
    this.#id = opened.id;
    this.#format = opened.format;
    this.#known = new Array<M | undefined>(opened.messages).fill(undefined);
  }

  get id(): string {
    return this.#id;
  }

  get format(): Format {
    return this.#format ?? this.#options.format ?? "openai-chat";
  }

  append(...messages: M[]): Promise<void> {
    return this.#queued(this.#state, async () => {
      const { bytes, ends } = pack(messages);
      this.#incoming = messages;
      this.#place(messages, await this.#drive<Placed>((handle) => handle.append(bytes, ends)));
    });
  }

  sync(messages: readonly M[]): Promise<{ appended: number; diverged?: number }> {
    return this.#queued(this.#state, async () => {
      checkHistory(messages);
      const branch = this.#branch();
      const isKnown = (index: number, at: number) => this.#known[index] && this.#known[index] === messages[at];
      const known = branch.length <= messages.length && branch.every(isKnown) ? branch.length : 0;
      let synced = await this.#synced(messages, known);
      if (synced.again) {
        const before = synced.appended;
        synced = await this.#synced(messages, 0);
        synced.appended += before;
      }
      const { appended, diverged, ...placed } = synced;
      if (diverged !== undefined) return { appended, diverged };
      this.#place(messages.slice(messages.length - placed.places.length), placed);
      // What was read from the store is held as the app's own objects from now on.
      this.#branch().forEach((index, at) => (this.#known[index] = messages[at]));
      return { appended };
    });
  }

  /** Hands over a history from message `known` on. */
  #synced(messages: readonly M[], known: number): Promise<Synced> {
    this.#incoming = messages.slice(known);
    const { bytes, ends } = pack(this.#incoming, known);
    return this.#drive<Synced>((handle) => handle.sync(known, bytes, ends));
  }

  prepare(options: { signal?: AbortSignal; tools?: unknown; trigger?: "auto" | "overflow" } = {}): Promise<Prepared<M>> {
    return this.#exclusive(options, ["signal", "tools", "trigger"], async (host) => {
      const { trigger = "auto", tools } = options;
      if (trigger !== "auto" && trigger !== "overflow") {
        throw invalidOption("trigger", 'must be "auto" or "overflow"');
      }
      const prompt = this.#systemPrompt();
      const fixed = [prompt ?? "", (this.#tools = asSent(tools))];
      let thrown = new Map<number, unknown>();
      const { items, usage, edits, result, goal } = await this.#drive<{
        items: Item[];
        usage: ContextUsage;
        edits: Edit[];
        result?: EngineResult;
        goal?: string;
      }>((handle) => handle.prepare(trigger === "overflow", fixed), host, (causes) => (thrown = causes));
      const messages = this.#messages(items);
      const system = goal === undefined ? prompt : [prompt, goal].filter(Boolean).join("\n\n");
      return {
        messages,
        usage,
        edits,
        ...(system === undefined ? {} : { system }),
        ...(result ? { result: toResult(result, messages, thrown) } : {}),
      };
    });
  }

  compact(options: { instructions?: string; signal?: AbortSignal } = {}): Promise<CompactionResult<M | NewMessageAmong<M>>> {
    return this.#exclusive(options, ["signal", "instructions"], async (host) => {
      const { instructions } = options;
      if (instructions !== undefined && typeof instructions !== "string") {
        throw invalidOption("instructions", "must be a text");
      }
      let thrown = new Map<number, unknown>();
      const { items, result } = await this.#drive<{ items: Item[]; result: EngineResult }>(
        (handle) => handle.compact(instructions?.trim() || undefined),
        host,
        (causes) => (thrown = causes),
      );
      return toResult(result, this.#messages(items), thrown);
    });
  }

  rewind(index: number): Promise<void> {
    return this.#alone(async () => {
      checkWhole("index", index, 0);
      await this.#drive((handle) => handle.rewind(index));
    });
  }

  fork(options: { id?: string } = {}): Promise<Session<M>> {
    return this.#queued(this.#state, async () => {
      checkOptions(options, ["id"]);
      const { id } = options;
      checkId(id);
      const { places, ...opened } = await this.#drive<Opened & Placed>((handle) => handle.fork(id));
      const child = new LiveSession<M>(this.#options, this.#lease);
      child.#begin(opened);
      child.#tools = this.#tools;
      // What the process holds is handed out by the child as the same objects.
      places.forEach(({ seq, index }, at) => (child.#known[at] = this.#known[index] ?? this.#held.get(seq)));
      return child;
    });
  }

  async children(): Promise<SessionInfo[]> {
    return byAge(await this.#queued(this.#state, () => this.#drive<SessionInfo[]>((handle) => handle.children())));
  }

  plan(): Plan {
    this.#countFixed();
    return driveSync(
      run(() => this.#handle.plan()),
      this.#host,
    );
  }

  getContextUsage(): ContextUsage {
    this.#countFixed();
    return run(() => this.#handle.usage()) as ContextUsage;
  }

  get goal(): Goal | undefined {
    this.#checkOpen();
    return run(() => this.#handle.goal()) as Goal | undefined;
  }

  setGoal(goal: Goal): Promise<void> {
    return this.#queued(this.#state, async () => {
      checkObject(goal);
      const json = JSON.stringify(plainOptions(goal));
      await this.#drive((handle) => handle.setGoal(json));
    });
  }

  applyMarkers(modelOutput: string): Promise<Goal> {
    return this.#queued(this.#state, () => this.#drive<Goal>((handle) => handle.applyMarkers(String(modelOutput))));
  }

  reliability(): { score: number; warn: boolean } {
    this.#checkOpen();
    return run(() => this.#handle.reliability()) as { score: number; warn: boolean };
  }

  pin(index: number): Promise<void> {
    return this.#exclusive({}, [], async (host) => {
      checkWhole("index", index, 0);
      await this.#drive((handle) => handle.pin(index), host);
    });
  }

  pinProposals(): PinProposal[] {
    this.#checkOpen();
    return run(() => this.#handle.pinProposals()) as PinProposal[];
  }

  sessionLog(): string {
    this.#checkOpen();
    return run(() => this.#handle.sessionLog());
  }

  validate(): Validation {
    this.#countFixed();
    return run(() => this.#handle.validate()) as Validation;
  }

  checkpoints(): CheckpointRecord[] {
    this.#checkOpen();
    const found = run(() => this.#handle.checkpoints()) as CheckpointRecord[];
    return found.map((record) => asRecord("history", record));
  }

  getState(): ActiveContext<M> {
    this.#countFixed();
    const active = run(() => this.#handle.active()) as Active;
    return activeContext(active, this.#messages(active.items), this.checkpoints(), this.#systemPrompt());
  }

  getAvailableTokens(): number {
    this.#countFixed();
    return run(() => this.#handle.availableTokens());
  }

  removeMessages(ids: readonly number[]): Promise<number[]> {
    return this.#alone(() => {
      if (!Array.isArray(ids)) throw invalidOption("ids", "must be an array of indices, as explain() tells them");
      ids.forEach((id, nth) => checkWhole(`ids[${nth}]`, id, 0));
      return this.#drive<number[]>((handle) => handle.removeMessages(Uint32Array.from(ids)));
    });
  }

  snapshot(purpose: "recovery" | "rollback" = "recovery"): Promise<string> {
    return this.#queued(this.#state, () => this.#drive<string>((handle) => handle.snapshot(String(purpose))));
  }

  async snapshots(): Promise<SnapshotInfo[]> {
    const found = await this.#queued(this.#state, () => this.#drive<SnapshotInfo[]>((handle) => handle.snapshots()));
    return found.map((snapshot) => asRecord("snapshot", snapshot));
  }

  restore(id: string): Promise<void> {
    return this.#alone(async () => void (await this.#drive((handle) => handle.restore(String(id)))));
  }

  async checkpointRecords(): Promise<CheckpointRecord[]> {
    const found = await this.#paged<CheckpointRecord[]>((handle) => handle.checkpointRecords());
    return found.map((record) => asRecord("history", record));
  }

  metadata(): SessionMetadata {
    this.#checkOpen();
    return asRecord("history", run(() => this.#handle.metadata()) as SessionMetadata);
  }

  history(): AsyncIterable<M> {
    this.#checkOpen();
    const messages = historyOf<M>(
      (cursor) => this.#paged<{ messages: Logged[] }>((handle) => handle.history(cursor)),
      ({ seq, index }) => this.#held.get(seq) ?? this.#known[index],
    );
    return asRecord("history", messages);
  }

  exportJsonl(): ReadableStream<Uint8Array> {
    this.#checkOpen();
    return asRecord("history", streamOf((cursor) => this.#paged((handle) => handle.exportPage(cursor))));
  }

  exportMarkdown(): Promise<string> {
    return textOf((cursor) => this.#paged((handle) => handle.markdown(cursor)));
  }

  /** Reads a page; other calls may come between two of them. */
  #paged<T>(begin: (handle: Handle) => Operation): Promise<T> {
    return this.#queued(this.#state, () => this.#drive<T>(begin));
  }

  async addTurn(turn: { thought: string; action: object; result: string }): Promise<void> {
    await this.append(turn as unknown as M);
    await this.prepare();
  }

  stats(): ReactStats {
    this.#checkOpen();
    return run(() => this.#handle.stats()) as ReactStats;
  }

  exportTrajectory(): Trajectory {
    this.#checkOpen();
    return JSON.parse(run(() => this.#handle.trajectory())) as Trajectory;
  }

  explain(): LedgerEntry[] {
    this.#checkOpen();
    return run(() => this.#handle.explain()) as LedgerEntry[];
  }

  read(ref: string, range: { offset?: number; limit?: number } = {}): Promise<string> {
    return this.#queued(this.#state, () => {
      checkOptions(range, ["offset", "limit"]);
      const { offset = 0, limit } = range;
      checkWhole("offset", offset, 0);
      if (limit !== undefined) checkWhole("limit", limit, 0);
      return this.#drive<string>((handle) => handle.read(String(ref), offset, limit));
    });
  }

  search(query: string, options: { limit?: number } = {}): Promise<SearchHit[]> {
    return this.#queued(this.#state, () => {
      checkOptions(options, ["limit"]);
      const { limit = 10 } = options;
      if (typeof query !== "string") throw invalidOption("query", "must be a text");
      checkWhole("limit", limit, 1);
      return this.#drive<SearchHit[]>((handle) => handle.search(query, limit));
    });
  }

  tools<F extends Format = Format>(format?: F): RecallTools<F> {
    this.#checkOpen();
    if (format !== undefined && typeof format !== "string") throw invalidOption("format", "must be the name of a format");
    const found = run(() => this.#handle.tools(format)) as { format: F; definitions: ToolDefinition<F>[] };
    return { definitions: found.definitions, handle: (call) => this.#answer(call, found.format) };
  }

  async #answer<T>(call: unknown, format: Format): Promise<T> {
    const text = encodeCall(call);
    const answer = await this.#queued(this.#state, () => this.#drive<string>((handle) => handle.answer(text, format)));
    return decode(answer) as T;
  }

  on<E extends keyof SessionEvents>(event: E, listener: (data: SessionEvents[E]) => void): () => void {
    if (!EVENTS.includes(event)) {
      throw invalidOption("event", `must be one of ${EVENTS.map((name) => `"${name}"`).join(", ")}`);
    }
    if (typeof listener !== "function") throw invalidOption("listener", "must be a function");
    const listeners = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, listeners.add(listener));
    return () => void listeners.delete(listener);
  }

  close(): Promise<void> {
    return this.#ended(async () => {});
  }

  delete(): Promise<void> {
    return this.#ended(() => this.#drive<void>((handle) => handle.delete()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Ends the session after `last`, once everything under way has ended. */
  async #ended(last: () => Promise<void>): Promise<void> {
    const { turn, state } = await this.#both();
    try {
      if (this.#closed) return;
      await last();
      this.#closed = true;
      call(() => {
        this.#handle.close();
        this.#handle.free();
      });
      if (--this.#lease.users === 0 && this.#lease.own) await this.#lease.store.close?.();
    } finally {
      state();
      turn();
    }
  }

  /** A turn, and then the state: at once where nobody else has a turn, so that an append made later comes later. */
  async #both(): Promise<{ turn: () => void; state: () => void }> {
    const free = this.#turn.free;
    const turn = this.#turn.acquire();
    const state = free ? this.#state.acquire() : undefined;
    return { turn: await turn, state: await (state ?? this.#state.acquire()) };
  }

  async #queued<T>(queue: Mutex, work: () => Promise<T>): Promise<T> {
    const release = await queue.acquire();
    try {
      this.#checkOpen();
      return await work();
    } finally {
      this.#incoming = [];
      release();
    }
  }

  /** A call that changes the context at once. */
  async #alone<T>(work: () => Promise<T>): Promise<T> {
    const { turn, state } = await this.#both();
    try {
      this.#checkOpen();
      return await work();
    } finally {
      state();
      turn();
    }
  }

  /** A call that changes the context. It holds the engine's state except while a summariser works. */
  async #exclusive<T>(
    options: { signal?: AbortSignal },
    known: readonly string[],
    work: (host: Host) => Promise<T>,
  ): Promise<T> {
    checkOptions(options, known);
    const { signal } = options;
    checkSignal(signal);
    const { turn, ...held } = await this.#both();
    let { state } = held;
    try {
      this.#checkOpen();
      // Several waits may be under way at once: the first lets go, the last takes hold again.
      let waits = 0;
      const park: Host["park"] = async (wait) => {
        if (waits++ === 0) state();
        try {
          return await wait();
        } finally {
          if (--waits === 0) state = await this.#state.acquire();
        }
      };
      return await withEither([signal, this.#options.signal], (signal) => {
        checkAborted(signal);
        return work({ ...this.#host, signal, park });
      });
    } finally {
      state();
      turn();
    }
  }

  #drive<T>(begin: (handle: Handle) => Operation, host = this.#host, seal?: (thrown: Map<number, unknown>) => void) {
    return drive<T>(
      run(() => begin(this.#handle)),
      host,
      (_, thrown) => seal?.(thrown),
    );
  }

  #checkOpen(): void {
    if (this.#closed) throw new CompactionError("closed", "the session was closed or deleted; open it again");
  }

  #place(messages: readonly M[], placed: Placed): void {
    this.#format = placed.format ?? this.#format;
    placed.places.forEach(({ seq, index }, nth) => {
      const message = messages[nth];
      if (!message) return;
      this.#held.set(seq, message);
      // Another tab may have appended before.
      while (this.#known.length < index) this.#known.push(undefined);
      this.#known[index] = message;
    });
  }

  /** Indices of the messages that are the history now: all but those that a rewind or a restore left behind. */
  #branch(): number[] {
    const { messages, behind } = run(() => this.#handle.branch()) as { messages: number; behind: [number, number][] };
    while (this.#known.length < messages) this.#known.push(undefined);
    return [...this.#known.keys()].filter((index) => !behind.some(([from, to]) => from <= index && index < to));
  }

  /** The objects to hand out: the app's own where the process holds them. */
  #messages(items: Item[]): (M | NewMessageAmong<M>)[] {
    const ours = new Map<string, Message>();
    const messages = items.map(({ seq, index, body }) => {
      if (seq !== undefined) return this.#message(seq, index);
      const text = body ?? "null";
      const message = this.#ours.get(text) ?? (decode(text) as Message);
      ours.set(text, message);
      return message;
    });
    this.#ours = ours;
    return messages as (M | NewMessageAmong<M>)[];
  }

  #message(seq: number, index?: number): M {
    const held = (index === undefined ? undefined : this.#known[index]) ?? this.#held.get(seq);
    if (held) return held;
    const message = decode(run(() => this.#handle.body(seq)) ?? "null") as M;
    this.#held.set(seq, message);
    return message;
  }

  #counted(whose: "new" | "logged" | "ours", at: number, body: string): Message {
    if (whose === "logged") return this.#held.get(at) ?? (decode(body) as Message);
    const incoming = whose === "new" ? this.#incoming[at] : undefined;
    // Another tab may have appended some of those that are handed over.
    return incoming && encode(incoming, at) === body ? incoming : (decode(body) as Message);
  }

  /** Counts the system prompt as it is now, with the tools of the last `prepare`. */
  #countFixed(): void {
    this.#checkOpen();
    const fixed = [this.#systemPrompt() ?? "", this.#tools];
    driveSync(
      run(() => this.#handle.countFixed(fixed)),
      this.#host,
    );
  }

  #systemPrompt(): string | undefined {
    const { systemPrompt } = this.#options;
    let text: unknown;
    try {
      text = typeof systemPrompt === "function" ? systemPrompt() : systemPrompt;
    } catch (error) {
      throw invalidOption("systemPrompt", "the function threw", error);
    }
    if (text !== undefined && typeof text !== "string") {
      throw invalidOption("systemPrompt", "the function must return a text");
    }
    return text;
  }

  #notify({ event, ...data }: Notice): void {
    this.#emit(event, data as never);
  }

  #emit<E extends keyof SessionEvents>(event: E, data: SessionEvents[E]): void {
    for (const listener of [...(this.#listeners.get(event) ?? [])]) {
      try {
        (listener as (data: SessionEvents[E]) => void)(data);
      } catch (error) {
        // What a listener throws is not the operation's business, but it is not hidden either.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
