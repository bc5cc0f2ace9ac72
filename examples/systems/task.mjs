/** The run of all five programs: an agent reads the logs of a month, and a script writes what a model would. */

const DAYS = 30;

export const question = { role: "user", content: "On which days of the month did a job fail? Never restart a job." };

/** About 900 tokens: a line for each minute. On every ninth day a job fails. */
export function log(day) {
  const lines = Array.from({ length: 60 }, (_, minute) => `12:${String(minute).padStart(2, "0")} job ${day}-${minute} ok`);
  if (day % 9 === 0) lines[day] = `12:${day} job ${day}-${day} failed: disk full`;
  return lines.join("\n");
}

/** The steps of the agent: a call and its result for each day. `tool` is the name of the tool. */
export function* steps(tool = "read_file") {
  for (let day = 1; day <= DAYS; day++) {
    const call = { id: `call_${day}`, type: "function", function: { name: tool, arguments: JSON.stringify({ path: `logs/${day}.txt` }) } };
    yield [
      { role: "assistant", content: `Day ${day} is next.`, tool_calls: [call] },
      { role: "tool", tool_call_id: call.id, content: log(day) },
    ];
  }
}

/** The summary of a model, for the option `summarize`: what it was shown to have failed, and what must hold. */
export function summarize({ messages }) {
  const shown = messages.map(({ content }) => content).join("\n");
  const failed = [...new Set(Array.from(shown.matchAll(/job (\d+)-\d+ failed/g), ([, day]) => Number(day)))].sort((one, other) => one - other);
  const read = Math.max(0, ...Array.from(shown.matchAll(/logs\/(\d+)\.txt/g), ([, day]) => Number(day)));
  const jobs = failed.map((day) => `job ${day}-${day} failed: disk full (logs/${day}.txt)`);
  return `## Current Status\nThe logs are read to day ${read}, in order, one call of the tool for each day. Never restart a job.\n## Failures\n${jobs.join("\n") || "None so far."}\n## Next\nThe days after ${read}, then the answer to the user.`;
}

/** What every program ends with: nothing is lost, and what left can be found. */
export async function check(session) {
  const { totalMessages } = session.archive.metadata();
  const hits = await session.recall.search("job 9-9 failed");
  const { ok } = await session.archive.verify();
  console.log(`${totalMessages} messages in the log, valid: ${ok}; found again: ${/job 9-9 failed: disk full/.test(hits[0]?.snippet)}`);
}
