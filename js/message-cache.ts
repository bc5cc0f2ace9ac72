/** The app's own objects: the engine answers with positions and texts, and these are handed out for them. */

import { decode, encode, type Packed } from "./codec.js";
import type { Item } from "./options.js";
import type { Codec, Near } from "./codecs.js";
import type { Log } from "./seat.js";
import type { Message, NewMessageAmong } from "./types.js";

/** Where a message is: its position in the log, and its index among the app's. */
export interface Place {
  seq: number;
  index: number;
}

/** A message that the app may still change. `body`: what it said, unless that is long. */
type Newest = Place & { body?: string | undefined };

/** What a `prepare` sends: the first `kept` items are those of the one before, when that one was named. */
export interface Sent {
  nth: number;
  kept: number;
  items: Item[];
  /** Live facts: the message after them all, or in place of the last. */
  live?: { body: string; joins?: true; text: string };
}

/**
 * An object of the app: kept as long as it is in the context, and after that only as long as the app itself keeps it.
 * The log has what it says.
 */
class Kept<M extends object> {
  #message: M | undefined;
  readonly #weak: WeakRef<M> | undefined;

  constructor(message: M) {
    this.#message = message;
    // Older Workers have no weak references: there it is let go.
    this.#weak = typeof WeakRef === "undefined" ? undefined : new WeakRef(message);
  }

  get message(): M | undefined {
    return this.#message ?? this.#weak?.deref();
  }

  /** It was reported that the app changed it. */
  isTold = false;

  /** Takes it into the context again, as the object that the app still has. */
  keep(message: M): void {
    this.#message = message;
  }

  letGo(): void {
    this.#message = undefined;
  }
}

/** So many of the newest messages are looked at for changes before a prompt is sent: a message that still grows is among
 *  them. */
const NEWEST = 8;

/** Longer messages are not looked at then, in bytes: it would take longer than the prompt. */
const LONG = 1 << 16;

const decoder = new TextDecoder();

/** So many objects are looked through at most before those that are gone are forgotten. */
const SWEPT = 1_000;

/** Messages of ours, and edited ones of the app's, by their text. `next`: the first index that is after such a message. */
type Made<M> = Map<string, { message: M; next: number }>;

export class MessageCache<M extends Message> {
  readonly #codec: Codec<M>;
  /** Messages of the operation under way that have no log position yet. */
  incoming: readonly M[] = [];
  /** Texts of the last of them, but for long ones. */
  #bodies: (string | undefined)[] = [];
  /** The app's own objects by log position. */
  readonly #bySeq = new Map<number, Kept<M>>();
  /** Where the newest of them are. */
  #newest: Newest[] = [];
  /** The same by index, to recognize a history that is handed over again. */
  #known: (Kept<M> | undefined)[] = [];
  /** Those that are kept for the context. */
  #standing = new Set<Kept<M>>();
  /** Objects since those that are gone were forgotten. */
  #added = 0;
  /** Those that are handed out again as the same objects. */
  #ours: Made<M> = new Map();
  /** What the last `prepare` handed out. Messages are only added to it: what earlier ones handed out is how it begins. */
  #sent: (M | NewMessageAmong<M>)[] = [];
  #sentNth = 0;
  #log!: Log;

  constructor(codec: Codec<M>) {
    this.#codec = codec;
  }

  begin(log: Log, messages: number): void {
    this.#log = log;
    this.#known = new Array<Kept<M> | undefined>(messages).fill(undefined);
  }

  /** Messages of the log, as far as the process knows. */
  get length(): number {
    return this.#known.length;
  }

  /** The session was opened again. */
  goOn(log: Log): void {
    this.#log = log;
    this.#sentNth = 0;
  }

  /** Messages that are about to be written, and their texts. */
  coming(messages: readonly M[], { bytes, ends }: Packed): void {
    this.incoming = messages;
    const from = Math.max(ends.length - NEWEST, 0);
    // The bytes may go to another thread, and the engine need not be asked for them before each prompt.
    this.#bodies = Array.from(ends.slice(from), (end, nth) => {
      const start = ends[from + nth - 1] ?? 0;
      return end - start > LONG ? undefined : decoder.decode(bytes.subarray(start, end));
    });
  }

  place(messages: readonly M[], places: readonly Place[]): void {
    places.forEach(({ seq, index }, nth) => {
      const message = messages[nth];
      if (!message) return;
      const kept = this.#keep(message);
      this.#bySeq.set(seq, kept);
      // Another tab may have appended before.
      while (this.#known.length < index) this.#known.push(undefined);
      this.#known[index] = kept;
    });
    const bodies = this.#bodies.splice(0);
    const added = places.map((place, nth): Newest => ({ ...place, body: bodies[nth - places.length + bodies.length] }));
    this.#newest = [...this.#newest, ...added].slice(-NEWEST);
  }

  /** Indices of the newest messages that the app changed after it appended them, each reported once. */
  changed(): number[] {
    return this.#newest.filter((place) => this.#isChanged(this.#bySeq.get(place.seq), place)).map(({ index }) => index);
  }

  #isChanged(kept: Kept<M> | undefined, { body: said }: Newest): boolean {
    const message = kept?.message;
    if (!kept || !message || kept.isTold) return false;
    if (said === undefined || !this.#standing.has(kept) || this.#isSame(message, said)) return false;
    return (kept.isTold = true);
  }

  /** The object of a message of the log, where it still is what was appended. */
  unchanged(logged: Place & { body: string }): M | undefined {
    const message = this.logged(logged);
    return message && this.#isSame(message, logged.body) ? message : undefined;
  }

  #keep(message: M): Kept<M> {
    const kept = new Kept(message);
    this.#standing.add(kept);
    this.#added++;
    return kept;
  }

  /** How many of these messages are, one after the other, the first of the history now: the same objects, and unchanged. */
  same(messages: readonly M[]): number {
    const branch = this.#branch();
    // What left the context is not sent any more, whatever became of the object.
    const bodies = new Map(this.#log.bodies());
    const first = branch.findIndex((index, at) => {
      const [message, body] = [messages[at], bodies.get(index)];
      return !message || this.#known[index]?.message !== message || (body !== undefined && !this.#isSame(message, body));
    });
    return first < 0 ? branch.length : first;
  }

  /** Hands out the objects that the app gave, from now on, for messages that it had given before: runs of the first that
   *  was given, its index, and how many. */
  adopt(messages: readonly M[], runs: readonly (readonly [given: number, index: number, count: number])[]): void {
    for (const [given, index, count] of runs) {
      for (let nth = 0; nth < count; nth++) {
        const message = messages[given + nth];
        if (!message || this.#known[index + nth]?.message === message) continue;
        this.#known[index + nth] = this.#keep(message);
        this.#sentNth = 0;
      }
    }
  }

  /** For a session that was begun from `parent`: what the process holds is handed out as the same objects. */
  inherit(places: readonly Place[], parent: MessageCache<M>): void {
    places.forEach((place, at) => {
      const message = parent.logged(place);
      this.#known[at] = message && this.#keep(message);
    });
  }

  /** Lets go of the object of a message that was erased. */
  forget(index: number): void {
    const kept = this.#known[index];
    this.#known[index] = undefined;
    for (const [seq, other] of this.#bySeq) if (other === kept) this.#bySeq.delete(seq);
    this.#newest = this.#newest.filter((place) => place.index !== index);
    if (kept) this.#standing.delete(kept);
    this.#sent = [];
    this.#sentNth = 0;
  }

  /** The object of a message of the log, where the process holds it. */
  logged({ seq, index }: Place): M | undefined {
    return this.#bySeq.get(seq)?.message ?? this.#known[index]?.message;
  }

  /** Brings what these items say where the process has no object of them; nothing where the engine is in this thread. */
  lacking(items: Item[]): Promise<void> | undefined {
    if (!this.#log.bring) return undefined;
    const lacking: number[] = [];
    for (const { seq, index } of items) {
      if (seq === undefined) continue;
      // What is there must not be gone when the rest has come.
      if (!this.#held(seq, index)) lacking.push(seq);
    }
    return lacking.length > 0 ? this.#log.bring(lacking) : undefined;
  }

  /** The objects to hand out: the app's own where the process holds them. */
  messages(items: Item[]): (M | NewMessageAmong<M>)[] {
    const ours: Made<M> = new Map();
    const before = this.#standing;
    this.#standing = new Set();
    const messages = this.#objects(items, ours);
    this.#ours = ours;
    for (const kept of before) if (!this.#standing.has(kept)) kept.letGo();
    this.#sweep();
    return messages;
  }

  /** What a compaction leaves. What the last `prepare` sent is not sent again. */
  compacted(items: Item[]): (M | NewMessageAmong<M>)[] {
    this.#sent = [];
    this.#sentNth = 0;
    return this.messages(items);
  }

  /** Forgets the places of objects that nobody has any more. */
  #sweep(): void {
    if (this.#added < Math.max(SWEPT, this.#bySeq.size / 2)) return;
    this.#added = 0;
    for (const [seq, kept] of this.#bySeq) if (!kept.message) this.#bySeq.delete(seq);
    this.#known.forEach((kept, index) => {
      if (kept && !kept.message) this.#known[index] = undefined;
    });
  }

  /** Number of the `prepare` whose messages are kept for the next one; 0 if there is none. */
  get sent(): number {
    return this.#sentNth;
  }

  /** The objects that a `prepare` hands out: nothing is done again for those that the last one did. */
  prepared({ nth, kept, items, live }: Sent): () => (M | NewMessageAmong<M>)[] {
    if (kept === 0) this.#sent = this.messages(items);
    else for (const message of this.#objects(items, this.#ours)) this.#sent.push(message);
    this.#sentNth = nth;
    const [sent, { length }] = [this.#sent, this.#sent];
    const end = live ? [this.#codec.decode(live.body)] : [];
    // Each prompt is an array of its own, which is the app's; one that nobody reads is not made.
    let messages: (M | NewMessageAmong<M>)[] | undefined;
    return () => (messages ??= [...sent.slice(0, live?.joins ? length - 1 : length), ...end]);
  }

  #objects(items: Item[], ours: Made<M>): M[] {
    const near: Near<M> = { from: 0, length: this.#known.length, at: (index) => this.#known[index]?.message };
    return items.map(({ seq, index, body: text = "null" }) => {
      if (index !== undefined) near.from = index + 1;
      if (seq !== undefined) return this.#message(seq, index);
      const known = this.#ours.get(text);
      if (known) near.from = Math.max(near.from, known.next);
      const message = known?.message ?? this.#codec.decode(text, near);
      ours.set(text, { message, next: near.from });
      return message;
    });
  }

  /** The object of a message that is counted, or asked about. */
  counted(whose: "new" | "logged" | "ours", at: number, body: string): M {
    if (whose === "logged") return this.#bySeq.get(at)?.message ?? this.#codec.decode(body);
    const incoming = whose === "new" ? this.incoming[at] : undefined;
    // Another tab may have appended some of those that are handed over.
    return incoming && this.#codec.encode(incoming, at) === body ? incoming : this.#codec.decode(body);
  }

  /** Indices of the messages that are the history now: all but those that a rewind or a restore left behind. */
  #branch(): number[] {
    const { messages, behind } = this.#log.branch();
    while (this.#known.length < messages) this.#known.push(undefined);
    return [...this.#known.keys()].filter((index) => !behind.some(([from, to]) => from <= index && index < to));
  }

  #message(seq: number, index?: number): M {
    const held = this.#held(seq, index);
    if (held) return held;
    const message = this.#codec.decode(this.#log.body(seq) ?? "null");
    this.#bySeq.set(seq, this.#keep(message));
    return message;
  }

  /** The object that the process has, kept for the context. */
  #held(seq: number, index?: number): M | undefined {
    for (const kept of [index === undefined ? undefined : this.#known[index], this.#bySeq.get(seq)]) {
      const message = kept?.message;
      if (!kept || !message) continue;
      kept.keep(message);
      this.#standing.add(kept);
      return message;
    }
    return undefined;
  }

  /** True when the object still says what was stored. What cannot be written any more does not. */
  #isSame(message: M, body: string): boolean {
    try {
      const text = this.#codec.encode(message, 0);
      // What others wrote, as an import, may be spelt in another way.
      return text === body || text === encode(decode(body), 0);
    } catch {
      return false;
    }
  }
}
