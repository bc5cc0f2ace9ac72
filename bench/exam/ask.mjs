/** Asks questions about contexts, and has the answers graded, by any model that speaks Chat Completions. */

import { createHash } from "node:crypto";

/** What a reader of a page has to know (W20). Their gold answers are in the file of questions, too. */
export const READER = [
  "What is the user's task?",
  "What is done already?",
  "What is to be done next?",
  "What must not be done?",
];

const ANSWER =
  "Below is all that you know of a conversation between a user and an agent. Answer the question from it alone, in a few " +
  "words. If it does not say, answer: unknown.";
const GRADE =
  "You grade an answer. It is right when it says what the gold answer says, in whatever words, and nothing that contradicts " +
  "it. Reply with one word: right or wrong.";

/** A function that sends one prompt to `endpoint` (`https://…/v1`) and resolves to the text of the answer. */
export function chat({ endpoint, model, key }) {
  return async (system, user) => {
    const response = await fetch(`${endpoint.replace(/\/$/, "")}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", ...(key && { authorization: `Bearer ${key}` }) },
      body: JSON.stringify({ model, temperature: 0, messages: [{ role: "system", content: system }, { role: "user", content: user }] }),
    });
    if (!response.ok) throw new Error(`${endpoint} answered ${response.status}: ${(await response.text()).slice(0, 300)}`);
    return (await response.json()).choices[0].message.content;
  };
}

/** By method whether the question is answered rightly from its context. */
export async function examine(ask, { question, gold }, contexts) {
  const right = {};
  for (const [method, context] of Object.entries(contexts)) {
    const answer = await ask(ANSWER, `${context}\n\n---\n\nQuestion: ${question}`);
    // The grader is not told which method it was.
    const grade = await ask(GRADE, `Question: ${question}\n\nGold answer: ${gold}\n\nAnswer: ${answer}`);
    right[method] = /^\W*right\b/i.test(grade) ? 1 : 0;
  }
  return right;
}

/** What stands for a text that is not to be committed. */
export const hash = (text) => createHash("sha256").update(text).digest("hex").slice(0, 16);
