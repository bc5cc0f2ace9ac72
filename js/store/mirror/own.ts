/** What is the mirror's own in both stores. */

import { invalidOption } from "../../checks.js";
import type { Key } from "../../types.js";
import { startsWith } from "../keys.js";

export const RESERVED: Key = ["meta", "mirror"];
/** The mark is kept twice, so that one damaged row of it costs nothing. */
export const MARK_ROWS: Key[] = [[...RESERVED, 0], [...RESERVED, 1]];
/** What each commit adds to a batch. */
export const MARK_OPS = MARK_ROWS.length * 2;

/** True for the mirror's own rows. */
export function isOwn(key: Key): boolean {
  return startsWith(key, RESERVED);
}

/** Throws `invalid_option` for a key of the mirror's own. */
export function checkFree(key: Key): void {
  if (isOwn(key)) throw invalidOption(JSON.stringify(key), "is a key of the mirror's own");
}
