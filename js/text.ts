/** Counting a text: written once into a buffer of the engine and counted there, or here when it is short. */

import { run } from "./driver.js";
import { call, engine } from "./engine.js";
import { CompactionError } from "./errors.js";
import type { Estimator } from "./types.js";

/** Up to so many UTF-16 units the call into the engine would cost more than the counting. */
const SHORT = 32;

const encoder = new TextEncoder();

/**
 * Units of a text, and their number. As a property of the text each would be looked up by the text's shape, and V8 has more
 * shapes (a slice, a join, one byte a unit or two …) than its caches hold: that takes as long as the counting.
 */
const { charCodeAt } = String.prototype;
const lengthOf = (text: string): number => String(text).length;

/** The engine's buffer; empty at first, and when the engine's memory has moved. */
let buffer = new Uint8Array(0);

/** A family's weights: see `Table` of `crates/estimator`, where they are one after the other. */
interface Weights {
  pairs: Uint8Array;
  contexts: Uint8Array;
  classes: Uint8Array;
}

const PAIRS = 1 << 16;
const CONTEXTS = 1 << 12;
const CLASSES = 256;
/** Units of a weight in one token, as a shift. */
const SCALE = 6;
/** The classes of what is before the first byte. */
const BEFORE = 0o1111;

const weights: Weights[] = [];
const families = new Map<string | undefined, number>();
/** What was counted for last: most apps have one model. */
let last: { model: string | undefined; family: number } | undefined;
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
  const family = last && last.model === model ? last.family : familyOf(model);
  const known = weights[family];
  if (!known || lengthOf(text) > SHORT) return estimateLong(text, family);
  // An engine that failed answers nothing more.
  engine();
  return estimateShort(text, known);
}

function familyOf(model: string | undefined): number {
  const family = families.get(model) ?? learn(model);
  last = { model, family };
  return family;
}

function learn(model: string | undefined): number {
  if (model !== undefined && typeof model !== "string") {
    throw new CompactionError("invalid_option", "model: must be a text", { field: "model" });
  }
  return run((engine) => {
    const family = engine.familyOf(model);
    const address = engine.weightsOf(family);
    const memory = engine.wasmMemory() as WebAssembly.Memory;
    weights[family] ??= weightsAt(memory.buffer, address);
    if (families.size === MODELS) families.clear();
    families.set(model, family);
    return family;
  });
}

function weightsAt(memory: ArrayBuffer, address: number): Weights {
  // Copies: the engine's memory moves when it grows.
  const next = (size: number) => new Uint8Array(memory).slice(address, (address += size));
  return { pairs: next(PAIRS), contexts: next(CONTEXTS), classes: next(CLASSES) };
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

/** What the engine would count: the same weights over the same bytes, in one pass that allocates nothing. */
function estimateShort(text: string, { pairs, contexts, classes }: Weights): number {
  const length = lengthOf(text);
  if (length === 0) return 0;
  let pair = 0;
  let context = BEFORE;
  let units = 0;
  let at = 0;
  while (at < length) {
    let code = charCodeAt.call(text, at++);
    // The character's bytes beyond the first, the next one lowest; none of them is zero.
    let rest = 0;
    if (code > 0x7f) {
      if (code >= 0xd800 && code < 0xe000) {
        const next = at < length ? charCodeAt.call(text, at) : 0;
        if (code < 0xdc00 && next >= 0xdc00 && next < 0xe000) {
          at++;
          const point = 0x10000 + ((code - 0xd800) << 10) + (next - 0xdc00);
          rest = 0x80 | ((point >> 12) & 0x3f) | ((0x80 | ((point >> 6) & 0x3f)) << 8) | ((0x80 | (point & 0x3f)) << 16);
          code = 0xf0 | (point >> 18);
        } else {
          // A lone surrogate has no UTF-8: U+FFFD.
          rest = 0xbdbf;
          code = 0xef;
        }
      } else if (code < 0x800) {
        rest = 0x80 | (code & 0x3f);
        code = 0xc0 | (code >> 6);
      } else {
        rest = 0x80 | ((code >> 6) & 0x3f) | ((0x80 | (code & 0x3f)) << 8);
        code = 0xe0 | (code >> 12);
      }
    }
    for (;;) {
      pair = ((pair << 8) | code) & 0xffff;
      context = ((context << 3) | (classes[code] as number)) & 0xfff;
      units += (pairs[pair] as number) + (contexts[context] as number);
      if (rest === 0) break;
      code = rest & 0xff;
      rest >>>= 8;
    }
  }
  return Math.max(1, (units + (1 << (SCALE - 1))) >> SCALE);
}

/** `end`, or one less where the first half of a pair would be the last before it. */
export function whole(text: string, end: number): number {
  const last = text.charCodeAt(end - 1);
  return last >= 0xd800 && last < 0xdc00 ? end - 1 : end;
}
