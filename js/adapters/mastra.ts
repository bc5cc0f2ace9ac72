/** Entry `context-compactor/mastra`: a processor for agents of Mastra 1. */

import { invalidOption } from "../checks.js";
import { isContextOverflow } from "../overflow.js";
import type { AdapterOptions, Message, Session } from "../types.js";
import { Calls } from "./calls.js";
import { promptOf, type PromptMessage } from "./prompt.js";
import { recallTools } from "./recall-tools.js";
import { aiSdk } from "./summarizers.js";
import { Threads, type Fitted } from "./threads.js";
import { Turn } from "./turn.js";
import { usageOf } from "./usage.js";

/** Options of `ContextCompactor`: those of `openSession`, and the name of the conversation. */
export interface ContextCompactorOptions extends AdapterOptions {
  /** The conversation: its session has this id. A function gets the arguments of `processLLMRequest`. Default: the thread of the
   *  agent's memory; without any, the conversation is recognized by its messages. */
  thread?: string | ((call: any) => string | undefined);
}

/** What is known of a run of the agent. */
interface Run {
  tools?: object[];
  begin?: () => Turn;
  turn?: Turn | undefined;
  /** The request is sent once more, with less. */
  isAgain?: boolean;
}

/**
 * Keeps agents of Mastra 1 inside the context window: `new Agent({ id, model, inputProcessors: [new ContextCompactor()] })`. The
 * messages of the agent's memory stay whole; only the prompt of each call is compacted. Summaries are written by the agent's own
 * model unless `summarize` says otherwise. Make it once for each agent. Throws `invalid_option`,
 * also in a run of an agent of an earlier Mastra.
 */
export class ContextCompactor {
  readonly id = "context-compactor";
  readonly #threads: Threads;
  readonly #thread: ContextCompactorOptions["thread"];
  readonly #tools: Record<string, any>;
  readonly #calls = new Calls();
  /** By the state that Mastra has for a run of the agent. */
  readonly #runs = new WeakMap<object, Run>();

  constructor(options: ContextCompactorOptions = {}) {
    this.#thread = options.thread;
    this.#threads = new Threads("context-compactor/mastra", options as AdapterOptions & Record<string, unknown>, ["thread"], "ai-sdk");
    const { offersTools, offered } = this.#threads;
    this.#tools = offersTools ? recallTools((name, input, id) => this.#calls.answer(name, input, id), offered) : {};
  }

  /** Mastra before version 1 has no hook but this one: it would go on without compaction, and say nothing. */
  processInput({ messageList }: any): any {
    if (messageList) return messageList;
    throw invalidOption("inputProcessors", "ContextCompactor needs Mastra 1; with an earlier one give generate and stream the prepareStep of context-compactor/ai-sdk");
  }

  /** Offers the recall tools, which the agent need not have. */
  processInputStep({ tools, state }: any): any {
    const offered = { ...tools, ...this.#tools };
    this.#run(state).tools = Object.entries<any>(offered).map(([name, { description }]) => ({ name, description }));
    return { tools: offered };
  }

  /** Puts what fits in place of the prompt, for this call alone. */
  async processLLMRequest(call: any): Promise<any> {
    const { state, model, abortSignal: signal, requestContext } = call;
    const prompt = call.prompt as PromptMessage[];
    const first = prompt.findIndex(({ role }) => role !== "system");
    const system = first < 0 ? prompt : prompt.slice(0, first);
    const run = this.#run(state);
    // No other hook is called then. The listeners of a run's calls would add up.
    if (!run.begin) signal?.addEventListener("abort", () => void run.turn?.done(), { once: true });
    run.begin = () => {
      const given = typeof this.#thread === "function" ? this.#thread(call) : this.#thread;
      const id = given ?? requestContext?.get("MastraMemory")?.thread?.id;
      const request = {
        id: id === undefined ? undefined : String(id),
        messages: prompt.slice(system.length) as Message[],
        system: system.map(({ content }) => String(content)).join("\n\n"),
        tools: run.tools,
        model: model.modelId as string,
        signal: signal as AbortSignal | undefined,
        ask: aiSdk(model),
      };
      return new Turn((send) => this.#threads.send(request, send));
    };
    const fitted = await (run.turn ??= run.begin()).next;
    if (!fitted) return undefined;
    return { prompt: promptOf(system, fitted) };
  }

  /** Learns from the answer. */
  processLLMResponse({ state, chunks, model }: any): void {
    const run = this.#run(state);
    const { turn } = run;
    for (const { type, payload } of turn?.fitted ? chunks : []) {
      const counted = type === "finish" && usageOf(payload.output?.usage);
      if (counted) turn?.fitted?.report(counted, model.modelId);
      if (type === "tool-call" && payload.toolName in this.#tools) this.#calls.add(payload.toolCallId, (turn?.fitted as Fitted).session);
      if (type === "finish") run.isAgain = false;
    }
    run.turn = undefined;
    void turn?.done();
  }

  /** Has the request sent once more, with less, when the provider says that the prompt was too long. */
  async processAPIError({ state, error }: any): Promise<{ retry: boolean }> {
    const run = this.#run(state);
    if (!run.begin || run.isAgain || !isContextOverflow(error)) return { retry: false };
    void run.turn?.done();
    const turn = run.begin();
    await turn.next.catch(() => undefined);
    const retry = await turn.failed(error);
    if (retry) [run.turn, run.isAgain] = [turn, true];
    return { retry };
  }

  #run(state: object): Run {
    const run = this.#runs.get(state) ?? {};
    this.#runs.set(state, run);
    return run;
  }

  /** The session of the conversation called `thread`, to read its history, its pins or its goal. */
  session(thread: string): Promise<Session> {
    return this.#threads.session(thread);
  }

  /** Closes every session. */
  close(): Promise<void> {
    return this.#threads.close();
  }
}
