/** Types of `context-compactor/history`. */

import type { Message } from "./messages.js";

/** A history cut in two. */
export interface Split<M = Message> {
  toCompress: M[];
  toPreserve: M[];
  /** Index of the first message that is preserved. */
  boundary: number;
  /** Where the cut was asked for, before it moved to part no call from its result. */
  requested: number;
  reason?: string;
}

/** A rule of the provider that a history breaks. */
export interface Problem {
  /** Id of the broken rule, as in `OC1`. */
  rule: string;
  index: number;
  message: string;
}
