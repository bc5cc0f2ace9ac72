/** Entry `context-compactor/cloudflare` for Cloudflare Workers; the types of all are those of `cloudflare.ts`. */

export { toSessionsCompaction, withCompaction } from "./agents-workerd.js";
export { durableObjectStore } from "../store/durable/store.js";
export type * from "./cloudflare.js";
