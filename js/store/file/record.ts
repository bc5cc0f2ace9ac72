/**
 * The text of a journal. It begins with a line that says what it is and its id; then follows one record for each batch:
 *
 *     <journal id> <sum> <crc> <length> {"at":…,"after":…,"seq":…,"puts":[…],"deletes":[…]}
 *     <the values, one after the other, as they are>
 *     <sum>
 *
 * `sum` is over the id and the JSON, which has a checksum of each value. The id is random and a record says where it
 * stands, so no value can pass for a record; and a record is recognized without reading its values. `crc` is of the
 * JSON and finds a flipped bit.
 */

import type { Key } from "../../types.js";
import { asciiOf, bytesOf, joined, textOf } from "./bytes.js";
import { crc32, sha256 } from "./sums.js";

/** Journals of 100 to 199 can be read and written by every release that knows one of them. */
export const SCHEMA = 100;
export const SCHEMA_END = 200;

const TITLE = "context-compactor journal";
/** Enough for a title. */
export const TITLE_BYTES = 128;

const ID = 26;
const SUM = 32;
const LENGTH = 8;
const CRC = 8;
/** Bytes before the JSON of a record. */
export const PRELUDE = ID + 1 + SUM + 1 + CRC + 1 + LENGTH + 1;
/** Bytes after the values of a record. */
export const TRAILER = 1 + SUM + 1;

/** A key, its version, the bytes of its value and their CRC-32. `kept`: the value was damaged when the journal of that
 *  number was rewritten, and is in the file that was kept of it. */
export type Put = [key: Key, version: number, bytes: number, crc: number, kept?: number];

export interface Record {
  /** Where in the file it was to be. It counts only there: what another process wrote first makes it void. */
  at: number;
  /** Where the record ended that counted before. What lies between counts no more, whatever it is. Missing: that one. */
  after?: number;
  /** Counts those that count, from 1. */
  seq: number;
  /** Tells apart two that say the same. */
  nonce: string;
  puts: Put[];
  deletes: Key[];
  /** Nothing after this one counts: the next journal goes on. */
  sealed?: true;
  /** It was on the disk before the journal had its name. */
  base?: true;
  /** In words, what is missing of the store and not reported yet; empty once it was. */
  lost?: string[];
}

/** A record as text. */
export interface Encoded {
  record: Record;
  sum: string;
  bytes: Uint8Array;
  /** Where in `bytes` the first value is. */
  body: number;
}

/** The bytes before the JSON of a record. */
export interface Prelude {
  sum: string;
  crc: number;
  length: number;
}

const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";

/** A random id in base32; 26 letters have 130 bits. */
export function randomId(letters = ID): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(letters)), (byte) => BASE32[byte & 31]).join("");
}

/** The first line of a journal. */
export function title(id: string): string {
  return `${TITLE} ${SCHEMA} ${id} ${sumOf(id, String(SCHEMA))}\n`;
}

/** What a first line says, or undefined when it is none of ours; `sound` says whether it is as it was written. */
export function readTitle(start: Uint8Array): { schema: number; sound: boolean; id: string; bytes: number } | undefined {
  // Of a newer schema, only this much is known.
  const match = /^context-compactor journal (\d{3,6}) (?:([a-z2-7]{26}) ([0-9a-f]{32})\n)?/.exec(asciiOf(start));
  if (!match) return undefined;
  const [{ length: bytes }, schema, id = "", sum] = match;
  return { schema: Number(schema), sound: sum === sumOf(id, schema!), id, bytes };
}

/** The text in the place of the id of a first line. */
export function idIn(start: Uint8Array): string {
  const at = `${TITLE} ${SCHEMA} `.length;
  return asciiOf(start, at, at + ID);
}

export function encode(id: string, record: Record, values: Uint8Array[]): Encoded {
  const json = JSON.stringify(record);
  const sum = sumOf(id, json);
  const text = bytesOf(json);
  const crc = crc32(text).toString(16).padStart(CRC, "0");
  const head = bytesOf(`${id} ${sum} ${crc} ${String(text.length).padStart(LENGTH)} ${json}\n`);
  return { record, sum, bytes: joined([head, ...values, bytesOf(trailer(sum))]), body: head.length };
}

/** What ends a record. */
export function trailer(sum: string): string {
  return `\n${sum}\n`;
}

/** Reads `PRELUDE` bytes; undefined when no record of journal `id` begins with them. */
export function readPrelude(id: string, bytes: Uint8Array): Prelude | undefined {
  const match = /^([a-z2-7]{26}) ([0-9a-f]{32}) ([0-9a-f]{8}) ( *\d+) $/.exec(asciiOf(bytes));
  if (match?.[1] !== id) return undefined;
  return { sum: match[2]!, crc: Number.parseInt(match[3]!, 16), length: Number(match[4]) };
}

/** Reads the JSON of a record; undefined when it is not what was written. */
export function readRecord(id: string, sum: string, json: Uint8Array): Record | undefined {
  return sumOf(id, json) === sum ? (JSON.parse(textOf(json)) as Record) : undefined;
}

/** Bytes of a record's values. */
export function bodyLength(record: Record): number {
  return record.puts.reduce((total, [, , bytes]) => total + bytes, 0);
}

/** The entry of `value` in a record. */
export function putOf(key: Key, version: number, value: Uint8Array): Put {
  return [key, version, value.byteLength, crc32(value)];
}

function sumOf(id: string, json: string | Uint8Array): string {
  return sha256(id, json).slice(0, SUM);
}
