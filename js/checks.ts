/** Checks of options that need no engine: names, functions, signals, and what can be read at all. */

import { CompactionError } from "./errors.js";
import { near, nearest } from "./near.js";

/** The error of an option. */
export function invalidOption(field: string, what: string, cause?: unknown): CompactionError {
  const message = field === "" ? `options ${what}` : `${field}: ${what}`;
  return new CompactionError("invalid_option", message, cause === undefined ? { field } : { field, cause });
}

/** Throws unless `options` can have properties at all. */
export function checkObject(options: unknown): asserts options is Record<string, unknown> {
  if (typeof options !== "object" || options === null) throw invalidOption("", "must be an object");
}

/** Throws unless `options` is an object whose names are all `known`: a misspelt one would be ignored without a word. `group` is
 *  its path, with the point, where it is a part of options. */
export function checkOptions(options: unknown, known: readonly string[], group = ""): void {
  if (typeof options !== "object" || options === null) throw invalidOption(group.slice(0, -1), "must be an object");
  const unknown = Object.entries(options).find(([name, value]) => !known.includes(name) && value !== undefined);
  if (unknown === undefined) return;
  throw invalidOption(group + unknown[0], `is not an option of this release${namedApart(unknown[0], known)}`);
}

/** What may be meant by a name that is not known: all of a short list, of a long one those that are nearly so. */
export function namedApart(unknown: string, known: readonly string[]): string {
  if (known.length === 0) return "";
  if (known.length <= NAMED) return `; there are ${nearest(unknown, known).join(", ")}`;
  const names = near(unknown, known, NAMED);
  return names.length > 0 ? `; did you mean ${names.join(", ")}?` : "";
}

/** The most names that an error lists. */
const NAMED = 5;

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
export function plainOptions(options: object, field = ""): Record<string, unknown> {
  return plain(options, field, 0) as Record<string, unknown>;
}

function plain(value: unknown, field: string, depth: number): unknown {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") {
    if (Number.isFinite(value)) return value;
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
