// @ts-check
/** The same history without compaction: what is played, and what is ahead. */

/** Tokens of all messages up to each one, those ahead included.
 *  @param {{ weights: readonly number[], sourceWeights: readonly number[], cursor: number }} run @returns {number[]} */
export function wholeOf({ weights, sourceWeights, cursor }) {
  let sum = 0;
  return [...weights, ...sourceWeights.slice(cursor)].map((weight) => (sum += weight));
}

/** The message from which on the history does not fit the window, counted from 1.
 *  @param {readonly number[]} whole @param {number} contextWindow */
export function overflowOf(whole, contextWindow) {
  const index = whole.findIndex((tokens) => tokens > contextWindow);
  return index < 0 ? undefined : index + 1;
}
