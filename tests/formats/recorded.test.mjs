/**
 * Recorded requests, which real providers accepted: how many of them the official types allow, and why not the others
 * (the types lag behind the services, and clients send what no type has). What the types allowed before a compaction
 * they must allow after it. Nothing of the requests' text is printed.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { validateHistory } from "context-compactor";
import { frozen } from "../support/api.mjs";
import { compacted, prepared, unknown } from "../support/formats.mjs";
import { transcripts } from "../support/transcripts.mjs";
import { shapeProblems } from "./schemas/index.mjs";

/** Files of real histories, and where a record has its own. */
const FILES = [
  ["wire/pydantic_openai-chat", "openai-chat", ({ request }) => request.messages],
  ["wire/pydantic_openai-responses", "openai-responses", ({ request }) => request.input],
  ["wire/pydantic_anthropic-messages", "anthropic", ({ request }) => request.messages],
  ["wire/pydantic_google-generatecontent", "gemini", ({ request }) => request.contents],
  ["openai/tau", "openai-chat", ({ messages }) => messages],
  ["anthropic/claude_code", "anthropic", ({ messages }) => messages],
  ["responses/codex", "openai-responses", ({ messages }) => messages],
];

// What is wrong, wherever it is: without the indices.
const reason = (problem) => problem.replace(/^\d+: /, "").replaceAll(/\/\d+/g, "/*");

for (const [file, format, messagesOf] of FILES) {
  const records = transcripts(`core/${file}`);
  const skip = !records && "no transcripts (CC_DATA)";

  test(
    `${file}: what the types allowed, they allow when compacted`,
    { skip: skip || unknown(format) },
    async (context) => {
      const histories = records
        .map(messagesOf)
        .filter((messages) => Array.isArray(messages) && messages.length > 0);
      const reasons = new Map();
      let [allowed, sound, compactions] = [0, 0, 0];
      for (const messages of histories.map(frozen)) {
        const problems = await shapeProblems(format, messages);
        for (const why of new Set(problems.map(reason))) reasons.set(why, (reasons.get(why) ?? 0) + 1);
        if (problems.length === 0) allowed++;
        const valid = validateHistory(messages, { format }).valid;
        if (valid) sound++;
        const results = [
          await prepared(format, messages),
          await prepared(format, messages, { summarise: true }),
        ];
        if (messages.length > 4) results.push(await compacted(format, messages, 2).catch(() => undefined));
        for (const result of results.filter((result) => result)) {
          const changed = result.messages.filter((message) => !messages.includes(message));
          if (changed.length === 0) continue;
          compactions++;
          const looked = problems.length === 0 ? result.messages : changed.filter(isNew);
          assert.deepEqual(await shapeProblems(format, looked), [], "shape");
          if (valid) assert.deepEqual(validateHistory(result.messages, { format }).problems, [], "rules");
        }
      }
      context.diagnostic(
        `${histories.length} histories, ${compactions} compactions; the types allow ${allowed}, the rules ${sound}`,
      );
      const most = [...reasons].sort(([, a], [, b]) => b - a).slice(0, 5);
      for (const [why, count] of most) context.diagnostic(`${count} refused: ${why.slice(0, 300)}`);
    },
  );
}

/** A message that a compaction added, not one of the app's with its results offloaded. */
function isNew(message) {
  return JSON.stringify(message).includes("[Compressed History]");
}
