/** Agents of Cloudflare, with compaction and without. `/ROOM/METHOD` calls a method of the agent in that room. */

import { AIChatAgent } from "@cloudflare/ai-chat";
import { Agent, getAgentByName, routeAgentRequest } from "agents";
import { createCompactFunction, Sessions } from "agents/sessions";
import { convertToModelMessages, isStepCount, jsonSchema, streamText, tool } from "ai";
import { createOpenAI } from "ai7-openai";
import { toSessionsCompaction, withCompaction } from "context-compactor/cloudflare";
import { fileText, logOf, OPTIONS, SUMMARIES } from "../support/agents.mjs";

const inputSchema = jsonSchema({ type: "object", properties: { nth: { type: "integer" } }, required: ["nth"] });
const tools = { read_file: tool({ description: "Reads a file", inputSchema, execute: async ({ nth }) => fileText(nth) }) };

/** The name of a room is the key of its agent, as the provider knows it. */
const modelOf = ({ name, env }) => createOpenAI({ apiKey: name, baseURL: `${env.PROVIDER}/v1` }).chat("small");

const answer = async (agent, abortSignal, compaction = {}) => {
  const messages = await convertToModelMessages(agent.messages);
  const common = { model: modelOf(agent), instructions: "You read files.", messages, maxRetries: 0, stopWhen: isStepCount(100), abortSignal };
  return streamText({ ...common, tools, onError: () => {}, ...compaction }).toUIMessageStreamResponse({ onError: String });
};

export class Plain extends AIChatAgent {
  onChatMessage(_, { abortSignal }) {
    return answer(this, abortSignal);
  }
}

/** Warnings of the room's name. */
const warnings = {};

function chat(options) {
  return class extends withCompaction(AIChatAgent, { ...OPTIONS, ...options }) {
    #branches = 0;

    async onChatMessage(_, { abortSignal }) {
      this.watching ??= (await this.compactor.session()).on("branch", () => this.#branches++);
      const { prepareStep, tools: recall } = this.compactor;
      return answer(this, abortSignal, { prepareStep, tools: { ...tools, ...recall } });
    }

    async look() {
      const session = await this.compactor.session();
      const log = await logOf(session);
      const { ok } = await session.archive.verify();
      const { edits } = session.context.usage();
      return { roles: log.map(({ role }) => role).join(" "), ok, branches: this.#branches, edits, text: JSON.stringify(log) };
    }

    tables() {
      return this.sql`SELECT name FROM sqlite_master WHERE type = 'table'`.map(({ name }) => name);
    }

    rows() {
      return this.sql`SELECT count(*) AS rows FROM context_compactor_rows`[0].rows;
    }

    restart() {
      this.ctx.abort("restarted by the test");
    }
  };
}

export class Chat extends chat({}) {}
export class Summarizing extends chat(SUMMARIES) {}

export default {
  async fetch(request, env) {
    const response = await routeAgentRequest(request, env);
    if (response) return response;
    const [, kind, room, method] = new URL(request.url).pathname.split("/");
    const agent = await getAgentByName(env[kind], room);
    return Response.json((await agent[method](...(await request.json()))) ?? null);
  },
};
