/** `session.pins`: messages that stay word for word. */

import { checkWhole } from "../checks.js";
import type { Message, SessionPins } from "../types.js";
import type { Session as Handle } from "../wasm/core.js";
import type { Core } from "./core.js";

export function pinsOf<M extends Message>({ turns, drive, ask }: Core<M>): SessionPins {
  const decide = (index: number, how: (handle: Handle) => unknown) =>
    turns.exclusive({}, [], async (host) => {
      checkWhole("index", index, 0);
      await drive(how, host);
    });
  return {
    add: (index) => decide(index, (handle) => handle.pin(index)),
    reject: (index) => decide(index, (handle) => handle.rejectPin(index)),
    proposals: async () => ask((handle) => handle.pinProposals(), { stage: "compact" }),
  };
}
