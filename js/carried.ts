/** The state that goes from call to call where no session is opened: taken out of the options, and signed. */

import { invalidOption } from "./checks.js";
import { CompactionError } from "./errors.js";
import type { State, StateOptions } from "./types.js";

/** What an app gave as `state`. */
export interface Carried {
  /** As it was given. */
  value: State | null;
  /** JSON text for the engine. */
  text: string | undefined;
  /** The state in this text, signed where there is a key. */
  seal(text: string): Promise<State>;
}

/** The options with `state` as an object, whatever form it was given in; `undefined` is no state at all. */
export function withStateOptions<O extends object>(options: O): O {
  const { state } = Object(options) as { state?: unknown };
  return state === undefined ? options : { ...options, state: stateOptions(state) };
}

function stateOptions(state: unknown): Partial<StateOptions> {
  if (state === null) return {};
  if (typeof state === "string") throw invalidOption("state", "is a text: parse it first, as in JSON.parse(text)");
  if (typeof state !== "object" || Array.isArray(state)) throw invalidOption("state", "must be what the call before returned, null, or { value, when, maxBytes, key, id }");
  const { value, ...rest } = state as StateOptions;
  if (Object.hasOwn(state, "v")) return { value: state as State };
  return value === null || value === undefined ? rest : { ...rest, value };
}

/** What the options `state` say, its signature checked. Throws `store_corrupt` for another one. */
export async function readState(host: ReadonlyMap<string, unknown>): Promise<Carried> {
  const value = (host.get("state.value") ?? null) as State | null;
  const id = host.get("state.id");
  if (id !== undefined && (typeof id !== "string" || id === "")) throw invalidOption("state.id", "must be a text that is not empty");
  if (value !== null && (typeof value !== "object" || Array.isArray(value))) {
    throw invalidOption("state.value", typeof value === "string" ? "is a text: parse it first, as in JSON.parse(text)" : "must be what the call before returned, or null");
  }
  const given = host.get("state.key");
  const key = given === undefined ? undefined : await keyOf(given);
  const text = value === null ? undefined : textOf(value);
  if (key && value && text !== undefined) await check(key, value, signed(JSON.parse(text) as State, id));
  const seal = async (next: string): Promise<State> => {
    const state = JSON.parse(next) as State;
    if (!key) return state;
    const signature = new Uint8Array(await crypto.subtle.sign("HMAC", key, signed(state, id)));
    return { ...state, signature: Array.from(signature, (byte) => byte.toString(16).padStart(2, "0")).join("") };
  };
  return { value, text, seal };
}

/** The state as JSON. What cannot be written was never a state. */
function textOf(value: State): string {
  try {
    return JSON.stringify(value) ?? "null";
  } catch (error) {
    throw invalidOption("state.value", "cannot be written as JSON", error);
  }
}

async function keyOf(given: unknown): Promise<CryptoKey> {
  if (given instanceof Uint8Array) {
    if (given.length < 16) throw invalidOption("state.key", `must be at least 16 random bytes, not ${given.length}; 32 are usual`);
    return crypto.subtle.importKey("raw", given as BufferSource, { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
  }
  const { algorithm, usages } = Object(given) as Partial<CryptoKey>;
  const { name, hash } = Object(algorithm) as { name?: string; hash?: { name?: string } };
  const signs = Array.isArray(usages) && ["sign", "verify"].every((usage) => usages.includes(usage as KeyUsage));
  if (name !== "HMAC" || hash?.name !== "SHA-256" || !signs) {
    throw invalidOption("state.key", "must be a Uint8Array, or a CryptoKey for HMAC with SHA-256 that may sign and verify");
  }
  return given as CryptoKey;
}

async function check(key: CryptoKey, { signature }: State, bytes: BufferSource): Promise<void> {
  const hex = typeof signature === "string" && /^[0-9a-f]{64}$/.test(signature) ? signature : undefined;
  const given = Uint8Array.from(hex?.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  if (await crypto.subtle.verify("HMAC", key, given, bytes)) return;
  const what = hex === undefined ? "it is not signed, and there is a `key`" : "its signature is that of another key, another `id` or another state";
  throw new CompactionError("store_corrupt", `state: ${what}; pass null to begin anew`, { field: "state" });
}

/** What is signed: the state with its fields in one order, whatever a database made of it, and the conversation's name. */
function signed({ signature: _, ...state }: State, id: unknown): BufferSource {
  return new TextEncoder().encode(JSON.stringify([id ?? null, sorted(state)]));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, field]) => [key, sorted(field)]);
}
