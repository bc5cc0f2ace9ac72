/** A model that is a script, in the interface of the AI SDK: it reads day after day, looks back once, and answers. */

import type { LanguageModel } from "ai";

type Model = Extract<LanguageModel, { specificationVersion: "v4" }>;
type Options = Parameters<Model["doGenerate"]>[0];
type Part = Awaited<ReturnType<Model["doGenerate"]>>["content"][number];
type StreamPart = Awaited<ReturnType<Model["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;

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

function usage(...sent: unknown[]) {
  const total = Math.round(JSON.stringify(sent).length / 4);
  return { inputTokens: { total, noCache: total, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 20, text: 20, reasoning: 0 } };
}

/** `prompts` are those that it was sent, in tokens as it counts them. */
export function scripted(): Model & { prompts: number[] } {
  const prompts: number[] = [];
  let day = 0;

  function say({ prompt, tools }: Options): Part[] {
    const call = (toolName: string, input: object): Part[] => [{ type: "tool-call", toolCallId: `${toolName}-${++day}`, toolName, input: JSON.stringify(input) }];
    if (!tools?.length) return [{ type: "text", text: SUMMARY }];
    prompts.push(usage(prompt).inputTokens.total);
    if (day < 30) return call("read_log", { day: day + 1 });
    if (day === 30) return call("recall_search", { query: "day 9 failed disk full" });
    return [{ type: "text", text: "A job failed on the days 9, 18 and 27." }];
  }

  return {
    specificationVersion: "v4",
    provider: "script",
    modelId: "script",
    supportedUrls: {},
    prompts,

    async doGenerate(options) {
      return { content: say(options), finishReason: { unified: "stop", raw: "stop" }, usage: usage(options.prompt, options.tools), warnings: [] };
    },

    async doStream(options) {
      const content = say(options);
      const unified = content.some(({ type }) => type === "tool-call") ? "tool-calls" : "stop";
      const parts = content.flatMap((part): StreamPart[] =>
        part.type === "text"
          ? [{ type: "text-start", id: "1" }, { type: "text-delta", id: "1", delta: part.text }, { type: "text-end", id: "1" }]
          : [part as StreamPart],
      );
      const end: StreamPart = { type: "finish", finishReason: { unified, raw: unified }, usage: usage(options.prompt, options.tools) };
      const all: StreamPart[] = [{ type: "stream-start", warnings: [] }, ...parts, end];
      const stream = new ReadableStream<StreamPart>({
        start(to) {
          for (const part of all) to.enqueue(part);
          to.close();
        },
      });
      return { stream };
    },
  };
}
