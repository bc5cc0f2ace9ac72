/** Rows that no report holds, measured where it is cheap: sessions that are made for it. */

import { openSession } from "context-compactor";
import { estimateTokens } from "context-compactor/tokens";

const FILLER = "The parser of the module reads each line, and the test of it says what it should have read. ";
const quiet = { store: "memory", logger: () => {} };

const turn = (nth, chars) => [
  { role: "user", content: `Question ${nth}: ${FILLER.repeat(chars / 200)}` },
  { role: "assistant", content: `Answer ${nth}: ${FILLER.repeat(chars / 200)}` },
];

/** Appends turns and prepares, until `isDone(prepared)`. */
async function grow(session, contextWindow, isDone) {
  for (let nth = 0; nth < 400; nth++) {
    await session.append(...turn(nth, contextWindow / 20));
    const prepared = await session.prepare();
    if (isDone(prepared)) return prepared;
  }
  throw new Error("no compaction");
}

const summarized = ({ edits }) => edits.some(({ kind }) => kind === "summarize");

/** How many of 80 pasted rules stand word for word after a summary of somebody who leaves all of them out. */
export async function rules() {
  const all = Array.from({ length: 80 }, (_, nth) => `Never call function_${nth} from module_${nth}.`);
  const found = [];
  for (const contextWindow of [16_000, 32_000]) {
    const session = await openSession({ ...quiet, contextWindow, background: false, summarize: async () => `The user asked about the parser; ${FILLER}` });
    await session.append({ role: "user", content: `Our rules:\n- ${all.join("\n- ")}` }, { role: "assistant", content: "I will keep to them." });
    const { messages } = await grow(session, contextWindow, summarized);
    const text = JSON.stringify(messages);
    found.push(all.filter((rule) => text.includes(rule)).length);
  }
  return Math.min(...found);
}

/** What a compaction leaves, as shares of the windows. */
export async function shares() {
  const found = [];
  for (const contextWindow of [8_000, 16_000, 32_000, 128_000, 200_000]) {
    const session = await openSession({ ...quiet, contextWindow });
    await grow(session, contextWindow, summarized);
    found.push([contextWindow, session.context.usage().usedTokens]);
  }
  return found;
}

/** Turns that wait while a summarizer does not answer, below the hard limit. */
export async function waits() {
  const contextWindow = 32_000;
  const asked = [];
  const summarize = () => new Promise((resolve) => asked.push(resolve));
  const session = await openSession({ ...quiet, contextWindow, summarize });
  let [turns, waited] = [0, 0];
  // It is not answered until the end, and there is room for some turns.
  for (let nth = 0; session.context.usage().usedTokens < 0.72 * contextWindow; nth++, turns++) {
    await session.append(...turn(nth, 2_000));
    const late = new Promise((resolve) => setTimeout(resolve, 5_000, "late").unref());
    if ((await Promise.race([session.prepare(), late])) === "late") waited++;
  }
  for (const answer of asked) answer(FILLER);
  await session.close();
  return { turns, waited, asked: asked.length };
}

/** Sessions in which the user's first message did not stay word for word while all of it took less than half of the window. */
export async function cutFirst(sessions, contextWindow) {
  let cut = 0;
  for (const { messages } of sessions) {
    const session = await openSession({ ...quiet, contextWindow });
    const first = messages.find(({ role }) => role === "user");
    let [isCut, sum, from] = [false, 0, 0];
    for (const [at, message] of messages.entries()) {
      if ((sum += estimateTokens([message])) > contextWindow / 2) break;
      if (message.role !== "assistant" || at === 0) continue;
      await session.append(...messages.slice(from, at));
      from = at;
      isCut ||= !(await session.prepare()).messages.includes(first);
    }
    if (isCut) cut++;
    await session.close({ delete: true });
  }
  return cut;
}
