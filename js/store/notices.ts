/** Notices of a store, beside its answers. */

import { quietly } from "../quietly.js";
import type { StoreNotice } from "../types.js";

/** Notices and their listeners; those found before the first listener are delivered to it. */
export function notices() {
  const listeners = new Set<(notice: StoreNotice) => void>();
  const unheard: StoreNotice[] = [];
  const tell = (notice: StoreNotice): void => {
    if (listeners.size === 0) unheard.push(notice);
    for (const listener of listeners) quietly(() => listener(notice));
  };
  const listen = (listener: (notice: StoreNotice) => void): (() => void) => {
    listeners.add(listener);
    for (const notice of unheard.splice(0)) queueMicrotask(() => tell(notice));
    return () => void listeners.delete(listener);
  };
  return { tell, listen };
}
