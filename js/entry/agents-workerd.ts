/** What of `context-compactor/cloudflare` needs the engine: who imports the store alone has no module. */

import * as agents from "../adapters/cloudflare.js";
import type { AgentClass, AgentCompactorOptions, SessionsCompactionOptions } from "../adapters/cloudflare.js";
import { bring } from "../host/workerd.js";

/** See `cloudflare.ts`, which has the types of all. */
export function withCompaction<A extends AgentClass>(Agent: A, options?: AgentCompactorOptions) {
  bring();
  return agents.withCompaction(Agent, options);
}

export function toSessionsCompaction(options?: SessionsCompactionOptions) {
  bring();
  return agents.toSessionsCompaction(options);
}
