/** Stands in for a provider: a script with the shapes of OpenAI's Chat Completions. */

const DAYS = 31;
const failed = [];
let day = 0;

/** The next message of the assistant. Without `tools` it is asked for a summary. */
export async function complete({ messages, tools }) {
  if (!tools) return { role: "assistant", content: `## Current Status\nRead to day ${day}. Failed: ${failed.join(", ")}.` };
  const last = messages.at(-1);
  if (last.role === "tool" && last.content.includes("failed")) failed.push(day);
  if (day === DAYS) return { role: "assistant", content: `A job failed on the days ${failed.join(", ")}.` };
  const call = { name: "read_log", arguments: JSON.stringify({ day: ++day }) };
  return { role: "assistant", content: null, tool_calls: [{ id: `call_${day}`, type: "function", function: call }] };
}
