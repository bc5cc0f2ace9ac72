/** Agents of Cloudflare, with compaction and without. `/KIND/ROOM/METHOD` calls a method of the agent in that room. */

import { AIChatAgent } from "@cloudflare/ai-chat";
import { Agent, getAgentByName, routeAgentRequest } from "agents";
import { Sessions } from "agents/sessions";
import { convertToModelMessages, isStepCount, jsonSchema, streamText, tool } from "ai";
import { createOpenAI } from "ai7-openai";
import { toSessionsCompaction, withCompaction } from "context-compactor/cloudflare";
import { fileText, logOf, OPTIONS, SUMMARIES } from "../support/agents.mjs";

const inputSchema = jsonSchema({ type: "object", properties: { nth: { type: "integer" } }, required: ["nth"] });
const readFile = tool({ description: "Reads a file", inputSchema, execute: async ({ nth }) => fileText(nth) });

/** The room is the key by which the provider at `body.url` knows the agent. */
async function answer(agent, { abortSignal, body }, compactor) {
  const result = streamText({
    model: createOpenAI({ apiKey: agent.name, baseURL: `${body.url}/v1` }).chat("small"),
    instructions: "You read files.",
    messages: await convertToModelMessages(agent.messages),
    tools: { read_file: readFile, ...compactor?.tools },
    prepareStep: compactor?.prepareStep,
    stopWhen: isStepCount(100),
    maxRetries: 0,
    onError: () => {},
    abortSignal,
  });
  return result.toUIMessageStreamResponse({ onError: (error) => `${error}, for ${error.cause}` });
}

export class Plain extends AIChatAgent {
  onChatMessage(_, options) {
    return answer(this, options);
  }
}

/** What each room was warned of; the logger is that of the class. */
const warnings = [];
const logger = (level, message) => void (level === "warn" && warnings.push(message));

function chat(options) {
  return class extends withCompaction(AIChatAgent, { ...OPTIONS, logger, ...options }) {
    branches = 0;

    async onChatMessage(_, options) {
      if (!options.body.broken) this.watching ??= (await this.compactor.session()).on("branch", () => this.branches++);
      return answer(this, options, this.compactor);
    }

    async look() {
      const session = await this.compactor.session();
      const log = await logOf(session);
      const { ok } = await session.archive.verify();
      return { ok, branches: this.branches, roles: log.map(({ role }) => role), text: JSON.stringify(log), usage: session.context.usage() };
    }

    warnings() {
      return warnings.splice(0);
    }

    tables() {
      return this.sql`SELECT name FROM sqlite_master WHERE type = 'table'`.map(({ name }) => name);
    }

    rows() {
      return this.sql`SELECT count(*) AS rows FROM context_compactor_rows`[0].rows;
    }

    /** Damages all that is stored but the session's name: it cannot be opened again. */
    async damage() {
      await (await this.compactor.session()).close();
      this.sql`UPDATE context_compactor_rows SET bytes = ${new Uint8Array(8)} WHERE instr(key, ${new TextEncoder().encode("meta")}) = 0`;
    }

    restart() {
      this.ctx.abort("restarted by the test");
    }
  };
}

export class Chat extends chat({}) {}
export class Summarizing extends chat(SUMMARIES) {}
export class Strict extends chat({ strict: true }) {}
export class Short extends chat({}) {
  maxPersistedMessages = 4;
}

/** A plain agent with a session of its own, whose compactions are ours. */
export class Noting extends Agent {
  sessions = new Sessions();
  asked = [];

  constructor(ctx, env) {
    super(ctx, env);
    this.lifecycle.use(this.sessions);
    const summarize = async ({ system, messages }) => {
      this.asked.push(system + messages.at(-1).content);
      if (this.isFailing) throw new Error("the model is away");
      return this.summary;
    };
    const compaction = toSessionsCompaction({ ...OPTIONS, summarize });
    this.session = this.sessions.session().onCompaction(async (messages) => {
      // The session keeps to itself what is thrown.
      this.error = undefined;
      return compaction(messages).catch((error) => {
        this.error = error;
        throw error;
      });
    });
  }

  async add(messages, compactAfter) {
    if (compactAfter) this.session.compactAfter(compactAfter);
    for (const message of messages) await this.session.appendMessage(message);
  }

  async compact(summary) {
    Object.assign(this, { summary, isFailing: summary === null, asked: [] });
    const result = await this.session.compact();
    return { result, asked: this.asked, error: this.error && `${this.error.code}: ${this.error.message}, for ${this.error.cause}` };
  }

  async read() {
    return { history: await this.session.getHistory(), rows: (await this.session.getHistoryRowStats()).length, compactions: await this.session.getCompactions() };
  }
}

export default {
  async fetch(request, env) {
    const response = await routeAgentRequest(request, env);
    if (response) return response;
    const [, kind, room, method] = new URL(request.url).pathname.split("/");
    const agent = await getAgentByName(env[kind], room);
    return Response.json((await agent[method](...(await request.json()))) ?? null);
  },
};
