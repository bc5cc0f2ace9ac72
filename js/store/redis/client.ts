/** Clients of Redis that the store can use, and how each sends bytes and gets them back. */

import { CompactionError } from "../../errors.js";

/** A client of `ioredis` (`new Redis()`), as far as `redisStore` uses it. */
export interface IoRedisClient {
  callBuffer(command: string, ...values: never[]): Promise<unknown>;
}

/** A connected client of `redis` (`createClient()`), as far as `redisStore` uses it. */
export interface NodeRedisClient {
  sendCommand(command: never[], options?: never): Promise<unknown>;
}

/** Part of a command: bytes, or a text or number that is sent as UTF-8. */
export type Part = Uint8Array | string | number;

/** Sends a command. Texts of the answer are bytes. */
export type Send = (...command: [string, ...Part[]]) => Promise<unknown>;

interface Buffers {
  from(bytes: ArrayBufferLike, at: number, length: number): Uint8Array;
}

/** Texts in the protocol begin with `$`: these are to be bytes. */
const TEXTS = 36;

/** How `client` sends. Throws `invalid_option` for what is no client of either kind. */
export function senderOf(client: unknown): Send {
  const { callBuffer, sendCommand } = Object(client) as { callBuffer?: Function; sendCommand?: Function };
  const { Buffer } = globalThis as { Buffer?: Buffers };
  if (!Buffer || (typeof callBuffer !== "function" && typeof sendCommand !== "function")) {
    const problem = "`redisStore` takes a client of `redis` or of `ioredis`, neither a cluster nor a pool of redis";
    throw new CompactionError("invalid_option", problem, { field: "client" });
  }
  const plain = (part: Part) =>
    typeof part === "object" ? Buffer.from(part.buffer, part.byteOffset, part.byteLength) : String(part);
  if (typeof callBuffer === "function") {
    return async (name, ...parts) => callBuffer.call(client, name, parts.map(plain)) as unknown;
  }
  // The second is of version 4.
  const options = { typeMapping: { [TEXTS]: Buffer }, returnBuffers: true };
  return async (name, ...parts) => sendCommand!.call(client, [name, ...parts.map(plain)], options) as unknown;
}
