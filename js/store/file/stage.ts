/** Which of several commits can be written together, and as what. */

import type { Batch, Key } from "../../types.js";
import { conflict } from "../keys.js";
import type { Change } from "./journal.js";
import { putOf, randomId } from "./record.js";
import type { Rows } from "./rows.js";

/** A commit that waits for its answer. */
export interface Entry {
  batch: Batch;
  resolve(): void;
  reject(error: unknown): void;
}

/** An entry and its record. */
export interface Staged {
  entry: Entry;
  change: Change;
  values: Uint8Array[];
}

/**
 * Goes through `entries` in order, each on top of those before it. Refuses what conflicts with what is stored, and
 * answers what writes nothing; what depends on one of the `staged` waits for its outcome, `later`.
 */
export function stage(entries: Entry[], rows: Rows): { staged: Staged[]; later: Entry[] } {
  const versions = new Map<string, number | null>();
  const versionOf = (key: Key) => {
    const staged = versions.get(JSON.stringify(key));
    return staged === undefined ? (rows.find(key)?.version ?? null) : staged;
  };
  const staged: Staged[] = [];
  const later: Entry[] = [];
  for (const entry of entries) {
    const { expect, puts, deletes } = entry.batch;
    const failed = expect.find(({ key, version }) => versionOf(key) !== version);
    const writes = puts.length + deletes.length > 0;
    const depends = (failed ? [failed] : expect).some(({ key }) => versions.has(JSON.stringify(key)));
    if ((failed || !writes) && depends) later.push(entry);
    else if (failed) entry.reject(conflict(failed.key, failed.version, versionOf(failed.key)));
    else if (!writes) entry.resolve();
    else {
      const change = {
        nonce: randomId(16),
        puts: puts.map(([key, value]) => putOf(key, (versionOf(key) ?? 0) + 1, value)),
        deletes,
      };
      for (const [key, version] of change.puts) versions.set(JSON.stringify(key), version);
      for (const key of deletes) versions.set(JSON.stringify(key), null);
      staged.push({ entry, change, values: puts.map(([, value]) => value) });
    }
  }
  return { staged, later };
}
