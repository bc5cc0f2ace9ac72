/** The driver: performs the effects of an operation of the engine. It decides nothing. */

import { atOnce, awaited, effectOf, failed, perform, tell, toError, type Answer, type Effect, type EngineError, type Host } from "./effects.js";
import { call, isPoisoned, poison, type Engine } from "./engine.js";
import { CompactionError } from "./errors.js";
import { isThere, loadStage } from "./stages.js";
import { isPromise, StoreCalls } from "./store-calls.js";
import type { MaybePromise } from "./types.js";
import type { Operation } from "./wasm/core.js";

/** The end of an operation. */
interface Ended {
  done?: unknown;
  error?: EngineError | undefined;
}

/** Performs an effect; the answer, where it is there at once. */
type Take = (effect: Effect) => Answer | undefined;

/** A call of the engine. It begins an operation, or returns what is known at once. */
export type Begin = (engine: Engine) => unknown;

/** Runs a call of the engine; what it throws becomes a `CompactionError`. */
export function run<T>(work: (engine: Engine) => T): T {
  try {
    return call(work);
  } catch (error) {
    if (CompactionError.isInstance(error) || error instanceof Error) throw error;
    throw toError(error as EngineError);
  }
}

function isOfEngine(error: unknown): error is EngineError {
  if (error instanceof Error) return false;
  const { code, message } = Object(error) as Partial<EngineError>;
  return typeof code === "string" && typeof message === "string";
}

/** Each instance of the engine has a class of its own. */
function isOperation(value: unknown): value is Operation {
  return typeof value === "object" && value !== null && "step" in value;
}

/** The operation that a call left waiting, or its end. `isUnderWay`: it had begun before. The engine throws its own errors as plain
 *  objects; anything else that comes of an operation unwound through it. */
function stepped(work: Begin, take: Take, isUnderWay = false): Operation | Ended {
  let ended: Ended | undefined;
  let thrown: { error: unknown } | undefined;
  // Nothing may be thrown through the engine.
  const hear = (told: unknown, beside: unknown) => {
    isUnderWay = true;
    if (thrown) return undefined;
    try {
      if (typeof told === "string") return take(effectOf(told, beside));
      ended = told as Ended;
    } catch (error) {
      thrown = { error };
    }
    return undefined;
  };
  let value: unknown;
  try {
    value = call(work, hear);
  } catch (error) {
    if (isPoisoned() || CompactionError.isInstance(error)) throw error;
    if (isOfEngine(error)) throw toError(error);
    throw isUnderWay ? poison(error) : error;
  }
  // A listener may have called it.
  if (isPoisoned()) call(() => undefined);
  const rest = isOperation(value) ? value : undefined;
  if (thrown) {
    rest?.free();
    throw thrown.error;
  }
  return rest ?? ended ?? { done: value };
}

/** What only the thread of the engine can do; `undefined` for other effects. */
function ofEngine(effect: Effect): Answer | true | undefined {
  if (effect.type === "prefetch") {
    // Whoever needs it asks again, and is told what is wrong.
    void loadStage(effect.stage).catch(() => undefined);
    return true;
  }
  return effect.type === "load" && isThere(effect.stage) ? { type: "done" } : undefined;
}

function awaiting(effect: Effect, host: Host, store: StoreCalls): MaybePromise<Answer> {
  if (effect.type !== "load") return awaited(effect, host, store);
  return loadStage(effect.stage).then(() => ({ type: "done" }));
}

/** The value of a call, which asks only for what is answered at once. */
export function driveSync<T>(begin: Begin, host: Host): T {
  const thrown = new Map<number, unknown>();
  const take = (effect: Effect): Answer | undefined => {
    const there = ofEngine(effect);
    if (there === true || tell(effect, host)) return undefined;
    return there ?? atOnce(effect, host, thrown) ?? failed(new Error(`${effect.type} is not allowed here`));
  };
  const { done, error } = stepped(begin, take) as Ended;
  if (error) throw toError(error, thrown);
  return done as T;
}

/** Drives an operation to its end. `seal` sees what was thrown by effects, for results that carry an error. */
export async function drive<T>(begin: Begin, host: Host, seal?: (value: T, thrown: Map<number, unknown>) => void): Promise<T> {
  const thrown = new Map<number, unknown>();
  const { done, error } = await driven(begin, host, thrown);
  if (error) throw toError(error, thrown);
  seal?.(done as T, thrown);
  return done as T;
}

/** The same, as the engine has its end: errors name what is in `thrown` by number. */
export async function driven(begin: Begin, host: Host, thrown: Map<number, unknown>): Promise<Ended> {
  const waiting = new Map<number, Promise<{ id: number; answer: Answer }>>();
  const store = new StoreCalls(host.store, host.storeTimeoutMs);
  const take = (effect: Effect): Answer | undefined => {
    const there = host.away?.(effect) ?? ofEngine(effect);
    if (there === true || (!there && tell(effect, host))) return undefined;
    const answer = there ?? atOnce(effect, host, thrown) ?? perform(effect, host, () => awaiting(effect, host, store), thrown);
    if (!isPromise(answer)) return answer;
    waiting.set(
      effect.id,
      answer.then((answer) => ({ id: effect.id, answer })),
    );
    return undefined;
  };
  let now = stepped(begin, take);
  while (isOperation(now)) {
    if (waiting.size === 0) throw poison(new Error("an operation waits for nothing"));
    const operation = now;
    const { id, answer } = await Promise.race(waiting.values());
    waiting.delete(id);
    now = stepped(() => operation.step(id, answer), take, true);
  }
  return now;
}
