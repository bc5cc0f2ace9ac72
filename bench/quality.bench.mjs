/**
 * What a compaction retains: hindsight recall on recorded transcripts (`crates/evaluator/src/recall`), where they are
 * present. Half of the transcripts, those that nothing was tuned on; `CC_QUALITY=even` measures the other half.
 */

import { mkdirSync, writeFileSync } from "node:fs";
import { example } from "./cargo.mjs";
import { chart } from "./quality/chart.mjs";

export const title = "What a compaction retains: shares of what the agent went on to write from memory";

export const notes = [
  "T1: named in the context. T2: named within 280 characters of two content words that also surround it in the prefix. " +
    "T3: spans of eight tokens that the agent copied. T1+: T1, or the path or argument of what holds it is named, or a " +
    "search with the agent's own words finds it.",
  "Presence is necessary, not sufficient: a model overlooks much of what its context holds. These figures never say " +
    "that a task is solved.",
  "The metric is lexical: it punishes paraphrase and underrates prose of a model (plans, reasons). It compares methods " +
    "on the same cuts; it does not rank writers.",
  "Futures are recorded: an agent with another context would have gone on differently, and part of what it copied it " +
    "would have read again.",
  "T1 alone is gamed by a bag of names, T2 could be by gluing words: both adversaries are rows of the table.",
  "Two repositories dominate; the rows of other domains are the check. The oracle is greedy, a near bound.",
];

export async function run() {
  const { recall: report, probes } = await measure(process.env.CC_QUALITY ?? "odd");
  const folders = process.argv.includes("--report") ? ["out/", "reports/"] : ["out/"];
  for (const folder of folders) {
    mkdirSync(new URL(folder, import.meta.url), { recursive: true });
    writeFileSync(new URL(`${folder}quality.svg`, import.meta.url), plot(report));
  }
  return [...methods(report), ...searches(report), ...kinds(report), ...asked(probes)];
}

async function measure(half) {
  const stdout = await example("context-compactor-evaluator", "quality", [half]);
  const report = JSON.parse(stdout.slice(stdout.lastIndexOf("\n{") + 1));
  if (report.recall.cuts.all[0] === 0) throw new Error(`no transcripts to measure: ${stdout.trim()}`);
  return report;
}

/** A row for each method in each domain. */
function methods({ cuts, rows }) {
  const names = [...new Set(rows.map(({ method }) => method))];
  return Object.keys(cuts).flatMap((domain) =>
    names.map((method) => {
      const of = Object.fromEntries(
        rows.filter((row) => row.domain === domain && row.method === method).map((row) => [row.budget, row]),
      );
      const share = (name, field, budgets) =>
        Object.fromEntries(budgets.map((budget) => [`${name} ${budget} %`, round(of[budget][field])]));
      return {
        case: `${domain} (${cuts[domain][0]}): ${method}`,
        ...share("T1", "mention", [2, 5, 10]),
        ...share("T2", "context", [2, 5, 10, 20]),
        ...share("T3", "verbatim", [5, 10]),
        ...share("T1+", "recoverable", [5]),
        "T2 5 %, of oracle": round(of[5].of_oracle[1]),
        "T2 5 % - tail": interval(of[5].difference[1]),
        "T3 10 % - tail": interval(of[10].difference[2]),
        "not in the prefix": round(of[5].invented),
      };
    }),
  );
}

function searches({ searched: [five, ten] }) {
  return [{ case: "search with the agent's words: among the first 5, 10", "hits 5": round(five), "hits 10": round(ten) }];
}

function kinds({ kinds }) {
  return Object.entries(kinds).flatMap(([method, of]) =>
    Object.entries(of).map(([kind, [needs, mention, context]]) => ({
      case: `${method}, ${kind}`,
      needs,
      "T1 5 %": round(mention),
      "T2 5 %": round(context),
    })),
  );
}

function asked(probes) {
  return probes.map(({ method, domain, probes, present, recoverable }) => ({
    case: `questions, ${domain}: ${method}`,
    questions: probes,
    "answer at 10 %": round(present),
    "or found by a search": round(recoverable),
  }));
}

function plot({ cuts, rows, ours }) {
  const of = (method) =>
    rows
      .filter((row) => row.domain === "all" && row.method === method)
      .map(({ budget, context }) => ({ budget, value: context }));
  const kind = (name) => {
    if (ours.includes(name)) return "ours";
    if (name === "oracle") return name;
    return /bag|shuffled/.test(name) ? "adversary" : "other";
  };
  const names = [...new Set(rows.map(({ method }) => method))];
  const series = names.map((name) => ({ name, kind: kind(name), values: of(name) }));
  return chart(`T2, recall in context, ${cuts.all[0]} cuts of recorded transcripts`, series);
}

const round = (value) => Math.round(value * 1000) / 1000;
const interval = (bounds) => (bounds ? `${signed(bounds[0])} … ${signed(bounds[1])}` : "one transcript");
const signed = (value) => (value < 0 ? "" : "+") + round(value).toFixed(3);
