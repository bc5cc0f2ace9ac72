/** Messages in a format of the app's own: read in the shape of a native one, and written from it. The engine sees no other. */

import { named } from "./advice.js";
import { checkFunction, checkOptions, invalidOption } from "./checks.js";
import { checkHistory, checkMessage, decode, encode, pack, type Packed } from "./codec.js";
import { BASES, editsOf, pairedIn, sayTheSame, tieOf, type Fields } from "./edited.js";
import { CompactionError } from "./errors.js";
import type { CustomFormat } from "./types/formats.js";
import type { Format, Message, SummaryRequest } from "./types.js";

/** Messages of the app by index, of which one may be the original of an edited copy; those before `from` are not. */
export interface Near<M> {
  from: number;
  readonly length: number;
  at(index: number): M | undefined;
}

/** How messages of the app become texts for the engine, and back. */
export interface Codec<M extends Message> {
  /** Texts of the messages from `first` on. `before`: texts of what is before all of them, the newest first. */
  pack(messages: readonly M[], first?: number, before?: () => Iterable<string>): Packed;
  encode(message: M, index: number): string;
  /** A message of ours, or one that the app has no more; with `near`, an edited copy of one of the app's as well. */
  decode(body: string, near?: Near<M>): M;
  /** A request for a summary as the app's function receives it. */
  asked(request: SummaryRequest): SummaryRequest;
}

const NATIVE: Codec<Message> = {
  pack: (messages, first = 0) => pack(first === 0 ? messages : messages.slice(first), first),
  encode,
  decode: (body) => decode(body) as Message,
  asked: (request) => request,
};

/** Formats of `context-compactor/formats`, whose names were probably meant for them. */
const TABLES = ["langchain", "openaiAgents", "mastra", "tanstack", "agui", "mistral", "bedrock", "ollama", "aiSdk4", "cohere", "mcp", "chrome"];

/** How the messages of a call with these options are read and written. */
export function codecOf<M extends Message>({ host }: { host: ReadonlyMap<string, unknown> }): Codec<M> {
  const format = host.get("format") as CustomFormat<M> | undefined;
  return format ? new Translation(format) : (NATIVE as Codec<M>);
}

/** The option `format` of a call of `/history` or `/tokens`: its name for the engine, and how messages are read and written. */
export function readFormat<M extends Message>(format: Format | CustomFormat<M> | undefined): { format: Format | undefined; codec: Codec<M> } {
  refuseName(format);
  if (typeof format !== "object" || format === null) return { format, codec: NATIVE as Codec<M> };
  return { format: checkFormat(format).base, codec: new Translation(format) };
}

/** Throws for the name of a format that is to be imported. */
export function refuseName(format: unknown): void {
  const name = TABLES.find((name) => name === format);
  if (name) throw invalidOption("format", `"${name}" is imported: import { ${name} } from "context-compactor/formats", then { format: ${name} }`);
}

/** Throws unless it is a format of the app's own. */
export function checkFormat(format: object): CustomFormat {
  checkOptions(format, ["name", "base", "read", "write", "patch", "id"], "format.");
  const { name, base, read, write, patch, id } = format as Partial<CustomFormat>;
  if (typeof name !== "string" || name.trim() === "") throw invalidOption("format.name", "must be a text that is not empty");
  if (!BASES.includes(base as Format)) throw invalidOption("format.base", `must be one of ${BASES.map((base) => `"${base}"`).join(", ")}`);
  for (const [member, given] of Object.entries({ read, write })) {
    if (given === undefined) throw invalidOption(`format.${member}`, "must be a function");
  }
  for (const [member, given] of Object.entries({ read, write, patch, id })) checkFunction(`format.${member}`, given);
  return format as CustomFormat;
}

/** The calls that results answered, where neither has an id: by the message that has the result. */
const answered = new WeakMap<object, string>();

class Translation<M extends Message> implements Codec<M> {
  readonly #format: CustomFormat<M>;
  /** The newest message of each role that the app handed over. */
  readonly #newest = new Map<string, M>();

  constructor(format: CustomFormat<M>) {
    this.#format = format;
  }

  pack(messages: readonly M[], first = 0, before: () => Iterable<string> = () => []): Packed {
    checkHistory(messages);
    const read: Fields[] = [];
    const earlier = function* (this: Translation<M>, index: number): Generator<Fields> {
      for (let at = index - 1; at >= 0; at--) yield read[at - first] ?? this.#read(messages[at] as M, at);
      for (const text of before()) yield decode(text) as Fields;
    };
    for (let index = first; index < messages.length; index++) {
      const message = messages[index] as M;
      checkMessage(message, index);
      const base = this.#bare(message, index);
      if (isUntied(base)) answered.set(message, callOf(base, earlier.call(this, index)));
      read.push(this.#tied(base, message));
      this.#newest.set(base["role"] ?? base["type"], message);
    }
    return pack(read, first);
  }

  encode(message: M, index: number): string {
    return encode(this.#read(message, index), index);
  }

  decode(body: string, near?: Near<M>): M {
    const base = decode(body) as Fields;
    return (near && this.#patched(base, near)) ?? this.#written(base);
  }

  asked(request: SummaryRequest): SummaryRequest {
    const { thread } = request;
    return thread ? { ...request, thread: { messages: thread.messages.map((message) => this.#written(message)) } } : request;
  }

  /** What the engine reads in place of a message. */
  #read(message: M, index: number): Fields {
    return this.#tied(this.#bare(message, index), message);
  }

  /** The same, perhaps without ids of calls. */
  #bare(message: M, index: number): Fields {
    const { name, base, read, id } = this.#format;
    let [found, own]: [unknown, string | undefined] = [undefined, undefined];
    try {
      found = read.call(this.#format, message);
      own = id?.call(this.#format, message);
    } catch (cause) {
      const what = `message ${index}: format ${name} could not read it: ${textOf(cause)}`;
      throw new CompactionError("invalid_message", what, { index, field: "", cause });
    }
    if (!isOne(found)) {
      throw invalidOption("format.read", `must return one message of ${base}, and ${named(found)} came for message ${index} (format ${name})`);
    }
    return own === undefined ? found : { ...found, id: own };
  }

  #tied(base: Fields, message: M): Fields {
    if (this.#format.base !== "openai-chat") return base;
    if (isUntied(base)) return { ...base, tool_call_id: answered.get(message) ?? "" };
    const calls = base["tool_calls"];
    return Array.isArray(calls) && calls.some(({ id }) => !id) ? { ...base, tool_calls: withIds(calls) } : base;
  }

  /** A copy of the app's own message, with the results and inputs of `base`. */
  #patched(base: Fields, near: Near<M>): M | undefined {
    const { base: format, patch } = this.#format;
    const after = pairedIn(format, base);
    const tie = tieOf(after);
    if (!patch || tie === "") return undefined;
    for (let index = near.from; index < near.length; index++) {
      const message = near.at(index);
      if (!message) continue;
      const before = this.#read(message, index);
      if (roleOf(before) !== roleOf(base)) continue;
      const paired = pairedIn(format, before);
      if (tieOf(paired) !== tie) continue;
      near.from = index + 1;
      const patched = this.#made("patch", () => patch.call(this.#format, message, editsOf(paired, after)), base);
      return sayTheSame(this.#read(patched, index), base) ? patched : undefined;
    }
    return undefined;
  }

  #written(base: Fields): M {
    return this.#made("write", () => this.#format.write(base, [...this.#newest.values()]), base);
  }

  #made(by: "write" | "patch", make: () => unknown, { role, tool_call_id: call }: Fields): M {
    const { name } = this.#format;
    let made: unknown;
    try {
      made = make();
    } catch (cause) {
      throw invalidOption(`format.${by}`, `the function of format ${name} threw: ${textOf(cause)}`, cause);
    }
    if (!isOne(made)) throw invalidOption(`format.${by}`, `must return one message, and ${named(made)} came (format ${name})`);
    if (role === "tool" && call) answered.set(made, call);
    return made as unknown as M;
  }
}

function isOne(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Promise);
}

function roleOf({ role, type }: Fields): unknown {
  return role ?? type;
}

function textOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** True for a result that does not say which call it answers. */
function isUntied({ role, tool_call_id: id }: Fields): boolean {
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

/** The id of the call that a result answers, by name and order. `earlier`: what is before it, the newest first. */
function callOf({ name }: Fields, earlier: Iterable<Fields>): string {
  const gone = new Set<string>();
  for (const { role, tool_call_id: id, tool_calls: calls = [] } of earlier) {
    if (role === "tool") {
      gone.add(id);
      continue;
    }
    const open = (calls as Fields[]).filter(({ id }) => !gone.has(id));
    const call = open.find(({ function: made }) => made?.name === name) ?? open[0];
    return call?.["id"] ?? name ?? "";
  }
  return name ?? "";
}
