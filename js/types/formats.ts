/** Formats of an app's own, for the option `format`. */

import type { Format, Message } from "./messages.js";

/** A result of a tool with other content, for `patch` of a `CustomFormat`. */
export interface EditedResult {
  /** Which of the message's results it is, from 0. */
  nth: number;
  /** The id of its call. */
  id: string;
  /** Its new content, in the shape of the format `base`: a text, or content blocks where it has blocks. */
  content: unknown;
}

/** A call with another input, for `patch` of a `CustomFormat`. */
export interface EditedCall {
  /** Which of the message's calls it is, from 0. */
  nth: number;
  /** Its id. */
  id: string;
  /** Its new input. */
  input: Record<string, unknown>;
}

/**
 * How messages in a format of your own are read and written, for the option `format`. `context-compactor/formats` has those of
 * LangChain, Bedrock, Ollama and others. Messages that are kept are returned as the objects that you passed. Each message of
 * yours is one message of `base`, so every index in results and errors is that of your message; a `field` in an error is
 * one of the message that `read` returned. What the session stores is what `read` returns.
 */
export interface CustomFormat<M extends Message = any> {
  /** The format's name, for error messages. */
  name: string;
  /** The format of the messages that `read` returns. Its rules apply to the conversation, and `recall.tools()` are for it.
   *  `ai-sdk` has messages (`parts`) that hold calls together with their results. */
  base: Format;
  /** Returns the message of `base` that says the same, always the same one for the same message. Fields that it leaves out are
   *  neither counted nor stored; a field `metadata` is stored, and not counted or compared. In `openai-chat`, calls and results
   *  without an id are paired by their order and by `name`. A message that it throws for is refused (`invalid_message`). */
  read(message: M): Message;
  /** Returns a new message that says what a message of `base` says: a summary, a message that `patch` cannot make, or one that
   *  was read from the store because the app no longer has it. `read` of it should return the same again, so that `sync`
   *  recognizes it. `given`: the newest message of each role that the app handed over. */
  write(message: any, given: readonly M[]): M;
  /** Returns a copy of `message` with other results or inputs of calls; both lists have only those that changed. Where `read` of
   *  the copy does not return what the context should have, `write` is called instead. Default: `write`. */
  patch?(message: M, edits: { results: EditedResult[]; calls: EditedCall[] }): M;
  /** Returns the id that the app's library gave the message, by which `sync` recognizes a new version of it. Default: the `id`
   *  of the message that `read` returns. */
  id?(message: M): string | undefined;
}
