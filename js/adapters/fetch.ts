/** Entry `context-compactor/fetch`: a `fetch` for the clients of providers, which compacts what they send. */

import { isContextOverflow } from "../overflow.js";
import type { AdapterOptions, Format, Message, Session, Summarize } from "../types.js";
import { answer, anthropic, OPENAI, openaiCompatible, textOf } from "./summarizers.js";
import { Threads } from "./threads.js";

/** Options of `compactingFetch`: those of `openSession`, which conversation a request belongs to, and the `fetch` to send with. */
export interface CompactingFetchOptions extends AdapterOptions {
  /** The conversation: its session has this id. A function gets the body and the headers of the request. Default: the
   *  conversation is recognized by its messages, as long as the process lives. */
  thread?: string | ((body: Record<string, unknown>, headers: Headers) => string | undefined);
  /** Sends the requests. Default: the global `fetch`. */
  fetch?: (input: any, init?: any) => Promise<Response>;
}

/** A `fetch` that compacts. */
export interface CompactingFetch {
  (input: any, init?: any): Promise<Response>;
  /** The session of the conversation called `thread`, for its history, its goal or its recall tools. */
  session(thread: string): Promise<Session>;
  /** Closes every session. */
  close(): Promise<void>;
}

type Fetch = (input: any, init?: any) => Promise<Response>;
type Body = Record<string, unknown> & { model?: string };

/** What differs between the requests of providers. */
interface Api {
  format: Format;
  messages: "messages" | "input";
  /** The field of a system prompt beside the messages. */
  system?: "system" | "instructions";
}

/** By the end of the address. */
const APIS: [RegExp, Api][] = [
  [/\/chat\/completions$/, { format: "openai-chat", messages: "messages" }],
  [/\/responses$/, { format: "openai-responses", messages: "input", system: "instructions" }],
  [/\/messages$/, { format: "anthropic", messages: "messages", system: "system" }],
];

/** Fields that say that the provider holds the conversation. */
const HELD_THERE = ["previous_response_id", "conversation", "thread"];

/**
 * Returns a `fetch` that keeps the prompts of `openai` and `@anthropic-ai/sdk` inside the context window: `new OpenAI({ fetch:
 * compactingFetch() })`. It compacts the messages of Chat Completions, Responses and Anthropic Messages; every other request,
 * and every answer, passes as it is. Summaries are written by the model of the request, at the same address, unless
 * `summarize` says otherwise. Throws `invalid_option`.
 */
export function compactingFetch(options: CompactingFetchOptions = {}): CompactingFetch {
  const { thread } = options;
  const inner: Fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  const threads = new Threads("context-compactor/fetch", options as AdapterOptions & Record<string, unknown>, ["thread", "fetch"], undefined, true);

  async function compacting(input: any, init: any = {}): Promise<Response> {
    const url = String(input?.url ?? input);
    const api = APIS.find(([end]) => end.test(url.replace(/[?#].*$/, "")))?.[1];
    const body = api && (await bodyOf(input, init));
    const messages = body?.[api?.messages as string];
    if (!api || !body || !Array.isArray(messages) || HELD_THERE.some((field) => body[field])) return inner(input, init);

    const headers = new Headers(init.headers ?? input?.headers);
    headers.delete("content-length");
    const first = messages.findIndex(({ role }: { role?: string }) => role !== "system" && role !== "developer");
    const leading = messages.slice(0, Math.max(first, 0)) as Message[];
    const system = [api.system && body[api.system], ...leading.map((message) => (message as { content: unknown }).content)];
    const request = {
      id: typeof thread === "function" ? thread(body, headers) : thread,
      format: api.format,
      messages: messages.slice(leading.length) as Message[],
      system: system.map(plain).filter(Boolean).join("\n\n"),
      tools: body["tools"],
      model: body.model,
      signal: init.signal ?? input?.signal ?? undefined,
      ask: asking(inner, url, new Headers(headers), api, body),
    };
    try {
      return await threads.send(request, async (fitted) => {
        if (!fitted) return checked(await inner(input, init));
        const { prepared, goal, report } = fitted;
        const { betas, ...fields } = prepared.request ?? {};
        const whole = { ...body, ...managed(body, fields), [api.messages]: [...leading, ...prepared.messages] };
        const changed = withGoal(api, whole, leading.length, goal);
        const sent = { ...init, method: "POST", headers: withBetas(headers, betas), body: JSON.stringify(changed) };
        return counted(await checked(await inner(input, sent)), (usage) => report(usage, body.model));
      });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.cause) threads.warn(error.cause);
      return error.answer;
    }
  }
  return Object.assign(compacting, { session: (id: string) => threads.session(id), close: () => threads.close() });
}

/** The body of a request, if it is JSON that can be read before it is sent. */
async function bodyOf(input: any, init: any): Promise<Body | undefined> {
  const text = init.body ?? (typeof input?.clone === "function" ? await input.clone().text() : undefined);
  if (typeof text !== "string") return undefined;
  try {
    return Object(JSON.parse(text)) as Body;
  } catch {
    return undefined;
  }
}

/** The text of a system prompt: a text, or blocks of it. */
function plain(content: unknown): string {
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.map(({ text = "" }: { text?: string }) => text).join("\n") : "";
}

/** The body with the goal at the end of its system prompt. */
function withGoal(api: Api, body: Body, leading: number, goal: string): Body {
  if (!goal) return body;
  if (!api.system) {
    const messages = body["messages"] as Message[];
    return { ...body, messages: [...messages.slice(0, leading), { role: "system", content: goal }, ...messages.slice(leading)] };
  }
  const system = body[api.system];
  if (Array.isArray(system)) return { ...body, [api.system]: [...(system as object[]), { type: "text", text: goal }] };
  return { ...body, [api.system]: system ? `${String(system)}\n\n${goal}` : goal };
}

/** The fields by which the provider compacts, with what the request itself has it do to the context. */
function managed(body: Body, fields: Record<string, unknown>): Record<string, unknown> {
  const [own, ours] = [body["context_management"], fields["context_management"]] as { edits?: object[] }[];
  if (!own || !ours) return fields;
  const joined = (own: unknown, ours: object[]) => [
    ...(Array.isArray(own) ? (own as { type?: string }[]) : []).filter(({ type }) => !(ours as { type?: string }[]).some((one) => one.type === type)),
    ...ours,
  ];
  return { ...fields, context_management: Array.isArray(ours) ? joined(own, ours as object[]) : { ...own, edits: joined(own.edits, ours.edits ?? []) } };
}

/** The headers with the versions of Anthropic's API that the fields need. */
function withBetas(headers: Headers, betas: unknown): Headers {
  if (!Array.isArray(betas)) return headers;
  const all = new Headers(headers);
  const given = (all.get("anthropic-beta") ?? "").split(",").map((name) => name.trim());
  for (const beta of betas as string[]) if (!given.includes(beta)) all.append("anthropic-beta", beta);
  return all;
}

/** An answer by which the provider refuses the prompt as too long. */
class Refusal extends Error {
  readonly answer: Response;
  readonly status: number;
  readonly body: unknown;

  constructor(answer: Response, body: unknown) {
    super("the provider refused the request");
    this.answer = answer;
    this.status = answer.status;
    this.body = body;
  }
}

/** Throws a refusal of the prompt's length. */
async function checked(response: Response): Promise<Response> {
  if (response.ok) return response;
  // Errors are short; the app reads its own copy.
  const text = await response.clone().text();
  let body: unknown = text;
  try {
    body = JSON.parse(text);
  } catch {
    // A page of a proxy.
  }
  const refusal = new Refusal(response, body);
  if (isContextOverflow(refusal)) throw refusal;
  return response;
}

/** The same answer, whose usage is reported as it passes. */
function counted(response: Response, report: (usage: object) => void): Response {
  if (!response.body) return response;
  const isStream = /event-stream/.test(response.headers.get("content-type") ?? "");
  const decoder = new TextDecoder();
  let usage = {};
  let rest = "";
  const end = () => {
    if (Object.keys(usage).length > 0) report(usage);
    usage = {};
  };
  const see = (text: string) => {
    try {
      const { usage: own, message, response } = JSON.parse(text) as Record<"usage" | "message" | "response", any>;
      Object.assign(usage, message?.usage, response?.usage, own);
    } catch {
      // Not ours to judge.
    }
  };
  const passing = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, to) {
      to.enqueue(chunk);
      rest += decoder.decode(chunk, { stream: true });
      if (!isStream) return;
      const lines = rest.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line.startsWith("data:") && line.includes('"usage"')) see(line.slice(5));
      // Clients read no further.
      if (lines.some((line) => line.startsWith("data: [DONE]"))) end();
    },
    flush() {
      if (!isStream) see(rest);
      end();
    },
  });
  const { status, statusText, headers, url } = response;
  return Object.defineProperty(new Response(response.body.pipeThrough(passing), { status, statusText, headers }), "url", { value: url });
}

/** Asks the model of the request for summaries, at its address and as its user, and with no tools. */
function asking(send: Fetch, url: string, headers: Headers, api: Api, { model = "", max_completion_tokens: cap }: Body): Summarize {
  const create = async (body: object, { signal }: { signal?: AbortSignal } = {}): Promise<any> => {
    const response = await send(url, { method: "POST", headers, body: JSON.stringify(body), signal });
    if (response.ok) return response.json();
    throw Object.assign(new Error(`the provider answered ${response.status}: ${await response.text()}`), { status: response.status });
  };
  if (api.format === "anthropic") return anthropic({ messages: { create } }, model);
  if (api.format === "openai-chat") {
    // Who names the limit so has a model that knows no other name.
    return openaiCompatible({ baseURL: cap ? OPENAI : url, chat: { completions: { create } } }, model);
  }
  return async ({ system, messages, maxTokens }, { signal }) => {
    const body = { model, instructions: system, input: messages, max_output_tokens: maxTokens, store: false };
    const { output, usage, status } = await create(body, { signal });
    const parts = (output as { content?: unknown[] }[]).flatMap(({ content }) => content ?? []);
    return answer(textOf(parts), usage, status === "incomplete");
  };
}
