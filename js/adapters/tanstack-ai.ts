/** Entry `context-compactor/tanstack-ai`: a middleware for `chat` of TanStack AI. A middleware cannot reach the adapter, nor send
 *  again; so the adapter may be bound to it. */

import { given } from "../formats/shared.js";
import { tanstackModel } from "../formats/tanstack-model.js";
import type { AdapterOptions, Message, Session, Summarize } from "../types.js";
import { recalled } from "./calls.js";
import { recallTools, type OfferedTools } from "./recall-tools.js";
import { answer } from "./summarizers.js";
import { isTooLong, Threads, type Fitted } from "./threads.js";
import { Turn } from "./turn.js";

/** Options of `contextCompactor`: those of `openSession`, and the name of the conversation. */
export interface TanStackCompactorOptions extends AdapterOptions {
  /** The conversation: its session has this id. A function gets the context of the middleware's hooks. Default: the `threadId`
   *  of `chat`; without any, the conversation is recognized by its messages. */
  thread?: string | ((context: any) => string | undefined);
}

/** What `chat` needs of a middleware. */
export interface TanStackMiddleware {
  name: string;
  onConfig: any;
  onUsage: any;
}

/** A middleware for `chat`, with which an adapter may be bound. */
export interface TanStackCompactor extends TanStackMiddleware {
  /** The options `adapter` and `middleware` for a `chat` with this adapter: it writes the summaries, unless `summarize` says
   *  otherwise, and when the provider answers that the prompt is too long, it is sent once more, with less. */
  with<A extends object>(adapter: A): { adapter: A; middleware: [TanStackMiddleware] };
  /** The session of the conversation called `thread`, to read its history, its pins or its goal. */
  session(thread: string): Promise<Session>;
  /** Closes every session. */
  close(): Promise<void>;
}

/** A run of `chat`. */
interface Run {
  tools: any[];
  turn?: Turn;
  /** What is sent of what was found to fit. */
  sent?: (fitted: Fitted | undefined) => { messages: readonly Message[]; systemPrompts: unknown[] };
}

/** An adapter of a provider. */
interface TextAdapter {
  name: string;
  model: string;
  chatStream(options: any): AsyncIterable<any>;
}

/**
 * Keeps `chat` of TanStack AI inside the context window: `const compactor = contextCompactor(); chat({
 * ...compactor.with(openaiText("gpt-5")), messages, tools })`. The messages of the run stay whole; only what is sent to the
 * provider is compacted. As a middleware alone, `middleware: [compactor]`, it cannot call the adapter: the built-in summarizer
 * writes the summaries, unless `summarize` says otherwise, and a prompt that is too long is not sent again. Make it once, for
 * all conversations. Throws `invalid_option`.
 */
export function contextCompactor(options: TanStackCompactorOptions = {}): TanStackCompactor {
  const { thread } = options;
  const by = "context-compactor/tanstack-ai";
  const threads = new Threads(by, options as AdapterOptions & Record<string, unknown>, ["thread"], tanstackModel);
  /** By the context that the SDK has for a run. */
  const runs = new WeakMap<object, Run>();
  /** By the messages that the adapter is given. */
  const asked = new WeakMap<object, Run>();
  /** Goals among the system prompts, which the SDK hands over again. */
  const goals = new WeakSet<object>();

  const idOf = (context: any): string | undefined => (typeof thread === "function" ? thread(context) : thread) ?? threadOf(context);

  function runOf(context: any): Run {
    const known = runs.get(context);
    if (known) return known;
    const run: Run = { tools: [] };
    runs.set(context, run);
    const session = async () => {
      const id = idOf(context);
      return run.turn?.fitted?.session ?? (id === undefined ? undefined : threads.session(id));
    };
    if (threads.offersTools) run.tools = toolsOf(session, threads.offered);
    // It is awaited when the run ends, however it does: no hook says that the app left the stream.
    context.defer({ then: (ended: () => void) => void (run.turn?.done() ?? Promise.resolve()).then(ended) });
    return run;
  }

  async function onConfig(context: any, config: any, adapter?: TextAdapter): Promise<object> {
    const run = runOf(context);
    const known = new Set(config.tools.map(({ name }: { name: string }) => name));
    const tools = [...config.tools, ...run.tools.filter(({ name }) => !known.has(name))];
    if (context.phase === "init") return { tools };
    await run.turn?.done();
    const given = (config.providerMessages ?? config.messages) as Message[];
    const systemPrompts = (config.systemPrompts as unknown[]).filter((prompt) => !goals.has(Object(prompt)));
    const sent = (fitted: Fitted | undefined) => {
      if (!fitted) return { messages: given, systemPrompts };
      const goal = { content: fitted.goal };
      goals.add(goal);
      return { messages: fitted.prepared.messages, systemPrompts: goal.content ? [...systemPrompts, goal] : systemPrompts };
    };
    const request = {
      id: idOf(context),
      messages: given,
      system: systemPrompts.map((prompt) => (typeof prompt === "string" ? prompt : (prompt as { content: string }).content)).join("\n\n"),
      // The last call, for an answer of a schema, has none.
      tools: context.phase === "structuredOutput" ? undefined : tools.map(definitionOf),
      model: context.model as string,
      signal: context.signal as AbortSignal | undefined,
      ...(adapter ? { ask: asking(adapter) } : {}),
    };
    run.turn = new Turn((send) => threads.send(request, send));
    const fitted = await run.turn.next.catch((error: unknown) => {
      // The SDK ends a run that was aborted by itself.
      if (!request.signal?.aborted) throw error;
      return undefined;
    });
    run.sent = sent;
    const { messages, systemPrompts: prompts } = sent(fitted);
    asked.set(messages, run);
    return { tools, providerMessages: messages, systemPrompts: prompts };
  }

  function onUsage(context: any, usage: any): void {
    const counts = countsOf(usage, context.provider);
    if (counts) runs.get(context)?.turn?.fitted?.report(counts, context.model);
  }

  /** Options of a call with less to send; throws the provider's error where there is nothing to be done. */
  async function less(options: any, error: unknown): Promise<any> {
    const chat = options.chatOptions ?? options;
    const run = asked.get(chat.messages);
    if (!run?.turn || !isTooLong(error) || !(await run.turn.failed(error))) throw error;
    const changed = { ...chat, ...run.sent?.(await run.turn.next) };
    return options.chatOptions ? { ...options, chatOptions: changed } : changed;
  }

  /** A stream that begins again with less, if the provider refuses the prompt before it says anything. */
  async function* again(open: (options: any) => AsyncIterable<any>, options: any): AsyncIterable<any> {
    let hasBegun = false;
    let refusal: unknown;
    let error: unknown;
    try {
      for await (const chunk of open(options)) {
        if (chunk.type === "RUN_ERROR" && !hasBegun && isTooLong(errorOf(chunk))) {
          [refusal, error] = [chunk, errorOf(chunk)];
          break;
        }
        hasBegun ||= chunk.type !== "RUN_STARTED";
        yield chunk;
      }
      if (!refusal) return;
    } catch (thrown) {
      if (hasBegun) throw thrown;
      error = thrown;
    }
    let next: any;
    try {
      next = await less(options, error);
    } catch (failed) {
      if (!refusal) throw failed;
      if (error instanceof Error && error.cause) threads.warn(error.cause);
      yield refusal;
      return;
    }
    yield* open(next);
  }

  function retrying<A extends object>(adapter: A): A {
    const get = (target: A, name: string | symbol): unknown => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      const method = value.bind(target);
      if (name === "chatStream" || name === "structuredOutputStream") return (options: any) => again(method, options);
      if (name !== "structuredOutput") return method;
      return (options: any) => method(options).catch(async (error: unknown) => method(await less(options, error)));
    };
    return new Proxy(adapter, { get });
  }

  const bound = (adapter?: TextAdapter): TanStackMiddleware => ({
    name: "context-compactor",
    onConfig: (context: any, config: any) => onConfig(context, config, adapter),
    onUsage,
  });
  return {
    ...bound(),
    with: (adapter) => ({ adapter: retrying(adapter), middleware: [bound(adapter as unknown as TextAdapter)] }),
    session: (id) => threads.session(id),
    close: () => threads.close(),
  };
}

/** The conversation of a run. The SDK makes up a name where it was given none: that is no older than the run. */
function threadOf({ threadId, requestId }: { threadId: string; requestId: string }): string | undefined {
  const made = /^thread-(\d+)-\w+$/.exec(threadId)?.[1];
  const begun = /^chat-(\d+)-\w+$/.exec(requestId)?.[1];
  return made && begun && Number(made) >= Number(begun) ? undefined : threadId;
}

/** Definitions of tools, as the provider is sent them. */
const definitions = new WeakMap<object, object>();

function definitionOf(tool: { name: string; description: string; inputSchema?: any }): object {
  const { name, description, inputSchema } = tool;
  const known = definitions.get(tool);
  const definition = known ?? { type: "function", function: { name, description, parameters: jsonSchemaOf(inputSchema) } };
  definitions.set(tool, definition);
  return definition;
}

function jsonSchemaOf(schema: any): unknown {
  const standard = schema?.["~standard"];
  if (!standard) return schema;
  try {
    return standard.jsonSchema.input({ target: "draft-07" });
  } catch {
    // The SDK says what is wrong with it.
    return undefined;
  }
}

/** The recall tools as `chat` executes them. */
function toolsOf(session: () => Promise<Session | undefined>, offered: OfferedTools): any[] {
  const tools = recallTools(async (name, input, id) => recalled(await session(), name, input, id), offered);
  return Object.entries(tools).map(([name, { description, inputSchema, execute }]) => ({
    name,
    description,
    inputSchema: inputSchema.jsonSchema,
    execute: (input: unknown, { toolCallId = "" }: { toolCallId?: string } = {}) => execute(input, { toolCallId }),
  }));
}

/** Nothing where the provider did not count. */
function countsOf(usage: any, provider: string): object | undefined {
  const { promptTokens = 0, completionTokens, promptTokensDetails: details = {} } = usage ?? {};
  const { cachedTokens: read, cacheWriteTokens: written } = details;
  if (!(promptTokens > 0 || read > 0)) return undefined;
  return given({
    // Anthropic counts what came from the cache, or went there, apart.
    inputTokens: promptTokens + (provider === "anthropic" ? (read ?? 0) + (written ?? 0) : 0),
    outputTokens: completionTokens ?? 0,
    cacheReadTokens: read,
    cacheWriteTokens: written,
  });
}

/** The error that an adapter says in its stream. */
function errorOf({ message, code, rawEvent }: any): Error {
  return Object.assign(new Error(message), { code, error: rawEvent });
}

/** Adapters want a logger. What they say of a summary is no part of the app's run; its error is thrown. */
const SILENT = new Proxy({}, { get: () => () => undefined });

/** Asks the adapter for summaries. */
function asking(adapter: TextAdapter): Summarize {
  return async ({ system, messages }, { signal }) => {
    const request = { model: adapter.model, messages, systemPrompts: [system], request: { signal }, logger: SILENT };
    let text = "";
    let finish: any = {};
    for await (const chunk of adapter.chatStream(request)) {
      if (chunk.type === "RUN_ERROR") throw errorOf(chunk);
      if (chunk.type === "TEXT_MESSAGE_CONTENT") text += chunk.delta;
      if (chunk.type === "RUN_FINISHED") finish = chunk;
    }
    return answer(text, countsOf(finish.usage, adapter.name), finish.finishReason === "length");
  };
}
