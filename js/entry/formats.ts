/** Entry `context-compactor/formats`: how messages of other libraries are read and written, for the option `format`. */

export { agui } from "../formats/agui.js";
export { aiSdk4 } from "../formats/ai-sdk4.js";
export { bedrock } from "../formats/bedrock.js";
export { chrome } from "../formats/chrome.js";
export { cohere } from "../formats/cohere.js";
export { langchain } from "../formats/langchain.js";
export { mastra } from "../formats/mastra.js";
export { mcp } from "../formats/mcp.js";
export { mistral } from "../formats/mistral.js";
export { ollama } from "../formats/ollama.js";
export { openaiAgents } from "../formats/openai-agents.js";
export { tanstack } from "../formats/tanstack.js";
