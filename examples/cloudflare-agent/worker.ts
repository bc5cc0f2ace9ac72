/** An agent as it is written without compaction, but for two lines. */

import { AIChatAgent } from "@cloudflare/ai-chat";
import { getAgentByName, routeAgentRequest } from "agents";
import { convertToModelMessages, isStepCount, jsonSchema, streamText, tool } from "ai";
import { withCompaction } from "context-compactor/cloudflare";
import { scripted } from "./model.js";

declare global {
  namespace Cloudflare {
    interface Env {
      Reader: DurableObjectNamespace<Reader>;
    }
  }
}

function readLog({ day }: { day: number }): string {
  const lines = Array.from({ length: 60 }, (_, minute) => `12:${String(minute).padStart(2, "0")} job ${day}-${minute} ok`);
  if (day % 9 === 0) lines[day] = `12:${day} job ${day}-${day} failed: disk full`;
  return lines.join("\n");
}

const inputSchema = jsonSchema<{ day: number }>({ type: "object", properties: { day: { type: "integer" } }, required: ["day"] });
const tools = { read_log: tool({ description: "The log of a day", inputSchema, execute: async (input) => readLog(input) }) };

export class Reader extends withCompaction(AIChatAgent, { contextWindow: 8_000, maxOutputTokens: 500 }) {
  readonly #model = scripted();

  override async onChatMessage(_: unknown, options?: { abortSignal?: AbortSignal }) {
    const result = streamText({
      model: this.#model,
      instructions: "You answer from the logs. Never guess.",
      messages: await convertToModelMessages(this.messages),
      tools: { ...tools, ...this.compactor.tools },
      prepareStep: this.compactor.prepareStep,
      stopWhen: isStepCount(50),
      abortSignal: options?.abortSignal,
    });
    return result.toUIMessageStreamResponse();
  }

  /** One turn without a page. */
  async ask(text: string) {
    await this.saveMessages([...this.messages, { id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] }]);
    const said = this.messages.at(-1)?.parts.map((part) => (part.type === "text" ? part.text : "")).join("");

    // Nothing is lost: the chat has every message, and the session every one that was sent.
    const session = await this.compactor.session();
    const log = (await session.context.explain()).length;
    return { said, messages: this.messages.length, prompts: this.#model.prompts, log, valid: (await session.archive.verify()).ok };
  }
}

export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    const text = searchParams.get("text");
    const response = await routeAgentRequest(request, env);
    if (response) return response;
    if (text === null) return new Response("What do you ask?", { status: 400 });
    return Response.json(await (await getAgentByName(env.Reader, pathname.slice(1))).ask(text));
  },
} satisfies ExportedHandler<Cloudflare.Env>;
