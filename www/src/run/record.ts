import { shared } from "../../../bench/front/bill.mjs";
import type { LedgerEntry, Message } from "../engine.js";
import { answersOf, referencesOf } from "../logic/messages.js";
import type { Compaction, Left, Offload } from "./types.js";

/** What left the context since an earlier ledger, by fate. */
export function leftBy(
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
export function rewrittenBy(
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
