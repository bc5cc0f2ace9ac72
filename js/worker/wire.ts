/** What crosses between the page and the thread of the engine. Both are of one build. */

import type { Answer, Effect, EngineError } from "../effects.js";
import { CompactionError, type ErrorCode } from "../errors.js";
import type { Fixed } from "../seat.js";
import type { Stage } from "../stages.js";
import type { SessionOptions, Store, StoreNotice } from "../types.js";

/** A call of the engine: the names that lead to it, and its arguments. */
export interface At {
  path: string[];
  args: unknown[];
}

/** What an operation is performed with. */
export interface How {
  /** Number of the store there; none where the page performs its calls. */
  store: number | undefined;
  storeTimeoutMs: number | undefined;
  /** Effects that the page performs. */
  away: Effect["type"][];
  /** Others may work on the session while a model is waited for. */
  parks: boolean;
}

/** A store there. */
export interface Place {
  nth: number;
  caps: Store["caps"];
  name: string | undefined;
  own: boolean;
  asksForLoss: boolean;
  purges: boolean;
  warning: Warned | undefined;
}

type Warned = { code: string; message: string; durable?: "none" };

/** The calls that the page makes, by name. `on`: number of a handle. */
export interface Calls {
  /** `build` of the page, and the name of a lock that it holds as long as it is there. */
  hello: { of: { build: string; lock: string | undefined }; to: { build: string; lock: string | undefined } };
  ready: { of: { values: object }; to: boolean };
  place: { of: Pick<SessionOptions, "id" | "parent" | "store">; to: Place };
  store: { of: { nth: number; method: "dataLoss" | "purge" | "close" }; to: unknown };
  drive: { of: { on: number; at: At; how: How }; to: Ended };
  ask: { of: { on: number; at: At; how: How }; to: Ended };
  stage: { of: { stage: Stage }; to: void };
  bodies: { of: { on: number; seqs: readonly number[] }; to: (string | undefined)[] };
  end: { of: { on: number }; to: void };
}

/** The end of an operation, as the engine has it, and what effects threw there. */
export interface Ended {
  done?: unknown;
  error?: EngineError | undefined;
  thrown: [effect: number, Thrown][];
}

/** To the thread. */
export type Up =
  | { [Name in keyof Calls]: { n: number; call: Name; of: Calls[Name]["of"] } }[keyof Calls]
  | { n: number; answer: Answer; to: number }
  | { n: number; abort: true }
  | { n: number; back: number };

/** To the page. `n`: the call that it is about. */
export type Down =
  | ({ n: number; mirror: Mirror } & ({ value: unknown } | { thrown: Thrown }))
  | { n: number; effect: Effect }
  | { n: number; park: number }
  | { n: number; back: number }
  | { store: number; changes: [sid: string, ver: number] }
  | { store: number; notice: StoreNotice };

/** What is new of what the page shows at once: of handles, as JSON by name; of stores, what a commit survives. */
export interface Mirror {
  handles: [on: number, known: Record<string, string | undefined>][];
  stores: [nth: number, durable: Store["caps"]["durable"]][];
}

/** What is known of a session at once, by the names of the engine's calls, with an argument after a colon; and whether it is better
 *  opened again. */
export const MIRRORED = ["usage", "availableTokens", "checkpoints", "reliability", "goal", "metadata", "sessionLog", "tools", "isOutdated"] as const;

/** The name of a mirrored call. */
export function nameOf({ path: [name = ""], args: [argument] }: At): string {
  return argument === undefined ? name : `${name}:${String(argument)}`;
}

/** What `at` calls. */
export function recorded<T>(at: (of: T) => unknown): At {
  return at(recorder([]) as T) as At;
}

function recorder(path: string[]): unknown {
  return new Proxy(() => {}, {
    get: (_, name) => recorder([...path, String(name)]),
    apply: (_, __, args: unknown[]): At => ({ path, args }),
  });
}

/** Fixed texts are sent when they change. */
export function isSame(one: Fixed | undefined, other: Fixed): boolean {
  return one !== undefined && one.length === other.length && one.every((text, at) => text === other[at]);
}

/** What was thrown, without what cannot cross. */
export interface Thrown {
  name: string;
  message: string;
  stack: string | undefined;
  /** Of our own errors. */
  ours: { code: ErrorCode; index?: number | undefined; field?: string | undefined; reason?: string | undefined; stage?: string | undefined; retryable: boolean } | undefined;
  more: Record<string, string | number>;
  cause: Thrown | undefined;
  /** By the signal of the call. */
  isAbort: boolean;
}

/** How deep causes are followed: one may be its own. */
const DEPTH = 8;

/** The reason of a signal that was aborted in the page. */
export const ABORTED = new Error("aborted in the page");

export function thrownOf(error: unknown, depth = 0): Thrown {
  const { name, message, stack, cause, code, status } = Object(error) as Record<string, unknown>;
  const more = Object.fromEntries(Object.entries({ code, status }).filter(([, value]) => typeof value === "string" || typeof value === "number"));
  const isOurs = CompactionError.isInstance(error);
  return {
    name: typeof name === "string" ? name : "Error",
    message: typeof message === "string" ? message : String(error),
    stack: typeof stack === "string" ? stack : undefined,
    ours: isOurs ? { code: error.code, index: error.index, field: error.field, reason: error.reason, stage: error.stage, retryable: error.retryable } : undefined,
    more: more as Thrown["more"],
    cause: cause === undefined || cause === null || depth >= DEPTH ? undefined : thrownOf(cause, depth + 1),
    isAbort: error === ABORTED,
  };
}

/** The error of the page for it. `reason`: of the signal of the call. */
export function errorOf({ name, message, stack, ours, more, cause: of, isAbort }: Thrown, reason?: unknown): unknown {
  if (isAbort) return reason;
  const cause = of && errorOf(of, reason);
  if (ours) {
    const { code, ...details } = ours;
    const error = new CompactionError(code, message, cause === undefined ? details : { ...details, cause });
    return stack === undefined ? error : Object.defineProperty(error, "stack", { value: stack, configurable: true, writable: true });
  }
  const error = new Error(message, cause === undefined ? undefined : { cause });
  return Object.assign(Object.defineProperties(error, { name: { value: name, configurable: true, writable: true }, stack: { value: stack, configurable: true, writable: true } }), more);
}
