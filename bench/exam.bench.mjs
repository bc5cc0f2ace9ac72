/**
 * An exam: questions about recorded sessions, answered from what each method leaves of them, at equal sizes. Contexts are
 * written to `exam/contexts`, and questions with gold answers are read from `exam/questions.json` (`CC_EXAM` names another
 * file): `[{ "session", "question", "gold", "kind" }]`. Neither is committed. `--endpoint URL --model NAME` answers and
 * grades (`CC_EXAM_KEY` is its key); the report has ids, hashes and scores, and no text.
 */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { compact } from "context-compactor";
import { estimateTokens } from "context-compactor/tokens";
import { READER, chat, examine, hash } from "./exam/ask.mjs";
import { cuts, masked, render } from "./recorded.mjs";

export const title = "Exam: questions about recorded sessions, answered from what is left of them";

export const notes = [
  "All contexts of a session are as long as what balanced leaves of it, without a model's summary, in a window of 27,000 tokens.",
  "page: what a reader of the page alone is asked: the task, what is done, what is next, and what must not be done.",
];

/** `balanced` leaves about 8,000 tokens of it. */
const WINDOW = 27_000;
const SESSIONS = 5;

const folder = fileURLToPath(new URL("exam/contexts/", import.meta.url));
const file = process.env.CC_EXAM ?? fileURLToPath(new URL("exam/questions.json", import.meta.url));

export async function run({ endpoint, model } = {}) {
  const sessions = cuts(SESSIONS);
  if (sessions.length === 0) return [{ case: "skipped: no recordings (set CC_DATA)" }];
  for (const session of sessions) {
    session.contexts = await contextsOf(session.messages.slice(0, session.at));
    mkdirSync(`${folder}${session.id}`, { recursive: true });
    for (const [method, text] of Object.entries(session.contexts)) writeFileSync(`${folder}${session.id}/${method}.txt`, text);
  }
  const sizes = sessions.map(({ id, at, contexts }) => ({ case: id, "cut at": at, tokens: estimateTokens(contexts.balanced) }));
  if (!endpoint || !model) return [{ case: `not run: no --endpoint and --model; to answer from: bench/exam/contexts` }, ...sizes];
  if (!existsSync(file)) return [{ case: `not run: no questions (bench/exam/questions.json, or CC_EXAM)` }, ...sizes];
  return graded(sessions, JSON.parse(readFileSync(file, "utf8")), chat({ endpoint, model, key: process.env.CC_EXAM_KEY }));
}

/** A row for each method, and one for each question. */
export async function graded(sessions, questions, ask) {
  const asked = [];
  for (const { session, question, gold, kind } of questions) {
    const { at, contexts } = sessions.find(({ id }) => id === session) ?? {};
    if (!contexts) continue;
    const { page, ...methods } = contexts;
    const right = await examine(ask, { question, gold }, READER.includes(question) ? { page } : methods);
    asked.push({ case: `${session}, cut at ${at}`, kind, question: hash(question), gold: hash(gold), ...right });
  }
  const names = [...new Set(asked.flatMap(({ case: _, kind, question, gold, ...right }) => Object.keys(right)))];
  const scores = names.map((name) => {
    const of = asked.filter((one) => name in one);
    return { case: name, questions: of.length, "right (%)": Math.round((1_000 * of.reduce((sum, one) => sum + one[name], 0)) / of.length) / 10 };
  });
  return [...scores, ...asked];
}

async function contextsOf(messages) {
  const { messages: left } = await compact(messages, { contextWindow: WINDOW, logger: () => {} });
  const balanced = render(left);
  const size = estimateTokens(balanced);
  const end = (text) => {
    let from = text.length - 3 * size;
    while (from > 0 && estimateTokens(text.slice(from)) < size) from -= 400;
    while (from < text.length && estimateTokens(text.slice(Math.max(0, from))) > size) from += 400;
    return text.slice(Math.max(0, from));
  };
  return { "newest messages": end(render(messages)), "old results masked": end(render(masked(messages))), balanced, page: render(left.slice(0, 1)) };
}
