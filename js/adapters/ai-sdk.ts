/** Entry `context-compactor/ai-sdk`: the AI SDK 6 and 7. Compaction is around the model, where prompt, tools and signal are. */

import type { AdapterOptions, Message, Prepared, Session } from "../types.js";
import { Calls } from "./calls.js";
import { promptOf, type PromptMessage } from "./prompt.js";
import { recallTools, type ExecutableRecallTools } from "./recall-tools.js";
import { aiSdk, type AiSdkModel } from "./summarizers.js";
import { Threads, type Fitted } from "./threads.js";
import { usageOf } from "./usage.js";

/** Options of `contextCompactor`: those of `openSession`, and which conversation a call belongs to. */
export interface AiSdkCompactorOptions extends AdapterOptions {
  /** The conversation: its session has this id. A function gets the options of `prepareStep`, or `{ params, model }` of the
   *  middleware. Default: `threadId` of `runtimeContext` (AI SDK 6: `experimental_context`), else of
   *  `providerOptions.contextCompactor`; without any, the conversation is recognized by its messages. */
  thread?: string | ((call: any) => string | undefined);
}

/** Where a `data-compaction` part is written: the `writer` of `createUIMessageStream`. */
export interface PartWriter {
  write(part: any): void;
}

/** Data of a `data-compaction` part of a UI message. */
export interface CompactionData {
  /** The steps that made it, in order, as in `Prepared.edits`: `offload`, `summarize` and others. */
  edits: string[];
  /** Tokens that it removed from the prompt. */
  freedTokens: number;
  /** Tokens of the prompt now. */
  usedTokens: number;
  /** The context window, in tokens. */
  maxTokens: number;
  /** The summary, when one was written. */
  summary?: string;
}

/** Compaction for the AI SDK. */
export interface AiSdkCompactor {
  /** For `prepareStep` of `ToolLoopAgent`, `generateText` and `streamText`. */
  prepareStep(options: any): Promise<any>;
  /** For `wrapLanguageModel({ model, middleware })`, in place of `prepareStep`. */
  middleware: any;
  /** The recall tools, for the `tools` of the agent. Empty with `recall: { tools: false }`. */
  tools: ExecutableRecallTools | Record<string, never>;
  /** The same compactor for one conversation: `thread` is its id, `writer` receives a `data-compaction` part for each
   *  compaction. */
  with(bound: { thread?: string; writer?: PartWriter }): AiSdkCompactor;
  /** The session of the conversation called `thread`, to read its history, its pins or its goal. */
  session(thread: string): Promise<Session>;
  /** Closes every session. */
  close(): Promise<void>;
}

interface Model extends AiSdkModel {
  doStream(options: any): PromiseLike<any>;
}

interface Part {
  type: string;
  toolCallId?: string;
  toolName?: string;
  usage?: object;
}

/** Options of a call of a model, in every version of its interface. */
interface Params {
  prompt: readonly PromptMessage[];
  tools?: unknown[];
  abortSignal?: AbortSignal;
  providerOptions?: { contextCompactor?: { threadId?: unknown } };
}

/** Steps that the compactor made: `compose` has them last. */
const own = new WeakSet<object>();

/** Models that are compacted, and the models themselves. */
const inner = new WeakMap<object, Model>();

/**
 * Keeps agents of the AI SDK 6 and 7 inside the context window: `const cc = contextCompactor({ store }); new ToolLoopAgent({
 * model, tools: { ...tools, ...cc.tools }, prepareStep: cc.prepareStep })`. Make it once, for all conversations. The
 * messages that the app holds stay whole; only the prompt of each call is compacted. Summaries are written by the agent's
 * own model unless `summarize` says otherwise. Throws `invalid_option`.
 */
export function contextCompactor(options: AiSdkCompactorOptions = {}): AiSdkCompactor {
  const { thread } = options;
  const threads = new Threads("context-compactor/ai-sdk", options as AdapterOptions & Record<string, unknown>, ["thread"], "ai-sdk");
  const calls = new Calls();
  const tools = threads.offersTools ? recallTools((name, input, id) => calls.answer(name, input, id), threads.offered) : {};

  function bind(bound: { thread?: string; writer?: PartWriter }): AiSdkCompactor {
    const idOf = (call: any): string | undefined => {
      const { runtimeContext, experimental_context: context, params } = call;
      const given = typeof thread === "function" ? thread(call) : thread;
      const id = bound.thread ?? given ?? [runtimeContext, context, params?.providerOptions?.contextCompactor].map(threadOf).find(Boolean);
      return id === undefined ? undefined : String(id);
    };

    /** Calls the model with what fits. */
    async function fitted<R>(model: Model, params: Params, id: string | undefined, call: (params: Params) => PromiseLike<R>): Promise<R> {
      const first = params.prompt.findIndex(({ role }) => role !== "system");
      const system = first < 0 ? params.prompt : params.prompt.slice(0, first);
      const request = {
        id: id ?? idOf({ params, model }),
        messages: params.prompt.slice(system.length),
        system: system.map(({ content }) => String(content)).join("\n\n"),
        tools: params.tools,
        model: model.modelId,
        signal: params.abortSignal,
        ask: aiSdk(model),
      };
      return threads.send(request, async (found) => {
        if (found && bound.writer) announce(bound.writer, found.prepared);
        const prompt = found && promptOf(system, found);
        return watched(await call(prompt ? { ...params, prompt } as Params : params), found, model.modelId);
      });
    }

    /** Learns from the answer, which passes as it is. */
    function watched<R>(result: R, found: Fitted | undefined, modelId: string): R {
      if (!found) return result;
      const see = ({ type, toolCallId, toolName, usage }: Part) => {
        const counted = usageOf(usage);
        if (counted) found.report(counted, modelId);
        if (type === "tool-call" && toolCallId && toolName && toolName in tools) calls.add(toolCallId, found.session);
      };
      const { stream, content, usage } = result as { stream?: ReadableStream<Part>; content?: Part[]; usage?: object };
      if (!stream) {
        for (const part of [...(content ?? []), { type: "finish", usage: usage ?? {} }]) see(part);
        return result;
      }
      const transform = (part: Part, to: TransformStreamDefaultController<Part>) => {
        see(part);
        to.enqueue(part);
      };
      return { ...result, stream: stream.pipeThrough(new TransformStream({ transform })) };
    }

    function compacted(model: Model, id: string | undefined): Model {
      const { specificationVersion, provider, modelId, supportedUrls } = model as any;
      const wrapped = {
        specificationVersion,
        provider,
        modelId,
        supportedUrls,
        doGenerate: (params: Params) => fitted(model, params, id, (params) => model.doGenerate(params)),
        doStream: (params: Params) => fitted(model, params, id, (params) => model.doStream(params)),
      };
      inner.set(wrapped, model);
      return wrapped;
    }

    async function prepareStep(call: any): Promise<object> {
      const id = idOf(call);
      const model = modelOf(call.model);
      if (model) return { model: compacted(inner.get(model) ?? model, id) };
      // The SDK looks the model up by its name: the messages are all that can be changed.
      const request = { id, messages: call.messages as Message[], model: String(call.model), system: undefined };
      return threads.send(request, async (found) => {
        if (found && bound.writer) announce(bound.writer, found.prepared);
        return found ? { messages: found.prepared.messages } : {};
      });
    }
    own.add(prepareStep);

    return {
      prepareStep,
      middleware: {
        specificationVersion: "v4",
        wrapGenerate: ({ model, params }: { model: Model; params: Params }) => fitted(model, params, undefined, (params) => model.doGenerate(params)),
        wrapStream: ({ model, params }: { model: Model; params: Params }) => fitted(model, params, undefined, (params) => model.doStream(params)),
      },
      tools,
      with: (more) => bind({ ...bound, ...more }),
      session: (id) => threads.session(id),
      close: () => threads.close(),
    };
  }
  return bind({});
}

/**
 * Joins several `prepareStep` functions: each sees what those before it changed. The compactor's is called last, whatever its
 * place, because it compacts for the model that the others choose.
 */
export function compose(...steps: ((options: any) => any)[]): (options: any) => Promise<any> {
  const ordered = [...steps.filter((step) => !own.has(step)), ...steps.filter((step) => own.has(step))];
  return async (options) => {
    let changed = {};
    for (const step of ordered) changed = { ...changed, ...(await step({ ...options, ...changed })) };
    return changed;
  };
}

function threadOf(context: unknown): unknown {
  return (context as { threadId?: unknown } | undefined)?.threadId;
}

/** The model itself, where it is one or its provider is known without the SDK. */
function modelOf(model: Model | string): Model | undefined {
  if (typeof model !== "string") return model;
  return (globalThis as any).AI_SDK_DEFAULT_PROVIDER?.languageModel(model);
}

let announced = 0;

function announce(writer: PartWriter, { edits, usage, result }: Prepared): void {
  if (edits.length === 0) return;
  const data: CompactionData = {
    edits: edits.map(({ kind }) => kind),
    freedTokens: edits.reduce((sum, { freedTokens }) => sum + freedTokens, 0),
    usedTokens: usage.usedTokens,
    maxTokens: usage.maxTokens,
    ...(result?.summary === undefined ? {} : { summary: result.summary }),
  };
  writer.write({ type: "data-compaction", id: `compaction-${Date.now().toString(36)}-${++announced}`, data });
}
