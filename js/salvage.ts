/** Archives of everything that can still be read in a damaged store. */

import { asRecord } from "./boundaries.js";
import { drive } from "./driver.js";
import type { Host, Notice } from "./effects.js";
import { isPoisoned, started } from "./engine.js";
import { CompactionError } from "./errors.js";
import { engineOptions } from "./options.js";
import type { Opened } from "./seat.js";
import { hostOn } from "./stored.js";
import { overlayOf } from "./store/overlay.js";
import { streamOf } from "./transcript.js";
import type { DataLoss, Salvaged, SalvageGap, Store } from "./types.js";

interface Page {
  bytes: Uint8Array;
  next?: unknown;
}

/**
 * Reads what is left in a damaged `store`: for each session of which anything can be read, an archive for `importSession`
 * into a new store, and a list of what is missing (`gaps`). Sessions are found even if their own rows are lost; one whose
 * id is lost is called `salvaged-…`. Writes nothing to `store`. Sessions are read one by one, and one that cannot be read
 * does not end the iteration.
 */
export function salvage(store: Store): AsyncIterable<Salvaged> {
  return salvaged(hostOn(store));
}

async function* salvaged({ store, ...rest }: Host & { store: Store }): AsyncGenerator<Salvaged> {
  await started();
  const remains = await store.remains?.();
  const lost = await remains?.dataLoss?.();
  const host = { ...rest, store: overlayOf(remains ?? store) };
  const found = await drive<{ id: string; loss?: DataLoss }[]>((engine) => engine.remains(), host);
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
    const { handle } = await drive<Opened>((engine) => engine.Session.open(values, id, host.store.caps.maxBatchOps), listening);
    const page = (cursor: unknown, by: Host) => drive<Page>(() => handle.exportPage(cursor), by);
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
