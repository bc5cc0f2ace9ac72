/** Entry `context-compactor/summarizers`: summaries by the clients of providers, for the option `summarize`. */

export { chrome } from "../adapters/chrome.js";
export {
  aiSdk,
  anthropic,
  openaiCompatible,
  workersAi,
  type AiSdkModel,
  type AnthropicClient,
  type OpenAiClient,
  type SummarizerOptions,
  type WorkersAi,
} from "../adapters/summarizers.js";
