/** What the tests of wire formats have in common. */

import { compact, openSession } from "./offload.mjs";
import { runtime } from "./api.mjs";

/** As short as a summary may be: one that is longer than what it stands for is refused. */
const SUMMARY = "The build of the parser failed.";

/** What `compact` makes of a history that keeps its last `messages`. Throws what went wrong. */
export async function compacted(format, history, messages) {
  const options = {
    format,
    keep: { messages },
    summarize: { call: async () => SUMMARY, attempts: 1 },
    advanced: { runtime: runtime() },
  };
  const result = await compact(history, options);
  if (result.error) throw result.error;
  return result;
}

/** What a session of these messages would send: with results offloaded, and with `summarise` a summary besides. */
export async function prepared(format, history, { summarise = false } = {}) {
  const presetOptions = {
    offloadThreshold: 1,
    scanRatio: 0.8,
    // Offloading is never enough, or always.
    compactTriggerThreshold: summarise ? 1e9 : 1,
    preserveCount: 3,
    retryCount: 1,
  };
  const session = await openSession({
    format,
    store: "memory",
    presetOptions,
    summarize: async () => SUMMARY,
    advanced: { runtime: runtime() },
  });
  await session.append(...history);
  const result = await session.prepare();
  await session.close();
  return result;
}
