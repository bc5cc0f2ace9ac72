/** A chat for each user that survives everything, kept in the SQLite of a Durable Object. */

import { CompactionError, openSession, type Session } from "context-compactor";
import { chatCommand } from "context-compactor/commands";
import { durableObjectStore, type DurableObjectContext, type ObjectBucket } from "context-compactor/cloudflare";

interface Env {
  ENDPOINT: string;
  MODEL: string;
  OPENAI_API_KEY: string;
  /** Who may chat: `{ "a secret token": "the user's name" }`. */
  TOKENS: string;
  CHATS: { idFromName(name: string): object; get(id: object): { fetch(request: Request): Promise<Response> } };
  /** Optional: long texts go there. */
  BIG?: ObjectBucket;
}

interface ChatMessage {
  role: "system" | "user" | "assistant";
  content: string;
}

async function complete(env: Env, messages: ChatMessage[], maxTokens = 1_000, signal?: AbortSignal): Promise<string> {
  const response = await fetch(env.ENDPOINT, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${env.OPENAI_API_KEY}` },
    body: JSON.stringify({ model: env.MODEL, messages, max_completion_tokens: maxTokens }),
    signal: signal ?? null,
  });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  const { choices } = (await response.json()) as { choices: [{ message: ChatMessage }] };
  return choices[0].message.content;
}

export class Chat {
  readonly #ctx: DurableObjectContext;
  readonly #env: Env;
  #opening: Promise<Session<ChatMessage>> | undefined;

  constructor(ctx: DurableObjectContext, env: Env) {
    this.#ctx = ctx;
    this.#env = env;
  }

  async fetch(request: Request): Promise<Response> {
    try {
      const session = await this.#session();
      if (request.method === "GET") return Response.json(await Array.fromAsync(session.archive.history()));
      const { text } = (await request.json()) as { text?: unknown };
      if (typeof text !== "string") return new Response("What do you say?", { status: 400 });
      const told = await chatCommand(session, text); // /compact, /context or /help
      return Response.json({ text: told ? told.text : await this.#send(session, text) });
    } catch (error) {
      if (!CompactionError.isInstance(error)) throw error;
      return Response.json({ code: error.code, message: error.message }, { status: 500 });
    }
  }

  /** The session, opened once. After a failure the next request tries again. */
  #session(): Promise<Session<ChatMessage>> {
    const opening = (this.#opening ??= this.#open());
    opening.catch(() => (this.#opening = undefined));
    return opening;
  }

  #open(): Promise<Session<ChatMessage>> {
    return openSession<ChatMessage>({
      id: "chat",
      store: durableObjectStore(this.#ctx, { bigObjects: this.#env.BIG }),
      contextWindow: 8_000,
      maxOutputTokens: 1_000,
      summarize: ({ system, messages, maxTokens }, { signal }) =>
        complete(this.#env, [{ role: "system", content: system }, ...messages], maxTokens, signal),
    });
  }

  async #send(session: Session<ChatMessage>, text: string): Promise<string> {
    await session.append({ role: "user", content: text }); // confirmed by the platform when it resolves
    const { messages } = await session.prepare(); // compacted if it has to be
    const answer = await complete(this.#env, messages);
    await session.append({ role: "assistant", content: answer });
    return answer;
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const [, token = ""] = /^Bearer (.+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
    const user = new Map(Object.entries(JSON.parse(env.TOKENS) as Record<string, string>)).get(token);
    if (user === undefined) return new Response("Who are you?", { status: 401 });
    // The name is of who is authenticated, never of what a request says.
    return env.CHATS.get(env.CHATS.idFromName(user)).fetch(request);
  },
};
