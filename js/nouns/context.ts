/** `session.context`: what the model sees now. */

import { systemPromptOf } from "../arguments.js";
import { asRecord } from "../boundaries.js";
import { checkOptions, checkWhole, invalidOption } from "../checks.js";
import type { CompactionError } from "../errors.js";
import { quietly } from "../quietly.js";
import { asSent } from "../replies.js";

import { after, isPromise } from "../store-calls.js";
import { partsOf, type Active } from "../state.js";
import type { Checkpoint, Format, Message, SessionContext } from "../types.js";
import type { Warning } from "../warnings.js";
import type { Core } from "./core.js";

/** What it needs beside the core. */
interface Needs {
  format(): Format;
  warn(warning: Warning): void;
  /** Usage was learned from. */
  counted(): void;
}

export function contextOf<M extends Message>(core: Core<M>, { format, warn, counted: learned }: Needs): SessionContext<M> {
  const { turns, cache, drive, look, counted, ask } = core;
  const checkpoints = () =>
    look<Checkpoint[]>((handle) => handle.checkpoints()).map((record) => asRecord("history", record));
  core.learn = (usage, options) => {
    checkOptions(options, ["model"]);
    const { model } = options;
    if (model !== undefined && typeof model !== "string") throw invalidOption("model", "must be a text");
    const json = asSent("usage", usage);
    const isTaken = ask<boolean>((handle) => handle.recordUsage(json, model));
    return after(isTaken, (isTaken) => {
      if (isTaken) return learned();
      const message = "recordUsage: the counts are far below what was sent last, so estimates are not corrected by them: tokens that were read from a cache count too; nothing else changed";
      warn({ code: "invalid_option", message });
    });
  };
  return {
    get format() {
      return format();
    },

    async parts() {
      const active = ask<Active>((handle) => handle.active(), { isCounted: true });
      // Without a pause where nothing has to be awaited: the context may change in it.
      return after(active, (active) =>
        after(cache.lacking(active.items), () =>
          partsOf(active, cache.messages(active.items), checkpoints(), systemPromptOf(core.options)),
        ),
      );
    },

    usage: () => counted((handle) => handle.usage()),
    availableTokens: () => counted((handle) => handle.availableTokens()),

    recordUsage(usage, options = {}) {
      const learning = core.learn(usage, options);
      // Another thread answers when this call has long returned.
      if (isPromise(learning)) learning.catch(({ code, message }: CompactionError) => quietly(() => code !== "closed" && warn({ code, message })));
    },

    explain: async () => ask((handle) => handle.explain(), { stage: "rest" }),
    plan: async () => ask((handle) => handle.plan(), { stage: "compact", isCounted: true }),
    checkpoints,
    validate: async () => ask((handle) => handle.validate(), { isCounted: true }),
    reliability: () => look((handle) => handle.reliability()),

    remove: (indices) =>
      turns.alone(() => {
        if (!Array.isArray(indices)) {
          throw invalidOption("indices", "must be an array of indices, as context.explain() gives them");
        }
        indices.forEach((index, nth) => checkWhole(`indices[${nth}]`, index, 0));
        return drive((handle) => handle.removeMessages(Uint32Array.from(indices)));
      }),
  };
}
