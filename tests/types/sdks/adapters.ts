/** The adapters fit into the SDKs as their types want it, in every supported major. */

import Anthropic from "@anthropic-ai/sdk";
import { AIChatAgent } from "@cloudflare/ai-chat";
import { Agent } from "@mastra/core/agent";
import { chat } from "@tanstack/ai";
import { openaiText } from "@tanstack/ai-openai";
import * as agents from "@openai/agents";
import { Sessions } from "agents/sessions";
import * as ai6 from "ai6";
import * as ai7 from "ai7";
import { createAgent } from "langchain";
import OpenAI from "openai";
import { openSession, type AdapterOptions, type Session } from "context-compactor";
import { compose, contextCompactor, type CompactionData } from "context-compactor/ai-sdk";
import { toSessionsCompaction, withCompaction } from "context-compactor/cloudflare";
import { compactingFetch } from "context-compactor/fetch";
import { compactionMiddleware } from "context-compactor/langchain";
import { ContextCompactor } from "context-compactor/mastra";
import { contextCompactor as tanStackCompactor } from "context-compactor/tanstack-ai";
import { CompactingSession, contextCompactor as agentsCompactor } from "context-compactor/openai-agents";
import { aiSdk, anthropic, chrome, openaiCompatible, workersAi } from "context-compactor/summarizers";

declare const model6: ai6.LanguageModel & object;
declare const model7: ai7.LanguageModel & object;
declare const v3: Parameters<typeof ai6.wrapLanguageModel>[0]["model"];
declare const v4: Parameters<typeof ai7.wrapLanguageModel>[0]["model"];

const options: AdapterOptions = { contextWindow: 32_000, recall: { tools: false }, strict: true };
const cc = contextCompactor({ ...options, thread: ({ runtimeContext }) => runtimeContext?.chat });

const read6 = ai6.tool({ inputSchema: ai6.jsonSchema<{ path: string }>({}), execute: async ({ path }) => path });
const read7 = ai7.tool({ inputSchema: ai7.jsonSchema<{ path: string }>({}), execute: async ({ path }) => path });

export const agent6 = new ai6.ToolLoopAgent({ model: model6, tools: { read: read6, ...cc.tools }, prepareStep: cc.prepareStep });
export const recalls6 = new ai6.ToolLoopAgent({ model: model6, tools: cc.tools, prepareStep: cc.prepareStep });
export const recalls7 = new ai7.ToolLoopAgent({ model: model7, tools: cc.tools, prepareStep: cc.prepareStep });
export const agent7 = new ai7.ToolLoopAgent({ model: model7, tools: { read: read7, ...cc.tools }, prepareStep: cc.prepareStep });
export const wrapped6 = ai6.wrapLanguageModel({ model: v3, middleware: cc.middleware });
export const wrapped7 = ai7.wrapLanguageModel({ model: v4, middleware: cc.middleware });
export const text6 = ai6.generateText({ model: wrapped6, prompt: "hi", prepareStep: compose(cc.prepareStep, ({ stepNumber }) => (stepNumber > 1 ? { activeTools: [] } : {})) });
export const text7 = ai7.streamText({ model: wrapped7, prompt: "hi", prepareStep: compose(cc.prepareStep) });

export type Ui = ai7.UIMessage<unknown, { compaction: CompactionData }>;
export const stream = ai7.createUIMessageStream<Ui>({
  execute: ({ writer }) => writer.merge(ai7.streamText({ model: model7, prompt: "hi", prepareStep: cc.with({ writer, thread: "a" }).prepareStep }).toUIMessageStream<Ui>()),
});

export const langchain = createAgent({ model: "openai:gpt-5", middleware: [compactionMiddleware({ ...options, persist: true, thread: ({ runtime }) => runtime.context.chat })] });

const processor = new ContextCompactor({ ...options, thread: ({ requestContext }) => requestContext.get("chat") });
export const mastra = new Agent({ id: "a", name: "a", instructions: "", model: "openai/gpt-5", inputProcessors: [processor], errorProcessors: [processor] });

const compactor = tanStackCompactor({ ...options, thread: ({ context }) => context.chat });
const asked = { messages: [{ role: "user" as const, content: "hi" }], stream: false as const };
export const tanStack: Promise<string> = chat({ ...compactor.with(openaiText("gpt-5")), ...asked });
export const alone: Promise<string> = chat({ adapter: openaiText("gpt-5"), middleware: [{ name: "theirs" }, compactor], ...asked });

const ac = agentsCompactor({ ...options, thread: ({ context }) => context.chat });
export const agent = new agents.Agent({ name: "a", model: ac.model(await new agents.OpenAIProvider().getModel("gpt-5")), tools: ac.tools });
export const runner = new agents.Runner({ callModelInputFilter: ac, modelProvider: ac.modelProvider(new agents.OpenAIProvider()) });
export const ran = runner.run(agent, "hi", { session: new CompactingSession(new agents.MemorySession()) });

export class Chat extends withCompaction(AIChatAgent, { contextWindow: 16_000, strict: true, recall: { tools: false } })<object, { nth: number }> {
  override async onChatMessage() {
    this.setState({ nth: 1 });
    const { prepareStep, tools } = this.compactor;
    const messages = await ai7.convertToModelMessages(this.messages);
    const result = ai7.streamText({ model: model7, messages, tools: { ...tools }, prepareStep });
    (await this.compactor.session()).on("branch", () => undefined);
    return result.toUIMessageStreamResponse();
  }
}
// @ts-expect-error: the object itself is the conversation
withCompaction(AIChatAgent, { thread: "one" });
export const overlays = new Sessions().session().onCompaction(toSessionsCompaction({ keep: { tokens: 20_000 } })).compactAfter(80_000);
// @ts-expect-error: an overlay cannot say it
toSessionsCompaction({ offload: { minChars: 100 } });

const fetch = compactingFetch({ thread: (body, headers) => headers.get("x-chat") ?? String(body["user"]) });
export const openai = new OpenAI({ fetch });
export const claude = new Anthropic({ fetch });
export const session: Promise<Session> = fetch.session("a");

export const sessions = [
  openSession({ summarize: openaiCompatible(openai, "gpt-5-mini") }),
  openSession({ summarize: anthropic(claude, "claude-haiku-4-5", { lastRequest: () => undefined }) }),
  openSession({ summarize: { call: aiSdk(v3), targetTokens: 400 } }),
  openSession({ summarize: aiSdk(v4) }),
  openSession({ summarize: workersAi({ run: async () => ({ response: "" }) }, "@cf/meta/llama-3.1-8b-instruct") }),
  openSession({ summarize: chrome() }),
];

// @ts-expect-error: an adapter names its sessions by `thread`
contextCompactor({ id: "a" });
// @ts-expect-error: no such option
compactingFetch({ windowSize: 1 });
