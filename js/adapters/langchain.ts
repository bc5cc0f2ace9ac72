/** Entry `context-compactor/langchain`: agents of LangChain 1. Messages are known by their `type`, whatever copy of the SDK made them,
 *  and new ones are made by the classes of those that are there. */

import { invalidOption } from "../checks.js";
import type { AdapterOptions, Message, Session, Summarize } from "../types.js";
import { Calls } from "./calls.js";
import { recallTools } from "./recall-tools.js";
import { answer, textOf } from "./summarizers.js";
import { Threads, type Fitted } from "./threads.js";
import { Twins } from "./twins.js";

/** Options of `compactionMiddleware`: those of `openSession`, and the name of the conversation. */
export interface CompactionMiddlewareOptions extends AdapterOptions {
  /** The conversation: its session has this id. A function gets the request of `wrapModelCall`. Default: `thread_id` of
   *  `configurable`, and for an agent inside another one its place there too; without any, the conversation is recognized by its
   *  messages. */
  thread?: string | ((request: any) => string | undefined);
  /** Replace the messages of the agent's state, too, by those that were sent in their place, so that a checkpointer stores the
   *  short form. The messages that left the state are in the session (`archive.history()`, as messages of Chat Completions).
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
  name?: string;
  role?: string;
  content: string | Block[];
  tool_calls?: { id?: string; name: string; args: unknown }[];
  tool_call_id?: string;
  additional_kwargs: Record<string, any>;
  response_metadata: Record<string, any>;
  lc_kwargs: object;
  constructor: Function;
}

interface Block {
  type: string;
  [field: string]: any;
}

/** What the engine reads in its place: a message of Chat Completions. */
interface Twin {
  role: string;
  content: string | Block[];
  tool_calls?: { id: string; type: "function"; function: { name: string; arguments: string } }[];
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
  const threads = new Threads(by, options as AdapterOptions & Record<string, unknown>, ["thread", "persist"], "openai-chat");
  if (typeof persist !== "boolean") throw invalidOption("persist", "must be true or false");
  if (persist && !threads.isKept) throw invalidOption("persist", "what leaves the agent's state would be in memory alone: give store, such as fileStore(folder)");
  const twins = new Twins<BaseMessage>({ read, fields: ({ content, tool_calls: calls }) => [content, calls], patch, write });
  const calls = new Calls();
  const tools = threads.offersTools ? toolsOf(calls) : [];
  const replaced = new Map<string, Replaced>();

  async function wrapModelCall(request: any, handler: (request: any) => Promise<any>): Promise<any> {
    const { model, systemMessage, runtime } = request;
    const messages = request.messages as BaseMessage[];
    const first = messages.findIndex(({ type }) => type !== "system");
    const leading = messages.slice(0, Math.max(first, 0));
    const given = messages.slice(leading.length);
    const modelName = model.model ?? model.modelName;
    const id = (typeof thread === "function" ? thread(request) : thread) ?? threadOf(runtime?.configurable);
    if (persist && id === undefined) throw invalidOption("persist", "needs the name of the conversation: configurable.thread_id, or option thread");
    const asked = {
      id,
      messages: given.map((message) => (isMessage(message) ? twins.read(message) : (message as unknown as Message))),
      system: [systemMessage, ...leading].map((message?: BaseMessage) => plain(message?.content)).filter(Boolean).join("\n\n"),
      tools: definitionsOf(model, request.tools),
      model: typeof modelName === "string" ? modelName : undefined,
      signal: runtime?.signal,
      ask: asking(model),
    };
    return threads.send(asked, async (fitted) => {
      if (!fitted) return handler(request);
      const { prepared, goal } = fitted;
      const sent = [...leading, ...twins.write(prepared.messages, given)];
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

function isMessage(message: unknown): message is BaseMessage {
  return typeof (message as BaseMessage | undefined)?.type === "string";
}

const ROLES: Record<string, string> = { human: "user", ai: "assistant", system: "system", tool: "tool", function: "function" };

function read({ type, id, name, role, content, tool_calls: calls = [], tool_call_id: answered, additional_kwargs: more }: BaseMessage): Message {
  const called = calls.map(({ id = "", name, args }) => ({ id, type: "function", function: { name, arguments: JSON.stringify(args) } }));
  return {
    role: ROLES[type] ?? role ?? type,
    ...(id ? { id } : {}),
    content: typeof content === "string" ? content : content.filter(({ type }) => !CALLS.has(type)).map(media),
    ...(called.length > 0 ? { tool_calls: called } : more?.["function_call"] ? { function_call: more["function_call"] } : {}),
    ...(type === "tool" ? { tool_call_id: answered } : type === "function" ? { name } : {}),
  } as Message;
}

/** Blocks that say what is in `tool_calls` too. */
const CALLS = new Set(["tool_use", "tool_call", "tool_call_chunk", "input_json_delta", "function_call"]);

/** A picture is counted as one, and not as text. */
function media(block: Block): Block {
  const { type, url, source } = block;
  const data = block["data"] ?? source?.data;
  if (type !== "image" || (!url && typeof data !== "string")) return block;
  const kind = block["mimeType"] ?? block["mime_type"] ?? source?.media_type ?? "image/png";
  return { type: "image_url", image_url: { url: url ?? `data:${kind};base64,${data}` } };
}

function patch(message: BaseMessage, edited: Message): BaseMessage {
  const { content, tool_calls: calls = [] } = edited as Twin;
  const { tool_calls: _, ...kwargs } = message.additional_kwargs;
  // The raw answer, which some models send again in place of the message.
  const { output: _raw, ...metadata } = message.response_metadata;
  const inputs = new Map(calls.map((call) => [call.id, JSON.parse(call.function.arguments) as unknown]));
  const isSame = JSON.stringify(content) === JSON.stringify((read(message) as Twin).content);
  const given = isSame ? message.content : content;
  const isCall = ({ type, id }: Block) => type === "tool_use" && inputs.has(id);
  return again(message, {
    content: Array.isArray(given) ? given.map((block) => (isCall(block) ? { ...block, input: inputs.get(block["id"]) } : block)) : given,
    ...(message.tool_calls ? { tool_calls: message.tool_calls.map((call) => ({ ...call, args: inputs.get(call.id ?? "") ?? call.args })) } : {}),
    additional_kwargs: kwargs,
    response_metadata: metadata,
  });
}

function write(message: Message, given: readonly BaseMessage[]): BaseMessage {
  const { role, content } = message as Twin;
  const like = given.find(({ type }) => ROLES[type] === role);
  const fields = { content, additional_kwargs: { lc_source: "summarization" } };
  // Without one like it, what the models of the SDK take for a message.
  return like ? new (like.constructor as new (fields: object) => BaseMessage)(fields) : ({ role, ...fields } as unknown as BaseMessage);
}

/** A message of the same class with other fields. */
function again(message: BaseMessage, fields: object): BaseMessage {
  const { lc_kwargs: kwargs, id, name } = message;
  return new (message.constructor as new (fields: object) => BaseMessage)({ ...kwargs, id, name, ...fields });
}

function withGoal(message: BaseMessage, goal: string): BaseMessage {
  const { content } = message;
  if (Array.isArray(content)) return again(message, { content: [...content, { type: "text", text: goal }] });
  return again(message, { content: content ? `${content}\n\n${goal}` : goal });
}

function plain(content: BaseMessage["content"] = ""): string {
  return typeof content === "string" ? content : textOf(content);
}

/** LangChain counts what was read from the cache among the input. */
function countsOf({ input_tokens, output_tokens, input_token_details: { cache_read, cache_creation } = {} }: any): object {
  return {
    inputTokens: input_tokens,
    outputTokens: output_tokens ?? 0,
    ...(cache_read === undefined ? {} : { cacheReadTokens: cache_read }),
    ...(cache_creation === undefined ? {} : { cacheWriteTokens: cache_creation }),
  };
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
function toolsOf(calls: Calls): any[] {
  const tools = recallTools((name, input, id) => calls.answer(name, input, id));
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
