/** Opening sessions on the engine of this thread. */

import { HERE } from "./here.js";
import { openIn } from "./session.js";
import type { CustomFormat, Message, Session, SessionOptions } from "./types.js";

/**
 * Opens the session `id`, or creates it. Without `store` it is in IndexedDB; in a browser that may store nothing it is in
 * memory, as event `warning` and `session.archive.durability` report. Outside of browsers a session with an `id` needs a
 * `store` (`store_unavailable`), and one without an `id` is in memory. Rejects with `invalid_option`, `unknown_model`,
 * `stage_unavailable` if the engine cannot be loaded, `data_loss` if the stored session is gone, `schema_too_new` if a newer
 * release wrote it, `store_corrupt`, and other errors of the store.
 */
export async function openSession<M extends Message = Message>(
  options: Omit<SessionOptions, "format"> & { format: CustomFormat<M> },
): Promise<Session<M, M>>;
export async function openSession<M extends Message = Message>(options?: SessionOptions): Promise<Session<M>>;
export async function openSession<M extends Message = Message>(options: SessionOptions = {}): Promise<Session<M>> {
  return openIn(HERE, options);
}
