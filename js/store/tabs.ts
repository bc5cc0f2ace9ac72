/** What the tabs of one database report to each other: that a session's row was written. Which one, and its version; no
 *  more. */

import type { Batch, Key } from "../types.js";

/** The row of a session as it was written: the id of its rows, not the app's name for it. */
export type Changed = (sid: string, ver: number) => void;

/** The session whose row a batch writes, and the version that the row then has. */
export function sessionOf({ expect, puts }: Batch): { sid: string; ver: number } | undefined {
  const isOne = (key: Key) => key[0] === "sessions" && key.length === 2;
  const row = puts.find(([key]) => isOne(key))?.[0];
  const version = row && expect.find(({ key }) => isOne(key) && key[1] === row[1])?.version;
  return row && version !== undefined ? { sid: String(row[1]), ver: (version ?? 0) + 1 } : undefined;
}

/**
 * Who listens to a database, in every tab. It needs no answer and proves nothing: who hears nothing looks at the next
 * `prepare`. A channel does not hear itself, so there are two: sessions on one store hear each other, too.
 */
export class Tabs {
  readonly #listeners = new Set<Changed>();
  #id: string | undefined;
  #open: { out: BroadcastChannel; in: BroadcastChannel } | undefined;

  /** The database is the one with this id from now on. */
  tune(id: string): void {
    if (id === this.#id) return;
    this.#id = id;
    this.#hangUp();
    if (this.#listeners.size > 0) this.#call();
  }

  /** Returns what ends it. The channels are open as long as somebody listens. */
  listen(listener: Changed): () => void {
    const own: Changed = (sid, ver) => listener(sid, ver);
    this.#listeners.add(own);
    this.#call();
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size === 0) this.#hangUp();
    };
  }

  /** Tells the others of a commit that is durable. */
  tell(sid: string, ver: number): void {
    this.#open?.out.postMessage({ sid, ver });
  }

  #call(): void {
    if (this.#open || this.#id === undefined) return;
    const name = `context-compactor/${this.#id}`;
    const open = (this.#open = { out: new BroadcastChannel(name), in: new BroadcastChannel(name) });
    open.in.onmessage = ({ data }) => this.#hear(data);
    // In Node a channel keeps the process alive unless that is switched off.
    for (const channel of Object.values(open)) (channel as { unref?: () => void }).unref?.();
  }

  /** Any script of the origin can post here. */
  #hear(data: unknown): void {
    const { sid, ver } = Object(data) as { sid?: unknown; ver?: unknown };
    if (typeof sid !== "string" || !Number.isSafeInteger(ver)) return;
    // A frozen tab gets messages, but no timers: a read that it began would never end, and would block writers.
    setTimeout(() => [...this.#listeners].forEach((listener) => listener(sid, ver as number)));
  }

  #hangUp(): void {
    this.#open?.out.close();
    this.#open?.in.close();
    this.#open = undefined;
  }
}
