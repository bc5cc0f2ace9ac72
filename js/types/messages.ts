/** Messages and the formats that they come in. */

import type { Names } from "../generated/options.js";

/** One message in the app's own format. The library never changes it, and returns the same object while the message is
 *  kept. */
export type Message = object;
/** Message formats. Without the option `format`, the format is detected from the messages. */
export type Format = Names["format"];
type PlainMessage = { role: "user"; content: string } | { role: "assistant"; content: string };
type MessageItem =
  | PlainMessage
  | { type: "message"; role: "user"; content: string | { type: "input_text"; text: string }[] }
  | { type: "message"; role: "assistant"; content: string };
type GeminiMessage = { role: "user"; parts: { text: string }[] } | { role: "model"; parts: { text: string }[] };
type UiText = { type: "text"; text: string };
type UiMessage = { id: string; role: "user"; parts: UiText[] } | { id: string; role: "assistant"; parts: UiText[] };
/** A message that a compaction adds: a summary or an acknowledgement, in the shape of its format. In `ai-sdk` it is a UI
 *  message in a history of UI messages, else a model message. A trajectory gets none. */
export type NewMessage<F extends Format = Format> = {
  "openai-chat": PlainMessage;
  "openai-responses": MessageItem;
  anthropic: PlainMessage;
  gemini: GeminiMessage;
  "ai-sdk": PlainMessage | UiMessage;
  react: never;
}[F];
/** The messages that a compaction can add to messages of type `M`: those of the formats that `M` belongs to. */
export type NewMessageAmong<M> = [Extract<NewMessage, M>] extends [never] ? NewMessage : Extract<NewMessage, M>;

/** Tokens of one call of a model, as its provider counted them. */
export interface Usage {
  /** Tokens of the whole prompt, those read from or written to the cache included. */
  inputTokens: number;
  /** Tokens of the whole answer, reasoning included. */
  outputTokens: number;
  /** The part of `inputTokens` that was read from the cache. */
  cacheReadTokens?: number;
  /** The part of `inputTokens` that was written to the cache. */
  cacheWriteTokens?: number;
  /** The part of `outputTokens` that was reasoning. */
  reasoningTokens?: number;
}
