/** `session.recall`: what is in the context no more, for the app and for the model. */

import { encodeCall } from "../arguments.js";
import { checkOptions, checkWhole, invalidOption } from "../checks.js";
import { decode } from "../codec.js";
import { baseOf } from "../codecs.js";
import type { CustomFormat, Format, Message, RecallTools, SessionRecall, ToolDefinition } from "../types.js";
import type { Core } from "./core.js";

export function recallOf<M extends Message>({ turns, drive, look }: Core<M>): SessionRecall {
  async function answer<T>(call: unknown, format: Format): Promise<T> {
    const text = encodeCall(call);
    return decode(await turns.parking((host) => drive<string>((handle) => handle.answer(text, format), host))) as T;
  }
  return {
    read: (ref, range = {}) =>
      turns.queued(() => {
        checkOptions(range, ["offset", "limit"]);
        const { offset = 0, limit } = range;
        checkWhole("offset", offset, 0);
        if (limit !== undefined) checkWhole("limit", limit, 0);
        return drive((handle) => handle.read(String(ref), offset, limit));
      }),

    search: (query, options = {}) =>
      turns.parking((host) => {
        checkOptions(options, ["limit"]);
        const { limit = 10 } = options;
        if (typeof query !== "string") throw invalidOption("query", "must be a text");
        checkWhole("limit", limit, 1);
        return drive((handle) => handle.search(query, limit), host);
      }),

    expand: (checkpoint) => turns.queued(() => drive((handle) => handle.expand(String(checkpoint)))),

    tools<F extends Format>(given?: F | CustomFormat): RecallTools<F> {
      turns.checkOpen();
      const format = baseOf(given);
      if (format !== undefined && typeof format !== "string") throw invalidOption("format", "must be the name of a format");
      const found = look<{ format: F; definitions: ToolDefinition<F>[] }>((handle) => handle.tools(format));
      return { definitions: found.definitions, handle: (call) => answer(call, found.format) };
    },
  };
}
