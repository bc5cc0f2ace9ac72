/** Sessions: what an agent's loop calls. The rest is in `nouns/`. */

import { Appends } from "./appends.js";
import { checkId, checkSystemPrompt, systemPromptOf } from "./arguments.js";
import { checkOptions, invalidOption } from "./checks.js";
import { checkHistory, type Packed } from "./codec.js";
import { loadCodec, type Codec } from "./codecs.js";
import type { Host, Notice, Placed } from "./effects.js";
import type { CompactionError } from "./errors.js";
import { MessageCache } from "./message-cache.js";
import { Listeners } from "./listeners.js";
import { factsFor } from "./models.js";
import { archiveOf } from "./nouns/archive.js";
import { contextOf } from "./nouns/context.js";
import { cores, type Asked, type Compacting, type Core } from "./nouns/core.js";
import { goalOf } from "./nouns/goal.js";
import { pinsOf } from "./nouns/pins.js";
import { recallOf } from "./nouns/recall.js";
import { snapshotsOf } from "./nouns/snapshots.js";
import type { Given } from "./given.js";
import { engineOptions, hostOf, toResult, withFacts, type EngineResult, type Item } from "./options.js";
import { News } from "./news.js";
import { Persistence } from "./persistence.js";
import { renewed } from "./renewal.js";
import { checkPrepare, Prepares } from "./prepares.js";
import { LACKING, type Opened, type Quarters, type Seat } from "./seat.js";
import { after, isPromise } from "./store-calls.js";
import type { StorePlace } from "./store/place.js";
import { Turns } from "./turns.js";
import { ASSUMED, READ_ONLY, Warnings, type Warning } from "./warnings.js";
import { Watermarks } from "./watermark.js";
import type {
  CompactionResult,
  ContextUsage,
  Format,
  MaybePromise,
  Message,
  NewMessageAmong,
  PinProposal,
  PrepareOptions,
  Prepared,
  Session,
  SessionArchive,
  SessionContext,
  SessionEvents,
  SessionGoal,
  SessionOptions,
  SessionPins,
  SessionRecall,
  SessionSnapshots,
  StepOptions,
  SyncResult,
  Watermark,
} from "./types.js";
import type { Session as Handle } from "./wasm/core.js";

/** A store and how many sessions use it: one that was made for them is closed with the last. */
interface Lease extends StorePlace {
  users: number;
}

interface Synced extends Placed, SyncResult {
  same: [given: number, index: number, count: number][];
  again?: true;
}

/** Opens a session in a thread. */
export function openIn<M extends Message>(quarters: Quarters, options: SessionOptions): Promise<Session<M>> {
  return startSession(quarters, "openSession", options, (...how) => openWith(quarters, ...how));
}

function openWith(quarters: Quarters, ...[values, id, host, maxBatchOps]: Parameters<Begin>): Promise<Opened> {
  return quarters.drive<Opened>((engine) => engine.Session.open(values, id, maxBatchOps), host);
}

type Begin = (values: Record<string, unknown>, id: string | undefined, host: Host, maxBatchOps: number) => Promise<Opened>;

/** A session that `begin` opens. */
export async function startSession<M extends Message>(
  quarters: Quarters,
  by: "openSession" | "importSession",
  options: SessionOptions,
  begin: Begin,
): Promise<Session<M>> {
  const given = engineOptions(options, by);
  const { id, systemPrompt } = options;
  checkId(id);
  if (options.mustExist && id === undefined) throw invalidOption("mustExist", "needs the `id` of the session");
  checkSystemPrompt(systemPrompt);
  const [facts, codec] = await Promise.all([factsFor(options), loadCodec<M>(given), quarters.started()]);
  const values = withFacts(given, facts);
  const assumes = await quarters.ready(values);
  const place = await quarters.place(options);
  const session = new LiveSession<M>(quarters, options, given, values, codec, { ...place, users: 0 });
  await session.open(id, begin);
  if (assumes) session.announce(ASSUMED);
  return session;
}

/** The results of two calls that hand over one history. */
function goOn(before: Synced, after: Synced): Synced {
  const appended = before.appended + after.appended;
  return { ...before, ...after, appended, recognized: after.recognized - before.appended };
}

class LiveSession<M extends Message> implements Session<M> {
  readonly #options: SessionOptions;
  readonly #given: Given;
  readonly #values: Record<string, unknown>;
  readonly #lease: Lease;
  readonly #host: Host;
  readonly #turns: Turns;
  readonly #appends: Appends<M>;
  readonly #prepares: Prepares<M>;
  readonly #news: News;
  readonly #watermarks: Watermarks;
  readonly #persistence: Persistence;
  readonly #codec: Codec<M>;
  readonly #core: Core<M>;
  readonly #cache: MessageCache<M>;
  readonly #listeners = new Listeners();
  readonly #warnings: Warnings;
  readonly #gaps = new Set<unknown>();
  readonly context: SessionContext<M>;
  readonly recall: SessionRecall;
  readonly pins: SessionPins;
  readonly snapshots: SessionSnapshots;
  readonly goal: SessionGoal;
  readonly archive: SessionArchive<M>;
  readonly #quarters: Quarters;
  #seat!: Seat;
  #id = "";
  #format!: Format;
  /** The usage that was emitted last, as JSON. */
  #usageTold = "";
  #endNews: (() => void) | undefined;
  #endNotices: (() => void) | undefined;

  constructor(quarters: Quarters, options: SessionOptions, given: Given, values: Record<string, unknown>, codec: Codec<M>, lease: Lease) {
    this.#quarters = quarters;
    this.#options = options;
    this.#given = given;
    this.#values = values;
    this.#codec = codec;
    this.#cache = new MessageCache(this.#codec);
    this.#lease = lease;
    lease.users++;
    const { store } = lease;
    this.#warnings = new Warnings(options.logger, this.#listeners);
    this.#watermarks = new Watermarks(given.host.get("advanced.watermark") as Watermark | undefined, store, (message) =>
      this.#warnings.tell({ code: "store_unavailable", message }),
    );
    this.#persistence = new Persistence(store, (warning) => this.#warnings.tell(warning));
    this.#host = {
      ...hostOf(given, (whose, at, body) => this.#cache.counted(whose, at, body)),
      store,
      storeTimeoutMs: options.limits?.storeTimeoutMs,
      notify: (notice) => this.#notify(notice),
      watermarks: this.#watermarks,
      // The options' signal ends compactions, and no append.
      signal: undefined,
    };
    const { onProgress } = this.#host;
    this.#host.onProgress = (progress) => {
      try {
        onProgress?.(progress);
      } finally {
        this.#listeners.emit("progress", progress);
      }
    };
    this.#turns = new Turns(options, this.#host, () => (this.#cache.incoming = []));
    this.#host.waiting = () => this.#turns.waiting;
    for (const name of ["summarize", "summarizeResult"] as const) {
      const own = this.#host[name];
      if (own) this.#host[name] = (request, context) => this.#turns.asking(() => own(this.#codec.asked(request), context));
    }
    this.#news = new News(this.#turns, {
      isNews: (sid, ver) => this.#seat.ask((handle) => handle.isNews(sid, ver), this.#host),
      catchUp: () => this.#drive<void>((handle) => handle.catchUp()),
      warn: (warning) => this.#warnings.tell(warning),
    });
    // Beside the messages, a batch has the rows of the session.
    const append = async (messages: readonly M[], packed: Packed) => {
      const { bytes, ends } = packed;
      this.#cache.coming(messages, packed);
      await this.#place(messages, await this.#drive<Placed>((handle) => handle.append(bytes, ends)));
      void this.#persistence.watch();
    };
    const pack = (messages: readonly M[], earlier: readonly M[]) => this.#pack(messages, earlier);
    this.#appends = new Appends(this.#turns, store.caps.maxBatchOps - 8, pack, append);
    this.#prepares = new Prepares(options, this.#turns, this.#cache, {
      drive: (compacting, begin, host, seal) => this.#compacting(compacting, begin, host, seal),
      renew: () => this.#renew(),
      warn: (warning) => this.#warnings.tell(warning),
      append: (messages) => this.#appends.add(messages),
      // What another thread answered last does not say what is between two calls.
      isFree: () => this.#turns.isFree && !(this.#seat.log.bring && this.#listeners.hears("usage")),
      pack: (messages) => this.#pack(messages, []),
      placed: (messages, placed) => this.#appended(messages, placed),
    });
    const core: Core<M> = (this.#core = {
      options,
      store,
      turns: this.#turns,
      cache: this.#cache,
      codec: this.#codec,
      drive: (begin, host) => this.#drive(begin, host),
      paged: (begin) => this.#turns.queued(() => this.#drive(begin)),
      look: (at) => this.#look(at),
      counted: (at) => {
        void this.#countFixed();
        return this.#look(at);
      },
      ask: (at, how) => this.#ask(at, how),
      learn: () => undefined,
      notify: (notice) => this.#notify(notice),
    });
    cores.set(this, core as unknown as Core<Message>);
    this.context = contextOf(core, { format: () => this.#format, warn: (warning) => this.#warnings.tell(warning), counted: () => this.#tellUsage() });
    this.recall = recallOf(core);
    this.pins = pinsOf(core);
    this.snapshots = snapshotsOf(core);
    this.goal = goalOf(core);
    this.archive = archiveOf(core, this.#persistence);
  }

  async open(id: string | undefined, begin: Begin): Promise<void> {
    const { store } = this.#lease;
    const before = store.caps.durable;
    this.#begin(await this.#opened(id, begin));
    await this.#show();
    if (before !== "none" && store.caps.durable === "none") this.announce(READ_ONLY);
    const { warning } = this.#lease;
    if (warning) this.announce(warning);
  }

  /** The engine learns whether there is a watermark, the platform's default included: what the platform removes can be noticed. */
  #opened(id: string | undefined, begin: Begin): Promise<Opened> {
    const { store } = this.#lease;
    const values = this.#values;
    const marked = this.#watermarks.known ? { ...values, advanced: { ...Object(values["advanced"]), watermark: true } } : values;
    return begin(marked, id, { ...this.#host, signal: this.#options.signal }, store.caps.maxBatchOps);
  }

  /** Opens it again where its engine has far more memory than is used. The app's objects and listeners stay. Called by who has the
   *  turn. */
  #renew(): MaybePromise<void> {
    if (this.#seat.isOutdated() && !this.#turns.isBeside) return this.#reopened();
  }

  async #reopened(): Promise<void> {
    const before = this.#seat;
    const seat = await renewed(this.#quarters, before, {
      host: this.#host,
      values: this.#values,
      // The goal is the one that was set last.
      open: () => this.#opened(this.#id, ({ goal: _, ...values }, ...how) => openWith(this.#quarters, values, ...how)),
      isSame: (messages) => messages >= this.#cache.length && !this.#turns.isBeside,
    });
    if (!seat) return;
    this.#seat = seat;
    this.#cache.goOn(seat.log);
    before.end();
  }

  /** Has `usage` count the system prompt where it shows what another thread answered last. */
  async #show(): Promise<void> {
    if (this.#seat.log.bring && typeof this.#options.systemPrompt === "string") await this.#countFixed();
  }

  announce(warning: Warning): void {
    this.#warnings.announce(warning);
  }

  #begin(opened: Opened): void {
    this.#seat = this.#quarters.seat(opened.handle);
    this.#id = opened.id;
    this.#format = opened.format;
    this.#cache.begin(this.#seat.log, opened.messages);
    void this.#persistence.look();
    this.#endNews = this.#lease.store.changes?.((sid, ver) => void this.#news.hear(sid, ver));
    this.#endNotices = this.#lease.store.notices?.((notice) => {
      if (notice.kind === "repaired") this.#notify({ event: "data-loss", ...notice });
      else this.#warnings.found({ code: notice.code, message: notice.message });
    });
  }

  get id(): string {
    return this.#id;
  }

  append(...messages: M[]): Promise<void> {
    return this.#appends.add(messages);
  }

  sync(messages: readonly M[]): Promise<SyncResult> {
    return this.#turns.queued(async () => {
      checkHistory(messages);
      const coming = this.#seat.log.bring?.("all");
      if (coming) await coming;
      let synced = await this.#synced(messages, this.#cache.same(messages));
      if (synced.again) synced = goOn(synced, await this.#synced(messages, 0));
      const { places, format, same, again: _, ...result } = synced;
      await this.#place(messages.slice(messages.length - places.length), { places, format });
      this.#cache.adopt(messages, same);
      return result;
    });
  }

  /** Hands over a history from message `known` on. */
  #synced(messages: readonly M[], known: number): Promise<Synced> {
    const packed = this.#codec.pack(messages, known);
    const { bytes, ends } = packed;
    this.#cache.coming(messages.slice(known), packed);
    return this.#drive<Synced>((handle) => handle.sync(known, bytes, ends));
  }

  #pack(messages: readonly M[], earlier: readonly M[]): MaybePromise<Packed> {
    const pack = () => this.#codec.pack(messages, 0, () => this.#textsBefore(earlier));
    try {
      return pack();
    } catch (error) {
      // Few messages need what is before them.
      if (error !== LACKING) throw error;
      return after(this.#seat.log.bring?.("all"), pack);
    }
  }

  /** Texts of the newest messages, those of a batch that is not written yet first, the newest first. */
  *#textsBefore(batch: readonly M[]): Generator<string> {
    for (const message of [...batch].reverse()) yield this.#codec.encode(message, 0);
    for (const [, body] of this.#seat.log.bodies().reverse()) yield body;
  }

  prepare(options: PrepareOptions<M> = {}): Promise<Prepared<M>> {
    return this.#prepares.prepare(options);
  }

  async step(messages: readonly M[], options: StepOptions = {}): Promise<Prepared<M>> {
    checkOptions(options, ["tools", "usage", "model", "signal", "force", "live"]);
    const { usage, model, ...rest } = options;
    // A wrong option is refused before anything is done.
    checkPrepare(rest);
    if (usage !== undefined) {
      const learned = this.#core.learn(usage, model === undefined ? {} : { model });
      if (isPromise(learned)) await learned;
    }
    await this.sync(messages);
    return this.prepare(rest);
  }

  compact(options: { instructions?: string; signal?: AbortSignal } = {}): Promise<CompactionResult<M | NewMessageAmong<M>>> {
    return this.#turns.exclusive(options, ["signal", "instructions"], async (host) => {
      const { instructions } = options;
      if (instructions !== undefined && typeof instructions !== "string") {
        throw invalidOption("instructions", "must be a text");
      }
      await this.#renew();
      let thrown = new Map<number, unknown>();
      const { items, result } = await this.#compacting<{ items: Item[]; result: EngineResult }>(
        { trigger: "manual" },
        (handle) => handle.compact(instructions?.trim() || undefined),
        host,
        (causes) => (thrown = causes),
      );
      const coming = this.#cache.lacking(items);
      if (coming) await coming;
      return toResult(result, this.#cache.compacted(items), thrown);
    });
  }

  fork(options: { id?: string } = {}): Promise<Session<M>> {
    return this.#turns.queued(async () => {
      checkOptions(options, ["id"]);
      const { id } = options;
      checkId(id);
      const { places, ...opened } = await this.#drive<Opened & Placed>((handle) => handle.fork(id));
      const child = new LiveSession<M>(this.#quarters, this.#options, this.#given, this.#values, this.#codec, this.#lease);
      child.#begin(opened);
      child.#prepares.tools = this.#prepares.tools;
      child.#core.follow = this.#core.follow;
      child.#cache.inherit(places, this.#cache);
      await child.#show();
      return child;
    });
  }

  on<E extends keyof SessionEvents>(event: E, listener: (data: SessionEvents[E]) => void): () => void {
    return this.#listeners.on(event, listener);
  }

  async close(options: { delete?: boolean } = {}): Promise<void> {
    checkOptions(options, ["delete"]);
    const { delete: isGone = false } = options;
    if (typeof isGone !== "boolean") throw invalidOption("delete", "must be true or false");
    if (isGone) return this.#ended(() => this.#drive<void>((handle) => handle.delete()));
    return this.#ended(async () => {
      try {
        await this.#drive<void>((handle) => handle.keepUsage());
      } catch {
        // What was learned only helps: without it the session closes all the same.
      }
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #ended(last: () => Promise<void>): Promise<void> {
    this.#prepares.stop();
    return this.#turns.end(last, async () => {
      this.#endNews?.();
      this.#endNotices?.();
      this.#seat.end();
      await this.#watermarks.settled();
      if (--this.#lease.users === 0 && this.#lease.own) await this.#lease.store.close?.();
    });
  }

  #drive<T>(begin: (handle: Handle) => unknown, host = this.#host, seal?: (thrown: Map<number, unknown>) => void) {
    const done = this.#seat.drive<T>(begin, host, seal);
    return this.#listeners.hears("usage") ? done.finally(() => this.#tellUsage()) : done;
  }

  /** Runs an operation that may compact. */
  #compacting<T>(
    compacting: Omit<Compacting, "session">,
    begin: (handle: Handle) => unknown,
    host: Host,
    seal: (thrown: Map<number, unknown>) => void,
  ): Promise<T> {
    const work = (host: Host) => this.#drive<T>(begin, host, seal);
    const { follow } = this.#core;
    return follow ? follow({ ...compacting, session: this.#id }, host, work) : work(host);
  }

  /** Only what is another usage than before: operations that read tell nothing, so a listener may read. */
  #tellUsage(): void {
    if (!this.#listeners.hears("usage") || this.#turns.isClosed) return;
    const usage = this.#look<ContextUsage>((handle) => handle.usage());
    const text = JSON.stringify(usage);
    if (text === this.#usageTold) return;
    this.#usageTold = text;
    this.#listeners.emit("usage", usage);
  }

  #look<T>(at: (handle: Handle) => unknown): T {
    this.#turns.checkOpen();
    return this.#seat.look(at);
  }

  /** What ends an append, in the course of a call that then prepares. */
  #appended(messages: readonly M[], placed: Placed): MaybePromise<void> {
    this.#tellUsage();
    void this.#persistence.watch();
    const placing = this.#place(messages, placed);
    this.#cache.incoming = [];
    return placing;
  }

  #place(messages: readonly M[], placed: Placed): MaybePromise<void> {
    this.#format = placed.format;
    this.#cache.place(messages, placed.places);
    const [first] = placed.places;
    if (first !== undefined && this.#listeners.hears("pin")) return this.#tellPins(first.seq);
  }

  /** Tells which pins are proposed for messages from this position of the log on. Where nobody listens, nothing is looked for:
   *  the part of the engine that does it may not be needed for a long time. */
  async #tellPins(since: number): Promise<void> {
    try {
      const proposals = await this.#ask<PinProposal[]>((handle) => handle.pinProposals(since), { stage: "compact" });
      for (const proposal of proposals) this.#listeners.emit("pin", proposal);
    } catch (error) {
      // The messages are in the session.
      const { code, message } = error as CompactionError;
      this.#warnings.tell({ code, message: `no pin was proposed: ${message}` });
    }
  }

  /** What is not known at once: a stage may have to be loaded, and another thread be asked. */
  #ask<T>(at: (handle: Handle) => unknown, { stage, isCounted }: Asked = {}): MaybePromise<T> {
    this.#turns.checkOpen();
    const now = () => {
      this.#turns.checkOpen();
      return after(isCounted ? this.#countFixed() : undefined, () => this.#seat.ask<T>(at, this.#host));
    };
    return stage ? this.#seat.bring(stage).then(now) : now();
  }

  /** Counts the system prompt as it is now, with the tools of the last `prepare`. */
  #countFixed(): MaybePromise<void> {
    this.#turns.checkOpen();
    const fixed = [systemPromptOf(this.#options) ?? "", this.#prepares.tools, this.#prepares.live];
    return this.#seat.count(fixed, this.#host);
  }

  #notify({ event, ...data }: Notice): void {
    // A gap of the log is reported once, whichever call finds it.
    if (event === "data-loss" && data["seq"] !== undefined) {
      if (this.#gaps.has(data["seq"])) return;
      this.#gaps.add(data["seq"]);
    }
    if (event === "warning") this.#warnings.tell(data as unknown as Warning, true);
    else this.#listeners.emit(event, data as never);
  }
}
