/** A model that is a script, in the interface of the AI SDK: it reads day after day, looks back once, and answers. */

const usage = (...sent) => {
  const tokens = Math.round(JSON.stringify(sent).length / 4);
  return { inputTokens: { total: tokens, noCache: tokens, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 20, text: 20, reasoning: 0 } };
};

const SUMMARY = `## Goal
The user asks on which days of the month a job failed, from the logs alone.
## State
The logs of the days so far were read one by one with read_log, oldest first. Every minute of a day has one line. On day 9 the line of
12:9 says "failed: disk full", and so does that of day 18. All other lines say "ok". The next day was about to be read.
## Decisions
Days are read in order, one call for each.
## What failed
-
## Next
Answering the user: not done, the days after the last one are missing.`;

let day = 0;

export const model = {
  specificationVersion: "v4",
  provider: "script",
  modelId: "script",
  supportedUrls: {},
  /** Prompts that it was sent, in tokens as it counts them. */
  prompts: [],

  async doGenerate({ prompt, tools }) {
    return { content: this.say(prompt, tools), finishReason: { unified: "stop", raw: "stop" }, usage: usage(prompt, tools), warnings: [] };
  },

  async doStream({ prompt, tools }) {
    const content = this.say(prompt, tools);
    const parts = content.flatMap((part) =>
      part.type === "text"
        ? [{ type: "text-start", id: "1" }, { type: "text-delta", id: "1", delta: part.text }, { type: "text-end", id: "1" }]
        : [part],
    );
    const unified = content.some(({ type }) => type === "tool-call") ? "tool-calls" : "stop";
    const all = [{ type: "stream-start", warnings: [] }, ...parts, { type: "finish", finishReason: { unified, raw: unified }, usage: usage(prompt, tools) }];
    return { stream: ReadableStream.from(all) };
  },

  say(prompt, tools) {
    const call = (toolName, input) => [{ type: "tool-call", toolCallId: `${toolName}-${++day}`, toolName, input: JSON.stringify(input) }];
    if (!tools?.length) return [{ type: "text", text: SUMMARY }];
    this.prompts.push(usage(prompt).inputTokens.total);
    if (day < 30) return call("read_log", { day: day + 1 });
    if (day === 30) return call("recall_search", { query: "day 9 failed disk full" });
    return [{ type: "text", text: "A job failed on the days 9, 18 and 27." }];
  },
};
