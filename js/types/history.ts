/** Types of `context-compactor/history`. */

import type { Message } from "./messages.js";

/** A history, cut in two by `splitMessages`. */
export interface Split<M = Message> {
  /** The messages that a summary would replace. */
  toCompress: M[];
  /** The messages that would stay: those from `boundary` on, leading messages of the system, and pins. */
  toPreserve: M[];
  /** Index of the first message after the cut. */
  boundary: number;
  /** Where `keep` alone would cut: the cut moves so as not to separate a tool call from its results. */
  requested: number;
  /** Why the cut moved, for people; absent if it did not. */
  reason?: string;
}

/** A violation of a provider's rule, or a change that repaired one. */
export interface Problem {
  /** Id of the rule, such as `OC1`. */
  rule: string;
  /** Index of the message, in the array that was passed. */
  index: number;
  /** The violation, for people. */
  message: string;
}
