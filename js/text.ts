/** Counting a text: written once into a buffer of the engine and counted there, or here when it is short. */

import { call, engine } from "./engine.js";
import { CompactionError } from "./errors.js";
import type { Estimator } from "./types.js";

/** Up to so many UTF-16 units the call into the engine would cost more than the counting. */
const SHORT = 32;

const encoder = new TextEncoder();

/** The engine's buffer; empty at first, and when the engine's memory has moved. */
let buffer = new Uint8Array(0);

/** A family's weights, one after the other: see `Table` of `crates/estimator`. */
type Weights = Uint8Array;

const PAIRS = 1 << 16;
const CONTEXTS = 1 << 12;
const CLASSES = PAIRS + CONTEXTS;
const SIZE = CLASSES + 256;
/** Units of a weight in one token, as a shift. */
const SCALE = 6;
/** The classes of what is before the first byte. */
const BEFORE = 0o1111;

const weights: Weights[] = [];
const families = new Map<string | undefined, number>();
/** Names that are kept: an app has few models, and names can come from anywhere. */
const MODELS = 100;

/** Estimated tokens of a text, for a model when it is named. */
export function estimateText(text: string, estimator: Estimator = "calibrated", model?: string): number {
  if (estimator === "chars4") return estimateLong(text, undefined);
  if (estimator !== "calibrated") {
    throw new CompactionError("invalid_option", 'estimator: must be one of "calibrated", "chars4"', {
      field: "estimator",
    });
  }
  const family = families.get(model) ?? familyOf(model);
  const known = weights[family];
  if (!known || text.length > SHORT) return estimateLong(text, family);
  // An engine that failed answers nothing more.
  engine();
  return estimateShort(text, known);
}

function familyOf(model: string | undefined): number {
  if (model !== undefined && typeof model !== "string") {
    throw new CompactionError("invalid_option", "model: must be a text", { field: "model" });
  }
  return call((engine) => {
    const family = engine.familyOf(model ?? "");
    const address = engine.weightsOf(family);
    const memory = engine.wasmMemory() as WebAssembly.Memory;
    weights[family] ??= new Uint8Array(memory.buffer).slice(address, address + SIZE);
    if (families.size === MODELS) families.clear();
    families.set(model, family);
    return family;
  });
}

/** The engine's count. */
function estimateLong(text: string, family: number | undefined): number {
  return call((engine) => {
    if (buffer.length === 0) {
      // Asked for first: it may make the memory grow.
      const address = engine.textBuffer();
      const memory = engine.wasmMemory() as WebAssembly.Memory;
      buffer = new Uint8Array(memory.buffer, address, engine.textRoom());
    }
    // A UTF-16 unit takes three bytes at most.
    const piece = buffer.length / 3;
    if (text.length <= piece) return engine.estimateBuffer(encoder.encodeInto(text, buffer).written, family, true);
    let tokens = 0;
    for (let at = 0, end = 0; at < text.length; at = end) {
      end = at + piece < text.length ? whole(text, at + piece) : text.length;
      const { written } = encoder.encodeInto(text.slice(at, end), buffer);
      tokens = engine.estimateBuffer(written, family, at === 0);
    }
    return tokens;
  });
}

/** UTF-8 of a short text. */
const short = new Uint8Array(3 * SHORT);

/** What the engine would count: the same weights over the same bytes. */
function estimateShort(text: string, table: Weights): number {
  if (text === "") return 0;
  let pair = 0;
  let context = BEFORE;
  let units = 0;
  for (let at = 0; at < text.length; at++) {
    const byte = text.charCodeAt(at);
    if (byte > 0x7f) return estimateBytes(writeShort(text), table);
    pair = ((pair & 0xff) << 8) | byte;
    context = ((context & 0o777) << 3) | (table[CLASSES + byte] as number);
    units += (table[pair] as number) + (table[PAIRS + context] as number);
  }
  return tokensOf(units);
}

/** The same over the first `length` bytes that were written. */
function estimateBytes(length: number, table: Weights): number {
  let pair = 0;
  let context = BEFORE;
  let units = 0;
  for (let at = 0; at < length; at++) {
    const byte = short[at] as number;
    pair = ((pair & 0xff) << 8) | byte;
    context = ((context & 0o777) << 3) | (table[CLASSES + byte] as number);
    units += (table[pair] as number) + (table[PAIRS + context] as number);
  }
  return tokensOf(units);
}

function tokensOf(units: number): number {
  return Math.max(1, (units + (1 << (SCALE - 1))) >> SCALE);
}

/** Writes what `encodeInto` would; how many bytes. */
function writeShort(text: string): number {
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    let code = text.charCodeAt(at);
    if (code < 0x80) {
      short[length++] = code;
      continue;
    }
    if (code >= 0xd800 && code < 0xe000) {
      const next = text.charCodeAt(at + 1);
      if (code < 0xdc00 && next >= 0xdc00 && next < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (next - 0xdc00);
        at++;
      } else {
        // A lone surrogate has no UTF-8.
        code = 0xfffd;
      }
    }
    if (code < 0x800) {
      short[length++] = 0xc0 | (code >> 6);
    } else {
      if (code < 0x10000) {
        short[length++] = 0xe0 | (code >> 12);
      } else {
        short[length++] = 0xf0 | (code >> 18);
        short[length++] = 0x80 | ((code >> 12) & 0x3f);
      }
      short[length++] = 0x80 | ((code >> 6) & 0x3f);
    }
    short[length++] = 0x80 | (code & 0x3f);
  }
  return length;
}

/** `end`, or one less where the first half of a pair would be the last before it. */
export function whole(text: string, end: number): number {
  const last = text.charCodeAt(end - 1);
  return last >= 0xd800 && last < 0xdc00 ? end - 1 : end;
}
