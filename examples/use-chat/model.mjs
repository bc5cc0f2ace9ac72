/** A model that is a script, in the interface of the AI SDK: it reads the logs of the days that it is asked about, one by one, and
 *  looks back when it is asked whether it is sure. What it has to know is in its last call. */

const usage = (...sent) => {
  const tokens = Math.round(JSON.stringify(sent).length / 4);
  return { inputTokens: { total: tokens, noCache: tokens, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 20, text: 20, reasoning: 0 } };
};

const SUMMARY = `## Goal
The user asks on which days a job failed, from the logs alone.
## State
The logs of the days so far were read one by one with read_log, oldest first. Every minute of a day has one line. On day 9 the line of
12:9 says "failed: disk full", and so does that of day 18. All other lines say "ok". The next day was about to be read.
## Decisions
Days are read in order, one call for each.
## What failed
-
## Next
Answering the user: not done, the days after the last one are missing.`;

const textOf = ({ content }) => content.map(({ text = "" }) => text).join("");
const say = (text) => [{ type: "text", text }];
const call = (toolName, id, input) => [{ type: "tool-call", toolCallId: `${id}-${crypto.randomUUID().slice(0, 8)}`, toolName, input: JSON.stringify(input) }];
const readDay = (first, day, last) => call("read_log", `days-${first}-${day}-${last}`, { day });

function next(prompt) {
  const newest = prompt.at(-1);
  if (newest.role === "user") {
    const asked = textOf(newest);
    if (asked.includes("sure")) return call("recall_search", "search", { query: "day 9 failed disk full" });
    const [first, last] = (asked.match(/\d+/g) ?? []).map(Number);
    return last ? readDay(first, first, last) : say("Ask me about days, as in: did a job fail on the days 1 to 30?");
  }
  const [{ toolCallId, output }] = newest.content.filter(({ type }) => type === "tool-result");
  if (toolCallId.startsWith("search")) return say(String(output.value).includes("job 9-9 failed") ? "I looked again: job 9-9 failed." : "I found nothing.");
  const [first, day, last] = toolCallId.split("-").slice(1, 4).map(Number);
  if (day < last) return readDay(first, day + 1, last);
  const failed = Array.from({ length: last - first + 1 }, (_, at) => first + at).filter((day) => day % 9 === 0);
  return say(failed.length > 0 ? `A job failed on the days ${failed.join(", ")}.` : "No job failed.");
}

function answer({ prompt, tools }) {
  if (!tools?.length) return say(SUMMARY);
  console.log(`a prompt of ${usage(prompt).inputTokens.total} tokens`);
  return next(prompt);
}

export const model = {
  specificationVersion: "v4",
  provider: "script",
  modelId: "script",
  supportedUrls: {},

  async doGenerate(asked) {
    return { content: answer(asked), finishReason: { unified: "stop", raw: "stop" }, usage: usage(asked.prompt, asked.tools), warnings: [] };
  },

  async doStream(asked) {
    const content = answer(asked);
    const parts = content.flatMap((part) => {
      if (part.type !== "text") return [part];
      const pieces = part.text.match(/\S+\s*/g).map((delta) => ({ type: "text-delta", id: "1", delta }));
      return [{ type: "text-start", id: "1" }, ...pieces, { type: "text-end", id: "1" }];
    });
    const unified = content.some(({ type }) => type === "tool-call") ? "tool-calls" : "stop";
    const all = [{ type: "stream-start", warnings: [] }, ...parts, { type: "finish", finishReason: { unified, raw: unified }, usage: usage(asked.prompt, asked.tools) }];
    return { stream: ReadableStream.from(all) };
  },
};
