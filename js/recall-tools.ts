/** The recall tools of an app that keeps its messages itself. */

import { encodeCall } from "./arguments.js";
import { readState, withStateOptions } from "./carried.js";
import { decode, pack } from "./codec.js";
import { drive, run } from "./driver.js";
import { Mutex } from "./mutex.js";
import { engineOptions } from "./options.js";
import { hostOn } from "./sessions.js";
import { memoryStore } from "./store/memory.js";
import type { Format, Message, RecallTools, State, StateOptions, ToolDefinition } from "./types.js";
import type { Session as Handle } from "./wasm/core.js";

/**
 * Returns the tools `recall_read` and `recall_search` for a model whose history is compacted with `compact(messages, { state })`.
 * They read the messages that are passed, checked by hash: what the app deleted or changed since is not found. `state`: the one
 * that the prompt was made with, or `{ value, key, id }` if it is signed. `format`: that of the messages and of the tools; by
 * default it is detected, which a history without calls may leave open. Rejects with `invalid_option`, `invalid_message`,
 * `unknown_format`, `store_corrupt` for a damaged state, and `schema_too_new`.
 */
export async function recallTools<F extends Format = Format>(
  messages: readonly Message[],
  state: State | null | Pick<StateOptions, "value" | "key" | "id">,
  format?: F,
): Promise<RecallTools<F>> {
  const { bytes, ends } = pack(messages);
  const { values, host: given } = engineOptions(withStateOptions({ state: state as StateOptions, ...(format === undefined ? {} : { format }) }), "compact");
  const { text } = await readState(given);
  const store = memoryStore();
  const host = hostOn(store);
  const begin = run((engine) => engine.Session.recallCarried(values, bytes, ends, text, store.caps.maxBatchOps));
  const handle = await drive<Handle>(begin, host);
  const found = run(() => handle.tools(undefined) as { format: F; definitions: ToolDefinition<F>[] });
  const turns = new Mutex();
  const handleCall = async (call: unknown): Promise<unknown> => {
    const asked = encodeCall(call);
    const release = await turns.acquire();
    try {
      return decode(await drive<string>(run(() => handle.answer(asked, found.format)), host));
    } finally {
      release();
    }
  };
  return { definitions: found.definitions, handle: handleCall as RecallTools<F>["handle"] };
}
