/** `replay --optimum`: published thresholds and the best that any policy could cost, by the package of the evaluator. */

import type { Message, ModelPrices } from "../entry/main.js";
import type { Input } from "./input.js";
import { besides } from "./packages.js";
import { changeOf, dollars, number, type Terminal } from "./terminal.js";

/** What is used of `context-compactor-evaluator`, which this package does not depend on. */
interface Evaluator {
  baselines(): Promise<{ policies: { name: string; policy: { kind: string } }[] }>;
  replay(
    transcript: { messages: readonly Message[]; format: string; stableTokens: number },
    policies: readonly string[],
    prices: ModelPrices,
    options: { optimum: boolean; onProgress: (progress: { stage: string; done: number; total: number }) => void },
  ): Promise<{ cost: number; compactions: number; refetches: number; refetchedTokens: number; largestPrompt: number; optimum?: number }[]>;
}

/** What policies would have cost if everything that they miss is fetched again. */
export interface Hindsight {
  policies: { policy: string; usd: number; compactions: number; refetches: number; refetchedTokens: number; largestPrompt: number }[];
  /** The least that any policy of summaries could cost that knows what comes, in USD. */
  optimum: number;
}

export function loadEvaluator(): Promise<Evaluator> {
  return besides<Evaluator>("context-compactor-evaluator", "--optimum", "replay");
}

/** Rules of our own that are no preset, and experiments. */
const LEFT_OUT = /^(?:fixed|rent or buy|factor3)/;

export async function hindsightOf(
  { baselines, replay }: Evaluator,
  { messages, format }: Input,
  { prices, stable }: { prices: ModelPrices; stable: number },
  terminal: Terminal,
): Promise<Hindsight> {
  const { policies } = await baselines();
  const names = policies.filter(({ name, policy }) => ["none", "threshold", "price"].includes(policy.kind) && !LEFT_OUT.test(name)).map(({ name }) => name);
  const onProgress = ({ stage, done, total }: { stage: string; done: number; total: number }): void => terminal.progress(`${stage} ${number(done)} of ${number(total)}`);
  const reports = await replay({ messages, format, stableTokens: stable }, names, prices, { optimum: true, onProgress });
  const rounded = (usd: number): number => Math.round(usd * 1e6) / 1e6;
  return {
    policies: reports.map(({ cost, compactions, refetches, refetchedTokens, largestPrompt }, nth) => ({ policy: names[nth] as string, usd: rounded(cost), compactions, refetches, refetchedTokens, largestPrompt })),
    optimum: rounded(reports[0]?.optimum ?? 0),
  };
}

/** What the table says, for its reader. */
export const METHOD =
  "A model of the same history: each policy compacts at its published threshold, a summary costs what a model would take for it, and what the agent wrote from memory later is fetched again at its price. The optimum knows what comes: no policy of summaries costs less.";

/** Rows of the table, the cheapest last. */
export const hindsightRows = ({ policies, optimum }: Hindsight): string[][] => [
  ...[...policies].sort((a, b) => b.usd - a.usd).map(({ policy, usd, compactions, refetches, largestPrompt }) => [policy, dollars(usd), changeOf(usd, optimum), number(compactions), number(refetches), number(largestPrompt)]),
  ["the optimum", dollars(optimum), "", "", "", ""],
];
export const HEAD = ["policy", "cost", "over the optimum", "compactions", "fetched again", "largest prompt"];

export function printHindsight(hindsight: Hindsight, terminal: Terminal): void {
  terminal.heading("Published thresholds and the optimum");
  terminal.table([HEAD, ...hindsightRows(hindsight)], ["left", "right", "right", "right", "right", "right"]);
  terminal.line();
  for (const line of METHOD.match(/.{1,118}(?:\s|$)/g) ?? []) terminal.line(terminal.paint("dim", `  ${line.trim()}`));
}
