/** Sessions: each call of the public API, and the operation of the engine that it is. */

import { Appends } from "./appends.js";
import { checkId, checkSystemPrompt, encodeCall, parted, systemPromptOf } from "./arguments.js";
import { asRecord } from "./boundaries.js";
import { checkFunction, checkObject, checkOptions, checkWhole, invalidOption, plainOptions } from "./checks.js";
import { checkHistory, decode, pack } from "./codec.js";
import { drive, driveSync, run, type Host, type Notice } from "./driver.js";
import { call } from "./engine.js";
import { Held, type Place } from "./held.js";
import { Listeners } from "./listeners.js";
import { factsFor } from "./models.js";
import { engineOptions, hostOf, toResult, withFacts, type EngineResult, type Item } from "./options.js";
import { asSent } from "./replies.js";
import { byAge } from "./sessions.js";
import { News } from "./news.js";
import { Persistence } from "./persistence.js";
import { Prepares } from "./prepares.js";
import { choosePlace, type StorePlace } from "./store/place.js";
import { activeContext, type Active } from "./state.js";
import { historyOf, streamOf, textOf, type Logged } from "./transcript.js";
import { Turns } from "./turns.js";
import { ASSUMED, READ_ONLY, Warnings, type Warning } from "./warnings.js";
import { Watermarks } from "./watermark.js";
import type {
  ActiveContext,
  CompactionResult,
  ContextUsage,
  CheckpointRecord,
  Format,
  Gap,
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
  Usage,
  Validation,
  Verified,
} from "./types.js";
import type { Operation, Session as Handle } from "./wasm/core.js";

export interface Opened {
  id: string;
  format: Format;
  messages: number;
  handle: Handle;
}

/** A store and how many sessions use it: one that was made for them is closed with the last. */
interface Lease extends StorePlace {
  users: number;
}

interface Placed {
  places: Place[];
  format: Format;
}

interface Synced extends Placed {
  appended: number;
  diverged?: number;
  rewind?: number;
  again?: true;
}

/**
 * Opens the session called `id`, or begins it. Without a `store` it is kept in IndexedDB; where a browser may store nothing,
 * in memory, as `session.durable` and the event `warning` say. Outside of browsers there is no IndexedDB: a session with an
 * `id` needs a store there (else `store_unavailable`), one without is in memory.
 */
export async function openSession<M extends Message = Message>(options: SessionOptions = {}): Promise<Session<M>> {
  return startSession("openSession", options, (given, id, host, maxBatchOps) =>
    drive<Opened>(
      run((engine) => engine.Session.open(given, id, maxBatchOps)),
      host,
    ),
  );
}

type Begin = (given: object, id: string | undefined, host: Host, maxBatchOps: number) => Promise<Opened>;

/** A session that `begin` opens. */
export async function startSession<M extends Message>(
  by: "openSession" | "importSession",
  options: SessionOptions,
  begin: Begin,
): Promise<Session<M>> {
  const checked = engineOptions(options, by);
  const { id, systemPrompt } = options;
  checkId(id);
  if (options.mustExist && id === undefined) throw invalidOption("mustExist", "needs the `id` of the session");
  checkSystemPrompt(systemPrompt);
  const given = withFacts(checked, await factsFor(options));
  const place = await choosePlace(options);
  const session = new LiveSession<M>(options, { ...place, users: 0 });
  await session.open((host, maxBatchOps) => begin({ ...given, hasWatermark: session.isMarked }, id, host, maxBatchOps));
  if (run((engine) => engine.assumesWindow(given))) session.announce(ASSUMED);
  return session;
}

class LiveSession<M extends Message> implements Session<M> {
  readonly #options: SessionOptions;
  readonly #lease: Lease;
  readonly #host: Host;
  readonly #turns: Turns;
  readonly #appends: Appends<M>;
  readonly #prepares: Prepares<M>;
  readonly #news: News;
  readonly #watermarks: Watermarks;
  readonly #persistence: Persistence;
  readonly #held = new Held<M>();
  readonly #listeners = new Listeners();
  readonly #warnings: Warnings;
  readonly #gaps = new Set<unknown>();
  #handle!: Handle;
  #id = "";
  #format!: Format;
  #endNews: (() => void) | undefined;
  #endNotices: (() => void) | undefined;

  constructor(options: SessionOptions, lease: Lease) {
    this.#options = options;
    this.#lease = lease;
    lease.users++;
    const { store } = lease;
    this.#warnings = new Warnings(options.logger, this.#listeners);
    this.#watermarks = new Watermarks(options.watermark, store, (message) =>
      this.#warnings.tell({ code: "store_unavailable", message }),
    );
    this.#persistence = new Persistence(store, (warning) => this.#warnings.tell(warning));
    this.#host = {
      ...hostOf(options, (whose, at, body) => this.#held.counted(whose, at, body)),
      store,
      storeTimeoutMs: options.limits?.storeTimeoutMs,
      notify: (notice) => this.#notify(notice),
      watermarks: this.#watermarks,
      // The options' signal ends compactions, and no append.
      signal: undefined,
    };
    const { onProgress } = options;
    this.#host.onProgress = (progress) => {
      try {
        onProgress?.(progress);
      } finally {
        this.#listeners.emit("progress", progress);
      }
    };
    this.#turns = new Turns(options, this.#host, () => (this.#held.incoming = []));
    this.#host.waiting = () => this.#turns.waiting;
    for (const name of ["summarize", "summarizeResult"] as const) {
      const own = options[name];
      if (own) this.#host[name] = (request, context) => this.#turns.asking(() => own(request, context));
    }
    this.#prepares = new Prepares(options, this.#turns, this.#held, {
      drive: (begin, host, seal) => this.#drive(begin, host, seal),
      warn: (warning) => this.#warnings.tell(warning),
    });
    this.#news = new News(this.#turns, {
      isNews: (sid, ver) => run(() => this.#handle.isNews(sid, ver)),
      catchUp: () => this.#drive<void>((handle) => handle.catchUp()),
      warn: (warning) => this.#warnings.tell(warning),
    });
    // Beside the messages, a batch has the rows of the session.
    this.#appends = new Appends(this.#turns, store.caps.maxBatchOps - 8, async (messages, { bytes, ends }) => {
      this.#held.incoming = messages;
      this.#place(messages, await this.#drive<Placed>((handle) => handle.append(bytes, ends)));
      void this.#persistence.watch();
    });
  }

  /** What the platform removes can be noticed. */
  get isMarked(): boolean {
    return this.#watermarks.known;
  }

  async open(begin: (host: Host, maxBatchOps: number) => Promise<Opened>): Promise<void> {
    const before = this.durable;
    this.#begin(await begin({ ...this.#host, signal: this.#options.signal }, this.#lease.store.caps.maxBatchOps));
    if (before !== "none" && this.durable === "none") this.announce(READ_ONLY);
    const { warning } = this.#lease;
    if (warning) this.announce(warning);
  }

  announce(warning: Warning): void {
    this.#warnings.announce(warning);
  }

  #begin(opened: Opened): void {
    this.#handle = opened.handle;
    this.#id = opened.id;
    this.#format = opened.format;
    this.#held.begin(opened.handle, opened.messages);
    void this.#persistence.look();
    this.#endNews = this.#lease.store.changes?.((sid, ver) => void this.#news.hear(sid, ver));
    this.#endNotices = this.#lease.store.notices?.((notice) => {
      if (notice.kind === "repaired") this.#notify({ event: "dataloss", ...notice });
      else this.#warnings.tell({ code: notice.code, message: notice.message });
    });
  }

  get id(): string {
    return this.#id;
  }

  get durable(): Store["caps"]["durable"] {
    return this.#lease.store.caps.durable;
  }

  get persisted(): boolean | undefined {
    return this.#persistence.value;
  }

  get format(): Format {
    return this.#format;
  }

  append(...messages: M[]): Promise<void> {
    return this.#appends.add(messages);
  }

  sync(messages: readonly M[]): Promise<{ appended: number }> {
    return this.#turns.queued(async () => {
      checkHistory(messages);
      const known = this.#held.recognised(messages);
      let synced = await this.#synced(messages, known);
      if (synced.again) {
        const before = synced.appended;
        synced = await this.#synced(messages, 0);
        synced.appended += before;
      }
      const { appended, diverged, rewind, ...placed } = synced;
      if (diverged !== undefined) throw parted(diverged, messages.length, rewind, this.#held.hasOurs(messages));
      this.#place(messages.slice(messages.length - placed.places.length), placed);
      this.#held.adopt(messages);
      return { appended };
    });
  }

  /** Hands over a history from message `known` on. */
  #synced(messages: readonly M[], known: number): Promise<Synced> {
    this.#held.incoming = messages.slice(known);
    const { bytes, ends } = pack(this.#held.incoming, known);
    return this.#drive<Synced>((handle) => handle.sync(known, bytes, ends));
  }

  prepare(options: { signal?: AbortSignal; tools?: unknown; trigger?: "auto" | "overflow" } = {}): Promise<Prepared<M>> {
    return this.#prepares.prepare(options);
  }

  compact(options: { instructions?: string; signal?: AbortSignal } = {}): Promise<CompactionResult<M | NewMessageAmong<M>>> {
    return this.#turns.exclusive(options, ["signal", "instructions"], async (host) => {
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
      return toResult(result, this.#held.compacted(items), thrown);
    });
  }

  verify(options: { signal?: AbortSignal } = {}): Promise<Verified> {
    return this.#turns.beside(options, (host) => this.#drive<Verified>((handle) => handle.verify(), host));
  }

  rewind(index: number): Promise<void> {
    return this.#turns.alone(async () => {
      checkWhole("index", index, 0);
      await this.#drive((handle) => handle.rewind(index));
    });
  }

  erase(index: number, options: { reason: string; signal?: AbortSignal }): Promise<void> {
    return this.#turns.exclusive(options, ["signal", "reason"], async (host) => {
      checkWhole("index", index, 0);
      const { reason } = options;
      if (typeof reason !== "string" || reason === "") throw invalidOption("reason", "must be a text that says why");
      await this.#drive((handle) => handle.erase(index, reason), host);
      this.#held.forget(index);
      await this.#lease.store.purge?.();
    });
  }

  fork(options: { id?: string } = {}): Promise<Session<M>> {
    return this.#turns.queued(async () => {
      checkOptions(options, ["id"]);
      const { id } = options;
      checkId(id);
      const { places, ...opened } = await this.#drive<Opened & Placed>((handle) => handle.fork(id));
      const child = new LiveSession<M>(this.#options, this.#lease);
      child.#begin(opened);
      child.#prepares.tools = this.#prepares.tools;
      child.#held.inherit(places, this.#held);
      return child;
    });
  }

  async children(): Promise<SessionInfo[]> {
    return byAge(await this.#turns.queued(() => this.#drive<SessionInfo[]>((handle) => handle.children())));
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

  recordUsage(usage: Usage | object, options: { model?: string } = {}): void {
    this.#turns.checkOpen();
    checkOptions(options, ["model"]);
    const { model } = options;
    if (model !== undefined && typeof model !== "string") throw invalidOption("model", "must be a text");
    const json = asSent("usage", usage);
    if (run(() => this.#handle.recordUsage(json, model))) return;
    const message = "recordUsage: this usage cannot be of the last prompt, and was not learned from";
    this.#warnings.tell({ code: "invalid_option", message });
  }

  get goal(): Goal | undefined {
    this.#turns.checkOpen();
    return run(() => this.#handle.goal()) as Goal | undefined;
  }

  setGoal(goal: Goal): Promise<void> {
    return this.#turns.queued(async () => {
      checkObject(goal);
      const json = JSON.stringify(plainOptions(goal));
      await this.#drive((handle) => handle.setGoal(json));
    });
  }

  applyMarkers(modelOutput: string): Promise<Goal> {
    return this.#turns.queued(() => this.#drive<Goal>((handle) => handle.applyMarkers(String(modelOutput))));
  }

  reliability(): { score: number; warn: boolean } {
    this.#turns.checkOpen();
    return run(() => this.#handle.reliability()) as { score: number; warn: boolean };
  }

  pin(index: number): Promise<void> {
    return this.#turns.exclusive({}, [], async (host) => {
      checkWhole("index", index, 0);
      await this.#drive((handle) => handle.pin(index), host);
    });
  }

  rejectPin(index: number): Promise<void> {
    return this.#turns.exclusive({}, [], async (host) => {
      checkWhole("index", index, 0);
      await this.#drive((handle) => handle.rejectPin(index), host);
    });
  }

  pinProposals(): PinProposal[] {
    this.#turns.checkOpen();
    return run(() => this.#handle.pinProposals()) as PinProposal[];
  }

  sessionLog(): string {
    this.#turns.checkOpen();
    return run(() => this.#handle.sessionLog());
  }

  validate(): Validation {
    this.#countFixed();
    return run(() => this.#handle.validate()) as Validation;
  }

  checkpoints(): CheckpointRecord[] {
    this.#turns.checkOpen();
    const found = run(() => this.#handle.checkpoints()) as CheckpointRecord[];
    return found.map((record) => asRecord("history", record));
  }

  getState(): ActiveContext<M> {
    this.#countFixed();
    const active = run(() => this.#handle.active()) as Active;
    return activeContext(active, this.#held.messages(active.items), this.checkpoints(), systemPromptOf(this.#options));
  }

  getAvailableTokens(): number {
    this.#countFixed();
    return run(() => this.#handle.availableTokens());
  }

  removeMessages(ids: readonly number[]): Promise<number[]> {
    return this.#turns.alone(() => {
      if (!Array.isArray(ids)) throw invalidOption("ids", "must be an array of indices, as explain() tells them");
      ids.forEach((id, nth) => checkWhole(`ids[${nth}]`, id, 0));
      return this.#drive<number[]>((handle) => handle.removeMessages(Uint32Array.from(ids)));
    });
  }

  snapshot(purpose: "recovery" | "rollback" = "recovery"): Promise<string> {
    return this.#turns.queued(() => this.#drive<string>((handle) => handle.snapshot(String(purpose))));
  }

  async snapshots(): Promise<SnapshotInfo[]> {
    const found = await this.#turns.queued(() => this.#drive<SnapshotInfo[]>((handle) => handle.snapshots()));
    return found.map((snapshot) => asRecord("snapshot", snapshot));
  }

  restore(id: string): Promise<void> {
    return this.#turns.alone(async () => void (await this.#drive((handle) => handle.restore(String(id)))));
  }

  async checkpointRecords(): Promise<CheckpointRecord[]> {
    const found = await this.#paged<CheckpointRecord[]>((handle) => handle.checkpointRecords());
    return found.map((record) => asRecord("history", record));
  }

  metadata(): SessionMetadata {
    this.#turns.checkOpen();
    return asRecord("history", run(() => this.#handle.metadata()) as SessionMetadata);
  }

  history(options: { onGap?: (gap: Gap) => void } = {}): AsyncIterable<M> {
    this.#turns.checkOpen();
    checkOptions(options, ["onGap"]);
    const { onGap } = options;
    checkFunction("onGap", onGap);
    const tell = ({ seq, index, count, reason }: Gap) =>
      this.#notify({ event: "dataloss", kind: "records", lostRecords: count, seq, index, reason });
    const messages = historyOf<M>(
      (cursor) => this.#paged<{ messages: Logged[]; gaps: Gap[] }>((handle) => handle.history(cursor)),
      (message) => this.#held.unchanged(message),
      onGap ?? tell,
    );
    return asRecord("history", messages);
  }

  exportJsonl(): ReadableStream<Uint8Array> {
    this.#turns.checkOpen();
    return asRecord("history", streamOf((cursor) => this.#paged((handle) => handle.exportPage(cursor))));
  }

  exportMarkdown(): Promise<string> {
    return textOf((cursor) => this.#paged((handle) => handle.markdown(cursor)));
  }

  /** Reads a page; other calls may come between two of them. */
  #paged<T>(begin: (handle: Handle) => Operation): Promise<T> {
    return this.#turns.queued(() => this.#drive<T>(begin));
  }

  async addTurn(turn: { thought: string; action: object; result: string }): Promise<void> {
    await this.append(turn as unknown as M);
    await this.prepare();
  }

  stats(): ReactStats {
    this.#turns.checkOpen();
    return run(() => this.#handle.stats()) as ReactStats;
  }

  exportTrajectory(): Trajectory {
    this.#turns.checkOpen();
    return JSON.parse(run(() => this.#handle.trajectory())) as Trajectory;
  }

  explain(): LedgerEntry[] {
    this.#turns.checkOpen();
    return run(() => this.#handle.explain()) as LedgerEntry[];
  }

  read(ref: string, range: { offset?: number; limit?: number } = {}): Promise<string> {
    return this.#turns.queued(() => {
      checkOptions(range, ["offset", "limit"]);
      const { offset = 0, limit } = range;
      checkWhole("offset", offset, 0);
      if (limit !== undefined) checkWhole("limit", limit, 0);
      return this.#drive<string>((handle) => handle.read(String(ref), offset, limit));
    });
  }

  search(query: string, options: { limit?: number } = {}): Promise<SearchHit[]> {
    return this.#turns.queued(() => {
      checkOptions(options, ["limit"]);
      const { limit = 10 } = options;
      if (typeof query !== "string") throw invalidOption("query", "must be a text");
      checkWhole("limit", limit, 1);
      return this.#drive<SearchHit[]>((handle) => handle.search(query, limit));
    });
  }

  tools<F extends Format = Format>(format?: F): RecallTools<F> {
    this.#turns.checkOpen();
    if (format !== undefined && typeof format !== "string") throw invalidOption("format", "must be the name of a format");
    const found = run(() => this.#handle.tools(format)) as { format: F; definitions: ToolDefinition<F>[] };
    return { definitions: found.definitions, handle: (call) => this.#answer(call, found.format) };
  }

  async #answer<T>(call: unknown, format: Format): Promise<T> {
    const text = encodeCall(call);
    const answer = await this.#turns.queued(() => this.#drive<string>((handle) => handle.answer(text, format)));
    return decode(answer) as T;
  }

  on<E extends keyof SessionEvents>(event: E, listener: (data: SessionEvents[E]) => void): () => void {
    return this.#listeners.on(event, listener);
  }

  close(): Promise<void> {
    return this.#ended(async () => {
      try {
        await this.#drive<void>((handle) => handle.keepUsage());
      } catch {
        // What was learned only helps: without it the session closes all the same.
      }
    });
  }

  delete(): Promise<void> {
    return this.#ended(() => this.#drive<void>((handle) => handle.delete()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #ended(last: () => Promise<void>): Promise<void> {
    this.#prepares.stop();
    return this.#turns.end(last, async () => {
      this.#endNews?.();
      this.#endNotices?.();
      call(() => {
        this.#handle.close();
        this.#handle.free();
      });
      await this.#watermarks.settled();
      if (--this.#lease.users === 0 && this.#lease.own) await this.#lease.store.close?.();
    });
  }

  #drive<T>(begin: (handle: Handle) => Operation, host = this.#host, seal?: (thrown: Map<number, unknown>) => void) {
    return drive<T>(
      run(() => begin(this.#handle)),
      host,
      (_, thrown) => seal?.(thrown),
    );
  }

  #place(messages: readonly M[], placed: Placed): void {
    this.#format = placed.format;
    this.#held.place(messages, placed.places);
  }

  /** Counts the system prompt as it is now, with the tools of the last `prepare`. */
  #countFixed(): void {
    this.#turns.checkOpen();
    const fixed = [systemPromptOf(this.#options) ?? "", this.#prepares.tools];
    driveSync(
      run(() => this.#handle.countFixed(fixed)),
      this.#host,
    );
  }

  #notify({ event, ...data }: Notice): void {
    // A gap of the log is told once, whoever comes upon it.
    if (event === "dataloss" && data["seq"] !== undefined) {
      if (this.#gaps.has(data["seq"])) return;
      this.#gaps.add(data["seq"]);
    }
    if (event === "warning") this.#warnings.tell(data as unknown as Warning, true);
    else this.#listeners.emit(event, data as never);
  }
}
