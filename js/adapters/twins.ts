/** Messages of an SDK, and what the engine reads in their place: the app gets its own objects back. */

import type { Message } from "../types.js";

/** How the messages of an SDK are read and written. */
export interface Translation<T extends object> {
  /** What the engine reads in place of a message. */
  read(message: T): Message;
  /** The fields that `read` looks at: should one be another object, the message is read again. */
  fields(message: T): unknown[];
  /** A copy of a message that says what `edited` says, of which only results and calls differ. */
  patch(message: T, edited: Message): T;
  /** A message of ours, which has no other to begin from: a summary. `given` are the messages of the request. */
  write(message: Message, given: readonly T[]): T;
}

interface Read {
  fields: unknown[];
  message: Message;
}

/** Each message of the app has one twin, as long as both live. */
export class Twins<T extends object> {
  readonly #how: Translation<T>;
  readonly #read = new WeakMap<T, Read>();
  readonly #app = new WeakMap<Message, T>();
  /** Messages of ours, as they were handed out. */
  readonly #written = new WeakMap<Message, T>();

  constructor(how: Translation<T>) {
    this.#how = how;
  }

  read(message: T): Message {
    const known = this.#read.get(message);
    const fields = this.#how.fields(message);
    if (known?.fields.every((field, at) => field === fields[at])) return known.message;
    const twin = this.#how.read(message);
    this.#read.set(message, { fields, message: twin });
    this.#app.set(twin, message);
    return twin;
  }

  /** What is sent in place of `given`: the app's own objects, and new ones where there is something else to say. */
  write(prepared: readonly Message[], given: readonly T[]): T[] {
    let next = 0;
    return prepared.map((message) => {
      const own = this.#app.get(message);
      const id = own ? undefined : callOf(message);
      // Ids are used again in later turns: the first one after the message before is meant.
      const isIt = (each: T, at: number) => at >= next && callOf(this.read(each)) === id;
      const at = own ? given.indexOf(own, next) : id ? given.findIndex(isIt) : -1;
      if (at >= 0) next = at + 1;
      return own ?? this.#write(message, given[at], given);
    });
  }

  #write(message: Message, original: T | undefined, given: readonly T[]): T {
    const written = this.#written.get(message) ?? (original ? this.#how.patch(original, message) : this.#how.write(message, given));
    this.#written.set(message, written);
    // Some SDKs hand over the next time what they were given.
    this.#app.set(message, written);
    this.#read.set(written, { fields: this.#how.fields(written), message });
    return written;
  }
}

interface Fields {
  role?: string;
  type?: string;
  tool_call_id?: string;
  tool_calls?: { id: string }[];
  call_id?: string;
}

/** The call that a message makes or answers, by its id. */
function callOf(message: Message): string | undefined {
  const { role, type, tool_call_id: result, tool_calls: calls, call_id: item } = message as Fields;
  const id = result ?? item ?? calls?.[0]?.id;
  return id === undefined ? undefined : `${role ?? type} ${id}`;
}
