// @ts-check
/** What can be asked for: names that were said, and that the context does not have any more. */
import { fullTextOf } from "./messages.js";

const NAME = /[\p{L}\p{N}_]+(?:[-./:@][\p{L}\p{N}_]+)*/gu;
const SHORTEST = 6;
const LONGEST = 28;

/** Up to `limit` of them, each from another message.
 *  @param {readonly object[]} log @param {readonly { index: number, fate: string }[]} ledger @param {readonly object[]} context
 *  @param {number} [limit] @returns {string[]} */
export function namesThatLeft(log, ledger, context, limit = 3) {
  const inside = context.map(fullTextOf).join("\n").toLowerCase();
  /** @type {Map<string, number>} */
  const first = new Map();
  for (const { index, fate } of ledger) {
    const message = log[index];
    if (fate === "verbatim" || !message) continue;
    for (const [name] of fullTextOf(message).matchAll(NAME)) {
      if (name.length >= SHORTEST && name.length <= LONGEST && !first.has(name)) first.set(name, index);
    }
  }
  const ranked = Array.from(first, ([name, index]) => ({ name, index, value: valueOf(name) })).sort((a, b) => b.value - a.value);
  /** @type {Map<number, string>} */
  const chosen = new Map();
  for (const { name, index } of ranked) {
    if (chosen.size === limit) break;
    if (!chosen.has(index) && !inside.includes(name.toLowerCase())) chosen.set(index, name);
  }
  return [...chosen.values()];
}

/** A name of several words says more than a word, and both more than a row of digits. @param {string} name */
function valueOf(name) {
  const words = name.split(/[-./:@_]|(?<=\p{Ll})(?=\p{Lu})/u).filter((word) => /^\p{L}{3,}$/u.test(word));
  return words.join("").length / name.length + Math.min(words.length, 3) / 2;
}
