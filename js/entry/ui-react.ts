/** Entry `context-compactor-ui/react`: parts of a chat for React 18 and 19, and for Preact. */

export { CompactionDivider, MessageFate, useContextUsage, type CompactionDividerProps, type ShownCompaction } from "../ui/react.js";
export type { Fate } from "../ui/words.js";
