/** What to send now, and summaries that it does not wait for. */

import { systemPromptOf } from "./arguments.js";
import { Background } from "./background.js";
import { checkOptions, invalidOption } from "./checks.js";
import type { Host } from "./effects.js";
import { lazily } from "./lazily.js";
import type { MessageCache, Sent } from "./message-cache.js";
import type { Compacting } from "./nouns/core.js";
import { toResult, type EngineResult } from "./options.js";
import { asSent } from "./replies.js";
import type { Turns } from "./turns.js";
import type { ContextUsage, Edit, Message, PrepareOptions, Prepared, SessionOptions } from "./types.js";
import type { Warning } from "./warnings.js";
import type { Operation, Session as Handle } from "./wasm/core.js";

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
interface Needs {
  drive<T>(
    compacting: Omit<Compacting, "session">,
    begin: (handle: Handle) => Operation,
    host: Host,
    seal: (thrown: Map<number, unknown>) => void,
  ): Promise<T>;
  warn(warning: Warning): void;
}

const KNOWN = ["signal", "tools", "force", "live"];

/** What is sent differs from what is stored, and will be lost with the process. */
function changedAt(index: number): Warning {
  const message = `message ${index} was changed after it was appended: the prompt has it as it is now, and the log as it was. \
Append a message when it is complete; to store this one as it is, call session.snapshots.rewind(${index}) and append it again`;
  return { code: "diverged", message };
}

/** Throws unless these are options of `prepare`. */
export function checkPrepare(options: PrepareOptions): void {
  if (Array.isArray(options)) {
    throw invalidOption("", "must be an object, and an array was given: append the messages, then prepare()");
  }
  checkOptions(options, KNOWN);
  const { force, tools, live } = options;
  if (force !== undefined && typeof force !== "boolean") throw invalidOption("force", "must be true or false");
  if (live !== undefined && typeof live !== "string") throw invalidOption("live", "must be a text");
  if (tools !== undefined && (typeof tools !== "object" || tools === null)) {
    throw invalidOption("tools", "must be what your provider is sent as tools: a list of definitions, and not a text of it");
  }
}

export class Prepares<M extends Message> {
  /** Definitions of the tools of the last one. */
  tools = "";
  /** Its live facts in their fence. */
  live = "";
  readonly #options: SessionOptions;
  readonly #turns: Turns;
  readonly #cache: MessageCache<M>;
  readonly #needs: Needs;
  readonly #background: Background;

  constructor(options: SessionOptions, turns: Turns, cache: MessageCache<M>, needs: Needs) {
    this.#options = options;
    this.#turns = turns;
    this.#cache = cache;
    this.#needs = needs;
    this.#background = new Background(turns, ({ code, message }) =>
      needs.warn({ code, message: `the summary in the background failed: ${message}` }),
    );
  }

  async prepare(options: PrepareOptions): Promise<Prepared<M>> {
    checkPrepare(options);
    const { force = false } = options;
    if (!force && this.#background.isRunning) {
      const beside = await this.#turns.shared(options, (host) =>
        this.#prepared("auto", host, options, (handle, fixed) => handle.prepareBeside(fixed, this.#cache.sent)),
      );
      if (beside) return beside;
    }
    const prepared = await this.#turns.exclusive(options, KNOWN, (host) =>
      this.#prepared(force ? "overflow" : "auto", host, options, (handle, fixed) => handle.prepare(force, fixed, this.#cache.sent)),
    );
    return prepared as Prepared<M>;
  }

  /** Ends a summary that nobody waits for. */
  stop(): void {
    this.#background.stop();
  }

  /** What to send; nothing when the engine says that something else must end first. */
  async #prepared(
    trigger: Compacting["trigger"],
    host: Host,
    { tools, live = "" }: PrepareOptions,
    begin: (handle: Handle, fixed: string[]) => Operation,
  ): Promise<Prepared<M> | undefined> {
    const prompt = systemPromptOf(this.#options);
    const fixed = [prompt ?? "", (this.tools = asSent("tools", tools)), live];
    const { answer, thrown } = await this.#drive<EnginePrepared | null>({ trigger }, (handle) => begin(handle, fixed), host);
    if (!answer) return undefined;
    const { usage, edits, stillExceedsThreshold, stored, result, putOff, goal, request, ...sent } = answer;
    this.live = sent.live?.text ?? "";
    const coming = this.#cache.lacking(sent.items);
    if (coming) await coming;
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

  async #drive<T>(compacting: Omit<Compacting, "session">, begin: (handle: Handle) => Operation, host: Host) {
    let thrown = new Map<number, unknown>();
    const answer = await this.#needs.drive<T>(compacting, begin, host, (causes) => (thrown = causes));
    return { answer, thrown };
  }
}
