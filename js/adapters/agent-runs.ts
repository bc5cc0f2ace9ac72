/** Runs of agents that have a `CompactingSession`: filter and session know each other by the context of the run. */

import { warnOnce } from "../warnings.js";
import type { CompactingSession } from "./agent-session.js";

/** An item of the SDK, as far as it is looked at. */
export interface Item {
  type?: string;
  role?: string;
  callId?: string | null;
  content?: any;
  [field: string]: any;
}

/** A run of an agent with a session. */
export interface Run {
  session: CompactingSession;
  /** The items of the last call, by what they say; before the first one, `undefined`. */
  last: string | undefined;
  /** Agents that are called as tools: the runner gives them the same context. */
  others: WeakSet<object>;
  /** Items by those that were sent in their places, as JSON. */
  originals: Map<string, Item>;
}

/** By the context of the app, which is all that a filter and a session have in common. `null`: several sessions had it. */
const runs = new WeakMap<object, Run | null>();

/** The session reads its history: a run begins. */
export function begin(session: CompactingSession, context: unknown): void {
  if (typeof context !== "object" || context === null) return;
  const known = runs.get(context);
  if (known === undefined) runs.set(context, { session, last: undefined, others: new WeakSet(), originals: new Map() });
  else if (known?.session === session) known.last = undefined;
  else if (known) {
    runs.set(context, null);
    const message = "several sessions had one context object, so no conversation has a name: give each run its own, `context: { ...context }`";
    warnOnce({ code: "shared_context", message }, "context-compactor/openai-agents");
  }
}

/** The run with a session that a call belongs to, if it goes on with what was sent before. `said`: its items, by what they say. */
export function runOf({ agent, context }: { agent: object; context: unknown }, said: string): Run | undefined {
  const run = runs.get(context as object);
  if (!run) return undefined;
  if (run.last === undefined) {
    run.others = new WeakSet();
    run.originals.clear();
  } else if (run.others.has(agent) || !said.startsWith(`${run.last},`)) {
    run.others.add(agent);
    return undefined;
  }
  run.last = said;
  return run;
}

/** The item that the app or a tool gave, where another one was sent in its place. */
export function originalOf(item: Item, context: unknown): Item {
  return runs.get(context as object)?.originals.get(JSON.stringify(item)) ?? item;
}

/** `own`, and in what it lacks `other`. */
export function over<T extends object>(own: T, other: object): T {
  const get = (_: T, name: string) => {
    const from = (name in own ? own : other) as Record<string, unknown>;
    const value = from[name];
    return typeof value === "function" ? value.bind(from) : value;
  };
  return new Proxy(own, { get } as ProxyHandler<T>);
}
