/** The tables of families as they are counted by: a file for each. */

import { maps } from "../generated/tables/maps.js";
import type { Family } from "./families.js";
import type { Weights } from "./text.js";
import { unavailable } from "./unavailable.js";

type Other = Exclude<Family, "o200k">;

const FILES: Record<Other, () => Promise<Partial<Record<Family, string>>>> = {
  cl100k: () => import("../generated/tables/cl100k.js"),
  claude3: () => import("../generated/tables/claude3.js"),
  claude47: () => import("../generated/tables/claude47.js"),
  gemini: () => import("../generated/tables/gemini.js"),
  llama3: () => import("../generated/tables/llama3.js"),
  qwen3: () => import("../generated/tables/qwen3.js"),
};

const COLUMNS = 72;
const texts: Partial<Record<Family, string>> = {};
const tables: Partial<Record<Family, Weights>> = {};

/** Has the table of the default family, which needs no file. */
export function haveDefault(o200k: string): void {
  texts.o200k = o200k;
}

/** The weights of a family, laid out when they are first asked for; undefined where its table is not there. */
export function weightsOf(family: Family): Weights | undefined {
  const text = texts[family];
  if (text === undefined) return undefined;
  return (tables[family] ??= laidOut(text));
}

/** Loads the table of a family. Rejects with `stage_unavailable`. */
export async function bring(family: Family): Promise<void> {
  if (family === "o200k" || texts[family] !== undefined) return;
  try {
    texts[family] = (await FILES[family]())[family] as string;
  } catch (cause) {
    throw unavailable(family, cause);
  }
}

function laidOut(text: string): Weights {
  const [map, values] = [[...valuesOf(maps)], valuesOf(text)];
  const next = (): number => values.next().value as number;
  const weights = Uint8Array.from({ length: 80 * COLUMNS }, next);
  const pairs = Uint8Array.from({ length: 1 << 16 }, (_, pair) => weights[(map[pair >> 8] as number) * COLUMNS + (map[256 + (pair & 0xff)] as number)] as number);
  const contexts = Uint8Array.from({ length: 1 << 12 }, (_, classes) => (isUtf8(classes) ? next() : 0));
  // The lower byte of each, then the higher.
  return { pairs, contexts, runs: Uint16Array.from({ length: 256 }, () => next() + 256 * next()) };
}

/** The values that the signs of a table stand for: see `xtask/src/tables.rs`. */
function* valuesOf(text: string): Generator<number> {
  let large = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const sign = code - (code > 0x5c ? 36 : 35);
    if (large === 0 && sign > 88) large = 89 + (sign - 89) * 91;
    else {
      yield large + sign;
      large = 0;
    }
  }
}

/** Whether four bytes of these classes can stand side by side: 6 goes on with a character, and 7 begins one. */
function isUtf8(classes: number): boolean {
  const isPair = (shift: number): boolean => {
    const [before, after] = [(classes >> (shift + 3)) & 7, (classes >> shift) & 7];
    return after === 6 ? before > 5 : before < 7;
  };
  return isPair(0) && isPair(3) && isPair(6) && classes !== 0o6666;
}
