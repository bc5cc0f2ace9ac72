/**
 * What policies of compaction cost on recorded sessions, over the cheapest that any could have been (`crates/evaluator`).
 *
 * All sessions of 100,000 tokens and more, replayed under six price sheets; the engine's rule was tuned on one half of them,
 * and this is about the other. Peers are their published thresholds with one common operator: a table of triggers, not of
 * products. All of it is in out/cost.full.json.
 */

import { mkdirSync, writeFileSync } from "node:fs";
import { example } from "./cargo.mjs";

export const title = "Cost over the optimum, six price sheets, sessions that were not tuned on";

export const notes = [
  "The optimum is exact for these operators, by dynamic programming over every call: who knows the future pays 1.",
  "Trajectories are frozen: an agent with another context would have gone on differently. What it copies from what left " +
    "its context is fetched again and paid for; what a compaction costs in quality is not priced otherwise.",
  "Summaries are of 1,500 tokens, whoever asks for them, and all are asked for at the end of the conversation's own prompt, as the " +
    "engine does: what the provider has of it in its cache is read from there. A recall tool is taken to be there.",
];

/** What the picture is of. */
let drawn = [];

const out = new URL("out/", import.meta.url);

export async function run() {
  const text = await example("context-compactor-evaluator", "cost");
  const report = JSON.parse(text.slice(text.search(/^(\{|null)/m)));
  if (!report) return [{ case: "skipped: no recordings (set CC_DATA)" }];
  mkdirSync(out, { recursive: true });
  writeFileSync(new URL("cost.full.json", out), `${JSON.stringify(report, null, 2)}\n`);
  const held = report["held out"];
  drawn = held.policies;
  const policies = held.policies.map(({ policy, mean, worst, sheets, ...rest }) => ({
    case: policy,
    sessions: held.sessions,
    mean,
    worst,
    ...Object.fromEntries(sheets.map((sheet) => [sheet.sheet, sheet.mean])),
    "worst of none": Math.max(...sheets.map((sheet) => sheet["worst of none"])),
    "above none": sheets.reduce((sum, sheet) => sum + sheet["above none"], 0),
    "changed prefixes": rest["changed prefixes"],
  }));
  const tuned = report.tuned.policies.map(({ policy, mean, worst }) => ({ case: `${policy}, tuned on`, mean, worst }));
  const sources = held.sources.map(({ policy, source, mean, worst }) => ({ case: `${policy}: ${source}`, mean, worst }));
  const billed = report.billed.map((row) => ({ case: `simulated over billed: ${row.source}`, mean: 1 + row.error }));
  return [...policies, ...tuned, ...sources, ...billed];
}

/** Means as bars, the worst session as a mark. */
export function plot() {
  const [left, height, unit] = [230, 22, 110];
  const x = (ratio) => left + (Math.min(ratio, 6) - 1) * unit;
  const rows = drawn.map(({ policy, mean, worst }, nth) => {
    const y = nth * height + 30;
    return [
      `<text x="${left - 8}" y="${y + 12}" text-anchor="end">${policy}</text>`,
      `<rect x="${left}" y="${y}" width="${(x(mean) - left).toFixed(1)}" height="14" fill="#4878a8"/>`,
      `<circle cx="${x(worst).toFixed(1)}" cy="${y + 7}" r="4" fill="#b04a3a"/>`,
      `<text x="${(x(mean) + 6).toFixed(1)}" y="${y + 12}">${mean.toFixed(2)}</text>`,
    ].join("");
  });
  const size = `width="${left + 5 * unit + 40}" height="${drawn.length * height + 50}"`;
  const head = `<text x="${left}" y="18">cost over the optimum: mean (bar), worst session (dot)</text>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="sans-serif" font-size="12">${head}${rows.join("")}</svg>\n`;
}
