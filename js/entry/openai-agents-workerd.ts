/** Entry `context-compactor/openai-agents` for Cloudflare Workers. */

import { bring } from "../host/workerd.js";

bring();

export * from "../adapters/openai-agents.js";
export * from "../adapters/agent-session.js";
