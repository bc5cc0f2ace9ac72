/** The state of a session as it is shown. */

import type { Item } from "./options.js";
import type { ContextParts, Checkpoint, NewMessageAmong } from "./types.js";

/** The active context as the engine reports it. */
export interface Active {
  items: Item[];
  /** Which of them are neither the system's nor a checkpoint's. */
  recent: number[];
  tokenCount: ContextParts["tokenCount"];
}

/** The active context of the public API; `messages` are those of its items. */
export function partsOf<M>(
  { recent, tokenCount }: Active,
  messages: readonly (M | NewMessageAmong<M>)[],
  checkpoints: readonly Checkpoint[],
  systemPrompt: string | undefined,
): ContextParts<M> {
  const { freeze } = Object;
  return freeze({
    ...(systemPrompt === undefined ? {} : { systemPrompt }),
    checkpoints: freeze(checkpoints.map((record) => freeze(record))),
    recentMessages: freeze(recent.map((at) => messages[at] as M | NewMessageAmong<M>)),
    tokenCount: freeze(tokenCount),
  });
}
