/** `CompactingSession`: a session of the OpenAI Agents SDK, which names its conversation for the compactor. */

import { begin, originalOf, over } from "./agent-runs.js";

/** What `CompactingSession` needs of another session of the SDK. */
export interface AgentsSession {
  getSessionId(): Promise<string>;
  getItems(limit?: number): Promise<any[]>;
  addItems(items: any[]): Promise<void>;
  popItem(): Promise<any>;
  clearSession(): Promise<void>;
}

/**
 * A session of the SDK around another one: `run(agent, "…", { session: new CompactingSession(new MemorySession()) })` with a
 * runner that has `contextCompactor` as its filter. The conversation is named by `getSessionId()` of the other session, and so
 * goes on after a restart. The other session keeps every item as it was: it has no summaries, and no results that were
 * shortened for the model.
 */
export class CompactingSession {
  /** The runner hands over its context, by which the filter finds the session. */
  readonly acceptsRunContext = true;
  /** Undefined: the runner has no history of this session replaced by a compaction of the provider. */
  readonly runCompaction = undefined;
  readonly #inner: AgentsSession;

  constructor(inner: AgentsSession) {
    this.#inner = inner;
    // Whatever else the other session can do.
    return over(this, inner);
  }

  getSessionId(): Promise<string> {
    return this.#inner.getSessionId();
  }

  getItems(limit?: number, runContext?: any): Promise<any[]> {
    begin(this, runContext?.context);
    return this.#inner.getItems(limit, ...this.#known(runContext));
  }

  addItems(items: any[], runContext?: any): Promise<void> {
    const whole = items.map((item) => originalOf(item, runContext?.context));
    return this.#inner.addItems(whole, ...this.#known(runContext));
  }

  popItem(runContext?: any): Promise<any> {
    return this.#inner.popItem(...this.#known(runContext));
  }

  clearSession(runContext?: any): Promise<void> {
    return this.#inner.clearSession(...this.#known(runContext));
  }

  /** A session that does not know the context is not given it. */
  #known(runContext: any): [] {
    return (this.#inner as { acceptsRunContext?: boolean }).acceptsRunContext ? ([runContext] as unknown as []) : [];
  }
}
