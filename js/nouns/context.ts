/** `session.context`: what the model sees now. */

import { systemPromptOf } from "../arguments.js";
import { asRecord } from "../boundaries.js";
import { checkOptions, checkWhole, invalidOption } from "../checks.js";
import { driveSync, type Host } from "../driver.js";
import { asSent } from "../replies.js";
import { loadStage } from "../stages.js";
import { partsOf, type Active } from "../state.js";
import type { Checkpoint, Format, Message, SessionContext } from "../types.js";
import type { Warning } from "../warnings.js";
import type { Core } from "./core.js";

/** What it needs beside the core. */
interface Needs {
  host: Host;
  format(): Format;
  warn(warning: Warning): void;
  /** Usage was learned from. */
  counted(): void;
}

export function contextOf<M extends Message>(core: Core<M>, { host, format, warn, counted: learned }: Needs): SessionContext<M> {
  const { turns, cache, drive, look, counted } = core;
  const checkpoints = () =>
    look<Checkpoint[]>((handle) => handle.checkpoints()).map((record) => asRecord("history", record));
  return {
    get format() {
      return format();
    },

    async parts() {
      const active = counted<Active>((handle) => handle.active());
      return partsOf(active, cache.messages(active.items), checkpoints(), systemPromptOf(core.options));
    },

    usage: () => counted((handle) => handle.usage()),
    availableTokens: () => counted((handle) => handle.availableTokens()),

    recordUsage(usage, options = {}) {
      turns.checkOpen();
      checkOptions(options, ["model"]);
      const { model } = options;
      if (model !== undefined && typeof model !== "string") throw invalidOption("model", "must be a text");
      const json = asSent("usage", usage);
      if (look((handle) => handle.recordUsage(json, model))) return learned();
      const message = "recordUsage: the counts are far below what was sent last, so estimates are not corrected by them: tokens that were read from a cache count too; nothing else changed";
      warn({ code: "invalid_option", message });
    },

    async explain() {
      turns.checkOpen();
      await loadStage("rest");
      return look((handle) => handle.explain());
    },
    async plan() {
      turns.checkOpen();
      await loadStage("compact");
      return counted((handle) => driveSync(handle.plan(), host));
    },
    checkpoints,
    validate: async () => counted((handle) => handle.validate()),
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
