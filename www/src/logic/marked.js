// @ts-check

/** A text in parts: those that say one of the words, in any case, and those between them.
 *  @param {string} text @param {readonly string[]} words @returns {[part: string, isMarked: boolean][]} */
export function marked(text, words) {
  const wanted = words.filter((word) => word !== "").map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (wanted.length === 0) return [[text, false]];
  return text.split(new RegExp(`(${wanted.join("|")})`, "giu")).map((part, i) => [part, i % 2 === 1]);
}
