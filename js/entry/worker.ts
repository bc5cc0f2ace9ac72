/** Entry `context-compactor/worker`: sessions whose engine runs in another thread. */

export { CompactionError } from "../errors.js";
export { isContextOverflow } from "../overflow.js";
export type * from "../types/worker.js";
export { deleteSession, listSessions, openSession } from "../worker/open.js";
