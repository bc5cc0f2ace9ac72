/** What can still be read of a damaged store, as archives. */

import { asRecord } from "./boundaries.js";
import { drive, run, type Host, type Notice } from "./driver.js";
import { isPoisoned } from "./engine.js";
import { CompactionError } from "./errors.js";
import { engineOptions } from "./options.js";
import type { Opened } from "./session.js";
import { hostOn } from "./sessions.js";
import { overlayOf } from "./store/overlay.js";
import { streamOf } from "./transcript.js";
import type { DataLoss, Salvaged, SalvageGap, Store } from "./types.js";

interface Page {
  bytes: Uint8Array;
  next?: unknown;
}

/**
 * Takes what can be read out of a damaged `store`: for each session of which anything is left, an archive that
 * `importSession` takes into a new store, and what is missing in it (`gaps`). Sessions are found although their own rows or
 * names are gone; one whose name is not known is called `salvaged-…`. Nothing is written to `store`, which stays as it is.
 * Sessions are read one after the other, and one that cannot be read does not end the iteration.
 */
export function salvage(store: Store): AsyncIterable<Salvaged> {
  return salvaged(hostOn(store));
}

async function* salvaged({ store, ...rest }: Host & { store: Store }): AsyncGenerator<Salvaged> {
  const remains = await store.remains?.();
  const lost = await remains?.dataLoss?.();
  const host = { ...rest, store: overlayOf(remains ?? store) };
  const found = await drive<{ id: string; loss?: DataLoss }[]>(
    run((engine) => engine.remains()),
    host,
  );
  if (lost && found.length === 0) throw new CompactionError("store_corrupt", `No session is left in the store: ${lost}`);
  const known: SalvageGap[] = lost ? [{ kind: "platform", reason: lost }] : [];
  for (const { id, loss } of found) yield await one(id, host, loss ? [...known, loss] : [...known]);
}

/** `gaps` has what is known already. */
async function one(id: string, host: Host & { store: Store }, gaps: SalvageGap[]): Promise<Salvaged> {
  const notify = ({ event, ...loss }: Notice) => void (event === "data-loss" && gaps.push(loss as unknown as DataLoss));
  const listening = { ...host, notify };
  try {
    const { values } = engineOptions({ acceptDataLoss: true }, "openSession");
    const { handle } = await drive<Opened>(
      run((engine) => engine.Session.open(values, id, host.store.caps.maxBatchOps)),
      listening,
    );
    const page = (cursor: unknown, by: Host) =>
      drive<Page>(
        run(() => handle.exportPage(cursor)),
        by,
      );
    // Read once to its end: what is missing is known before anyone takes the archive.
    for (let cursor: unknown, isDone = false; !isDone; isDone = cursor === undefined) {
      cursor = (await page(cursor, listening)).next;
    }
    return { id, archive: asRecord("history", streamOf((cursor) => page(cursor, host))), gaps };
  } catch (error) {
    if (isPoisoned() || !CompactionError.isInstance(error)) throw error;
    return { id, archive: undefined, gaps: [...gaps, { kind: "session", reason: error.message, error }] };
  }
}
