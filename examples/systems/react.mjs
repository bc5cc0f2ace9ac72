/** Two layers over a trajectory of thought, action and result (preset `react`). No turn is ever removed. */

import { openSession } from "context-compactor";
import { addTurn, exportTrajectory, stats } from "context-compactor/react";
import { check, log } from "./task.mjs";

const presetOptions = {
  ...{ modelContextLimit: 24_000, systemPromptLength: 1_000, instructionLength: 500 },
  ...{ singleResultThreshold: 8_000, chunkSize: 4_000, resultCompressionMinSize: 1_000, strategies: false },
};
/** A model's summary of one result: what failed. */
const summarize = ({ messages }) => {
  const shown = messages.map(({ content }) => content).join("\n");
  return Array.from(shown.matchAll(/^.*job \d+-\d+ failed.*$/gm), ([line]) => line).join("\n") || "All jobs are ok.";
};
const logger = (level, message) => /compress|Break|chunk|exceeds/i.test(message) && console.log(`${level}: ${message}`);
const session = await openSession({ preset: "react", format: "react", contextWindow: 64_000, presetOptions, summarize, logger });

// Layer 1: one result that is too large, in chunks.
const week = Array.from({ length: 9 }, (_, day) => log(day + 1)).join("\n");
await addTurn(session, { thought: "The first days at once.", action: { tool: "read_logs", days: "1-9" }, result: week });
// Layer 2: when all is too large, each result with its thought and action.
for (let day = 10; day <= 30; day++) {
  await addTurn(session, { thought: `Day ${day} is next.`, action: { tool: "read_log", day }, result: log(day) });
}

const { turns_count: turns, usage_percent: percent, needs_compression: isFull } = await stats(session);
console.log(`${turns} turns, ${percent} % of the limit, needs compression: ${isFull}`);
const { execution } = await exportTrajectory(session);
console.log(`every thought and action as it was: ${execution.tool_calls.every(({ thought, action }) => thought && action.tool)}`);
await check(session);
await session.close();
