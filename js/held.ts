/** The app's own objects: the engine answers with positions and texts, and these are handed out for them. */

import { decode, encode } from "./codec.js";
import { run } from "./driver.js";
import type { Item } from "./options.js";
import type { Message, NewMessageAmong } from "./types.js";
import type { Session as Handle } from "./wasm/core.js";

/** Where a message is: its position in the log, and its index among the app's. */
export interface Place {
  seq: number;
  index: number;
}

/** What a `prepare` sends: the first `kept` items are those of the one before, when it was told which one that is. */
export interface Sent {
  nth: number;
  kept: number;
  items: Item[];
}

export class Held<M extends Message> {
  /** Messages of the operation under way that have no log position yet. */
  incoming: readonly M[] = [];
  /** The app's own objects by log position. */
  readonly #held = new Map<number, M>();
  /** The same by index, to recognise a history that is handed over again. */
  #known: (M | undefined)[] = [];
  /** Messages of ours by their text: handed out again as the same objects. */
  #ours = new Map<string, Message>();
  /** What the last `prepare` handed out; our own copy of the array, which is the app's. */
  #sent: (M | NewMessageAmong<M>)[] = [];
  #sentNth = 0;
  #handle!: Handle;

  begin(handle: Handle, messages: number): void {
    this.#handle = handle;
    this.#known = new Array<M | undefined>(messages).fill(undefined);
  }

  place(messages: readonly M[], places: readonly Place[]): void {
    places.forEach(({ seq, index }, nth) => {
      const message = messages[nth];
      if (!message) return;
      this.#held.set(seq, message);
      // Another tab may have appended before.
      while (this.#known.length < index) this.#known.push(undefined);
      this.#known[index] = message;
    });
  }

  /** How many messages the history now has, when `messages` begins with the same objects; else 0. */
  recognised(messages: readonly M[]): number {
    const branch = this.#branch();
    const isKnown = (index: number, at: number) => this.#known[index] && this.#known[index] === messages[at];
    return branch.length <= messages.length && branch.every(isKnown) ? branch.length : 0;
  }

  /** What was read from the store is held as the app's own objects from now on. */
  adopt(messages: readonly M[]): void {
    this.#branch().forEach((index, at) => {
      if (this.#known[index] === messages[at]) return;
      this.#known[index] = messages[at];
      this.#sentNth = 0;
    });
  }

  /** For a session that was begun from `parent`: what the process holds is handed out as the same objects. */
  inherit(places: readonly Place[], parent: Held<M>): void {
    places.forEach(({ seq, index }, at) => (this.#known[at] = parent.#known[index] ?? parent.#held.get(seq)));
  }

  /** The object of a message of the log, where the process holds it. */
  logged({ seq, index }: Place): M | undefined {
    return this.#held.get(seq) ?? this.#known[index];
  }

  /** The objects to hand out: the app's own where the process holds them. */
  messages(items: Item[]): (M | NewMessageAmong<M>)[] {
    const ours = new Map<string, Message>();
    const messages = this.#objects(items, ours);
    this.#ours = ours;
    return messages;
  }

  /** Which `prepare` handed out what is held for the next one; 0 when none did. */
  get sent(): number {
    return this.#sentNth;
  }

  /** The objects that a `prepare` hands out: nothing is done again for those that the last one did. */
  prepared({ nth, kept, items }: Sent): (M | NewMessageAmong<M>)[] {
    if (kept === 0) this.#sent = this.messages(items);
    else for (const message of this.#objects(items, this.#ours)) this.#sent.push(message);
    this.#sentNth = nth;
    return this.#sent.slice();
  }

  #objects(items: Item[], ours: Map<string, Message>): (M | NewMessageAmong<M>)[] {
    const messages = items.map(({ seq, index, body }) => {
      if (seq !== undefined) return this.#message(seq, index);
      const text = body ?? "null";
      const message = this.#ours.get(text) ?? (decode(text) as Message);
      ours.set(text, message);
      return message;
    });
    return messages as (M | NewMessageAmong<M>)[];
  }

  /** The object of a message that is counted, or asked about. */
  counted(whose: "new" | "logged" | "ours", at: number, body: string): Message {
    if (whose === "logged") return this.#held.get(at) ?? (decode(body) as Message);
    const incoming = whose === "new" ? this.incoming[at] : undefined;
    // Another tab may have appended some of those that are handed over.
    return incoming && encode(incoming, at) === body ? incoming : (decode(body) as Message);
  }

  /** Indices of the messages that are the history now: all but those that a rewind or a restore left behind. */
  #branch(): number[] {
    const { messages, behind } = run(() => this.#handle.branch()) as { messages: number; behind: [number, number][] };
    while (this.#known.length < messages) this.#known.push(undefined);
    return [...this.#known.keys()].filter((index) => !behind.some(([from, to]) => from <= index && index < to));
  }

  #message(seq: number, index?: number): M {
    const held = (index === undefined ? undefined : this.#known[index]) ?? this.#held.get(seq);
    if (held) return held;
    const message = decode(run(() => this.#handle.body(seq)) ?? "null") as M;
    this.#held.set(seq, message);
    return message;
  }
}
