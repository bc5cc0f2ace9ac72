import {
  chatCommand,
  CompactionError,
  detectFormat,
  estimateTokens,
  isChatCommand,
  openSession,
  validateHistory,
} from "../engine.js";
import type { CompactionResult, Format, Message, SearchHit, Session } from "../engine.js";
import { isCall, isExchangeOpen } from "../logic/messages.js";
import { callModel } from "../logic/model-call.js";
import { triggerOf } from "../logic/presets.js";
import { claim, newId, release, remember, rememberedId } from "./address.js";
import { deleteRun, loadRun, saveCompaction, saveRun, type RunRecord } from "./archive.js";
import { loadEndpoint, saveEndpoint, summaryOptions, type Endpoint } from "./endpoint.js";
import { describe } from "./describe.js";
import { EMPTY } from "./initial.js";
import { proofOf, type Proof } from "./proof.js";
import { compactionOf, logOf, offloadsAfter, sampleOf, type Change } from "./record.js";
import { sessionOptions } from "./session-options.js";
import { recorded } from "./sources.js";
import { Store } from "./store.js";
import type { ChatItem, Compaction, LogEntry, RunState, Setup } from "./types.js";

const STEP_MS = 1_000;
/** Calls that are played before the page is shown, where nothing may move: as a rule the first compaction comes long before. */
const LEAD_CALLS = 100;
/** It ends with the first compaction that frees this part of the window. */
const LEAD_SHARE = 5;

/** Plays a recorded run into a real session, the way an agent would: append, prepare before each answer, go on. */
export class RunController extends Store<RunState> {
  endpoint: Endpoint | undefined = loadEndpoint();
  #session: Session | undefined;
  #format: Format | undefined;
  #entries: LogEntry[] = [];
  /** Messages that no prepared prompt has yet. */
  #fresh = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #abort: AbortController | undefined;
  #queue: Promise<unknown> = Promise.resolve();
  #saved = 0;
  /** It goes on to the first compaction as fast as it can, and stops there: what the page is about is seen before it is read. */
  #isLeading = false;

  constructor() {
    super(EMPTY);
    addEventListener("pagehide", () => void this.#save());
  }

  // ---- opening ------------------------------------------------------------------------------------------------

  /** Comes back to the session of the last visit, or begins the recorded run. */
  async start(): Promise<void> {
    const id = rememberedId();
    try {
      const known = id === undefined ? undefined : await loadRun(id);
      if (id === undefined || !known || !(await claim(id)))
        return await this.begin({ sourceName: "invoicing-run" });
      await this.#restore(id, known.record, known.compactions);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** A new session on a recorded run, or on the user's own messages; it goes on to its first compaction. */
  async begin(change: Partial<Setup>, own?: readonly Message[]): Promise<void> {
    this.pause();
    const setup = { ...setupOf(this.state), ...change };
    const moves = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    await this.#exclusive(async () => {
      const id = newId();
      const source = own ?? (await recorded(setup.sourceName));
      await this.#close();
      await claim(id);
      this.set({ ...EMPTY, ...setup, id, source, speed: this.state.speed });
      this.#entries = [];
      this.#fresh = 0;
      await this.#open();
      this.#sample();
      await this.#save();
      remember(id);
      if (moves) this.set({ phase: "ready" });
      else await this.quietly(() => this.#lead());
    }).catch((error: unknown) => this.#fail(error));
    if (!moves || this.state.phase !== "ready") return;
    this.play();
    this.#isLeading = true;
  }

  async #lead(): Promise<void> {
    this.set({ phase: "ready" });
    this.#isLeading = true;
    for (let calls = 0; calls < LEAD_CALLS && !this.#hasLed(); calls++) await this.#advance();
    this.#isLeading = false;
    await this.#save();
  }

  /** A compaction that is worth a picture: it takes more out than one large result. */
  #hasLed(): boolean {
    const { compactions, contextWindow, cursor, source, error } = this.state;
    const shows = compactions.some(({ previousTokens, tokensAfter }) => previousTokens - tokensAfter >= contextWindow / LEAD_SHARE);
    return shows || cursor >= source.length || error !== undefined;
  }

  async #restore(id: string, record: RunRecord, compactions: Compaction[]): Promise<void> {
    const source = record.messages ?? (await recorded(record.sourceName));
    this.set({ ...EMPTY, ...setupOf(record), id, source });
    await this.#open();
    const session = this.#session;
    if (!session) return;
    const ledger = await session.context.explain();
    const { entries, log, cursor } = logOf(record.entries, ledger.length, source);
    this.#entries = entries;
    this.set({
      log,
      cursor,
      ledger,
      weights: log.map((message) => this.#weigh(message)),
      samples: record.samples.filter(({ x }) => x <= log.length),
      compactions: compactions.filter(({ x }) => x <= log.length),
      offloads: record.offloads.filter(({ x }) => x <= log.length),
      chat: record.chat,
      usage: session.context.usage(),
    });
    // In the middle of an exchange nothing may be sent yet; the next step fills the view in.
    if (!isExchangeOpen(log)) this.set({ context: (await session.prepare()).messages });
    this.#refresh();
    remember(id);
    this.set({ phase: "ready" });
  }

  async #open(): Promise<void> {
    const { id, source } = this.state;
    this.#format = await detectFormat([...source]);
    const session = await openSession({
      id,
      ...sessionOptions(this.state, this.#format),
      ...summaryOptions(this.endpoint),
    });
    session.on("progress", (progress) => {
      if (this.state.busy) this.set({ busy: { ...this.state.busy, progress } });
    });
    session.on("warning", ({ message }) => this.#say({ from: "note", tone: "error", text: message }));
    this.#session = session;
    this.set({ usage: session.context.usage(), sourceWeights: source.map((message) => this.#weigh(message)) });
  }

  async #close(): Promise<void> {
    await this.#session?.close();
    this.#session = undefined;
    if (this.state.id !== "") release(this.state.id);
  }

  /** Deletes the session and everything that this page kept about it, then begins again. */
  async startOver(change: Partial<Setup> = {}): Promise<void> {
    this.pause();
    const { id, source, sourceName } = this.state;
    await this.#exclusive(async () => {
      await this.#session?.close({ delete: true });
      await deleteRun(id);
    }).catch((error: unknown) => this.#fail(error));
    const isOwn = sourceName === "own" && (change.sourceName ?? "own") === "own";
    await this.begin(change, isOwn ? source : undefined);
  }

  async setEndpoint(endpoint: Endpoint | undefined): Promise<void> {
    this.pause();
    this.endpoint = endpoint;
    saveEndpoint(endpoint);
    await this.#exclusive(async () => {
      await this.#session?.close();
      await this.#open();
    }).catch((error: unknown) => this.#fail(error));
    this.set({});
  }

  // ---- playing ------------------------------------------------------------------------------------------------

  play(): void {
    const { phase, cursor, source } = this.state;
    if (phase !== "ready" || cursor >= source.length) return;
    this.set({ playing: true, view: undefined });
    this.#schedule(0);
  }

  pause(): void {
    clearTimeout(this.#timer);
    this.#isLeading = false;
    this.set({ playing: false });
  }

  setSpeed(speed: number): void {
    this.set({ speed });
  }

  /** Looks at an earlier step, or runs ahead to a later one. */
  async seek(x: number): Promise<void> {
    const { log, source, cursor } = this.state;
    if (x <= log.length) return this.set({ view: x === log.length ? undefined : x });
    this.pause();
    this.set({ view: undefined });
    const last = Math.min(source.length, cursor + x - log.length);
    await this.#exclusive(async () => {
      while (this.state.cursor < last && !this.state.error) await this.#advance();
      await this.#save();
    }).catch((error: unknown) => this.#fail(error));
  }

  #schedule(delay: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#tick(), delay);
  }

  async #tick(): Promise<void> {
    await this.#exclusive(() => this.#advance()).catch((error: unknown) => this.#fail(error));
    if (!this.state.playing) return;
    if (this.state.cursor >= this.state.source.length || (this.#isLeading && this.#hasLed())) {
      this.pause();
      await this.#save();
    } else this.#schedule(this.#isLeading ? 0 : STEP_MS / this.state.speed);
  }

  /** One message of the source; while it leads, all up to the next call. Before an answer of the model the context is prepared, as
   *  for a real call. */
  async #advance(): Promise<void> {
    const { source, cursor } = this.state;
    if (cursor >= source.length || !this.#session) return;
    if (isCall(source, cursor) && this.#fresh > 0) await this.#prepare();
    let end = cursor + 1;
    while (this.#isLeading && end < source.length && !isCall(source, end)) end += 1;
    await this.#append(
      source.slice(cursor, end),
      Array.from({ length: end - cursor }, (_, i) => ({ source: cursor + i })),
    );
    this.set({ cursor: end });
    if (!this.#isLeading && performance.now() - this.#saved > 400) await this.#save();
  }

  async #append(messages: readonly Message[], entries: readonly LogEntry[]): Promise<void> {
    const session = this.#session;
    if (!session) return;
    await session.append(...messages);
    this.#entries.push(...entries);
    this.#fresh += messages.length;
    const { log, context, weights } = this.state;
    this.set({
      log: [...log, ...messages],
      context: [...context, ...messages],
      weights: [...weights, ...messages.map((message) => this.#weigh(message))],
    });
    this.#refresh();
    this.#sample();
  }

  async #prepare(): Promise<Message[]> {
    const session = this.#session;
    if (!session) return [];
    const before = [...this.state.context];
    const previousTokens = session.context.usage().usedTokens;
    const isDue = previousTokens >= this.#trigger();
    // Elsewhere it is known without the plan, which is the work of a compaction.
    const plan = isDue || this.state.economy ? (await session.context.plan()).reason : "";
    const started = performance.now();
    const prepared = await this.#working("Compacting", (signal) => session.prepare({ signal }));
    const isIdle = isDue && prepared.edits.length === 0;
    this.set({ context: prepared.messages, idle: isIdle ? plan : undefined });
    if (prepared.edits.length > 0) {
      await this.#record({
        before,
        previousTokens,
        edits: prepared.edits,
        result: prepared.result,
        started,
        plan,
      });
    }
    this.#fresh = 0;
    if (prepared.result?.success === false) {
      this.#say({
        from: "note",
        tone: "error",
        text: `A summary failed, the history is unchanged: ${prepared.result.error?.message ?? prepared.result.reason ?? ""}`,
      });
    }
    return prepared.messages;
  }

  // ---- what happened ------------------------------------------------------------------------------------------

  async #record(change: Omit<Change, "fresh" | "trigger" | "problems">): Promise<void> {
    const session = this.#session;
    if (!session) return;
    this.#refresh();
    const { context, compactions, id } = this.state;
    const problems = (await validateHistory([...context], this.#format ? { format: this.#format } : {})).problems.length;
    const full = { ...change, fresh: this.#fresh, trigger: this.#trigger(), problems };
    const compaction = compactionOf(full, this.state, await session.context.explain(), (message) => this.#weigh(message));
    this.set({ compactions: [...compactions, compaction], offloads: offloadsAfter(compaction, this.state.log, this.state.offloads) });
    this.#sample();
    await saveCompaction(id, compaction);
    await this.#save();
  }

  #refresh(): void {
    const session = this.#session;
    if (!session) return;
    this.set({ usage: session.context.usage() });
    void session.context.explain().then((ledger) => this.#session === session && this.set({ ledger }));
  }

  #trigger(): number {
    const { usage, samples } = this.state;
    return usage ? triggerOf(usage, samples.at(-1)?.trigger) : 0;
  }

  #sample(): void {
    const { usage, samples } = this.state;
    if (usage) this.set({ samples: [...samples, sampleOf(this.state, usage, this.#trigger())] });
  }

  /** The text of a reference, read back from the session. */
  async read(ref: string): Promise<string> {
    if (!this.#session) throw new Error("The session is not open.");
    return this.#session.recall.read(ref);
  }

  /** What the session finds of everything that was said, in the context or not. */
  async search(query: string): Promise<SearchHit[]> {
    return (await this.#session?.recall.search(query, { limit: 8 })) ?? [];
  }

  /** That nothing is lost. */
  prove(): Promise<Proof> {
    return this.#exclusive(async () => {
      if (!this.#session) throw new Error("The session is not open.");
      return proofOf(this.#session, this.state.log);
    });
  }

  // ---- chat ---------------------------------------------------------------------------------------------------

  async send(text: string): Promise<void> {
    const isCommand = isChatCommand(text);
    this.pause();
    this.#say({ from: isCommand ? "command" : "user", text });
    await this.#exclusive(async () => {
      const session = this.#session;
      if (!session) return;
      if (!isCommand) return this.#ask(text);
      const target = {
        context: {
          usage: () => {
            this.#refresh();
            return session.context.usage();
          },
        },
        compact: (options?: { instructions?: string }) => this.#compact(session, options),
      };
      const answer = await chatCommand(target, text);
      if (answer) this.#say({ from: "note", ...answer });
    }).catch((error: unknown) => this.#say({ from: "note", tone: "error", text: describe(error) }));
    await this.#save();
  }

  async #compact(session: Session, options?: { instructions?: string }): Promise<CompactionResult> {
    const before = [...this.state.context];
    const previousTokens = session.context.usage().usedTokens;
    const started = performance.now();
    const result = await this.#working("Compacting", (signal) => session.compact({ ...options, signal }));
    // What was freed is gone also where the rest still does not fit.
    if (result.freedTokens > 0) {
      this.set({ context: result.messages });
      await this.#record({ before, previousTokens, edits: result.appliedEdits, result, started });
    }
    return result;
  }

  async #ask(text: string): Promise<void> {
    const { endpoint } = this;
    const format = this.#format;
    if (!endpoint) return this.#say({ from: "info", text: NO_ENDPOINT });
    if ((endpoint.kind === "anthropic") !== (format === "anthropic")) {
      return this.#say({
        from: "info",
        text: `This conversation is in the ${format} format, the endpoint speaks ${endpoint.kind}. It can write summaries, but not answer here.`,
      });
    }
    while (isExchangeOpen(this.state.log) && this.state.cursor < this.state.source.length)
      await this.#advance();
    const question = { role: "user", content: text };
    await this.#append([question], [{ own: question }]);
    const messages = await this.#prepare();
    const reply = await this.#working("Waiting for the model", (signal) =>
      callModel(endpoint, { messages, maxTokens: 1_024 }, signal),
    );
    const message = { role: "assistant", content: reply };
    await this.#append([message], [{ own: message }]);
    this.#say({ from: "model", text: reply });
  }

  #weigh(message: Message): number {
    return estimateTokens([message], this.#format ? { format: this.#format } : {});
  }

  #say(item: ChatItem): void {
    this.set({ chat: [...this.state.chat, item] });
  }

  // ---- plumbing -----------------------------------------------------------------------------------------------

  abort(): void {
    this.#abort?.abort();
  }

  async #working<T>(label: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.#abort = new AbortController();
    this.set({ busy: { label, progress: undefined } });
    try {
      return await work(this.#abort.signal);
    } finally {
      this.set({ busy: undefined });
    }
  }

  /** Steps, commands and seeks wait for each other. */
  #exclusive<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#queue.then(work, work);
    this.#queue = next.catch(() => undefined);
    return next;
  }

  async #save(): Promise<void> {
    const { id, sourceName, source, samples, offloads, chat } = this.state;
    if (id === "") return;
    this.#saved = performance.now();
    await saveRun(id, {
      ...setupOf(this.state),
      entries: [...this.#entries],
      samples: [...samples],
      offloads: [...offloads],
      chat: [...chat],
      ...(sourceName === "own" ? { messages: [...source] } : {}),
    });
  }

  #fail(error: unknown): void {
    this.pause();
    if (CompactionError.isInstance(error) && error.code === "aborted") {
      return this.#say({ from: "info", text: "Stopped. The history is unchanged; the run is paused." });
    }
    const message = describe(error);
    if (this.state.phase === "ready") this.#say({ from: "note", tone: "error", text: message });
    this.set(this.state.phase === "ready" ? { error: message } : { phase: "failed", error: message });
  }

  dismissError(): void {
    this.set({ error: undefined });
  }
}

function setupOf({ sourceName, contextWindow, preset, economy }: Setup): Setup {
  return { sourceName, contextWindow, preset, economy };
}

const NO_ENDPOINT =
  "There is no model behind this page. The recorded run plays without one, and the commands work: try /context or /compact.\n" +
  "To chat, add your own endpoint under “Model”. The key stays in this tab and is forgotten when you close it.";
