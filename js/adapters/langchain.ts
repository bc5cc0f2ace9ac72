/** Entry `context-compactor/langchain`: agents of LangChain 1. Its messages are read and written by `formats/langchain`. */

import { invalidOption } from "../checks.js";
import { langchain, madeLike } from "../formats/langchain.js";
import { given } from "../formats/shared.js";
import type { AdapterOptions, CustomFormat, Session, Summarize } from "../types.js";
import { Calls } from "./calls.js";
import { recallTools, type OfferedTools } from "./recall-tools.js";
import { answer, textOf } from "./summarizers.js";
import { Threads, type Fitted } from "./threads.js";

/** Options of `compactionMiddleware`: those of `openSession`, and the name of the conversation. */
export interface CompactionMiddlewareOptions extends AdapterOptions {
  /** The conversation: its session has this id. A function gets the request of `wrapModelCall`. Default: `thread_id` of
   *  `configurable`, and for an agent inside another one its place there too; without any, the conversation is recognized by its
   *  messages. */
  thread?: string | ((request: any) => string | undefined);
  /** Replace the messages of the agent's state, too, by those that were sent in their place, so that a checkpointer stores the
   *  short form. The messages that left the state are in the session (`archive.history()`).
   *  Needs `store`, and a `thread_id` or `thread` for each call (else `invalid_option`). Where another middleware changed the
   *  messages of a request, the state stays as it is. Default: false, the state stays whole. */
  persist?: boolean;
}

/** A middleware for `createAgent`. */
export interface CompactionMiddleware {
  name: string;
  wrapModelCall: any;
  /** With option `persist`. */
  afterModel?: any;
  /** The recall tools, which the agent has by its middleware. Empty with `recall: { tools: false }`. */
  tools: any[];
  /** The session of the conversation called `thread`, to read its history, its pins or its goal. */
  session(thread: string): Promise<Session>;
  /** Closes every session. */
  close(): Promise<void>;
  [more: string]: any;
}

/** A message of LangChain, as far as it is looked at. */
interface BaseMessage {
  type: string;
  id?: string;
  content: string | Block[];
  tool_calls?: { id?: string; name: string; args: unknown }[];
  additional_kwargs: Record<string, any>;
  response_metadata: Record<string, any>;
}

interface Block {
  type: string;
  [field: string]: any;
}

/**
 * Keeps agents of LangChain 1 inside the context window: `createAgent({ model, tools, middleware: [compactionMiddleware({
 * contextWindow: 128_000 })] })`. Only the prompt of each call is compacted; the messages of the agent's state stay whole (without
 * `persist`). Summaries are written by the agent's own model unless `summarize` says otherwise. Make it once for each agent.
 * Throws `invalid_option`.
 */
export function compactionMiddleware(options: CompactionMiddlewareOptions = {}): CompactionMiddleware {
  const { thread, persist = false } = options;
  const by = "context-compactor/langchain";
  const threads = new Threads(by, options as AdapterOptions & Record<string, unknown>, ["thread", "persist"], FORMAT);
  if (typeof persist !== "boolean") throw invalidOption("persist", "must be true or false");
  if (persist && !threads.isKept) throw invalidOption("persist", "what leaves the agent's state would be in memory alone: give store, such as fileStore(folder)");
  const calls = new Calls();
  const tools = threads.offersTools ? toolsOf(calls, threads.offered) : [];
  const replaced = new Map<string, Replaced>();

  async function wrapModelCall(request: any, handler: (request: any) => Promise<any>): Promise<any> {
    const { model, systemMessage, runtime } = request;
    const messages = request.messages as BaseMessage[];
    const first = messages.findIndex(({ type }) => type !== "system");
    const leading = messages.slice(0, Math.max(first, 0));
    const modelName = model.model ?? model.modelName;
    const id = (typeof thread === "function" ? thread(request) : thread) ?? threadOf(runtime?.configurable);
    if (persist && id === undefined) throw invalidOption("persist", "needs the name of the conversation: configurable.thread_id, or option thread");
    const asked = {
      id,
      messages: messages.slice(leading.length),
      system: [systemMessage, ...leading].map((message?: BaseMessage) => plain(message?.content)).filter(Boolean).join("\n\n"),
      tools: definitionsOf(model, request.tools),
      model: typeof modelName === "string" ? modelName : undefined,
      signal: runtime?.signal,
      ask: asking(model),
    };
    return threads.send(asked, async (fitted) => {
      if (!fitted) return handler(request);
      const { prepared, goal } = fitted;
      const sent = [...leading, ...(prepared.messages as unknown as BaseMessage[])];
      const fit = { ...request, messages: sent };
      const result = await handler(goal ? { ...fit, systemMessage: withGoal(systemMessage, goal) } : fit);
      const { id: answerId } = messageOf(result);
      if (persist && answerId) remember(answerId, { messages, sent });
      return watched(result, fitted);
    });
  }

  function remember(id: string, { messages, sent }: Replaced): void {
    if (isSame(messages, sent)) return;
    replaced.set(id, { messages, sent });
    // Answers that did not come into a state.
    if (replaced.size > 1_000) replaced.delete([...replaced.keys()][0] as string);
  }

  /** Puts what was sent in the place of what the state has. */
  function afterModel({ messages }: { messages: BaseMessage[] }): object | undefined {
    const at = messages.findLastIndex(({ id = "" }) => replaced.has(id));
    const { id = "" } = messages[at] ?? {};
    const found = replaced.get(id);
    replaced.delete(id);
    // Messages that another middleware left out of the request were never seen here, and are in no session.
    if (!found || !isSame(found.messages, messages.slice(0, at))) return undefined;
    return { messages: [{ type: "remove", id: REMOVE_ALL }, ...found.sent, ...messages.slice(at)] };
  }

  /** Learns from the answer, which passes as it is. */
  function watched<R>(result: R, found: Fitted): R {
    const { usage_metadata: usage, response_metadata: metadata, tool_calls: called } = messageOf(result);
    if (usage?.input_tokens > 0) found.report(countsOf(usage), metadata?.["model_name"]);
    for (const { id, name } of called ?? []) if (id && tools.some((tool) => tool.name === name)) calls.add(id, found.session);
    return result;
  }

  const session = (id: string) => threads.session(id);
  return { name: "ContextCompactor", wrapModelCall, ...(persist ? { afterModel } : {}), tools, session, close: () => threads.close() };
}

/** What a request of the agent had, and what was sent in its place. */
interface Replaced {
  messages: BaseMessage[];
  sent: BaseMessage[];
}

/** The id with which the reducer of LangGraph removes all messages before. */
const REMOVE_ALL = "__remove_all__";

function isSame(one: BaseMessage[], other: BaseMessage[]): boolean {
  return one.length === other.length && one.every((message, at) => message === other[at]);
}

/** The answer in what a handler returns: with a structured response, or alone. */
function messageOf(result: unknown): BaseMessage & { usage_metadata?: any } {
  const { messages } = result as { messages?: BaseMessage[] };
  return messages?.[0] ?? (result as BaseMessage);
}

/** The conversation of a run. An agent that is called inside of another one has the same `thread_id`, and messages of its own. */
function threadOf({ thread_id: thread, checkpoint_ns: place = "" }: { thread_id?: unknown; checkpoint_ns?: string } = {}): string | undefined {
  if (thread === undefined) return undefined;
  return [thread, ...place.split("|").slice(0, -1)].map(String).join("|");
}

/** A summary is marked as those of LangChain itself are. Messages of an agent's state have an id. */
const FORMAT: CustomFormat<BaseMessage> = {
  ...langchain,
  write: (message, newest) => {
    const written = langchain.write(message, newest) as BaseMessage;
    if (message.role !== "tool" && !message.id) written.additional_kwargs = { ...written.additional_kwargs, lc_source: "summarization" };
    return written;
  },
};

function withGoal(message: BaseMessage, goal: string): BaseMessage {
  const { content } = message;
  const said = Array.isArray(content) ? [...content, { type: "text", text: goal }] : content ? `${content}\n\n${goal}` : goal;
  return madeLike(message, { content: said }) as BaseMessage;
}

function plain(content: BaseMessage["content"] = ""): string {
  return typeof content === "string" ? content : textOf(content);
}

/** LangChain counts what was read from the cache among the input. */
function countsOf({ input_tokens, output_tokens, input_token_details: { cache_read, cache_creation } = {} }: any): object {
  return given({ inputTokens: input_tokens, outputTokens: output_tokens ?? 0, cacheReadTokens: cache_read, cacheWriteTokens: cache_creation });
}

/** Definitions of tools, by the list that they stand in. */
const definitions = new WeakMap<object, unknown>();

/** The tools as the model sends them. */
function definitionsOf(model: any, tools: any[] = []): unknown {
  if (tools.length === 0) return undefined;
  const known = definitions.get(tools);
  if (known) return known;
  let found: unknown;
  try {
    const { config, kwargs } = model.bindTools(tools);
    found = config?.tools ?? kwargs?.tools;
  } catch {
    // Whoever made the model knows what it cannot do; the call itself says it.
  }
  found ??= tools.map(({ name, description }) => ({ name, description }));
  definitions.set(tools, found);
  return found;
}

/** The recall tools as `createAgent` executes them. */
function toolsOf(calls: Calls, offered: OfferedTools): any[] {
  const tools = recallTools((name, input, id) => calls.answer(name, input, id), offered);
  return Object.entries(tools).map(([name, { description, inputSchema, execute }]) => ({
    lc_runnable: true,
    lc_namespace: ["context_compactor", "tools"],
    name,
    description,
    schema: inputSchema.jsonSchema,
    invoke: ({ args, id }: { args: unknown; id: string }) => execute(args, { toolCallId: id }),
  }));
}

/** Asks the agent's model for summaries, which are no part of what the agent says. */
function asking(model: any): Summarize {
  return async ({ system, messages }, { signal }) => {
    const said = await model.invoke([{ role: "system", content: system }, ...messages], { signal, tags: ["nostream"] });
    const { content, usage_metadata: usage, response_metadata: metadata = {}, tool_calls: called = [] } = said;
    const end = metadata.finish_reason ?? metadata.stop_reason;
    return answer(called.length > 0 ? "" : plain(content), usage && countsOf(usage), end === "length" || end === "max_tokens");
  };
}
