/** Entry `context-compactor/cloudflare`: what only Workers have. The store brings no engine; the rest brings it when it is called. */

import * as agents from "../adapters/cloudflare.js";
import type { AgentClass, AgentCompactorOptions, CompactingAgent, SessionsCompactionOptions, SessionsMessage, SessionsOverlay } from "../adapters/cloudflare.js";
import { bring } from "../host/files.js";

export { durableObjectStore } from "../store/durable/store.js";
export type { DurableObjectContext, DurableObjectStorage, ObjectBucket, SqlValue } from "../store/durable/platform.js";
export type {
  AgentClass,
  AgentCompactor,
  AgentCompactorOptions,
  CompactingAgent,
  SessionsCompactionOptions,
  SessionsMessage,
  SessionsOverlay,
} from "../adapters/cloudflare.js";

/**
 * Keeps the prompts of an agent of Cloudflare inside the context window: `class Chat extends withCompaction(AIChatAgent) {}`. In
 * `onChatMessage`, give `streamText` `prepareStep: this.compactor.prepareStep`. The agent's messages stay whole; only the
 * prompt of each call is compacted. Summaries are written by the agent's own model unless `summarize` says otherwise. What it
 * needs to go on after a restart is in the object's SQLite, in tables of its own, and is deleted when the chat is cleared.
 * Throws `invalid_option`.
 */
export function withCompaction<A extends AgentClass>(
  Agent: A,
  options?: AgentCompactorOptions,
): A & (new (...args: any[]) => CompactingAgent) {
  bring();
  return agents.withCompaction(Agent, options);
}

/**
 * Makes the compactions of a session of `agents/sessions`: `session.onCompaction(toSessionsCompaction({ summarize
 * })).compactAfter(80_000)`. The function that it returns resolves to one overlay, whose summary replaces all messages but the
 * newest, or to null when there is nothing to summarize. The session keeps the messages. Without `summarize`, summaries are
 * made without a model. Throws `invalid_option`. When a summary fails, the function rejects with the errors of `compact`: the
 * session then emits `session:error` and keeps what it has.
 */
export function toSessionsCompaction(
  options?: SessionsCompactionOptions,
): (messages: SessionsMessage[]) => Promise<SessionsOverlay | null> {
  bring();
  return agents.toSessionsCompaction(options);
}
