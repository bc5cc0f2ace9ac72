/** Group commit: appends that wait for the session's turn together become one transaction. */

import type { Packed } from "./codec.js";
import { CompactionError } from "./errors.js";
import { isPromise } from "./store-calls.js";
import type { Turns } from "./turns.js";
import type { MaybePromise, Message } from "./types.js";

/** Bytes of messages that are written together; a call with more than that is written on its own. */
const TOGETHER = 8 * 1024 * 1024;

interface Call<M> {
  readonly messages: readonly M[];
  resolve(): void;
  reject(error: unknown): void;
}

interface Part<M> extends Call<M> {
  readonly packed: Packed;
}

export class Appends<M extends Message> {
  readonly #turns: Turns;
  readonly #most: number;
  readonly #pack: (messages: readonly M[], earlier: readonly M[]) => MaybePromise<Packed>;
  readonly #write: (messages: readonly M[], packed: Packed) => Promise<void>;
  /** Open batch; closed once any other call is queued. */
  #open: { calls: Call<M>[]; asked: number } | undefined;

  /** `write` appends messages in one transaction, when there are at most `most` of them. `pack` gets besides what the
   *  transaction has already. */
  constructor(
    turns: Turns,
    most: number,
    pack: (messages: readonly M[], earlier: readonly M[]) => MaybePromise<Packed>,
    write: (messages: readonly M[], packed: Packed) => Promise<void>,
  ) {
    this.#turns = turns;
    this.#most = most;
    this.#pack = pack;
    this.#write = write;
  }

  /** Resolves when the messages are durable. */
  add(messages: readonly M[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const call = { messages, resolve, reject };
      // What was asked for in between keeps its place.
      if (this.#open?.asked === this.#turns.asked) {
        this.#open.calls.push(call);
        return;
      }
      const calls = [call];
      const begun = this.#turns.queued(() => {
        if (this.#open?.calls === calls) this.#open = undefined;
        return this.#together(calls);
      });
      this.#open = { calls, asked: this.#turns.asked };
      begun.catch((error: unknown) => calls.forEach(({ reject }) => reject(error)));
    });
  }

  async #together(calls: readonly Call<M>[]): Promise<void> {
    let parts: Part<M>[] = [];
    let count = 0;
    let bytes = 0;
    for (const call of calls) {
      let packed: Packed;
      try {
        const packing = this.#pack(call.messages, parts.flatMap(({ messages }) => messages));
        packed = isPromise(packing) ? await packing : packing;
      } catch (error) {
        call.reject(error);
        continue;
      }
      count += call.messages.length;
      bytes += packed.bytes.length;
      if (parts.length > 0 && (count > this.#most || bytes > TOGETHER)) {
        await this.#append(parts);
        parts = [];
        count = call.messages.length;
        bytes = packed.bytes.length;
      }
      parts.push({ ...call, packed });
    }
    if (parts.length > 0) await this.#append(parts);
  }

  async #append(parts: readonly Part<M>[]): Promise<void> {
    try {
      await this.#write(
        parts.flatMap(({ messages }) => messages),
        joined(parts.map(({ packed }) => packed)),
      );
      parts.forEach(({ resolve }) => resolve());
    } catch (error) {
      if (parts.length > 1 && isOfMessage(error)) {
        // Nothing was written: each call on its own says which of its messages it is, and spares the others.
        for (const part of parts) await this.#append([part]);
        return;
      }
      parts.forEach(({ reject }) => reject(error));
    }
  }
}

/** About a message, or about what the app's functions said of it; not about the store. */
function isOfMessage(error: unknown): boolean {
  const codes = ["invalid_message", "unsupported_value", "unknown_format", "invalid_option", "too_large"];
  return CompactionError.isInstance(error) && codes.includes(error.code);
}

function joined(packed: readonly Packed[]): Packed {
  const [first] = packed;
  if (first && packed.length === 1) return first;
  const bytes = new Uint8Array(packed.reduce((sum, one) => sum + one.bytes.length, 0));
  const ends = new Uint32Array(packed.reduce((sum, one) => sum + one.ends.length, 0));
  let used = 0;
  let nth = 0;
  for (const one of packed) {
    bytes.set(one.bytes, used);
    for (const end of one.ends) ends[nth++] = used + end;
    // Behind the texts there may be spare bytes.
    used += one.ends[one.ends.length - 1] ?? 0;
  }
  return { bytes, ends };
}
