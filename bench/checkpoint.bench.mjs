/**
 * Preset `checkpoint` over one long conversation (`S5.17`): fourteen compressions, each when the window asks for it.
 *
 * The engine's time is that of a `prepare` that compresses, with the store in memory, less what the summariser takes.
 */

import { memoryStore, openSession } from "context-compactor";

export const title = "Preset checkpoint: 14 compressions in one conversation, without the model";

const COMPRESSIONS = 14;
const SUMMARY_TOKENS = 90;
const line = "The parser reads src/lib.rs, keeps its state in memory and answers with line 42. ";
const words = (tokens) => line.repeat(Math.ceil((tokens * 4) / line.length));
const systemPrompt = "You are a careful engineer. Answer briefly, and say what you changed.";

export async function run() {
  const rows = [];
  for (const contextWindow of [8_000, 32_000, 200_000]) rows.push(await measure(contextWindow));
  return rows;
}

async function measure(contextWindow) {
  let atModel = 0;
  const summarize = async ({ targetTokens }) => {
    const from = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 1));
    atModel += performance.now() - from;
    return `## Status\n${words(Math.min(SUMMARY_TOKENS, targetTokens))}`;
  };
  const session = await openSession({ preset: "checkpoint", contextWindow, store: memoryStore(), systemPrompt, summarize });
  const [engine, validation, used, standing] = [[], [], [], []];
  let messages = 0;
  while (engine.length < COMPRESSIONS) {
    await session.append(...turn((messages += 4), contextWindow / 80));
    atModel = 0;
    const from = performance.now();
    const { result, usage } = await session.prepare();
    const took = performance.now() - from - atModel;
    if (!result?.summary) continue;
    engine.push(took);
    used.push(usage.usedTokens);
    standing.push(session.context.checkpoints().length);
    const checked = performance.now();
    if (!(await session.context.validate()).valid) throw new Error("what was prepared does not fit");
    validation.push(performance.now() - checked);
  }
  await session.close();
  const worst = (numbers) => Math.max(...numbers);
  return {
    window: contextWindow,
    messages,
    compressions: engine.length,
    "checkpoints at once, at most": worst(standing),
    "tokens after the first": used[0],
    "tokens after the last": used.at(-1),
    "compression, median (ms)": rounded(engine.toSorted((a, b) => a - b)[COMPRESSIONS / 2]),
    "compression, worst (ms)": rounded(worst(engine)),
    "validation, worst (ms)": rounded(worst(validation)),
  };
}

/** A question, a call with its result, and an answer. */
function turn(nth, tokens) {
  const id = `call_${nth}`;
  const call = { id, type: "function", function: { name: "read_file", arguments: '{"path":"src/lib.rs"}' } };
  return [
    { role: "user", content: `Question ${nth}: ${words(10)}` },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: id, content: words(tokens * 2) },
    { role: "assistant", content: `Answer ${nth}: ${words(tokens)}` },
  ];
}

function rounded(ms) {
  return Number(ms.toPrecision(3));
}
