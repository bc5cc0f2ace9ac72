/** Where the engine of a session is: in this thread, or in another one. */

import type { Engine } from "./engine.js";
import type { Host } from "./effects.js";
import type { Stage } from "./stages.js";
import type { StorePlace } from "./store/place.js";
import type { Format, MaybePromise, SessionOptions } from "./types.js";
import type { Session as Handle } from "./wasm/core.js";

/** System prompt, tools and live facts, as texts. */
export type Fixed = string[];

/** Messages as the engine has them. */
export interface Log {
  /** JSON text of a message of the context, by its position. */
  body(seq: number): string | undefined;
  /** The same of all that are there verbatim, by their index among the app's. */
  bodies(): [index: number, body: string][];
  /** Which messages are the history: all of them but those of `behind`. */
  branch(): { messages: number; behind: [from: number, to: number][] };
  /** Brings what is asked for next, from another thread: the messages at these positions, or all, with the branch. Until the
   *  next operation it is here; what is not here throws `LACKING`. */
  bring?(what: readonly number[] | "all"): Promise<void>;
}

/** Thrown by a log that is in another thread for what was not brought. */
export const LACKING = new Error("the log is in another thread");

/** The engine's side of a session. */
export interface Seat {
  readonly log: Log;
  /** Runs an operation to its end. `seal` sees what effects threw. */
  drive<T>(begin: (handle: Handle) => unknown, host: Host, seal?: (thrown: Map<number, unknown>) => void): Promise<T>;
  /** What is known at once. */
  look<T>(at: (handle: Handle) => unknown): T;
  /** Anything else that is known without the store, and operations that ask only for what is answered at once. */
  ask<T>(at: (handle: Handle) => unknown, host: Host): MaybePromise<T>;
  /** Counts what `look` and `ask` count beside the messages. */
  count(fixed: Fixed, host: Host): MaybePromise<void>;
  /** Loads a stage for `ask`. */
  bring(stage: Stage): Promise<void>;
  /** Whether the session, opened again, would be the same in an engine with less memory. */
  isOutdated(): boolean;
  /** Refuses every later call, and frees memory. */
  end(): void;
}

/** A session that was opened, as the engine reports it. */
export interface Opened {
  id: string;
  format: Format;
  messages: number;
  handle: Handle;
}

/** A thread with an engine. */
export interface Quarters {
  /** Resolves when the engine runs. */
  started(): Promise<void>;
  /** Brings what sessions with these options count by; resolves to whether their window is assumed. */
  ready(values: object): Promise<boolean>;
  /** Where a session with these options is kept. */
  place(options: SessionOptions): Promise<StorePlace>;
  /** Runs an operation of no session. */
  drive<T>(begin: (engine: Engine) => unknown, host: Host): Promise<T>;
  /** The session of a handle that an operation resolved to. */
  seat(handle: Handle): Seat;
}
