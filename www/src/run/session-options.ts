import { PRICES } from "../../../bench/front/bill.mjs";
import type { Format, SessionOptions } from "../engine.js";
import type { Setup } from "./types.js";

/** Options of the session that plays, and of those that replay it: the same ones, so that they act alike. Its agent has the
 *  recall tools, as one of an adapter does. */
export function sessionOptions(
  { contextWindow, preset, economy }: Omit<Setup, "sourceName">,
  format: Format,
): SessionOptions {
  return { contextWindow, format, preset, prices: PRICES, recall: true, ...(economy ? { economy } : {}) };
}
