/** The model that writes summaries, the same for every policy: as good as can be, or as bad as a history says. */

import { PRICES } from "../front/bill.mjs";
import { tokensIn } from "./count.mjs";

/** Tokens of a good summary. */
const LENGTH = 900;
/** Characters of one that is too long: about as many tokens as the window has. */
const LONG = 60_000;

/**
 * A function from a prompt to an answer, and what that has cost. A good answer has lines from all of what it was shown, and
 * every rule of the user that it was shown: a summary that loses one had it not in its prompt.
 * @param {import("./histories.mjs").History} history
 */
export function modelOf({ model, constraint }) {
  const bill = { cost: 0, asked: 0 };
  const answers = {
    works: (prompt, length) => summaryOf(prompt, constraint, length),
    fails: () => {
      throw new Error("429: too many requests");
    },
    "is empty": () => "",
    "is long": (prompt) => `${prompt}\n${prompt}`.slice(0, LONG),
  };
  // Who is asked for less than `length` tokens gets less. A request that fails costs nothing.
  const ask = (prompt, length = LENGTH) => {
    bill.asked++;
    const answer = answers[model](prompt, Math.min(length, LENGTH));
    bill.cost += (tokensIn(prompt) * PRICES.input) / 1e6;
    bill.cost += (tokensIn(answer) * PRICES.output) / 1e6;
    return answer;
  };
  return { ask, bill };
}

function summaryOf(prompt, constraint, length) {
  const lines = [...new Set(prompt.split("\n").filter((line) => line.length > 30 && !line.includes("<")))];
  const step = Math.max(1, lines.length / Math.max(1, (length - 80) / 45));
  const chosen = lines.filter((_, nth) => Math.floor(nth / step) !== Math.floor((nth - 1) / step)).map((line) => `- ${line.slice(0, 100)}`);
  const rules = constraint && prompt.includes(constraint) ? `\n\n## Constraints\n- ${constraint}` : "";
  return `## Status\nThe parser is moved step by step.${rules}\n\n## Progress\n${chosen.join("\n")}\n\n## Next\nThe next step is to be done.`;
}
