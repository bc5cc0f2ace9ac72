/** Checks of options that need no engine: names, functions, signals, and what can be read at all. */

import { CompactionError } from "./errors.js";
import { near, nearest } from "./near.js";

/** Names in the options that are groups, a group in a group by its path. `runtime` is none: both of its functions are required. */
const GROUPS: Record<string, readonly string[]> = {
  trigger: ["tokens", "fraction", "price"],
  prices: ["input", "output", "cacheRead", "cacheWrite", "ttlMs", "tiers"],
  keep: ["messages", "tokens", "fraction"],
  limits: ["storeTimeoutMs"],
  provider: ["kind", "model", "url", "headers"],
  offload: [
    "offloadThreshold",
    "scanRatio",
    "minChars",
    "compactTriggerThreshold",
    "compactCooldownSteps",
    "preserveCount",
    "targetTokens",
  ],
  layered: [
    "clear",
    "cacheRead",
    "cacheWrite",
    "compactableTools",
    "keepRecent",
    "clearMinTokens",
    "clearInputs",
    "outputReserve",
    "fixedReserve",
    "minSavings",
    "largeOutputTokens",
    "previewChars",
    "readTools",
    "maxRestoreFiles",
    "maxRestoreTokensPerFile",
    "maxRestoreTokensTotal",
    "preserveCount",
    "targetTokens",
  ],
  react: [
    "singleEnabled",
    "singleResultThreshold",
    "chunkSize",
    "chunkRatio",
    "secondRatio",
    "globalEnabled",
    "globalCompressionThreshold",
    "modelContextLimit",
    "systemPromptLength",
    "instructionLength",
    "resultCompressionMinSize",
    "globalRatio",
    "strategies",
    "relianceRatio",
  ],
  factor3: [
    "processTools",
    "verbosity",
    "minTokens",
    "structuredMinTokens",
    "snippetChars",
    "fileLines",
    "outlineLines",
    "queryRows",
    "sampleRows",
    "apiChars",
    "preserveCount",
    "targetTokens",
    "emergencyShare",
  ],
  "factor3.processTools": ["search", "files", "queries", "apis"],
  checkpoint: [
    "tier",
    "promptBudget",
    "safetyMargin",
    "triggerShare",
    "preserveCount",
    "keepUserMessages",
    "compactAbove",
    "moderateAbove",
    "compactTokens",
    "moderateTokens",
    "detailedTokens",
    "ageModerate",
    "ageCompact",
    "mergeCount",
    "keepSnapshots",
    "profiles",
  ],
};

/** The error of an option. */
export function invalidOption(field: string, what: string, cause?: unknown): CompactionError {
  const message = field === "" ? `options ${what}` : `${field}: ${what}`;
  return new CompactionError("invalid_option", message, cause === undefined ? { field } : { field, cause });
}

/** Throws unless `options` can have properties at all. */
export function checkObject(options: unknown): asserts options is Record<string, unknown> {
  if (typeof options !== "object" || options === null) throw invalidOption("", "must be an object");
}

/** Throws unless `options` is an object whose options, and those in its groups, are all `known`. */
export function checkOptions(options: unknown, known: readonly string[]): void {
  checkObject(options);
  checkNames(options, known, "");
  // Most calls have no group, and some are made for every text.
  if (!Object.values(options).some((option) => typeof option === "object")) return;
  for (const [group, names] of Object.entries(GROUPS)) {
    const [outer = "", inner] = group.split(".");
    const option = known.includes(outer) ? options[outer] : undefined;
    const given = inner === undefined ? option : (option as Record<string, unknown> | null | undefined)?.[inner];
    if (typeof given === "object" && given !== null && !Array.isArray(given)) {
      checkNames(given as Record<string, unknown>, names, `${group}.`);
    }
  }
}

/** A misspelt option would be ignored without a word. */
function checkNames(options: Record<string, unknown>, known: readonly string[], path: string): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name) && options[name] !== undefined);
  if (unknown === undefined) return;
  const groups = Object.keys(GROUPS).filter((group) => known.includes(group) && GROUPS[group]?.includes(unknown));
  if (path === "" && groups.length > 0) {
    throw invalidOption(unknown, `is an option of ${groups.join(", ")}: as in { ${groups[0]}: { ${unknown} } }`);
  }
  const isKey = path === "provider." ? /key|token|auth/i : /^(api|auth|access|secret|bearer|headers?$)/i;
  if ((path === "provider." || (path === "" && known.includes("provider"))) && isKey.test(unknown)) {
    const { kind } = path === "" ? (Object(options["provider"]) as { kind?: unknown }) : options;
    throw invalidOption(path + unknown, `is not an option of this release: the key is a header of provider, ${keyOf(kind)}`);
  }
  throw invalidOption(path + unknown, `is not an option of this release${meant(unknown, known)}`);
}

/** A short list whole; of a long one the names that are nearly so. */
function meant(unknown: string, known: readonly string[]): string {
  if (known.length <= NAMED) return `; there are ${nearest(unknown, known).join(", ")}`;
  const names = near(unknown, known, NAMED);
  return names.length > 0 ? `; did you mean ${names.join(", ")}?` : "";
}

/** The most names that an error lists. */
const NAMED = 5;

/** How each kind of provider is told who asks. */
const KEYS: Record<string, string> = {
  openai: 'headers: { authorization: "Bearer …" }',
  anthropic: 'headers: { "x-api-key": "…" }',
  gemini: 'headers: { "x-goog-api-key": "…" }',
  ollama: "headers, where your server asks for one",
};

function keyOf(kind: unknown): string {
  const known = typeof kind === "string" && Object.hasOwn(KEYS, kind) ? KEYS[kind] : undefined;
  return known ?? Object.entries(KEYS).map(([name, key]) => `${name}: ${key}`).join("; ");
}

/** Throws unless the option is absent or a function. */
export function checkFunction(name: string, value: unknown): void {
  if (value !== undefined && typeof value !== "function") throw invalidOption(name, "must be a function");
}

/** Throws unless the option is a whole number from `least` that the engine can hold. */
export function checkWhole(name: string, value: unknown, least: number): void {
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) < 2 ** 32) return;
  throw invalidOption(name, `must be a whole number from ${least}`);
}

/** Throws unless the option is absent or a signal. A signal may come from another realm or a polyfill. */
export function checkSignal(signal: unknown): void {
  if (signal === undefined) return;
  const { aborted, addEventListener, removeEventListener } = Object(signal) as Partial<AbortSignal>;
  const listens = typeof addEventListener === "function" && typeof removeEventListener === "function";
  if (typeof aborted !== "boolean" || !listens) {
    throw invalidOption("signal", "must be an AbortSignal");
  }
}

/** Options nest less than this; the engine reads them by recursion. */
const MAX_DEPTH = 8;

/** Options that are values, as the engine reads them: `undefined` left out, whatever it cannot read refused. */
export function plainOptions(options: object): Record<string, unknown> {
  return plain(options, "", 0) as Record<string, unknown>;
}

function plain(value: unknown, field: string, depth: number): unknown {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") {
    if (Number.isFinite(value)) return value;
    // Says that something is off (`S2.7`); what JSON has not is told as a text.
    if (value === Infinity && field === "react.singleResultThreshold") return "Infinity";
    throw invalidOption(field, `must be a finite number, not ${value}`);
  }
  if (typeof value !== "object") throw invalidOption(field, `cannot be a ${typeof value}`);
  if (depth === MAX_DEPTH) throw invalidOption(field, "is nested too deep, or contains itself");
  if (Array.isArray(value)) return value.map((item, at) => plain(item, `${field}[${at}]`, depth + 1));
  const given = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(
    given.map(([name, item]) => [name, plain(item, field === "" ? name : `${field}.${name}`, depth + 1)]),
  );
}
