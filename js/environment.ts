/** Options from environment variables, by one table. */

import { checkObject, invalidOption } from "./checks.js";
import type { CompactOptions } from "./types.js";

type Read = (name: string, text: string) => number | string;

const count: Read = (name, text) => whole(name, text, 1, "a positive whole number");
const countOrNone: Read = (name, text) => whole(name, text, 0, "0 or a positive whole number");

function whole(name: string, text: string, least: number, what: string): number {
  const number = /^[0-9]+$/.test(text) ? Number(text) : NaN;
  if (number >= least && number < 2 ** 32) return number;
  throw invalidOption(name, `must be ${what}, not ${JSON.stringify(text)}`);
}

const fraction: Read = (name, text) => {
  const number = /^[0-9.]+$/.test(text) ? Number(text) : NaN;
  if (number <= 1) return number;
  throw invalidOption(name, `must be a number from 0 to 1, not ${JSON.stringify(text)}`);
};

const model: Read = (name, text) => {
  if (text.trim() !== "") return text.trim();
  throw invalidOption(name, "must be a model's name, not an empty text");
};

// S1.12
/** Variables by the documented option of preset `offload` that each sets. */
const OFFLOAD: readonly [option: string, variable: string, read: Read][] = [
  ["model", "SYNAPSE_COMPACT_MODEL", model],
  ["retryCount", "SYNAPSE_COMPACT_RETRY_COUNT", count],
  ["offloadThreshold", "SYNAPSE_OFFLOAD_THRESHOLD", count],
  ["scanRatio", "SYNAPSE_OFFLOAD_SCAN_RATIO", fraction],
  ["minChars", "SYNAPSE_OFFLOAD_MIN_CHARS", count],
  ["compactTriggerThreshold", "SYNAPSE_COMPACT_TRIGGER_THRESHOLD", count],
  ["compactCooldownSteps", "SYNAPSE_COMPACT_COOLDOWN_STEPS", countOrNone],
  ["preserveCount", "SYNAPSE_COMPACT_PRESERVE_COUNT", count],
  ["targetTokens", "SYNAPSE_COMPACT_TARGET_TOKENS", count],
];

/**
 * Reads options of preset `offload` from the variables `SYNAPSE_…` of an environment record, such as `process.env` or a
 * Worker's `env`. Unset variables keep their defaults. Throws `invalid_option`, whose message names the variable, for an
 * invalid value.
 */
export function optionsFromEnv(environment: Record<string, unknown>): CompactOptions {
  checkObject(environment);
  const value = (variable: string, read: Read) => {
    const given = environment[variable];
    if (given === undefined || given === null) return undefined;
    // A Worker's variables may be JSON: a number is read by its digits.
    if (typeof given !== "string" && typeof given !== "number") throw invalidOption(variable, "must be a text or a number");
    return read(variable, String(given));
  };
  const contextWindow = value("SYNAPSE_MAX_CONTEXT_WINDOW", count) as number | undefined;
  const values = OFFLOAD.map(([option, variable, read]) => [option, value(variable, read)]).filter(([, set]) => set !== undefined);
  return {
    ...(contextWindow !== undefined && { contextWindow }),
    ...(values.length > 0 && { presetOptions: Object.fromEntries(values) }),
  };
}
