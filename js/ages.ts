/** The order of lists of sessions. */

import type { SessionInfo } from "./types.js";

/** Oldest first; of those of one moment, by id. */
export function byAge(sessions: SessionInfo[]): SessionInfo[] {
  return sessions.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
}
