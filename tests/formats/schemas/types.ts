/** What an app hands to each client, as the clients' own packages declare it. Read by generate.mjs, never compiled. */

import type { BetaMessageParam } from "@anthropic-ai/sdk/resources/beta/messages";
import type { MessageParam } from "@anthropic-ai/sdk/resources/messages";
import type { Content } from "@google/genai";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import type { ResponseInputItem } from "openai/resources/responses/responses";

export type OpenAiChat = ChatCompletionMessageParam;
export type OpenAiResponses = ResponseInputItem;
export type Anthropic = MessageParam;
export type AnthropicBeta = BetaMessageParam;
export type Gemini = Content;
