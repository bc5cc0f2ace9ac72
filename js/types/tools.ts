/** Tools with which a model reads messages that are no longer in its context. */

import type { Format } from "./messages.js";

type Described = { name: string; description: string };
type JsonSchema = { type: "object"; [keyword: string]: unknown };

/** A tool definition, as each format has it in a request. */
interface ToolDefinitions {
  "openai-chat": { type: "function"; function: Described & { parameters: JsonSchema } };
  "openai-responses": { type: "function"; parameters: JsonSchema; strict: boolean } & Described;
  anthropic: Described & { input_schema: JsonSchema };
  /** An item of `functionDeclarations` of a single tool. */
  gemini: Described & { parametersJsonSchema: JsonSchema };
  /** For `tools[name] = tool({ description, inputSchema: jsonSchema(inputSchema) })`. */
  "ai-sdk": { type: "function"; inputSchema: JsonSchema } & Described;
  react: Described & { parameters: JsonSchema };
}

/** A tool definition, in the shape of format `F`. */
export type ToolDefinition<F extends Format = Format> = ToolDefinitions[F];

/** The message that answers a tool call, in the shape of each format. */
interface ToolAnswers {
  "openai-chat": { role: "tool"; tool_call_id: string; content: string };
  "openai-responses": { type: "function_call_output"; call_id: string; output: string };
  anthropic: {
    role: "user";
    content: { type: "tool_result"; tool_use_id: string; content: string; is_error?: boolean }[];
  };
  /** Parallel calls are answered in one message: join the `parts` of their answers. */
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
  /** The turn. `thought` is that of the call, when `{ thought, action }` was passed. */
  react: { thought: string; action: object; result: string };
}

/** The message that answers a tool call, in the shape of format `F`. */
export type ToolAnswer<F extends Format = Format> = ToolAnswers[F];

/** The tools `recall_read` and `recall_search`, with option `handoff` also `new_context`, from `session.recall.tools()`. */
export interface RecallTools<F extends Format = Format> {
  /** Definitions for the list of tools of a request. Pass them to `prepare({ tools })`, too, which counts them. */
  definitions: ToolDefinition<F>[];
  /** Answers a call as the provider returned it: an item of `tool_calls`, a `tool_use` block, a `function_call` item, a
   *  part with a `functionCall`, a tool call of the AI SDK (or a tool part of a UI message, which is returned with its
   *  output), or an action. Append the answer. A mistake of the model, such as an unknown reference, is explained in the
   *  answer. Rejects with `invalid_message` for something that is not a call, and with the errors of the store. */
  handle<C>(call: C): Promise<C extends { state: unknown } ? C : ToolAnswer<F>>;
}
