/**
 * The estimate of the whole prompt after `recordUsage`, against what providers counted in recorded sessions
 * (`../shared/data`, or `CC_DATA`). Each is replayed: a session is handed the messages up to a call, says what the prompt
 * will cost, and is told what it cost; the next call is judged.
 *
 * A call that is much shorter than the one before stands behind a compaction of the agent's own, whose result is in no
 * transcript: a session begins there, and the call is not judged. A source shows all that its model saw when reported growth is that of the
 * messages: at most one growth in twenty is more than half off. Sources of which that is not true hide a part.
 *
 * Bounds are those of text: growth that is half or twice what it is estimated at is of something else, and not judged by them.
 * How they learn from reports was chosen by the first of every two sessions of tau: the second ones judge.
 */

import { memoryStore, openSession } from "context-compactor";
import { transcripts } from "../tests/support/transcripts.mjs";

export const title = "The whole prompt's estimate, anchored on reported usage, against the next call's";

const WINDOW = 10_000_000;
/** A prompt that is less than this share of the one before was compacted. */
const COMPACTED = 0.9;
/** Growth in tokens from which single ones are told: below it a percentage says nothing. */
const LARGE = 200;

const anthropic = ({ input, cache_read, cache_write, output }) => ({
  input_tokens: input,
  cache_read_input_tokens: cache_read ?? 0,
  cache_creation_input_tokens: cache_write ?? 0,
  output_tokens: output,
});
const openai = ({ input, output }) => ({ prompt_tokens: input, completion_tokens: output });
const total = (usage) => Object.entries(usage).reduce((sum, [name, tokens]) => sum + (/input|prompt/.test(name) ? tokens : 0), 0);
const byIndex = ({ meta }) => meta.usage.map(({ msg }) => msg);
/** Where messages were joined after the usage was noted: calls are the answers, one by one. */
const byAnswer = ({ messages }) => messages.flatMap(({ role }, index) => (role === "assistant" ? [index] : []));
const firstModel = ({ meta }) => meta.model ?? Object.keys(meta.models)[0];

const SOURCES = [
  { name: "pi", file: "full/anthropic/pi_mono", format: "anthropic", usage: anthropic, calls: byAnswer },
  ...["claude_code_entire_cli", "claude_code_entirecontext"].map((file) => ({
    name: "Claude Code (hides its system prompt and what it injects)",
    file: `full/anthropic/${file}`,
    format: "anthropic",
    usage: anthropic,
    calls: byIndex,
  })),
  { name: "tau", file: "full/openai/tau_customer_service", format: "openai-chat", usage: openai, calls: byIndex, byModel: true },
];

export async function run() {
  const rows = new Map();
  for (const source of SOURCES) {
    for (const record of transcripts(source.file) ?? []) {
      if (!record.meta?.usage) continue;
      const name = source.byModel ? `${source.name}: ${firstModel(record)}` : source.name;
      if (!rows.has(name)) rows.set(name, { sessions: 0, calls: [] });
      const of = rows.get(name);
      const isJudged = of.sessions++ % 2 === 1 || !source.byModel;
      of.calls.push(...(await replay(record, source)).map((call) => ({ ...call, isJudged })));
    }
  }
  return [...rows].filter(([, { calls }]) => calls.length >= 20).map(([name, { calls }]) => row(name, calls));
}

/** The calls of a transcript that a report came before: what was said about each, and what it cost. */
export async function replay(record, { format, usage, calls }) {
  // Nothing leaves the context: the agents sent all of it.
  const asSent = { compactAt: { tokens: WINDOW - 1 }, clear: false };
  const options = { format, model: firstModel(record), contextWindow: WINDOW, maxOutputTokens: 1, ...asSent };
  const begin = () => openSession({ store: memoryStore(), ...options });
  const at = calls(record);
  const judged = [];
  let session = await begin();
  let appended = 0;
  let last = 0;
  for (const [nth, counted] of record.meta.usage.entries()) {
    const end = at[nth];
    const reported = usage(counted);
    const cost = total(reported);
    if (end === undefined || end <= appended || cost === 0) continue;
    if (cost < last * COMPACTED) {
      await session.close();
      session = await begin();
      last = 0;
    }
    await session.append(...record.messages.slice(appended, end));
    appended = end;
    const { usedTokens, low, high } = (await session.prepare()).usage;
    if (last > 0 && cost > last) judged.push({ said: usedTokens, low, high, cost, before: last });
    session.context.recordUsage(reported);
    last = cost;
  }
  await session.close();
  return judged;
}

export function row(name, calls) {
  const off = calls.map(({ said, cost }) => Math.abs(said / cost - 1) * 100);
  const grown = calls.map(({ said, cost, before }) => ({ by: cost - before, said: said - before }));
  const large = grown.filter(({ by }) => by >= LARGE);
  const ofText = calls.filter(({ said, cost, before }) => cost - before <= 2 * (said - before) && said - before <= 2 * (cost - before));
  const judged = ofText.filter(({ isJudged = true }) => isJudged);
  const width = (of) => share(judged.map(({ low, high, ...call }) => ((high - low) / of(call)) * 100), 0.5);
  const strange = large.filter(({ by, said }) => by > said * 1.5 || said > by * 1.5).length / large.length;
  return {
    case: name,
    calls: calls.length,
    "whole prompt, mean (%)": off.reduce((sum, one) => sum + one, 0) / off.length,
    "median (%)": share(off, 0.5),
    "90 % are within (%)": share(off, 0.9),
    "calls within 2 % (%)": (off.filter((one) => one <= 2).length / off.length) * 100,
    "new text, median (%)": share(large.map(({ by, said }) => Math.abs(said / by - 1) * 100), 0.5),
    "bounds hold (%)": (judged.filter(({ low, cost, high }) => low <= cost && cost <= high).length / judged.length) * 100,
    "width, of the prompt (%)": width(({ said }) => said),
    "width, of new text (%)": width(({ said, before }) => said - before),
    "shows all that was sent": strange <= 0.05 ? "yes" : "no",
  };
}

function share(values, of) {
  return values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * of))];
}
