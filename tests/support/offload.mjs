/**
 * The package with preset `offload` (`S1`) where no other is asked for. Most tests of sessions and of `compact` are about
 * what every preset does, with histories that are short: nothing that `balanced`, the default, would act upon.
 */

import * as library from "context-compactor";

export * from "context-compactor";
export * from "context-compactor/commands";
export * from "context-compactor/history";
export * from "context-compactor/presets";
export * from "context-compactor/react";
export * from "context-compactor/testing";
export * from "context-compactor/tokens";

/** What is not an object of options is left to the package to refuse. */
function chosen(options = {}) {
  const isPlain = typeof options === "object" && options !== null && !Array.isArray(options);
  return isPlain ? { preset: "offload", ...options } : options;
}

export const compact = (messages, options) => library.compact(messages, chosen(options));
export const planCompaction = (messages, options) => library.planCompaction(messages, chosen(options));
export const openSession = (options) => library.openSession(chosen(options));
export const importSession = (lines, options) => library.importSession(lines, chosen(options));
