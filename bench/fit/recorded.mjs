/**
 * Texts of recorded sessions (CC_DATA) for the fit, by class, source and half: `node recorded.mjs > texts.json`. Sessions are
 * halved as the other benches halve them: what is long is counted apart, and the second of every two is only reported.
 */

import { createHash } from "node:crypto";
import { transcripts } from "../../tests/support/transcripts.mjs";

const SOURCES = [
  "anthropic/claude_code_entire_cli", "anthropic/claude_code_entirecontext", "anthropic/pi_mono", "openai/codex_entirecontext",
  "openai/swe_agent_demos", "openai/openhands_logs", "openai/tau_customer_service", "probes/memorybank_zh_en",
  "probes/gemini_cli_compression", "wire/pydantic_anthropic-messages", "wire/pydantic_openai-chat",
];
/** The source of half of the texts. */
const LARGEST = "anthropic/claude_code_entire_cli";
/** Sessions of which there is one: the halves are those of its messages. */
const ALONE = new Set(["anthropic/pi_mono", "openai/openhands_logs"]);
/** Characters of a session that is long, as JSON. */
const LONG = 150_000;
/** Texts are taken from each class, source, half and size (in characters, from so many on): so many. */
const SIZES = [[1, 60], [33, 150], [200, 150], [1_200, 150], [4_000, 60], [20_000, 12]];
/** The most characters of one. */
const MOST = 40_000;

const found = new Map();
const fitted = new Set();
const counts = [0, 0];
for (const source of SOURCES) {
  for (const record of transcripts(`full/${source}`) ?? []) {
    const messages = record.messages ?? record.request?.messages ?? [];
    const isLong = Number(JSON.stringify(messages).length > LONG);
    const nth = counts[isLong]++;
    const half = nth % 2;
    // What is left out together: sources, but of the largest its sessions.
    const fold = source === LARGEST ? (nth >> 1) % 2 : SOURCES.indexOf(source) % 2;
    messages.forEach((message, nth) => {
      const of = ALONE.has(source) ? Number(nth * 2 >= messages.length) : half;
      for (const [name, text] of textsOf(message)) add({ source, half: of, fold, name }, text);
    });
  }
}
const taken = [...found.values()].flatMap((texts) => texts.sort((a, b) => (a.key < b.key ? -1 : 1)).slice(0, texts.most));
// A file that sessions of both halves read is no test.
for (const { key, split } of taken) if (split === "train") fitted.add(key);
console.log(JSON.stringify(taken.filter(({ key, split }) => split === "train" || !fitted.has(key)).map(({ key, ...text }) => text)));

function add({ source, half, fold, name }, whole) {
  if (typeof whole !== "string") return;
  const text = whole.slice(0, MOST).toWellFormed();
  const size = SIZES.findLastIndex(([from]) => text.length >= from);
  if (size < 0 || text.trim() === "") return;
  const group = `${source} ${half} ${name} ${size}`;
  if (!found.has(group)) found.set(group, Object.assign([], { most: SIZES[size][1], keys: new Set() }));
  const texts = found.get(group);
  const key = createHash("sha256").update(text).digest("hex");
  if (texts.keys.has(key)) return;
  texts.keys.add(key);
  texts.push({ key, group: "recorded", name, source: source.split("/")[1], fold, split: half === 0 ? "train" : "test", text });
}

/** `[class, text]` of what a message holds: prose, the input of calls, results. */
function* textsOf({ role, content, tool_calls }) {
  for (const { function: call } of tool_calls ?? []) if (call) yield ["call arguments", call.arguments ?? ""];
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : Array.isArray(content) ? content : [];
  for (const part of parts) {
    if (part.type === "tool_use") yield ["call arguments", JSON.stringify(part.input)];
    else if (part.type === "tool_result") yield* resultsOf(part.content);
    else if (role === "tool") yield* resultsOf(part.text);
    else if (part.text ?? part.thinking) yield [prose(role, `${part.text ?? part.thinking}`), part.text ?? part.thinking];
  }
}

function* resultsOf(content) {
  const texts = typeof content === "string" ? [content] : Array.isArray(content) ? content.map(({ text }) => text ?? "") : [];
  for (const text of texts.filter((text) => typeof text === "string")) yield [result(text), text];
}

function prose(role, text) {
  if (share([...text], (char) => /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/.test(char)) > 0.2) return "cjk";
  return role === "assistant" ? "assistant prose" : "user prose";
}

function result(text) {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  if (/^\s*[[{]/.test(text) && isJson(text)) return "json";
  if (/^(diff --git|--- |@@ )/m.test(text) && share(lines, (line) => /^([-+@ ]|diff |index )/.test(line)) > 0.7) return "diff";
  if (share(lines, (line) => /^\s*\d+\s?[→\t|:-]/.test(line)) > 0.6) return "numbered code";
  if (share(lines, (line) => /^[-drwx.@\s\d]*[\w.@~/-]*\/[\w.@/-]*(:|\s|$)/.test(line)) > 0.6) return "paths, grep";
  return "tool output, other";
}

function isJson(text) {
  try {
    return typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
}

function share(all, test) {
  return all.length === 0 ? 0 : all.filter(test).length / all.length;
}
