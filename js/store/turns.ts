/** Turns of processes that write to one session of a database, so that none comes second every time. */

import type { Batch } from "../types.js";
import { randomId } from "./keys.js";

/** How long others wait for whoever lost a race and has to read first: it may have ended. */
export const TURN_MS = 200;
const LONGEST_PAUSE_MS = 10;

/**
 * Who lost a race for a session's row asks for the next turn, before those who lost fewer; the others' commits wait for it.
 * That makes conflicts rare and decides nothing: compare-and-set does.
 */
export class Turns {
  /** Names this store among those of all processes. */
  readonly id = randomId(8);
  readonly #lost = new Map<string, number>();

  /** Races for the row of this session that were lost since the last commit. */
  lost(sid: string): number {
    return this.#lost.get(sid) ?? 0;
  }

  lose(sid: string): void {
    this.#lost.set(sid, this.lost(sid) + 1);
  }

  win(sid: string): void {
    this.#lost.delete(sid);
  }
}

/** The session whose row a batch writes. */
export function sessionOf({ puts }: Batch): string | undefined {
  const sid = puts.find(([key]) => key[0] === "sessions")?.[0][1];
  return typeof sid === "string" ? sid : undefined;
}

/** Until the turn may be over. */
export function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * LONGEST_PAUSE_MS));
}
