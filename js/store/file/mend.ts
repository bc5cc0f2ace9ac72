/** One flipped bit in the text that says what a record or a journal is: found, put back and proven by its sum. */

import type { MaybePromise } from "../../types.js";
import { bytesOf } from "./bytes.js";
import { idIn, PRELUDE, readPrelude, readRecord, readTitle, title } from "./record.js";
import type { Record } from "./record.js";
import { crc32, CRCS } from "./sums.js";

/** The first bytes of what may be a record. */
type Read = (length: number) => MaybePromise<Uint8Array>;

/** The part of a record before its values. */
export interface Head {
  record: Record;
  sum: string;
  /** Bytes of it. */
  length: number;
}

/** A line that differs in fewer bytes is that line. */
const NEAR = 8;

/** Reads the head of a record of journal `id`; undefined when it is none. */
export async function readHead(id: string, read: Read, prelude?: Uint8Array): Promise<Head | undefined> {
  const found = readPrelude(id, prelude ?? (await read(PRELUDE)));
  return found && headWith(id, found.sum, (await read(PRELUDE + found.length)).subarray(PRELUDE));
}

/** The same for one that cannot be read: with one bit flipped back, if that is all. */
export async function mendHead(id: string, read: Read): Promise<Head | undefined> {
  const prelude = await read(PRELUDE);
  for (const other of flipped(prelude)) {
    const head = await readHead(id, read, other);
    if (head) return head;
  }
  const found = readPrelude(id, prelude);
  if (!found) return undefined;
  const json = (await read(PRELUDE + found.length)).slice(PRELUDE);
  return flipBack(json, found.crc) ? headWith(id, found.sum, json) : undefined;
}

/**
 * The first line of a journal as it was written: with one bit flipped back, or where all but a few bytes are those of a line
 * of this release, of the id that it says or one of `ids`. Undefined when it is not. The sum in one of a newer schema is
 * another one, so that none of those is near to one of ours.
 */
export function mendTitle(start: Uint8Array, ids: string[]): ReturnType<typeof readTitle> {
  for (const other of flipped(start)) {
    const found = readTitle(other);
    if (found?.sound) return found;
  }
  for (const id of [idIn(start), ...ids]) {
    const line = bytesOf(title(id));
    if (line.reduce((other, byte, at) => other + Number(byte !== start[at]), 0) < NEAR) return readTitle(line);
  }
  return undefined;
}

function headWith(id: string, sum: string, json: Uint8Array): Head | undefined {
  const record = readRecord(id, sum, json);
  return record && { record, sum, length: PRELUDE + json.length + 1 };
}

/** `bytes` with each bit flipped in turn. */
function* flipped(bytes: Uint8Array): Generator<Uint8Array> {
  const copy = bytes.slice();
  for (let bit = 0; bit < copy.length * 8; bit++) {
    copy[bit >> 3]! ^= 1 << (bit & 7);
    yield copy;
    copy[bit >> 3]! ^= 1 << (bit & 7);
  }
}

/** Flips the one bit of `bytes` that gives them this CRC-32; false when there is none. */
function flipBack(bytes: Uint8Array, crc: number): boolean {
  const wanted = (crc32(bytes) ^ crc) >>> 0;
  for (let bit = 0; bit < 8; bit++) {
    // What flipping this bit of the last byte changes in the CRC, then of the one before it, and so on.
    let change = CRCS[1 << bit]!;
    for (let at = bytes.length - 1; at >= 0; at--) {
      if (change === wanted) {
        bytes[at]! ^= 1 << bit;
        return true;
      }
      change = (CRCS[change & 255]! ^ (change >>> 8)) >>> 0;
    }
  }
  return false;
}
