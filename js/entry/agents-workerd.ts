/** What of `context-compactor/cloudflare` needs the engine: who imports the store alone has no module. */

import wasm from "../../core.wasm";
import * as agents from "../adapters/cloudflare.js";
import type { AgentClass, AgentCompactorOptions, SessionsCompactionOptions } from "../adapters/cloudflare.js";
import { bringFrom } from "../engine.js";

/** See `cloudflare-inline.ts`, which has the types of all. */
export function withCompaction<A extends AgentClass>(Agent: A, options?: AgentCompactorOptions) {
  bringFrom(() => wasm);
  return agents.withCompaction(Agent, options);
}

export function toSessionsCompaction(options?: SessionsCompactionOptions) {
  bringFrom(() => wasm);
  return agents.toSessionsCompaction(options);
}
