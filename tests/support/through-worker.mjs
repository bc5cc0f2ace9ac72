/**
 * `node --import` of this file lets tests of sessions run against `context-compactor/worker`: what they import from
 * `context-compactor` opens, lists and deletes sessions through a worker.
 */

import { register } from "node:module";

process.env.CC_ENTRY = "worker";
const entry = new URL("worker-session.mjs", import.meta.url).href;
const hooks = `
  export async function resolve(specifier, context, next) {
    if (specifier === "context-compactor" && context.parentURL !== ${JSON.stringify(entry)}) return next(${JSON.stringify(entry)}, context);
    return next(specifier, context);
  }`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
