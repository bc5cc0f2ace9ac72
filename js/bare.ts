/** How messages in a format of the app's own become messages of its `base`. */

import { named } from "./advice.js";
import { invalidOption } from "./checks.js";
import { CompactionError } from "./errors.js";
import type { CustomFormat } from "./types/formats.js";
import type { Message } from "./types.js";

/** A message whose fields are looked at one by one. */
export type Fields = Record<string, any>;

/** What a message says in the format's `base`, perhaps without ids of calls. */
export function bareOf<M extends Message>(format: CustomFormat<M>, message: M, index: number): Fields {
  const { name, base, read, id } = format;
  let [found, own]: [unknown, string | undefined] = [undefined, undefined];
  try {
    found = read.call(format, message);
    own = id?.call(format, message);
  } catch (cause) {
    const what = `message ${index}: format ${name} could not read it: ${thrownText(cause)}`;
    throw new CompactionError("invalid_message", what, { index, field: "", cause });
  }
  if (!isOne(found)) {
    throw invalidOption("format.read", `must return one message of ${base}, and ${named(found)} came for message ${index} (format ${name})`);
  }
  return own === undefined ? found : { ...found, id: own };
}

/** The same with ids of calls. `answered`: the call that a result without an id answers. */
export function tied({ base: format }: CustomFormat, base: Fields, answered: () => string): Fields {
  if (format !== "openai-chat") return base;
  if (isUntied(base)) return { ...base, tool_call_id: answered() };
  const calls = base["tool_calls"];
  return Array.isArray(calls) && calls.some(({ id }) => !id) ? { ...base, tool_calls: withIds(calls) } : base;
}

/** True for a result that does not say which call it answers. */
export function isUntied({ role, tool_call_id: id }: Fields): boolean {
  return role === "tool" && !id;
}

/** Calls with an id each: those without get one that depends on nothing but their message. */
function withIds(calls: Fields[]): Fields[] {
  const uses = new Map<string, number>();
  return calls.map((call) => {
    const name = call["function"]?.name ?? "call";
    const nth = (uses.get(name) ?? 0) + 1;
    uses.set(name, nth);
    return call["id"] ? call : { ...call, id: `${name}_${nth}` };
  });
}

export function isOne(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Promise);
}

export function thrownText(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
