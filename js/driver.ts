/** The driver: steps an operation of the engine and performs its effects. It decides nothing. */

import { atOnce, awaited, failed, perform, tell, toError, type Answer, type Effect, type EngineError, type Host } from "./effects.js";
import { call, isPoisoned, poison } from "./engine.js";
import { CompactionError } from "./errors.js";
import { isThere, loadStage } from "./stages.js";
import { isPromise, StoreCalls } from "./store-calls.js";
import type { Operation } from "./wasm/core.js";

interface Step {
  effects: Effect[];
  done?: unknown;
  error?: EngineError;
}

/** Runs a call of the engine; what it throws becomes a `CompactionError`. */
export function run<T>(work: Parameters<typeof call<T>>[0]): T {
  try {
    return call(work);
  } catch (error) {
    if (CompactionError.isInstance(error) || error instanceof Error) throw error;
    throw toError(error as EngineError);
  }
}

/** A step of an operation. The engine throws its own errors as plain objects; anything else unwound through it. */
function stepOf(operation: Operation, id?: number, answer?: Answer): Step {
  try {
    return call(() => operation.step(id, answer)) as Step;
  } catch (error) {
    if (isPoisoned()) throw error;
    throw isOfEngine(error) ? toError(error) : poison(error);
  }
}

function isOfEngine(error: unknown): error is EngineError {
  if (error instanceof Error) return false;
  const { code, message } = Object(error) as Partial<EngineError>;
  return typeof code === "string" && typeof message === "string";
}

function release(operation: Operation): void {
  // What was at work when the engine ended is still borrowed; freeing it would throw over the failure.
  if (!isPoisoned()) operation.free();
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

async function awaiting(effect: Effect, host: Host, store: StoreCalls): Promise<Answer> {
  if (effect.type !== "load") return awaited(effect, host, store);
  await loadStage(effect.stage);
  return { type: "done" };
}

/** Drives an operation that asks only for what is answered at once. */
export function driveSync<T>(operation: Operation, host: Host): T {
  const thrown = new Map<number, unknown>();
  try {
    let step = stepOf(operation);
    for (;;) {
      const open = step.effects.filter((effect) => ofEngine(effect) !== true && !tell(effect, host));
      if (step.error) throw toError(step.error, thrown);
      const [effect] = open;
      if (!effect) return step.done as T;
      const answer = ofEngine(effect) ?? atOnce(effect, host, thrown) ?? failed(new Error(`${effect.type} is not allowed here`));
      step = stepOf(operation, effect.id, answer as Answer);
    }
  } finally {
    release(operation);
  }
}

/** Drives an operation to its end. `seal` sees what was thrown by effects, for results that carry an error. */
export async function drive<T>(operation: Operation, host: Host, seal?: (value: T, thrown: Map<number, unknown>) => void): Promise<T> {
  const thrown = new Map<number, unknown>();
  const { done, error } = await driven(operation, host, thrown);
  if (error) throw toError(error, thrown);
  seal?.(done as T, thrown);
  return done as T;
}

/** The same, as the engine has its end: errors name what is in `thrown` by number. */
export async function driven(operation: Operation, host: Host, thrown: Map<number, unknown>): Promise<Pick<Step, "done" | "error">> {
  const waiting = new Map<number, Promise<{ id: number; answer: Answer }>>();
  const store = new StoreCalls(host.store, host.storeTimeoutMs);
  try {
    let step = stepOf(operation);
    for (;;) {
      let ready: { id: number; answer: Answer } | undefined;
      for (const effect of step.effects) {
        const there = host.away?.(effect) ?? ofEngine(effect);
        if (there === true || (!there && tell(effect, host))) continue;
        const answer = there ?? atOnce(effect, host, thrown);
        if (answer && !isPromise(answer) && !ready && waiting.size === 0) {
          ready = { id: effect.id, answer };
          continue;
        }
        const answered = answer ? Promise.resolve(answer) : perform(effect, host, () => awaiting(effect, host, store), thrown);
        waiting.set(
          effect.id,
          answered.then((answer) => ({ id: effect.id, answer })),
        );
      }
      if (step.error || (!ready && waiting.size === 0)) return step;
      const { id, answer } = ready ?? (await Promise.race(waiting.values()));
      waiting.delete(id);
      step = stepOf(operation, id, answer);
    }
  } finally {
    release(operation);
  }
}
