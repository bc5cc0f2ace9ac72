/** Entry `context-compactor/openai-agents`: the OpenAI Agents SDK. Models and items are known by their shapes. */

import { CompactionError } from "../errors.js";
import { openaiAgents } from "../formats/openai-agents.js";
import type { AdapterOptions, Message, Session, Summarize } from "../types.js";
import { over, runOf, type Item, type Run } from "./agent-runs.js";
import { Calls } from "./calls.js";
import { recallTools, type OfferedTools } from "./recall-tools.js";
import { answer, textOf } from "./summarizers.js";
import { keyOf, Threads, type Fitted } from "./threads.js";
import { usageOf } from "./usage.js";

/** Options of `contextCompactor`: those of `openSession`, and the name of the conversation. */
export interface AgentsCompactorOptions extends AdapterOptions {
  /** The conversation: its session has this id. A function gets the arguments of `callModelInputFilter`: `agent`, and `context`,
   *  which is what the app gave to the run. It must answer another id, or none, for agents that are called as tools. Default:
   *  the id of a `CompactingSession`; without any, the conversation is recognized by its messages. */
  thread?: string | ((call: any) => string | undefined);
}

/** A provider of models, as the SDK has it. */
export interface AgentsModelProvider {
  getModel(name?: string): any;
}

/** A model of the SDK. */
export interface AgentsModel {
  getResponse(request: any): Promise<any>;
  getStreamedResponse(request: any): AsyncIterable<any>;
}

/** Compaction for the OpenAI Agents SDK: itself the `callModelInputFilter` of a `Runner`. */
export interface AgentsCompactor {
  (call: any): Promise<any>;
  /** A provider whose models are compacted, for `modelProvider` of the runner: summaries are then written by the agent's own
   *  model, an abort ends a summary that is under way, and a prompt that is too long for the model is sent once more, with less. */
  modelProvider<P extends AgentsModelProvider>(provider: P): P;
  /** The same for a model that an agent has as an object. */
  model<M extends AgentsModel>(model: M): M;
  /** The recall tools, for the `tools` of the agent. Empty with `recall: { tools: false }`. */
  tools: any[];
  /** The session of the conversation called `thread`, to read its history, its pins or its goal. */
  session(thread: string): Promise<Session>;
  /** Closes every session. */
  close(): Promise<void>;
}

const NO_MODEL = "the agent has its model by name: give summarize, or the runner modelProvider: compactor.modelProvider(provider)";

const NO_FILTER = "give the runner callModelInputFilter: compactor, too: thread is asked there";

const SHARED = "Not known: several conversations have this context, so nothing can be read or searched.";

/** So many requests are known by their items: they are on their way from the filter to the model. */
const MAX_KNOWN = 100;

/**
 * Keeps agents of the OpenAI Agents SDK inside the context window: `const compactor = contextCompactor({ contextWindow:
 * 128_000 }); new Runner({ callModelInputFilter: compactor, modelProvider: compactor.modelProvider(new OpenAIProvider()) })`.
 * The history of the run and of its session stays whole; only the prompt of each call is compacted. Summaries are written by
 * the agent's own model unless `summarize` says otherwise. As a filter alone it sees neither the provider's answers and errors
 * nor the signal of the run; it can ask for summaries only a model that the agent has as an object; and a session has no more
 * of a run's input than was sent, should that alone be longer than the window. Make it once for each runner. Throws
 * `invalid_option`.
 */
export function contextCompactor(options: AgentsCompactorOptions = {}): AgentsCompactor {
  const { thread } = options;
  const by = "context-compactor/openai-agents";
  const threads = new Threads(by, options as AdapterOptions & Record<string, unknown>, ["thread"], openaiAgents);
  const calls = new Calls();
  /** By the context of a run, for calls of tools whose answer only the runner saw. `null`: several conversations have it. */
  const places = new WeakMap<object, Session | null>();
  const tools = threads.offersTools ? toolsOf(recall, threads.offered) : [];
  const wrapped = new WeakSet<object>();
  let hasProvider = false;
  let isFilter = false;
  const told = new Set<string>();
  /** Names of conversations by what their items say, which is all that the runner hands on from a filter to a model. */
  const known = new Map<string, string | undefined>();
  /** Those that arrived, by the items of the request: the runner may send it again. */
  const arrived = new WeakMap<object, string | undefined>();

  async function recall(name: string, input: string, callId: string, context: unknown): Promise<string> {
    const session = places.get(context as object);
    // The history of another user is not to be read.
    return session === null ? SHARED : calls.answer(name, inputOf(input), callId, session);
  }

  function once(error: CompactionError, what: string): CompactionError {
    if (!told.has(what)) threads.warn(error, what);
    told.add(what);
    return error;
  }

  const unknownModel = {
    getResponse: async () => {
      throw once(new CompactionError("summary_failed", NO_MODEL), "no model writes summaries");
    },
  };

  async function filter(call: any): Promise<any> {
    isFilter = true;
    const { modelData, agent, context } = call;
    const { input, instructions } = modelData as { input: Item[]; instructions?: string };
    const said = saidBy(input);
    const run = runOf(call, said);
    // The runner's own objects say something else in the end.
    const copies = input.map((item) => ({ ...item }));
    known.delete(said);
    known.set(said, (typeof thread === "function" ? thread(call) : thread) ?? (await run?.session.getSessionId()));
    if (known.size > MAX_KNOWN) known.delete([...known.keys()][0] as string);
    const { model, modelSettings, tools = [] } = agent;
    const isObject = typeof model === "object";
    if (isObject ? wrapped.has(model) : hasProvider) return modelData;
    const request = { input: copies, systemInstructions: instructions, modelSettings, tools: tools.map(definitionOf), handoffs: [] };
    const sent = await fit(isObject ? model : unknownModel, isObject ? undefined : model, request, async (sent, _, session) => {
      if (session && context && typeof context === "object") {
        places.set(context, [undefined, session].includes(places.get(context) as Session) ? session : null);
      }
      return sent;
    });
    return { input: inPlace(sent.input.map((item: Item) => input[copies.indexOf(item)] ?? item), input, run?.originals), instructions: sent.systemInstructions };
  }

  /** Calls the model with what fits. `learn` is to see the answer. */
  async function fit<R>(
    model: Pick<AgentsModel, "getResponse">,
    name: string | undefined,
    request: any,
    call: (request: any, learn: (response: any) => void, session?: Session) => Promise<R>,
  ): Promise<R> {
    const { systemInstructions, modelSettings, signal, tools, handoffs, previousResponseId, conversationId } = request;
    // The provider has the history.
    if (previousResponseId || conversationId) return call(request, () => undefined);
    const input: Item[] = typeof request.input === "string" ? [{ role: "user", content: request.input }] : request.input;
    const said = saidBy(input);
    if (known.has(said)) arrived.set(input, known.get(said));
    known.delete(said);
    if (thread !== undefined && !isFilter) once(new CompactionError("invalid_option", NO_FILTER), "the conversation has no name");
    const first = input.findIndex(({ role }) => role !== "system");
    const leading = first < 0 ? input : input.slice(0, first);
    const given = input.slice(leading.length);
    const asked = {
      id: arrived.get(input),
      messages: given as Message[],
      system: joined(systemInstructions, ...leading.map(({ content }) => content)),
      tools: [...tools, ...handoffs],
      model: name || undefined,
      signal,
      ask: asking(model, modelSettings),
    };
    return threads.send(asked, async (fitted) => {
      if (!fitted) return call(request, () => undefined);
      const { prepared, goal, session } = fitted;
      const sent = { input: [...leading, ...prepared.messages], systemInstructions: joined(systemInstructions, goal) };
      return call({ ...request, ...sent }, (response) => learnFrom(response, fitted, name), session);
    });
  }

  function learnFrom({ usage, output, providerData }: any, found: Fitted, name: string | undefined): void {
    const counted = countsOf(usage);
    if (counted) found.report(counted, name || providerData?.model);
    for (const { type, name, callId } of output) if (type === "function_call" && tools.some((tool) => tool.name === name)) calls.add(callId, found.session);
  }

  function wrap(model: any, name?: string): any {
    const own = {
      getResponse: (request: any) =>
        fit(model, name, request, async (sent, learn) => {
          const response = await model.getResponse(sent);
          learn(response);
          return response;
        }),
      async *getStreamedResponse(request: any): AsyncGenerator<any> {
        // A refusal comes in place of the first event.
        const { events, first, learn } = await fit(model, name, request, async (sent, learn) => {
          const events: AsyncIterator<any> = model.getStreamedResponse(sent)[Symbol.asyncIterator]();
          return { events, first: await events.next(), learn };
        });
        try {
          for (let next = first; !next.done; next = await events.next()) {
            if (next.value.type === "response_done") learn(next.value.response);
            yield next.value;
          }
        } finally {
          await events.return?.();
        }
      },
    };
    const compacted = over(own, model);
    wrapped.add(compacted);
    return compacted;
  }

  function modelProvider(provider: AgentsModelProvider): any {
    hasProvider = true;
    return over({ getModel: async (name?: string) => wrap(await provider.getModel(name), name) }, provider);
  }

  return Object.assign(filter, { modelProvider, model: (model: any) => wrap(model), tools, session: (id: string) => threads.session(id), close: () => threads.close() });
}

const saidBy = (items: readonly Item[]) => items.map((item) => keyOf(item as Message)).join();

const joined = (...texts: (string | undefined)[]) => texts.filter(Boolean).join("\n\n") || undefined;

const definitionOf = ({ type, name, description, parameters, providerData }: any) => ({ type, name, description, parameters, providerData });

/**
 * What is sent, in the objects that the runner gave. It keeps what became of each for the session of the app, and takes an
 * object that it does not know for one of those that are sent no more, whichever comes first: the user's question, say.
 */
function inPlace(sent: readonly Item[], given: readonly Item[], originals: Run["originals"] | undefined): Item[] {
  const gone = new Set(given);
  for (const item of sent) gone.delete(item);
  const places = new Map<Item, Item>();
  const find = (fits: (place: Item, item: Item) => boolean) => {
    for (const item of sent) {
      if (places.has(item) || given.includes(item)) continue;
      for (const place of gone) {
        if (!fits(place, item)) continue;
        gone.delete(place);
        places.set(item, place);
        break;
      }
    }
  };
  find(({ type, callId }, item) => callId !== undefined && type === item.type && callId === item.callId);
  // Not what the app gave to the run, which is stored at its end.
  find(({ role }) => role !== "user" && role !== "system");
  find(() => true);
  return sent.map((item) => {
    const place = places.get(item);
    if (!place) return item;
    originals?.set(JSON.stringify(item), { ...place });
    for (const field of Object.keys(place)) delete place[field];
    return Object.assign(place, item);
  });
}

/** The SDK has a list where several requests may have been counted. */
function countsOf(usage: any): object | undefined {
  return usageOf({ ...usage, cachedInputTokens: [usage?.inputTokensDetails].flat()[0]?.cached_tokens });
}

/** The recall tools as the runner executes them. */
function toolsOf(execute: (name: string, input: string, toolCallId: string, context: unknown) => Promise<string>, offered: OfferedTools): any[] {
  return Object.entries(recallTools(async () => "", offered)).map(([name, { description, inputSchema }]) => ({
    type: "function",
    name,
    description,
    parameters: inputSchema.jsonSchema,
    strict: false,
    needsApproval: async () => false,
    isEnabled: async () => true,
    invoke: (runContext: any, input: string, details: any) => execute(name, input, details?.toolCall?.callId, runContext?.context),
  }));
}

/** What is no JSON lacks every argument, which the answer to the model says. */
function inputOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** Asks the agent's model for summaries. */
function asking(model: Pick<AgentsModel, "getResponse">, { toolChoice: _, parallelToolCalls: _of, contextManagement: _no, text: _form, ...settings }: any = {}): Summarize {
  return async ({ system, messages, maxTokens }, { signal }) => {
    const input = messages.map((message) => openaiAgents.write(message, []));
    const alone = { tools: [], handoffs: [], outputType: "text", tracing: false };
    const request = { systemInstructions: system, input, modelSettings: { ...settings, maxTokens }, signal, ...alone };
    const { output, usage, providerData: raw } = await model.getResponse(request);
    const parts = output.flatMap(({ type, role, content }: Item) => (type === "message" && role === "assistant" ? content : []));
    const isCut = raw?.incomplete_details?.reason === "max_output_tokens" || raw?.choices?.[0]?.finish_reason === "length";
    return answer(textOf(parts), countsOf(usage), isCut, parts.find(({ type }: Item) => type === "refusal")?.refusal);
  };
}
