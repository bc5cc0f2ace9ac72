import type { EvaluationProgress, RecallReport } from "../evaluator.js";
import { BUDGETS, COMPACTORS, CUTTING } from "../logic/cost.js";
import { transcriptKey, type Question, type Watch } from "./replays.js";

/** By transcript and compactor. */
const recalls = new Map<string, RecallReport>();

const STAGES: Partial<Record<EvaluationProgress["stage"], string>> = {
  cut: "Cutting the transcript",
  measure: "Measuring what is retained",
};

/** What is known already: a report for each compactor. */
export function recallsOf(question: Question): RecallReport[] | undefined {
  const found = COMPACTORS.map((compactor) => recalls.get(recallKey(question, compactor)));
  return found.every((report) => report !== undefined) ? found : undefined;
}

/** Finds out what is not known yet, and keeps it. Rejects when it is aborted, or with what the evaluator says. */
export async function measureAll(question: Question, { signal, onProgress, onPart }: Watch): Promise<void> {
  if (recallsOf(question)) return;
  const { recall } = await import("../evaluator.js");
  const watch = {
    cutting: CUTTING,
    signal,
    onProgress: ({ stage, done, total }: EvaluationProgress) =>
      onProgress({ label: STAGES[stage] ?? stage, done, total }),
  };
  for (const compactor of COMPACTORS) {
    const key = recallKey(question, compactor);
    if (!recalls.has(key)) recalls.set(key, await recall({ messages: question.source }, compactor, BUDGETS, watch));
  }
  onPart();
}

function recallKey(question: Question, compactor: string): string {
  return `${transcriptKey(question)}/${compactor}`;
}
