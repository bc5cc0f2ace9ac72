/** The exam of `npm run bench -- exam`, against an endpoint of our own. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { graded } from "../../bench/exam.bench.mjs";
import { READER, chat, hash } from "../../bench/exam/ask.mjs";

/** A model that knows the port of its context, and grades to the letter. */
function answer([{ content: system }, { content: user }]) {
  if (!system.startsWith("You grade")) return /port (\d+)/.exec(user)?.[1] ?? "unknown";
  return /Gold answer: (.+)/.exec(user)[1] === /\nAnswer: (.+)/.exec(user)[1] ? "Right." : "wrong";
}

async function serve(status, reply) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    requests.push({ url: request.url, key: request.headers.authorization, ...JSON.parse(Buffer.concat(parts)) });
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ choices: [{ message: { content: reply(requests.at(-1).messages) } }] }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { endpoint: `http://127.0.0.1:${server.address().port}/v1/`, requests, close: () => server.close() };
}

const SESSIONS = [{ id: "s1", at: 40, contexts: { tail: "nothing of it", balanced: "It listens on port 81.", page: "port 81" } }];
const QUESTIONS = [
  { session: "s1", question: "Which port?", gold: "81", kind: "exact" },
  { session: "s1", question: READER[0], gold: "port 81 is the task", kind: "task" },
  { session: "gone", question: "What?", gold: "?", kind: "exact" },
];

test("W18 W20: every context is asked, a page its own questions, and the report has no text", async () => {
  const { endpoint, requests, close } = await serve(200, answer);
  try {
    const rows = await graded(SESSIONS, QUESTIONS, chat({ endpoint, model: "small", key: "k" }));
    const where = { case: "s1, cut at 40" };
    assert.deepEqual(rows, [
      { case: "tail", questions: 1, "right (%)": 0 },
      { case: "balanced", questions: 1, "right (%)": 100 },
      { case: "page", questions: 1, "right (%)": 0 },
      { ...where, kind: "exact", question: hash("Which port?"), gold: hash("81"), tail: 0, balanced: 1 },
      { ...where, kind: "task", question: hash(READER[0]), gold: hash("port 81 is the task"), page: 0 },
    ]);
    assert.deepEqual([requests.length, requests[0].url, requests[0].key, requests[0].model], [6, "/v1/chat/completions", "Bearer k", "small"]);
    // Who grades sees neither the context nor the method.
    const graders = requests.filter(({ messages }) => messages[0].content.startsWith("You grade"));
    assert.equal(graders.length, 3);
    assert.ok(graders.every(({ messages }) => !/listens|balanced|tail/.test(messages[1].content)));
  } finally {
    close();
  }
});

test("W18: an endpoint that refuses ends the exam with what it said", async () => {
  const { endpoint, close } = await serve(401, () => "no such key");
  try {
    await assert.rejects(graded(SESSIONS, QUESTIONS, chat({ endpoint, model: "small" })), /answered 401: .*no such key/);
  } finally {
    close();
  }
});
