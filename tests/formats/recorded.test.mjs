/**
 * Recorded requests, which real providers accepted: how many of them the official types allow, and why not the others
 * (the types lag behind the services, and clients send what no type has). What the types allowed before a compaction
 * they must allow after it. Nothing of the requests' text is printed.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { validateHistory } from "context-compactor/history";
import { frozen } from "../support/api.mjs";
import { compacted, prepared } from "../support/formats.mjs";
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

  test(`${file}: what the types allowed, they allow when compacted`, { skip }, async (context) => {
    const histories = records
      .map(messagesOf)
      .filter((messages) => messages?.length > 0 && Array.isArray(messages));
    const refusals = new Map();
    let [allowed, sound, compactions] = [0, 0, 0];
    for (const history of histories.map(frozen)) {
      const problems = await shapeProblems(format, history);
      for (const why of new Set(problems.map(reason))) refusals.set(why, (refusals.get(why) ?? 0) + 1);
      const valid = (await validateHistory(history, { format })).valid;
      allowed += Number(problems.length === 0);
      sound += Number(valid);
      for (const messages of await everyWay(format, history)) {
        const changed = messages.filter((message) => !history.includes(message));
        compactions += Number(changed.length > 0);
        const looked = problems.length === 0 ? messages : changed.filter(isNew);
        assert.deepEqual(await shapeProblems(format, looked), [], "shape");
        if (valid) assert.deepEqual((await validateHistory(messages, { format })).problems, [], "rules");
      }
    }
    assert.ok(compactions > 0, "nothing was compacted");
    context.diagnostic(`${histories.length} histories: the types allow ${allowed}, the rules ${sound}`);
    context.diagnostic(`${compactions} compactions`);
    const most = [...refusals].sort(([, a], [, b]) => b - a).slice(0, 5);
    for (const [why, count] of most) context.diagnostic(`${count} refused: ${why.slice(0, 300)}`);
  });
}

/** What becomes of a history: offloaded, summarised besides, and summarised but for its last messages. */
async function everyWay(format, history) {
  const sessions = [await prepared(format, history), await prepared(format, history, { summarise: true })];
  const once = await compacted(format, history, 2).catch((error) => {
    // A conversation may be shorter than any summary of it.
    if (error.code !== "summary_rejected") throw error;
    return { messages: [] };
  });
  return [...sessions, once].map(({ messages }) => messages);
}

/** A message that a compaction added, not one of the app's with its results offloaded. */
function isNew(message) {
  return JSON.stringify(message).includes("[Compressed History]");
}
