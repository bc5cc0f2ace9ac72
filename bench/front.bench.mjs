/**
 * What a policy spends, and what it loses by it: recorded sessions of agents, replayed call by call through the session
 * itself, and facts that users told in long sessions. Policies of a few lines stand beside the presets.
 */

import { transcripts } from "../tests/support/transcripts.mjs";
import { Known, Named } from "./front/named.mjs";
import { engine, replay, simple } from "./front/replay.mjs";
import { interval } from "./interval.mjs";

export const title = "Cost and what had left: recorded sessions through the session itself, window 200,000";

export const notes = [
  "Every other session of about 100,000 tokens or more; the defaults were chosen by the rest.",
  "needs lost: of 100 calls those that lack something which an earlier message has, and which was not just given; with the interval " +
    "of 95 % over sessions. The cost is over that without a compaction.",
  "by runs: they copy three runs of eight words that no message of the prompt has. shortened: those of them that a result or an input " +
    "had which the prompt still names, but not whole; the others left with a cut.",
  "by names: their text or input has a path, an identifier, a hash, a number or the like that no message of the prompt has, or only " +
    "without two of the words that surrounded it. Some names are known from elsewhere and do not count: those that other projects have, " +
    "that two other sessions write before they are told them, that the project does not declare, and of local variables. Of 20 " +
    "such calls of `balanced` that were read, 18 had to know the name from their history.",
  "mean prompt: tokens, with 20,000 of the system prompt and the tools, which every policy counts but the one at 60,000.",
  "facts: gold answers that stand in the last prompt, in windows of 32,000, 128,000 and 200,000 tokens.",
  "Summaries are the built-in summarizer's, and cost nothing. Trajectories are frozen: an agent with another context would have " +
    "gone on differently.",
];

const WINDOW = 200_000;
const FACT_WINDOWS = [32_000, 128_000, 200_000];
/** Characters of a session of about 100,000 tokens, as JSON. */
export const LONG = 400_000;

async function newest(messages, limit, tokensOf) {
  let [at, sum] = [messages.length, 0];
  while (at > 0 && (sum += await tokensOf(messages[at - 1])) <= limit) at--;
  // No answer without its question.
  while (at < messages.length && (messages[at].role !== "user" || isResult(messages[at]))) at++;
  return messages.slice(Math.min(at, messages.length - 1));
}

function isResult({ content }) {
  return Array.isArray(content) && content.some(({ type }) => type === "tool_result");
}

/** The newest messages of a prompt of `leaves` tokens, whenever that has `acts`: system prompt and tools are counted. */
function tail(acts, leaves) {
  return simple(async (messages, window, tokensOf, stable) => {
    const room = window * leaves - stable;
    return stable + (await sum(messages, tokensOf)) < window * acts ? messages : newest(messages, room, tokensOf);
  });
}

async function sum(messages, tokensOf) {
  let all = 0;
  for (const message of messages) all += await tokensOf(message);
  return all;
}

const POLICIES = {
  "none, endless window": simple(async (messages) => messages),
  "newest 30 % at half of the window": tail(0.5, 0.3),
  "newest 40 % at 60 % of the window": tail(0.6, 0.4),
  "newest 10,000 at 60,000": simple(async (messages, _, tokensOf) =>
    (await sum(messages, tokensOf)) < 60_000 ? messages : newest(messages, 10_000, tokensOf),
  ),
  balanced: engine({}),
  "balanced, recall": engine({ recall: true }),
  "balanced, economy": engine({ economy: true }),
  offload: engine({ preset: "offload" }),
  layered: engine({ preset: "layered" }),
  factor3: engine({ preset: "factor3" }),
  checkpoint: engine({ preset: "checkpoint" }),
};

/** Besides the sessions: what other projects call things. */
const OTHERS = ["anthropic/pi_mono", "openai/codex_entirecontext", "openai/swe_agent_demos", "openai/openhands_logs", "openai/tau_customer_service"];

export const SOURCES = ["full/anthropic/claude_code_entire_cli", "full/anthropic/claude_code_entirecontext"];

export async function run() {
  const records = SOURCES.flatMap((name) => transcripts(name) ?? []);
  const all = records.filter(({ messages }) => JSON.stringify(messages).length > LONG);
  // The defaults were chosen by the other half.
  const long = all.filter((_, nth) => nth % 2 === 1);
  if (long.length === 0) return [{ case: "skipped: no recordings (set CC_DATA)" }];
  const known = new Known();
  for (const record of [...records, ...OTHERS.flatMap((name) => transcripts(`full/${name}`) ?? [])]) known.add(record);
  const facts = transcripts("full/probes/spliced_bfcl_in_coding") ?? [];
  const rows = [];
  let base;
  for (const [name, policy] of Object.entries(POLICIES)) {
    const found = [];
    for (const record of long) {
      const names = new Named((name) => known.has(name, record));
      found.push(await replay(record.messages, policy, WINDOW, { names }));
    }
    base ??= found;
    const row = {
      case: name,
      sessions: found.length,
      calls: total(found, "calls"),
      ...of100("needs lost", "", found, "either"),
      ...of100("by runs", "runs ", found, "lost"),
      shortened: round((100 * total(found, "shortened")) / total(found, "calls")),
      ...of100("by names", "names ", found, "named"),
      cost: round(total(found, "cost") / total(base, "cost")),
      "mean prompt": Math.round(total(found, "tokens") / total(found, "calls")),
    };
    for (const window of FACT_WINDOWS) {
      // A prompt of 60,000 tokens is none in a smaller window.
      const fits = window > 60_000 || !name.endsWith("at 60,000");
      row[`facts in ${window / 1_000}K`] = fits ? round(await present(facts, policy, window)) : null;
    }
    console.log(JSON.stringify(row));
    rows.push(row);
  }
  return rows;
}

/** Of 100 calls those that `key` counts, with their interval. */
function of100(name, prefix, found, key) {
  const share = (of) => (100 * total(of, key)) / total(of, "calls");
  const [low, high] = interval(found, share).map(round);
  return { [name]: round(share(found)), [`${prefix}low`]: low, [`${prefix}high`]: high };
}

function total(found, key) {
  return found.reduce((sum, one) => sum + one[key], 0);
}

function round(number) {
  return Math.round(number * 1_000) / 1_000;
}

const plain = (text) => String(text).toLowerCase().match(/[\p{L}\p{N}]+/gu)?.join(" ") ?? "";

async function present(facts, policy, window) {
  let [has, of] = [0, 0];
  for (const { messages, probes } of facts) {
    const { last } = await replay(messages, policy, window);
    const text = plain(JSON.stringify(last));
    for (const { answers } of probes.filter(({ answers }) => answers)) {
      of++;
      if (answers.some((answer) => text.includes(plain(answer)))) has++;
    }
  }
  return has / of;
}

/** Needs lost against cost: down and to the left is better. */
export function plot(rows) {
  const [left, top, width, height, least] = [60, 30, 420, 250, 0.5];
  const most = Math.ceil(Math.max(...rows.map((row) => row["needs lost"])));
  const x = (cost) => left + ((cost - least) / (1 - least)) * width;
  const y = (needs) => top + height - (needs / most) * height;
  const sorted = [...rows].sort((a, b) => b["needs lost"] - a["needs lost"] || a.cost - b.cost);
  let line = top - 12;
  const points = sorted.map((row) => {
    const [px, py] = [x(row.cost), y(row["needs lost"])];
    line = Math.max(line + 15, py);
    const color = row.case.startsWith("balanced") ? "#b04a3a" : "#4878a8";
    const leader = `<path d="M${px.toFixed(1)} ${py.toFixed(1)}L${left + width + 24} ${line.toFixed(1)}" stroke="#ccc"/>`;
    const label = `<text x="${left + width + 28}" y="${(line + 4).toFixed(1)}">${row.case}</text>`;
    return `${leader}<circle cx="${px.toFixed(1)}" cy="${py.toFixed(1)}" r="4" fill="${color}"/>${label}`;
  });
  const costs = [0.5, 0.6, 0.7, 0.8, 0.9, 1].map((cost) => `<text x="${x(cost)}" y="${top + height + 16}" text-anchor="middle">${cost}</text>`);
  const needs = Array.from({ length: most + 1 }, (_, at) => `<text x="${left - 8}" y="${y(at) + 4}" text-anchor="end">${at}</text>`);
  const axes = `<path d="M${left} ${top}V${top + height}H${left + width}" fill="none" stroke="#888"/><text x="8" y="16">calls of 100 that lack something</text><text x="${left + width}" y="${top + height + 34}" text-anchor="end">cost over no compaction</text>`;
  const size = `width="${left + width + 260}" height="${Math.max(top + height + 44, line + 20)}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="sans-serif" font-size="12">${axes}${costs.join("")}${needs.join("")}${points.join("")}</svg>\n`;
}
