/** The tools with which a model reads what is not in its context. */

import type { Format } from "./messages.js";

type Described = { name: string; description: string };
type JsonSchema = { type: "object"; [keyword: string]: unknown };

/** A tool as an item of the list that each format's provider is sent. */
interface ToolDefinitions {
  "openai-chat": { type: "function"; function: Described & { parameters: JsonSchema } };
  "openai-responses": { type: "function"; parameters: JsonSchema; strict: boolean } & Described;
  anthropic: Described & { input_schema: JsonSchema };
  /** One of the `functionDeclarations` of the one tool that the API takes. */
  gemini: Described & { parametersJsonSchema: JsonSchema };
  /** For `tools[name] = tool({ description, inputSchema: jsonSchema(inputSchema) })`. */
  "ai-sdk": { type: "function"; inputSchema: JsonSchema } & Described;
  react: Described & { parameters: JsonSchema };
}

export type ToolDefinition<F extends Format = Format> = ToolDefinitions[F];

/** The message that answers a call. */
interface ToolAnswers {
  "openai-chat": { role: "tool"; tool_call_id: string; content: string };
  "openai-responses": { type: "function_call_output"; call_id: string; output: string };
  anthropic: {
    role: "user";
    content: { type: "tool_result"; tool_use_id: string; content: string; is_error?: boolean }[];
  };
  /** Parallel calls are answered in one content: put the `parts` of their answers together. */
  gemini: {
    role: "user";
    parts: { functionResponse: { id?: string; name: string; response: Record<string, unknown> } }[];
  };
  "ai-sdk": {
    role: "tool";
    content: {
      type: "tool-result";
      toolCallId: string;
      toolName: string;
      output: { type: "text" | "error-text"; value: string };
    }[];
  };
  /** The turn, with the thought when `{ thought, action }` was handed over. */
  react: { thought: string; action: object; result: string };
}

export type ToolAnswer<F extends Format = Format> = ToolAnswers[F];

/** The tools `recall_read` and `recall_search`. */
export interface RecallTools<F extends Format = Format> {
  /** For the list of tools of a request, and for `prepare({ tools })`, which counts them. */
  definitions: ToolDefinition<F>[];
  /** Answers a call as the provider returned it: an item of `tool_calls`, a `tool_use` block, a `function_call` item, a
   *  part with a `functionCall`, a tool call of the AI SDK (or a tool part of a UI message, which comes back with its
   *  output), an action. What the model got wrong, such as a reference that there is not, is part of the answer, so that
   *  it can go on. Throws `invalid_message` for what is no call, and what the store throws. */
  handle<C>(call: C): Promise<C extends { state: unknown } ? C : ToolAnswer<F>>;
}
