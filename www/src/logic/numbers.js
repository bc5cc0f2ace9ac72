// @ts-check
/** Numbers as the reader's language writes them. */

const numbers = new Intl.NumberFormat();
const percents = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });

/** @param {number} value */
export const count = (value) => numbers.format(value);
/** @param {number} share */
export const percent = (share) => percents.format(share);
/** @param {number} value */
export const short = (value) => compact.format(value);
/** @param {number} value @param {string} word */
export const plural = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;
