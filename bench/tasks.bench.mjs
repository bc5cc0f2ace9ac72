/**
 * A closed loop: generated tasks whose every step follows from earlier values, played by a scripted agent that is shown the
 * prepared prompt and has the recall tools, and nothing else (`tasks/`). `CC_SEED` makes others.
 */

import { estimateTokens } from "context-compactor/tokens";
import { generate, kinds } from "./tasks/generate.mjs";
import { LEAVES, METHODS, play } from "./tasks/play.mjs";

export const title = "Generated tasks, played from the prompt alone by a scripted agent";

export const notes = [
  "The agent looks for each value in the prompt, by its label and word for word; with the recall tools it then searches for the " +
    "label and reads what was found. It sees all that the prompt holds: a model overlooks some of it, and infers some that is not there.",
  "solved: all steps right. After a wrong step the task goes on with the right value. A value that was there and was wrong is one " +
    "that had changed since, or was cut.",
  "solved, fits a page: of the tasks whose needed lines take less than a compaction leaves (30 % of the window).",
  "cost: over no compaction in an endless window, prices of a provider with a cache; summaries are the built-in summarizer's, and cost nothing.",
  "Newest messages and masking act where `balanced` acts, leave as much, and keep the first message.",
];

const WINDOWS = [16_000, 32_000];
/** Steps, tokens of the material in each (100,000 to 300,000 in a task), and how many tasks of a kind. */
const SIZES = [
  [20, 5_000, 3],
  [60, 3_000, 2],
  [200, 1_500, 1],
];
const SEED = Number(process.env.CC_SEED ?? 1);

export async function run() {
  const tasks = SIZES.flatMap(([steps, tokens, count]) =>
    kinds.flatMap((kind) => Array.from({ length: count }, (_, nth) => generate(kind, steps, tokens, SEED + nth))),
  );
  const rows = [];
  for (const contextWindow of WINDOWS) {
    let base;
    for (const [name, method] of Object.entries(METHODS)) {
      const played = [];
      for (const task of tasks) played.push({ task, ...(await play(task, method, contextWindow)) });
      base ??= played;
      const row = { case: `${contextWindow / 1_000}K: ${name}`, ...figures(played, contextWindow), cost: round(sum(played, "cost") / sum(base, "cost")) };
      console.log(JSON.stringify(row));
      rows.push(row);
    }
  }
  return rows;
}

function figures(played, contextWindow) {
  const solved = (of) => percent(of.filter(({ wrong }) => wrong.length === 0).length, of.length);
  const right = (of) => percent(sum(of, "steps") - of.reduce((all, { wrong }) => all + wrong.length, 0), sum(of, "steps"));
  const wrong = played.flatMap(({ wrong }) => wrong);
  const fits = played.filter(({ task }) => estimateTokens(task.needed.join("\n")) < LEAVES * contextWindow);
  return {
    tasks: played.length,
    "solved (%)": solved(played),
    "solved, fits a page (%)": solved(fits),
    "steps right (%)": right(played),
    ...Object.fromEntries(SIZES.map(([steps]) => [`of ${steps} (%)`, right(played.filter((one) => one.steps === steps))])),
    ...Object.fromEntries(kinds.map((kind) => [`${kind} (%)`, right(played.filter(({ task }) => task.kind === kind))])),
    "not found": wrong.filter(({ missing }) => missing.length > 0).length,
    "there and wrong": wrong.filter(({ missing }) => missing.length === 0).length,
    "calls a step": round(sum(played, "calls") / sum(played, "steps")),
    "recalls a step": round(sum(played, "recalls") / sum(played, "steps")),
    "largest prompt": Math.max(...played.map(({ largest }) => Math.round(largest))),
  };
}

const sum = (rows, key) => rows.reduce((all, row) => all + row[key], 0);
const percent = (part, whole) => (whole ? Math.round((1_000 * part) / whole) / 10 : null);
const round = (number) => Math.round(number * 1_000) / 1_000;
