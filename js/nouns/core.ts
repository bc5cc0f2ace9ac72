/** What the parts of a session work on. */

import type { Host, Notice } from "../effects.js";
import { CompactionError } from "../errors.js";
import type { MessageCache } from "../message-cache.js";
import type { Codec } from "../codecs.js";
import type { Turns } from "../turns.js";
import type { Stage } from "../stages.js";
import type { MaybePromise, Message, SessionOptions, Store } from "../types.js";
import type { Session as Handle } from "../wasm/core.js";

/** An operation that may compact. */
export interface Compacting {
  /** The id of its session. */
  session: string;
  /** What calls for it: `overflow` and `manual` compact below the threshold too. */
  trigger: "auto" | "manual" | "overflow";
  /** No call waits for it. */
  isLate?: true;
}

/** What is to be done first. */
export interface Asked {
  /** Loaded, if that is not done. */
  stage?: Stage;
  /** The system prompt and the tools are counted, as by `counted`. */
  isCounted?: true;
}

/** Follows such an operation: `work` runs it, with the host that it is given or another one. */
type Follow = <T>(compacting: Compacting, host: Host, work: (host: Host) => Promise<T>) => Promise<T>;

export interface Core<M extends Message> {
  readonly options: SessionOptions;
  readonly store: Store;
  readonly turns: Turns;
  readonly cache: MessageCache<M>;
  readonly codec: Codec<M>;
  /** Runs an operation of the engine to its end. */
  drive<T>(begin: (handle: Handle) => unknown, host?: Host): Promise<T>;
  /** Runs a step that reads one page; other calls may come between two of them. */
  paged<T>(begin: (handle: Handle) => unknown): Promise<T>;
  /** Asks the engine for what it knows without reading the store. */
  look<T>(at: (handle: Handle) => unknown): T;
  /** The same, after the system prompt as it is now and the tools of the last `prepare` were counted. */
  counted<T>(at: (handle: Handle) => unknown): T;
  /** Asks for what is not known at once. */
  ask<T>(at: (handle: Handle) => unknown, how?: Asked): MaybePromise<T>;
  /** Learns from a provider's counts. */
  learn(usage: object, options: { model?: string }): MaybePromise<void>;
  notify(notice: Notice): void;
  /** Set by entries that follow what is compacted. */
  follow?: Follow | undefined;
}

/** Of each session that is open, for entries of the package beside the main one. */
export const cores = new WeakMap<object, Core<Message>>();

/** That of a session. */
export function coreOf(session: object): Core<Message> {
  const core = typeof session === "object" && session !== null ? cores.get(session) : undefined;
  if (core) return core;
  throw new CompactionError("invalid_option", "session: must be what openSession of this copy of the package resolved to", {
    field: "session",
  });
}
