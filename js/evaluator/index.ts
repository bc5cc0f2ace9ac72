/** The evaluator: measures on transcripts, without a model, what a compaction costs and how much it keeps. */

import { checkFunction, checkOptions, checkSignal, invalidOption, plainOptions } from "../checks.js";
import { checkHistory, encode } from "../codec.js";
import { CompactionError } from "../errors.js";
import type { Format, Message } from "../types/messages.js";
import type { Prices } from "../generated/options.js";
import { Instance } from "./module.js";
import type {
  Baselines,
  Compactor,
  CompactorName,
  EvaluationOptions,
  EvaluationProgress,
  Policy,
  PolicyAction,
  PolicyMoment,
  RecallCut,
  RecallOptions,
  RecallReport,
  RecallScores,
  ReplayOptions,
  ReplayReport,
  Transcript,
} from "./types.js";

export { CompactionError } from "../errors.js";
export type { ErrorCode } from "../errors.js";
export type { Format, Message, Usage } from "../types/messages.js";
export type { Prices } from "../generated/options.js";
export type * from "./types.js";

/**
 * Measures what a policy costs on a transcript, by a replay like demand paging: before each call the policy may compact,
 * and what the model then writes from memory must be in the context, or is fetched again at its price. The conversation
 * itself does not change. Several policies give a report each.
 *
 * Rejects with `invalid_message` (naming the message), `invalid_option`, `aborted`, or what a policy of the app throws.
 */
export function replay(transcript: Transcript, policy: Policy, prices: Prices, options?: ReplayOptions): Promise<ReplayReport>;
export function replay(
  transcript: Transcript,
  policies: readonly Policy[],
  prices: Prices,
  options?: ReplayOptions,
): Promise<ReplayReport[]>;
export async function replay(
  transcript: Transcript,
  policy: Policy | readonly Policy[],
  prices: Prices,
  options: ReplayOptions = {},
): Promise<ReplayReport | ReplayReport[]> {
  checkOptions(options, ["optimum", "signal", "onProgress"]);
  checkOptions(prices, ["input", "output", "cacheRead", "cacheWrite", "ttlMs", "tiers"], "prices.");
  const pace = new Pace(options);
  const policies: readonly Policy[] = Array.isArray(policy) ? policy : [policy as Policy];
  const instance = await Instance.start();
  read(instance, [transcript]);
  const given = JSON.stringify(plainOptions(prices));
  const of = `"transcript":0,"prices":${given}`;
  const billed = instance.ask<ReplayReport["billed"] | null>(`{"billed":{${of}}}`);
  const reports: ReplayReport[] = [];
  for (const [nth, one] of policies.entries()) {
    await pace.at("replay", nth, policies.length);
    const report =
      typeof one === "function"
        ? decided(instance, of, one)
        : instance.ask<ReplayReport>(`{"replay":{${of},"policy":${JSON.stringify(named(one))}}}`);
    reports.push({ ...report, currency: "USD", ...(billed && { billed }) });
  }
  await pace.at("replay", policies.length, policies.length);
  if (options.optimum) {
    const optimum = await least(instance, of, pace);
    for (const report of reports) report.optimum = optimum;
  }
  return Array.isArray(policy) ? reports : (reports[0] as ReplayReport);
}

/**
 * Measures how much a compactor keeps of what agents later wrote from memory (hindsight recall): transcripts are cut, the
 * messages before a cut are compacted, and those after it show what was needed. `budgets`: fractions of the tokens before
 * a cut, 0..1.
 *
 * Presence is necessary, not sufficient: a model may overlook what its context holds. The metric is lexical and punishes
 * paraphrase. So it compares compactors on the same cuts, and says nothing of tasks solved.
 *
 * Rejects with `invalid_message` (naming the message), `invalid_option`, `aborted`, or what the compactor throws.
 */
export async function recall<M extends Message>(
  transcripts: Transcript<M> | readonly Transcript<M>[],
  compactor: CompactorName | Compactor<M>,
  budgets: readonly number[],
  options: RecallOptions = {},
): Promise<RecallReport> {
  checkOptions(options, ["cutting", "signal", "onProgress"]);
  checkBudgets(budgets);
  if (typeof compactor !== "string") {
    if (typeof compactor !== "function") throw invalidOption("compactor", "must be a function or the name of one");
  }
  const { cutting = {} } = options;
  checkOptions(cutting, ["prefixTokens", "futureTokens", "needs", "cuts", "seed"]);
  const pace = new Pace(options);
  const all = (Array.isArray(transcripts) ? transcripts : [transcripts]) as readonly Transcript<M>[];
  const instance = await Instance.start();
  const formats = read(instance, all);
  const found: Found[] = [];
  for (const nth of all.keys()) {
    await pace.at("cut", nth, all.length);
    const plain = JSON.stringify(plainOptions(cutting));
    found.push(...instance.ask<Found[]>(`{"cases":{"transcript":${nth},"cutting":${plain}}}`));
  }
  const cuts: RecallCut[] = [];
  for (const [nth, { messages, hits5: _, hits10: __, ...cut }] of found.entries()) {
    const scores: RecallScores[] = [];
    for (const share of budgets) {
      await pace.at("measure", nth * budgets.length + scores.length, found.length * budgets.length);
      const budget = Math.floor(cut.tokens * share);
      const of = `"case":${nth},"budget":${budget}`;
      if (typeof compactor === "string") {
        scores.push(scored(instance, `{"measure":{${of},"compactor":${JSON.stringify(compactor)}}}`));
        continue;
      }
      const { messages: own } = all[cut.transcript] as Transcript<M>;
      const context = await compactor(messages.map((at) => own[at] as M), budget, { ...cut });
      const text = typeof context === "string" ? JSON.stringify(context.replace(LONE, "\uFFFD")) : undefined;
      const format = JSON.stringify(formats[cut.transcript]);
      const what = text === undefined ? `"messages":[${texts(context).join(",")}],"format":${format}` : `"text":${text}`;
      scores.push(scored(instance, `{"score":{${of},${what}}}`));
    }
    cuts.push({ ...cut, scores });
  }
  await pace.at("measure", found.length * budgets.length, found.length * budgets.length);
  return { cuts, ...summary(cuts, found, budgets) };
}

/** Lists what is known by name: policies of the engine and of peers, typical prices, compactors. */
export async function baselines(): Promise<Baselines> {
  return (await Instance.start()).ask<Baselines>('"known"');
}

/** Lone surrogates: JSON that has them is not read. */
const LONE = /\p{Surrogate}/gu;

/** A cut as the module returns it: with the places of the messages before it, and how many needs a search finds. */
type Found = Omit<RecallCut, "scores"> & { messages: number[]; hits5: number; hits10: number };

const FIELDS = ["messages", "format", "id", "source", "usage", "compactions", "stableTokens"];

/** Hands over transcripts; their formats. */
function read(instance: Instance, transcripts: readonly Transcript[]): Format[] {
  const given = transcripts.map((transcript) => {
    if (typeof transcript !== "object" || transcript === null) {
      throw invalidOption("transcript", "must be an object with messages");
    }
    checkOptions(transcript, FIELDS);
    const { messages, ...rest } = transcript;
    const plain = JSON.stringify(plainOptions(rest));
    return `{"messages":[${texts(messages).join(",")}]${plain === "{}" ? "" : `,${plain.slice(1, -1)}`}}`;
  });
  return instance.ask<Format[]>(`{"read":[${given.join(",")}]}`);
}

function texts(messages: unknown): string[] {
  checkHistory(messages);
  return Array.from(messages as readonly unknown[], (message, index) => encode(message, index));
}

/** A replay that the app's function decides. */
function decided(instance: Instance, of: string, policy: (moment: PolicyMoment) => PolicyAction | undefined): ReplayReport {
  type Next = { moment: PolicyMoment } | { report: ReplayReport };
  let next = instance.ask<Next>(`{"begin":{${of}}}`);
  while ("moment" in next) {
    const action = policy(next.moment) ?? { kind: "none" };
    next = instance.ask<Next>(`{"act":${JSON.stringify(plainOptions(action))}}`);
  }
  return next.report;
}

function named(policy: unknown): unknown {
  if (typeof policy === "string") return policy;
  if (typeof policy !== "object" || policy === null) {
    throw invalidOption("policy", "must be a rule, the name of one, or a function");
  }
  return plainOptions(policy);
}

async function least(instance: Instance, of: string, pace: Pace): Promise<number> {
  type Search = { done: number; total: number; cost: number | null };
  let search = instance.ask<Search>(`{"optimum":{${of}}}`);
  while (search.cost === null) {
    await pace.at("optimum", search.done, search.total);
    search = instance.ask<Search>('"advance"');
  }
  return search.cost;
}

function scored(instance: Instance, question: string): RecallScores {
  const { verbatim, ...scores } = instance.ask<Omit<RecallScores, "verbatim"> & { verbatim: number | null }>(question);
  return verbatim === null ? scores : { ...scores, verbatim };
}

/** Means by budget, and of the searches. */
function summary(cuts: RecallCut[], found: Found[], budgets: readonly number[]): Omit<RecallReport, "cuts"> {
  if (cuts.length === 0) return { means: [] };
  const means = budgets.map((budget, nth) => {
    const mean = (field: keyof RecallScores) => {
      const values = cuts.flatMap(({ scores }) => scores[nth]?.[field] ?? []);
      return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length;
    };
    const verbatim = mean("verbatim");
    const of = (field: keyof RecallScores) => mean(field) as number;
    return {
      budget,
      mention: of("mention"),
      context: of("context"),
      ...(verbatim !== undefined && { verbatim }),
      referenced: of("referenced"),
      recoverable: of("recoverable"),
      invented: of("invented"),
      tokens: of("tokens"),
    };
  });
  const total = (field: "needs" | "hits5" | "hits10") => found.reduce((sum, cut) => sum + cut[field], 0);
  const share = (field: "hits5" | "hits10") => total(field) / Math.max(1, total("needs"));
  return { means, search: { hits5: share("hits5"), hits10: share("hits10") } };
}

function checkBudgets(budgets: unknown): void {
  const isShare = (budget: unknown) => typeof budget === "number" && budget > 0 && budget <= 1;
  if (!Array.isArray(budgets) || budgets.length === 0 || !budgets.every(isShare)) {
    throw invalidOption("budgets", "must be an array of shares above 0 and up to 1");
  }
}

/** After so many milliseconds the host gets its turn. */
const SHARE_MS = 40;

/** Reports how far it is, lets the host do other things now and then, and ends when that is wanted. */
class Pace {
  readonly #signal: AbortSignal | undefined;
  readonly #tell: ((progress: EvaluationProgress) => void) | undefined;
  #since = performance.now();

  constructor({ signal, onProgress }: EvaluationOptions) {
    checkSignal(signal);
    checkFunction("onProgress", onProgress);
    this.#signal = signal;
    this.#tell = onProgress;
  }

  async at(stage: EvaluationProgress["stage"], done: number, total: number): Promise<void> {
    this.#tell?.({ stage, done, total });
    if (performance.now() - this.#since > SHARE_MS) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      this.#since = performance.now();
    }
    if (this.#signal?.aborted) {
      throw new CompactionError("aborted", "The evaluation was aborted", { cause: this.#signal.reason });
    }
  }
}
