/**
 * What agents are sent again: of the tokens of tool results those of lines that the model had been shown before, as results
 * came and as `admit.rereads` tells them. Recorded sessions, replayed call by call through the session in a window that
 * nothing else changes.
 */

import { openSession } from "context-compactor";
import { estimateTokens } from "context-compactor/tokens";
import { transcripts } from "../tests/support/transcripts.mjs";

export const title = "Results that are read again: tokens of lines that the model had been shown before";

export const notes = [
  "repeated: tokens of lines of at least 8 characters in results of 400 characters or more that an earlier result of the session " +
    "had. left: the same with `admit.rereads`. results: tokens of all results as they came, and as they were sent.",
  "changed: prepares that returned other messages where the one before had returned some.",
];

const SOURCES = [
  "anthropic/claude_code_entire_cli",
  "anthropic/claude_code_entirecontext",
  "openai/codex_entirecontext",
  "anthropic/pi_mono",
  "openai/swe_agent_demos",
  "openai/openhands_logs",
  "openai/tau_customer_service",
];
/** Sessions of each source, the longest: every other of them, which no number was chosen by, and the rest. */
const MOST = 4;

export async function run() {
  const rows = [];
  for (const source of SOURCES) {
    const records = transcripts(`full/${source}`);
    if (!records) continue;
    const long = records.sort((a, b) => JSON.stringify(b.messages).length - JSON.stringify(a.messages).length).slice(0, MOST);
    const sum = { repeated: 0, left: 0, before: 0, after: 0, prepares: 0, changed: 0, rereads: 0 };
    for (const { messages } of long) await replay(messages, source.split("/")[0] === "openai" ? "openai-chat" : "anthropic", sum);
    const row = {
      case: source.split("/")[1],
      sessions: long.length,
      "results (tokens)": sum.before,
      "of these repeated (%)": percent(sum.repeated, sum.before),
      "repeated that is gone (%)": percent(sum.repeated - sum.left, sum.repeated),
      "of the results gone (%)": percent(sum.before - sum.after, sum.before),
      "told as a difference": sum.rereads,
      prepares: sum.prepares,
      "changed prefixes": sum.changed,
    };
    console.log(JSON.stringify(row));
    rows.push(row);
  }
  return rows.length > 0 ? rows : [{ case: "skipped: no recordings (set CC_DATA)" }];
}

async function replay(messages, format, sum) {
  const session = await openSession({
    format,
    store: "memory",
    contextWindow: 100_000_000,
    recall: true,
    clear: false,
    offload: false,
    admit: { rereads: true, maxTokens: 10_000_000 },
    logger: () => {},
  });
  const [seen, seenNow] = [new Set(), new Set()];
  let [from, before] = [0, []];
  try {
    for (const [index, message] of messages.entries()) {
      if (message.role !== "assistant" || index === 0) continue;
      const added = messages.slice(from, index);
      if (added.some((message) => results(message).length > 0)) {
        await session.append(...added);
        const { messages: now } = await session.prepare();
        sum.prepares++;
        if (before.some((message, at) => message !== now[at] && JSON.stringify(message) !== JSON.stringify(now[at]))) sum.changed++;
        // What came last, as it came and as it is sent.
        const sent = now.slice(now.length - added.length);
        for (const [nth, message] of added.entries()) {
          const shown = results(sent[nth] ?? message);
          for (const [which, text] of results(message).entries()) {
            const told = shown[which] ?? text;
            sum.before += tokens(text);
            sum.after += tokens(told);
            if (told !== text) sum.rereads++;
            sum.repeated += repeated(text, seen);
            sum.left += repeated(told, seenNow);
          }
        }
        before = now;
        from = index;
      }
    }
  } finally {
    await session.close({ delete: true });
  }
}

const tokens = (text) => estimateTokens([{ role: "user", content: text }]);

/** Tokens of the lines of a text that were seen before; all of them are seen now. */
function repeated(text, seen) {
  const isDiff = text.startsWith("[A unified diff against ");
  const all = isDiff ? text.split("\n").slice(1).map((line) => line.slice(1)) : text.split("\n");
  const lines = all.map((line) => line.trim()).filter((line) => line.length >= 8);
  const old = text.length < 400 ? [] : lines.filter((line) => seen.has(line));
  for (const line of lines) seen.add(line);
  return old.length > 0 ? tokens(old.join("\n")) : 0;
}

function results({ role, content }) {
  if (role === "tool") return [texts(content)];
  if (!Array.isArray(content)) return [];
  return content.filter(({ type }) => type === "tool_result").map(({ content }) => texts(content));
}

function texts(content) {
  if (typeof content === "string") return content;
  return (content ?? []).map(({ text }) => text ?? "").join("\n");
}

function percent(part, of) {
  return of === 0 ? 0 : Math.round((1_000 * part) / of) / 10;
}
