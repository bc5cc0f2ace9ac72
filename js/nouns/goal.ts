/** `session.goal`: what the session is for. */

import { checkObject, plainOptions } from "../checks.js";
import type { Goal, Message, SessionGoal } from "../types.js";
import type { Core } from "./core.js";

export function goalOf<M extends Message>({ turns, drive, look }: Core<M>): SessionGoal {
  return {
    get current() {
      return look<Goal | undefined>((handle) => handle.goal());
    },

    set: (goal) =>
      turns.queued(async () => {
        checkObject(goal);
        const json = JSON.stringify(plainOptions(goal));
        await drive((handle) => handle.setGoal(json));
      }),

    applyMarkers: (modelOutput) => turns.queued(() => drive((handle) => handle.applyMarkers(String(modelOutput)))),
  };
}
