/** Entry `context-compactor/langchain`: agents of LangChain 1. Its messages are read and written by `formats/langchain`. */

import { langchain, madeLike } from "../formats/langchain.js";
import type { AdapterOptions, CustomFormat, Session, Summarize } from "../types.js";
import { Calls } from "./calls.js";
import { recallTools } from "./recall-tools.js";
import { answer, textOf } from "./summarizers.js";
import { Threads, type Fitted } from "./threads.js";

/** Options of `compactionMiddleware`: those of `openSession`, and the name of the conversation. */
export interface CompactionMiddlewareOptions extends AdapterOptions {
  /** The conversation: its session has this id. A function gets the request of `wrapModelCall`. Default: `thread_id` of
   *  `configurable`, and for an agent inside another one its place there too; without any, the conversation is recognized by its
   *  messages. */
  thread?: string | ((request: any) => string | undefined);
}

/** A middleware for `createAgent`. */
export interface CompactionMiddleware {
  name: string;
  wrapModelCall: any;
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
 * contextWindow: 128_000 })] })`. The messages of the agent's state stay whole; only the prompt of each call is compacted.
 * Summaries are written by the agent's own model unless `summarize` says otherwise. Make it once for each agent. Throws
 * `invalid_option`.
 */
export function compactionMiddleware(options: CompactionMiddlewareOptions = {}): CompactionMiddleware {
  const { thread } = options;
  const by = "context-compactor/langchain";
  const threads = new Threads(by, options as AdapterOptions & Record<string, unknown>, ["thread"], FORMAT);
  const calls = new Calls();
  const tools = threads.offersTools ? toolsOf(calls) : [];

  async function wrapModelCall(request: any, handler: (request: any) => Promise<any>): Promise<any> {
    const { model, systemMessage, runtime } = request;
    const messages = request.messages as BaseMessage[];
    const first = messages.findIndex(({ type }) => type !== "system");
    const leading = messages.slice(0, Math.max(first, 0));
    const modelName = model.model ?? model.modelName;
    const asked = {
      id: (typeof thread === "function" ? thread(request) : thread) ?? threadOf(runtime?.configurable),
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
      const sent = { ...request, messages: [...leading, ...prepared.messages] };
      return watched(await handler(goal ? { ...sent, systemMessage: withGoal(systemMessage, goal) } : sent), fitted);
    });
  }

  /** Learns from the answer, which passes as it is. */
  function watched<R>(result: R, found: Fitted): R {
    const { messages, ...alone } = result as { messages?: BaseMessage[] };
    const message = (messages?.[0] ?? alone) as BaseMessage & { usage_metadata?: any };
    const { usage_metadata: usage, response_metadata: metadata, tool_calls: called } = message;
    if (usage?.input_tokens > 0) found.report(countsOf(usage), metadata?.["model_name"]);
    for (const { id, name } of called ?? []) if (id && tools.some((tool) => tool.name === name)) calls.add(id, found.session);
    return result;
  }

  const session = (id: string) => threads.session(id);
  return { name: "ContextCompactor", wrapModelCall, tools, session, close: () => threads.close() };
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
