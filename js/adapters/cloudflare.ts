/** Agents of Cloudflare: the adapter of the AI SDK over the object's own SQLite, and compactions of `agents/sessions`. */

import { checkOptions, invalidOption } from "../checks.js";
import { compact } from "../compact.js";
import { deleteSession } from "../sessions.js";
import type { DurableObjectContext, ObjectBucket } from "../store/durable/platform.js";
import { durableObjectStore } from "../store/durable/store.js";
import type { CompactOptions, Session } from "../types.js";
import { contextCompactor, type AiSdkCompactor, type AiSdkCompactorOptions } from "./ai-sdk.js";
import { checkAdapterOptions } from "./threads.js";

/** An object is one conversation: the id of its session. */
const CHAT = "chat";

/** A class of agents: `AIChatAgent` of `@cloudflare/ai-chat`, `Agent` of `agents`, or any other Durable Object with SQLite. */
export type AgentClass = new (...args: any[]) => object;

/** Options of `withCompaction`: those of `contextCompactor` of `context-compactor/ai-sdk`, but what the object itself decides. */
export interface AgentCompactorOptions extends Omit<AiSdkCompactorOptions, "store" | "thread"> {
  /** An R2 bucket for values over 256 KiB, as of `durableObjectStore`. Default: all is in the object's SQLite. */
  bigObjects?: ObjectBucket | undefined;
}

/** Compaction for the AI SDK in an agent. */
export interface AgentCompactor extends AiSdkCompactor {
  /** The session of the agent's conversation, to read its history, its pins or its goal; with `thread`, of another one that
   *  `with({ thread })` began in the same object. */
  session(thread?: string): Promise<Session>;
}

/** What `withCompaction` adds to an agent. */
export interface CompactingAgent {
  /** For `streamText` in `onChatMessage`: `prepareStep: this.compactor.prepareStep`, and `...this.compactor.tools` among the
   *  tools. */
  readonly compactor: AgentCompactor;
}

/** A change that `Sessions` of `agents/sessions` tells. */
interface Change {
  type: string;
  sessionId: string;
}

/** What both entries export as `withCompaction`. */
export function withCompaction<A extends AgentClass>(
  Agent: A,
  options: AgentCompactorOptions = {},
): A & (new (...args: any[]) => CompactingAgent) {
  for (const name of ["store", "thread"]) {
    if (!(name in options)) continue;
    throw invalidOption(name, `is the object's own here: ${name === "thread" ? "this.compactor.with({ thread })" : "contextCompactor of context-compactor/ai-sdk"} takes another`);
  }
  const { bigObjects, ...rest } = options;
  checkAdapterOptions(rest);
  return class extends Agent {
    readonly compactor: AgentCompactor;

    constructor(...args: any[]) {
      super(...args);
      const store = durableObjectStore(args[0] as DurableObjectContext, { bigObjects });
      const compactor = contextCompactor({ ...rest, store, thread: CHAT });
      this.compactor = { ...compactor, session: (thread = CHAT) => compactor.session(thread) };

      const { sessions } = this as { sessions?: { subscribe?(listener: (change: Change) => Promise<void>): unknown } };
      sessions?.subscribe?.(async ({ type, sessionId }) => {
        // Who clears the chat wants it gone, from the log, too.
        if (type !== "clear" || sessionId !== "") return;
        const session = await compactor.session(CHAT).catch(() => undefined);
        await session?.close({ delete: true });
        // One that is damaged, or that the app closed.
        await deleteSession(CHAT, { store });
      });
    }
  };
}

/** A message of `agents/sessions`: a UI message of the AI SDK. */
export interface SessionsMessage {
  id: string;
  role: string;
  parts: { type: string }[];
}

/** An overlay of `agents/sessions`: readers see the summary in place of the messages from one to the other. */
export interface SessionsOverlay {
  fromMessageId: string;
  toMessageId: string;
  summary: string;
}

const OPTIONS = ["contextWindow", "keep", "logger", "maxOutputTokens", "model", "pins", "redact", "summarize", "tokenCounter"] as const;

/** Options of `toSessionsCompaction`: those of `compact` that decide what is summarized, and how. */
export type SessionsCompactionOptions = Pick<CompactOptions, (typeof OPTIONS)[number]>;

/** The ids that `agents/sessions` gives to the overlays of before. */
const OVERLAY = /^compaction_/;

/** What both entries export as `toSessionsCompaction`. */
export function toSessionsCompaction(
  options: SessionsCompactionOptions = {},
): (messages: SessionsMessage[]) => Promise<SessionsOverlay | null> {
  checkOptions(options, OPTIONS);
  return async (given) => {
    const { messages, ledger, error } = await compact<object>(given, options);
    const covered = ledger.flatMap(({ checkpoint, index }) => (checkpoint === undefined ? [] : (given[index] as SessionsMessage)));
    const first = covered.find(({ id }) => !OVERLAY.test(id));
    const last = covered.at(-1);
    if (!first || !last) {
      if (error) throw error;
      return null;
    }
    // Nothing but the overlay of before.
    if (OVERLAY.test(last.id)) return null;
    const page = messages.find((message) => !given.includes(message as SessionsMessage)) as { parts: [{ text: string }] };
    return { fromMessageId: first.id, toMessageId: last.id, summary: page.parts[0].text };
  };
}
