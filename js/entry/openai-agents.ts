/** Entry `context-compactor/openai-agents`. */

import { bring } from "../host/files.js";

bring();

export * from "../adapters/openai-agents.js";
export * from "../adapters/agent-session.js";
