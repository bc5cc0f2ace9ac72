import { chat, maxIterations, toolDefinition } from "@tanstack/ai";
import { createOpenaiChatCompletions } from "@tanstack/ai-openai";
import { serveAgent, fileText, OPTIONS } from "../support/agents.mjs";
import { contextCompactor } from "context-compactor/tanstack-ai";
for (const ours of [false, true]) {
const server = await serveAgent({ files: 20 });
const tool = toolDefinition({ name: "read_file", description: "Reads a file", inputSchema: {type:"object"} }).server(({ nth }) => fileText(nth));
const adapter = createOpenaiChatCompletions("gpt-4.1", "k", { baseURL: `${server.url}/v1` });
const cc = contextCompactor(OPTIONS);
const on = cc.onConfig;
let inside = 0;
cc.onConfig = async (...a) => { const t = Date.now(); const r = await on(...a); inside += Date.now() - t; return r; };
let last = Date.now(); const start = last; const sums = {};
for await (const chunk of chat({ adapter, messages: [{role:"user",content:"hi"}], tools: [tool], agentLoopStrategy: maxIterations(100), middleware: ours ? [cc] : [] })) { const n=Date.now(); sums[chunk.type] = (sums[chunk.type] ?? 0) + n - last; last=n; }
console.log(ours, Date.now() - start, inside, sums);
await cc.close();
await server.close();
}
