/** `CompactingSession`: a session of the OpenAI Agents SDK, which names its conversation for the compactor. */

import { begin, originalOf } from "./agent-runs.js";

/** What `CompactingSession` needs of another session of the SDK. */
export interface AgentsSession {
  getSessionId(): Promise<string>;
  getItems(limit?: number): Promise<any[]>;
  addItems(items: any[]): Promise<void>;
  popItem(): Promise<any>;
  clearSession(): Promise<void>;
}

/** What else a session may have. Without `runCompaction`, the runner has none replaced by a compaction of the provider. */
const MORE = [
  "prepareHistoryItemForModelInput",
  "prepareHistoryItemsForPersistenceComparison",
  "preserveReasoningItemIdsForPersistence",
  "replaceHistoryWithCompaction",
  "applyHistoryMutations",
  "applyHistoryTransaction",
];

/**
 * A session of the SDK around another one: `run(agent, "…", { session: new CompactingSession(new MemorySession()) })` with a
 * runner that has `contextCompactor` as its filter. The conversation is named by `getSessionId()` of the other session, and so
 * goes on after a restart. The other session keeps every item as it was: it has no summaries, and no results that were
 * shortened for the model.
 */
export class CompactingSession {
  /** The runner hands over its context, by which the filter finds the session. */
  readonly acceptsRunContext = true;
  readonly #inner: AgentsSession;

  constructor(inner: AgentsSession) {
    this.#inner = inner;
    const given = inner as unknown as Record<string, unknown>;
    for (const name of MORE) {
      const call = given[name];
      if (typeof call === "function") Object.assign(this, { [name]: (...args: unknown[]) => call.apply(inner, args) });
    }
  }

  getSessionId(): Promise<string> {
    return this.#inner.getSessionId();
  }

  getItems(limit?: number, runContext?: any): Promise<any[]> {
    begin(this, runContext?.context);
    return this.#call("getItems", limit === undefined ? [] : [limit], runContext);
  }

  addItems(items: any[], runContext?: any): Promise<void> {
    const whole = items.map((item) => originalOf(item, runContext?.context));
    return this.#call("addItems", [whole], runContext);
  }

  popItem(runContext?: any): Promise<any> {
    return this.#call("popItem", [], runContext);
  }

  clearSession(runContext?: any): Promise<void> {
    return this.#call("clearSession", [], runContext);
  }

  /** A session that does not know the context gets what it always got. */
  #call(name: keyof AgentsSession, args: unknown[], runContext: unknown): Promise<any> {
    const inner = this.#inner as AgentsSession & { acceptsRunContext?: boolean };
    const given = inner.acceptsRunContext ? [...args, ...(name === "getItems" && args.length === 0 ? [undefined] : []), runContext] : args;
    return (inner[name] as (...args: unknown[]) => Promise<any>)(...given);
  }
}
