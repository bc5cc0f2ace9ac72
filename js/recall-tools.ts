/** The recall tools of an app that keeps its messages itself. */

import { encodeCall } from "./arguments.js";
import { checkOptions } from "./checks.js";
import { readState, withStateOptions } from "./carried.js";
import { decode } from "./codec.js";
import { drive, run } from "./driver.js";
import { started } from "./engine.js";
import { Mutex } from "./mutex.js";
import { engineOptions } from "./options.js";
import { hostOn } from "./stored.js";
import { memoryStore } from "./store/memory.js";
import { codecOf } from "./translation.js";
import type { CustomFormat, Format, Message, RecallTools, State, StateOptions, ToolDefinition } from "./types.js";
import type { Session as Handle } from "./wasm/core.js";

/**
 * Returns the tools `recall_read` and `recall_search` for a model whose history is compacted with `compact(messages, { state })`.
 * They read the messages that are passed, checked by hash: what the app deleted or changed since is not found. `state`: the one
 * that the prompt was made with, or `{ value, key, id }` if it is signed. `format`: the one that `compact` was given; the tools
 * of a format of your own are those of its `base`. Rejects with `invalid_option`, `invalid_message`, `unknown_format`,
 * `store_corrupt` for a damaged state, and `schema_too_new`.
 */
export async function recallTools<F extends Format = Format>(
  messages: readonly Message[],
  state: State | null | Pick<StateOptions, "value" | "key" | "id">,
  options: { format?: F | CustomFormat } = {},
): Promise<RecallTools<F>> {
  checkOptions(options, ["format"]);
  const read = engineOptions(withStateOptions({ ...options, state: state as StateOptions }), "compact");
  const { bytes, ends } = codecOf(read).pack(messages);
  const { values, host: given } = read;
  const [{ text }] = await Promise.all([readState(given), started()]);
  const store = memoryStore();
  const host = hostOn(store);
  const handle = await drive<Handle>((engine) => engine.Session.recallCarried(values, bytes, ends, text, store.caps.maxBatchOps), host);
  const found = run(() => handle.tools(undefined) as { format: F; definitions: ToolDefinition<F>[] });
  const turns = new Mutex();
  const handleCall = async (call: unknown): Promise<unknown> => {
    const asked = encodeCall(call);
    const release = await turns.acquire();
    try {
      return decode(await drive<string>(() => handle.answer(asked, found.format), host));
    } finally {
      release();
    }
  };
  return { definitions: found.definitions, handle: handleCall as RecallTools<F>["handle"] };
}
