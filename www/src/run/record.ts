import { shared } from "../../../bench/front/bill.mjs";
import type { CompactionResult, ContextUsage, Edit, LedgerEntry, Message } from "../engine.js";
import { answersOf, referencesOf } from "../logic/messages.js";
import { whyOf } from "../logic/presets.js";
import type { Compaction, Left, LogEntry, Offload, RunState, Sample } from "./types.js";

/** What a call that compacted did. */
export interface Change {
  before: Message[];
  previousTokens: number;
  edits: Edit[];
  result: CompactionResult | undefined;
  started: number;
  /** The plan's own words just before it. Absent where the user asked for it. */
  plan?: string;
  /** Messages at the end that were never sent. */
  fresh: number;
  trigger: number;
  /** Broken rules of the wire format after it. */
  problems: number;
}

/** A change as the page keeps it; `state` is that after it. */
export function compactionOf(change: Change, state: RunState, ledger: LedgerEntry[], weigh: (message: Message) => number): Compaction {
  const { log, context, compactions, usage, weights } = state;
  const { before, result, plan, previousTokens, edits, trigger, fresh, started, problems } = change;
  return {
    number: compactions.length + 1,
    x: log.length,
    kind: result?.summary === undefined ? "offload" : "summary",
    manual: plan === undefined,
    why: plan === undefined ? "asked for with /compact" : whyOf({ previousTokens, trigger, edits, plan }, state),
    trigger,
    rewritten: rewrittenBy(before, context, fresh, weigh),
    left: leftBy(ledger, compactions.at(-1)?.ledger ?? [], weights),
    before,
    after: [...context],
    previousTokens,
    tokensAfter: usage?.usedTokens ?? 0,
    edits,
    deleted: result?.retiredRefs ?? [],
    llmCalls: result?.llmCalls ?? 0,
    durationMs: performance.now() - started,
    ledger,
    problems,
    ...(result?.summary === undefined ? {} : { summary: result.summary }),
    ...(result?.reason === undefined ? {} : { reason: result.reason }),
  };
}

/** The context now, as the chart and the map show it. */
export function sampleOf({ log, weights }: RunState, usage: ContextUsage, trigger: number): Sample {
  const categories = usage.categories.filter(({ kind }) => kind === "used").map(({ name, tokens }) => ({ name, tokens }));
  return { x: log.length, used: usage.usedTokens, without: weights.reduce((sum, weight) => sum + weight, 0), trigger, categories };
}

/** The messages of a session that has `length` of them. The session is the truth: what it got after the last save of this page
 *  comes from the source. */
export function logOf(saved: readonly LogEntry[], length: number, source: readonly Message[]) {
  const entries = saved.slice(0, length);
  let cursor = entries.filter((entry) => "source" in entry).length;
  while (entries.length < length && cursor < source.length) entries.push({ source: cursor++ });
  const log = entries.map((entry) => ("own" in entry ? entry.own : source[entry.source])).filter((message) => message !== undefined);
  return { entries, log, cursor };
}

/** What left the context since an earlier ledger, by fate. */
function leftBy(
  ledger: readonly LedgerEntry[],
  earlier: readonly LedgerEntry[],
  weights: readonly number[],
): Left[] {
  const fates = new Map(earlier.map(({ index, fate }) => [index, fate]));
  const left = new Map<string, Left>();
  for (const { index, fate } of ledger) {
    if (fate === "verbatim" || fate === fates.get(index)) continue;
    const sum = left.get(fate) ?? { fate, messages: 0, tokens: 0 };
    sum.messages += 1;
    sum.tokens += weights[index] ?? 0;
    left.set(fate, sum);
  }
  return [...left.values()];
}

/** Tokens that the provider had in its cache and gets again. The last `fresh` messages were never sent: they cost nothing more. */
function rewrittenBy(
  before: readonly Message[],
  after: readonly Message[],
  fresh: number,
  weigh: (message: Message) => number,
): number {
  const kept = shared(before.slice(0, before.length - fresh), after);
  return after.slice(kept, Math.max(kept, after.length - fresh)).reduce((sum, message) => sum + weigh(message), 0);
}

/** References stand in the messages, several in one perhaps; what was summarized since is named by the ledger. */
export function offloadsAfter(
  { after, deleted, ledger, x }: Compaction,
  log: readonly Message[],
  offloads: readonly Offload[],
): Offload[] {
  const known = new Map(offloads.map((offload) => [offload.ref, offload]));
  const answers = new Map(log.flatMap((message, index) => answersOf(message).map((id) => [id, index] as const)));
  const named = ledger.flatMap(({ ref, index }) =>
    ref ? [{ ref, callId: answersOf(log[index] ?? {})[0] ?? "" }] : [],
  );
  const hashes = new Map(ledger.map(({ ref, sha256 }) => [ref, sha256]));
  for (const { ref, callId } of [...after.flatMap(referencesOf), ...named]) {
    const index = answers.get(callId);
    if (index === undefined || known.has(ref)) continue;
    const sha256 = hashes.get(ref);
    known.set(ref, { ref, index, callId, x, retired: false, ...(sha256 === undefined ? {} : { sha256 }) });
  }
  return [...known.values()].map((offload) =>
    deleted.includes(offload.ref) ? { ...offload, retired: true } : offload,
  );
}
