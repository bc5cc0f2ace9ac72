/** A store in the thread of the engine, as the page knows it. */

import { askToPersist, isPersisted } from "../store/persistence.js";
import type { Store, StoreNotice } from "../types.js";
import type { Thread } from "./thread.js";
import type { Down, Place } from "./wire.js";

export class StoreThere {
  readonly nth: number;
  readonly store: Store;
  #durable: Store["caps"]["durable"];
  readonly #changes = new Set<(sid: string, ver: number) => void>();
  readonly #notices = new Set<(notice: StoreNotice) => void>();
  /** Delivered to the first listener. */
  #missed: StoreNotice[] = [];

  constructor(thread: Thread, { nth, caps, name, asksForLoss, purges }: Place) {
    this.nth = nth;
    this.#durable = caps.durable;
    const ask = (method: "dataLoss" | "purge" | "close") => thread.call("store", { nth, method });
    const durable = () => this.#durable;
    this.store = {
      caps: {
        ...caps,
        get durable() {
          return durable();
        },
      },
      read: elsewhere,
      scan: elsewhere,
      commit: elsewhere,
      ...(asksForLoss && { dataLoss: async () => (await ask("dataLoss")) as string | undefined }),
      ...(purges && { purge: async () => void (await ask("purge")) }),
      // Only a page may ask for it.
      ...(name !== undefined && { name, persisted: isPersisted }),
      changes: (listener) => {
        this.#changes.add(listener);
        return () => void this.#changes.delete(listener);
      },
      notices: (listener) => {
        this.#notices.add(listener);
        for (const notice of this.#missed.splice(0)) listener(notice);
        return () => void this.#notices.delete(listener);
      },
      close: async () => {
        thread.stores.delete(nth);
        if (!thread.hasEnded) await ask("close");
      },
    };
  }

  set(durable: Store["caps"]["durable"]): void {
    this.#durable = durable;
  }

  /** Something was stored: the browser may be asked to keep it. */
  stored(): void {
    if (this.store.name !== undefined) askToPersist();
  }

  hear(message: Extract<Down, { store: number }>): void {
    if ("changes" in message) for (const listener of [...this.#changes]) listener(...message.changes);
    else if (this.#notices.size === 0) this.#missed.push(message.notice);
    else for (const listener of [...this.#notices]) listener(message.notice);
  }
}

/** Its rows never come to the page. */
function elsewhere(): never {
  throw new TypeError("the store is in another thread");
}
