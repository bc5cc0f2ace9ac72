// @ts-check
/** A report of a run that can be shown to anybody: numbers, and words of this page alone. */
import { stepsOf } from "context-compactor-ui";
import { overflowOf, wholeOf } from "./forecast.js";
import { count, percent, plural } from "./numbers.js";

/** @typedef {import("../run/types.js").RunState} RunState */
/** @typedef {import("../run/proof.js").Proof} Proof */

/** The report as Markdown. @param {RunState} state @param {Proof} proof */
export function reportOf(state, proof) {
  const { contextWindow, preset, economy, log, samples, compactions, ledger } = state;
  const whole = wholeOf(state);
  const overflow = overflowOf(whole, contextWindow);
  const peak = Math.max(0, ...samples.map(({ used }) => used));
  const fates = Object.entries(Object.groupBy(ledger, ({ fate }) => fate)).map(([fate, { length }]) => `${fate} ${count(length)}`);
  const sum = (/** @type {(compaction: RunState["compactions"][number]) => number} */ of) => compactions.reduce((total, one) => total + of(one), 0);
  const facts = [
    ["played", `${count(log.length)} of ${plural(whole.length, "message")}`],
    ["window", `${count(contextWindow)} tokens`],
    ["preset", `${preset}${economy ? ", economy" : ""}`],
    [
      "without compaction",
      `${count(whole.at(-1) ?? 0)} tokens: ${overflow === undefined ? "they fit" : `refused from message ${count(overflow)} on`}`,
    ],
    ["largest prompt", `${count(peak)} tokens, ${percent(peak / contextWindow)} of the window`],
    ["compactions", `${count(compactions.length)}, with ${plural(sum(({ llmCalls }) => llmCalls), "model call")}`],
    ["freed", `${count(sum(({ previousTokens, tokensAfter }) => previousTokens - tokensAfter))} tokens`],
    ["broken rules of the provider", count(sum(({ problems }) => problems))],
    ["where messages are", fates.join(", ")],
    [
      "read back from the store",
      `${count(proof.same)} of ${plural(proof.messages, "message")}, word for word; damaged: ${count(proof.problems)}`,
    ],
  ];
  const rows = compactions.map(({ number, x, previousTokens, tokensAfter, edits }) =>
    line([count(number), count(x), count(previousTokens), count(tokensAfter), stepsOf(edits)]),
  );
  return [
    "# An agent run in a small context window, with context-compactor",
    "",
    "This report has numbers only: no text of the conversation, no name and no id is in it.",
    "",
    line(["", ""]),
    line(["---", "---"]),
    ...facts.map(line),
    "",
    ...(rows.length > 0 ? [line(["compaction", "at message", "before", "after", "what"]), line(["---", "---", "---", "---", "---"]), ...rows, ""] : []),
  ].join("\n");
}

/** A row of a table. @param {readonly string[]} cells */
const line = (cells) => `| ${cells.join(" | ")} |`;
