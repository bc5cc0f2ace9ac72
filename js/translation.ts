/** Messages in a format of the app's own: read in the shape of a native one, and written from it. The engine sees no other. */

import { named } from "./advice.js";
import { bareOf, isOne, isUntied, thrownText, tied, type Fields } from "./bare.js";
import { invalidOption } from "./checks.js";
import { checkHistory, checkMessage, decode, encode, pack, type Packed } from "./codec.js";
import { baseOf, NATIVE, type Codec, type Near } from "./codecs.js";
import { editsOf, pairedIn, sayTheSame, tieOf } from "./edited.js";
import type { CustomFormat } from "./types/formats.js";
import type { Format, Message, SummaryRequest } from "./types.js";

/** How the messages of a call with these options are read and written. */
export function codecOf<M extends Message>({ host }: { host: ReadonlyMap<string, unknown> }): Codec<M> {
  const format = host.get("format") as CustomFormat<M> | undefined;
  return format ? new Translation(format) : (NATIVE as Codec<M>);
}

/** The option `format` of a call of `/history`: its name for the engine, and how messages are read and written. */
export function readFormat<M extends Message>(format: Format | CustomFormat<M> | undefined): { format: Format | undefined; codec: Codec<M> } {
  const base = baseOf(format);
  return { format: base, codec: base === format ? (NATIVE as Codec<M>) : new Translation(format as CustomFormat<M>) };
}

/** The calls that results answered, where neither has an id: by the message that has the result. */
const answered = new WeakMap<object, string>();

export class Translation<M extends Message> implements Codec<M> {
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

  #bare(message: M, index: number): Fields {
    return bareOf(this.#format, message, index);
  }

  #tied(base: Fields, message: M): Fields {
    return tied(this.#format, base, () => answered.get(message) ?? "");
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
      throw invalidOption(`format.${by}`, `the function of format ${name} threw: ${thrownText(cause)}`, cause);
    }
    if (!isOne(made)) throw invalidOption(`format.${by}`, `must return one message, and ${named(made)} came (format ${name})`);
    if (role === "tool" && call) answered.set(made, call);
    return made as unknown as M;
  }
}

function roleOf({ role, type }: Fields): unknown {
  return role ?? type;
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
