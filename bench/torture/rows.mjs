/** Rows of the table: of policies that were played, and of rules. */

import { replayed } from "./rules.mjs";

/** The row of a policy. */
export function rowOf({ name, by, claims }, played, histories) {
  const asked = histories.filter(({ constraint }) => constraint).length;
  const where = (key) => played.flatMap((one, nth) => (one[key] > 0 ? [nth + 1] : []));
  const [stuck, invalid, strict, lost] = ["stuck", "invalid", "strict", "lost"].map(where);
  const cell = (found, of, isClaimed) => `${isClaimed ? "" : "does not say: "}${found.length} of ${of}`;
  const [good, bad] = [true, false].map((works) => played.filter((_, nth) => (histories[nth].model === "works") === works));
  const sum = (of, key) => of.reduce((all, one) => all + one[key], 0);
  const lists = Object.entries({ stuck, invalid, strict: strict.filter((nth) => !invalid.includes(nth)), lost });
  return {
    case: name,
    by,
    stuck: cell(stuck, histories.length, claims.limit),
    invalid: cell(invalid, histories.length, claims.valid),
    "invalid, strict": cell(strict, histories.length, claims.valid),
    "constraint lost": cell(lost, asked, claims.rules),
    cost: round(sum(good, "cost") / sum(good, "base")),
    asked: sum(bad, "asked"),
    where: lists.flatMap(([key, found]) => (found.length > 0 ? [`${key} ${found.join(" ")}`] : [])).join("; "),
  };
}

/** The rows of rules. */
export async function ruleRows(histories, rules) {
  if (rules.length === 0) return [];
  // A rule knows no model that fails.
  const fair = histories.filter(({ model }) => model === "works");
  const all = [];
  for (const history of fair) all.push(await replayed(history, rules));
  return rules.map(({ name, policy }, nth) => {
    const of = all.map((one) => one[nth]);
    const stuck = of.flatMap(({ isStuck }, at) => (isStuck ? [histories.indexOf(fair[at]) + 1] : []));
    const isEndless = policy.kind === "none";
    return {
      case: name,
      by: "rule",
      stuck: isEndless ? "does not say" : `${stuck.length} of ${fair.length}`,
      invalid: "does not say",
      "invalid, strict": "does not say",
      "constraint lost": "does not say",
      cost: round(mean(of.map(({ cost }) => cost))),
      "over the optimum": round(mean(of.map(({ optimum }) => optimum))),
      where: stuck.length > 0 && !isEndless ? `stuck ${stuck.join(" ")}` : "",
    };
  });
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const round = (number) => Math.round(number * 1_000) / 1_000;
