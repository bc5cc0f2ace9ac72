import type { Message } from "../engine.js";
import type { Baselines, EvaluationProgress, RecallReport, ReplayReport } from "../evaluator.js";
import { BUDGETS, COMPACTORS, CUTTING, policiesFor } from "../logic/cost.js";
import type { SourceName } from "./types.js";

/** What is evaluated: a transcript in a window, at the prices of a sheet, by default the first. */
export interface Question {
  sourceName: SourceName;
  source: readonly Message[];
  contextWindow: number;
  sheet: string | undefined;
}

/** What is known of the answer so far. */
export interface Evaluation {
  sheets: Baselines["prices"];
  /** One for each policy. */
  costs: ReplayReport[] | undefined;
  /** One for each compactor. */
  recalls: RecallReport[] | undefined;
}

export interface EvaluationWatch {
  signal: AbortSignal;
  onProgress(progress: EvaluationProgress): void;
  /** More of the answer is known. */
  onPart(): void;
}

let sheets: Baselines["prices"] = [];
/** By transcript, window and prices; and by transcript and compactor. */
const costs = new Map<string, ReplayReport[]>();
const recalls = new Map<string, RecallReport>();
/** Names of imported transcripts: recorded ones have theirs, and come anew with every session. */
const imported = new WeakMap<readonly Message[], string>();
let imports = 0;

/** What is known already. */
export function known(question: Question): Evaluation {
  const found = COMPACTORS.map((compactor) => recalls.get(recallKey(question, compactor)));
  return {
    sheets,
    costs: costs.get(costKey(question)),
    recalls: found.every((report) => report !== undefined) ? found : undefined,
  };
}

/** Finds out what is not known yet, and keeps it. Rejects when it is aborted, or with what the evaluator says. */
export async function evaluate(
  question: Question,
  { signal, onProgress, onPart }: EvaluationWatch,
): Promise<void> {
  const before = known(question);
  if (before.costs && before.recalls) return;
  const { baselines, recall, replay } = await import("../evaluator.js");
  if (sheets.length === 0) sheets = (await baselines()).prices;
  signal.throwIfAborted();
  onPart();
  const messages = question.source;
  const sheet = sheetOf(question);
  if (!before.costs && sheet) {
    const rules = policiesFor(question.contextWindow).map(({ rule }) => rule);
    // The sessions of this page have no tools: their window holds the messages alone.
    const transcript = { messages, stableTokens: 0 };
    const reports = await replay(transcript, rules, sheet.prices, { optimum: true, signal, onProgress });
    costs.set(costKey(question), reports);
    onPart();
  }
  for (const compactor of COMPACTORS) {
    const key = recallKey(question, compactor);
    if (recalls.has(key)) continue;
    const options = { cutting: CUTTING, signal, onProgress };
    recalls.set(key, await recall({ messages }, compactor, BUDGETS, options));
  }
  onPart();
}

/** The chosen sheet, once they are known. */
export function sheetOf({ sheet }: Question): Baselines["prices"][number] | undefined {
  return sheets.find(({ name }) => name === sheet) ?? sheets[0];
}

function costKey(question: Question): string {
  return [transcriptKey(question), question.contextWindow, sheetOf(question)?.name].join("/");
}

function recallKey(question: Question, compactor: string): string {
  return `${transcriptKey(question)}/${compactor}`;
}

function transcriptKey({ sourceName, source }: Question): string {
  if (sourceName !== "own") return sourceName;
  const name = imported.get(source) ?? `own ${(imports += 1)}`;
  imported.set(source, name);
  return name;
}
