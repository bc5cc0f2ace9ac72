/** Entry `context-compactor/cloudflare`: what only Workers have. It brings no engine: that is `context-compactor`'s. */

export { durableObjectStore } from "../store/durable/store.js";
export type { DurableObjectContext, DurableObjectStorage, ObjectBucket, SqlValue } from "../store/durable/platform.js";
