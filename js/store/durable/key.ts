/**
 * Keys as bytes that sort as the contract says. Not as TEXT: SQLite orders that by code point, and replaces half a
 * surrogate pair.
 *
 * A number is a tag and its IEEE 754 bytes, which ascend from 0 on, with the sign turned. A string is a tag, one to three
 * bytes for each code unit as UTF-8 would have them (so pairs are two of three bytes, and units ascend), and 0; a unit
 * of 0 is 0, 255. No tag is 0 or 255, so a key sorts before what it begins, and no part runs into the next.
 */

import type { Key } from "../../types.js";
import type { ScanOptions } from "../keys.js";

const NUMBER = 1;
const STRING = 2;
const END = 0;
const ESCAPE = 255;

/** Keys from `low` to before `high`. */
export interface Range {
  low: Uint8Array<ArrayBuffer>;
  high: Uint8Array<ArrayBuffer>;
}

export function encodeKey(key: Key): Uint8Array<ArrayBuffer> {
  const bytes: number[] = [];
  for (const part of key) {
    if (typeof part === "number") pushNumber(bytes, part);
    else pushString(bytes, part);
  }
  return Uint8Array.from(bytes);
}

export function decodeKey(bytes: Uint8Array): (string | number)[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const parts: (string | number)[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (view.getUint8(at++) === NUMBER) {
      parts.push(Math.abs(view.getFloat64(at)));
      at += 8;
    } else {
      const units: number[] = [];
      at = readUnits(view, at, units);
      // In pieces: a long string has more units than a call may have arguments.
      let text = "";
      for (let i = 0; i < units.length; i += 4096) text += String.fromCharCode(...units.slice(i, i + 4096));
      parts.push(text);
    }
  }
  return parts;
}

/** What a scan goes through. */
export function rangeOf(prefix: Key, { after, reverse }: ScanOptions): Range {
  const first = encodeKey(prefix);
  const range = { low: first, high: followed(first, ESCAPE) };
  if (!after) return range;
  return reverse ? { ...range, high: encodeKey(after) } : { ...range, low: pastKey(encodeKey(after)) };
}

/** The least bytes that sort after `key`. */
export function pastKey(key: Uint8Array): Uint8Array<ArrayBuffer> {
  return followed(key, END);
}

function followed(bytes: Uint8Array, byte: number): Uint8Array<ArrayBuffer> {
  const longer = new Uint8Array(bytes.length + 1);
  longer.set(bytes);
  longer[bytes.length] = byte;
  return longer;
}

function pushNumber(bytes: number[], number: number): void {
  const view = new DataView(new ArrayBuffer(8));
  // Whatever the sign of a zero.
  view.setFloat64(0, -Math.abs(number));
  bytes.push(NUMBER, ...new Uint8Array(view.buffer));
}

function pushString(bytes: number[], text: string): void {
  bytes.push(STRING);
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit === 0) bytes.push(0, ESCAPE);
    else if (unit < 0x80) bytes.push(unit);
    else if (unit < 0x800) bytes.push(0xc0 | (unit >> 6), 0x80 | (unit & 0x3f));
    else bytes.push(0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f));
  }
  bytes.push(END);
}

/** Adds the code units of the string that begins at `at`; returns where the next part begins. */
function readUnits(view: DataView, at: number, units: number[]): number {
  const low = (offset: number) => view.getUint8(at + offset) & 0x3f;
  for (;;) {
    const byte = view.getUint8(at);
    if (byte === 0) {
      const ends = at + 1 >= view.byteLength || view.getUint8(at + 1) !== ESCAPE;
      if (ends) return at + 1;
      units.push(0);
      at += 2;
    } else if (byte < 0x80) {
      units.push(byte);
      at += 1;
    } else if (byte < 0xe0) {
      units.push(((byte & 0x1f) << 6) | low(1));
      at += 2;
    } else {
      units.push(((byte & 0x0f) << 12) | (low(1) << 6) | low(2));
      at += 3;
    }
  }
}
