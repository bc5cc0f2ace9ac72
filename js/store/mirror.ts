/** Two stores as one. The code that keeps them alike is loaded with the first call. */

import { checkObject, checkOptions, invalidOption } from "../checks.js";
import { CompactionError } from "../errors.js";
import type { MirrorOptions, MirrorStore, Store } from "../types.js";
import { checkKey, checkScan, ownBatch } from "./keys.js";
import type { Mirror } from "./mirror/mirror.js";
import { checkFree, MARK_OPS } from "./mirror/own.js";
import { notices } from "./notices.js";

/**
 * Stores everything twice, in `first` and `second`, two stores of any kind. Each is a whole copy, and opens without the
 * other. Commits go to the first, which decides conflicts, then with the same batch to the second; reads come from the
 * first. A row that one copy has lost or reports as damaged is restored from the other, and an incomplete or empty copy
 * is completed when the pair is next used; sessions emit that as `data-loss` of kind `repaired`. Several tabs or
 * processes may use one pair, with its copies in the same order.
 *
 * `acknowledge: "both"` (default): a commit resolves when both copies have it, so it survives the loss of either. While
 * one copy cannot be written, appends fail with its error and write nothing; the first to fail does so with
 * `indeterminate`. `"first"`: a commit resolves when the first copy has it; the second follows, and `behind` is how many
 * commits it lacks.
 *
 * If a copy does not open, a warning is emitted and everything is read from the other one. Nothing is written to the
 * second copy alone, because that would conflict with commits that others make to the first. The copy is completed as
 * soon as it opens; if it never will, make the pair again with an empty store in its place.
 *
 * Throws `invalid_option` for a store without `caps.atomic: "batch"` and `caps.cas`. Calls reject with `invalid_option`
 * if the rows of the two stores are not copies of each other.
 */
export function mirrorStore(first: Store, second: Store, options: MirrorOptions = {}): MirrorStore {
  checkOptions(options, ["acknowledge"]);
  const { acknowledge = "both" } = options;
  if (acknowledge !== "both" && acknowledge !== "first") throw invalidOption("acknowledge", 'must be "both" or "first"');
  for (const [name, store] of Object.entries({ first, second })) {
    checkObject(store);
    if (store.caps?.atomic !== "batch" || !store.caps.cas) {
      throw invalidOption(name, 'must be a store with caps.atomic "batch" and caps.cas');
    }
  }
  if (first === second) throw invalidOption("second", "must be another store than the first");

  const waits = acknowledge === "both";
  const capsOf = promises(first, second, waits, () => mirror?.isReadOnly ?? false);
  const { tell, listen } = notices();
  const name = first.name ?? second.name;
  let [loading, mirror, isClosed]: [Promise<Mirror> | undefined, Mirror | undefined, boolean] = [undefined, undefined, false];

  function load(): Promise<Mirror> {
    return (loading ??= import("./mirror/mirror.js").then(
      ({ Mirror }) => (mirror = new Mirror(first, second, waits, tell)),
      (cause: unknown) => {
        // A later call may reach what this one could not.
        loading = undefined;
        throw new CompactionError("store_unavailable", "What mirrorStore needs could not be loaded: try again", { cause });
      },
    ));
  }

  async function run<T>(work: (mirror: Mirror) => Promise<T>): Promise<T> {
    if (isClosed) throw new CompactionError("closed", "The store was closed: make a new one");
    return work(mirror ?? (await load()));
  }

  return {
    get caps() {
      return capsOf();
    },
    ...(name !== undefined && { name }),
    async read(keys) {
      keys.forEach(checkKey);
      keys.forEach(checkFree);
      const asked = keys.map((key) => [...key]);
      return run((mirror) => mirror.read(asked));
    },
    async scan(prefix, options) {
      checkScan(prefix, options);
      checkFree(prefix);
      const [under, how] = [[...prefix], { ...options }];
      return run((mirror) => mirror.scan(under, how));
    },
    async commit(batch) {
      const owned = ownBatch(batch, capsOf());
      [...owned.puts.map(([key]) => key), ...owned.deletes, ...owned.expect.map(({ key }) => key)].forEach(checkFree);
      return run((mirror) => mirror.commit(owned));
    },
    // Also where neither copy reports losses: what both have lost is known here alone.
    dataLoss: () => run((mirror) => mirror.dataLoss()),
    ...(first.changes && { changes: (listener) => first.changes!(listener) }),
    ...(first.persisted && { persisted: () => first.persisted!() }),
    ...((first.purge || second.purge) && { purge: () => run((mirror) => mirror.purge()) }),
    remains: () => run((mirror) => mirror.remains()),
    notices: listen,
    get behind() {
      return mirror?.behind ?? 0;
    },
    check: (options) => run((mirror) => mirror.check(options)),
    async close() {
      isClosed = true;
      await (await loading?.catch(() => undefined))?.close();
      const closed = await Promise.allSettled([first.close?.(), second.close?.()]);
      for (const one of closed) if (one.status === "rejected") throw one.reason;
    },
  };
}

/** What a pair promises by what its copies do, which may know it only once they were opened. */
function promises(first: Store, second: Store, waits: boolean, isStuck: () => boolean): () => Store["caps"] {
  const promised = [first, second].map(({ caps }) => caps.durable);
  return () => {
    const [one, two] = [first.caps, second.caps];
    const now = [one.durable, two.durable];
    // One that promises less since it was opened can only be read: then nothing can be written to both.
    const isReadOnly = isStuck() || now.some((durable, i) => durable === "none" && promised[i] !== "none");
    const best = PROMISES.find((promise) => (waits ? now : [one.durable]).includes(promise))!;
    return {
      atomic: "batch",
      cas: true,
      durable: isReadOnly ? "none" : best,
      maxValueBytes: Math.min(one.maxValueBytes, two.maxValueBytes),
      maxBatchOps: Math.min(one.maxBatchOps, two.maxBatchOps) - MARK_OPS,
      reportsDamage: one.reportsDamage === true && two.reportsDamage === true,
    };
  };
}

const PROMISES = ["synced", "process", "none"] as const;
