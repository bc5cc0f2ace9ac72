/** The main entry, whose sessions are those of `context-compactor/worker`. */

import * as library from "context-compactor";
import * as worker from "context-compactor/worker";

export * from "context-compactor";

export const openSession = worker.openSession;
export const listSessions = (store) => (typeof store?.commit === "function" ? worker.listSessions({ store }) : library.listSessions(store));
export const deleteSession = (id, options) =>
  typeof options?.store?.commit === "function" ? worker.deleteSession(id, options) : library.deleteSession(id, options);
