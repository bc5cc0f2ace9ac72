/** Everything that the package exports, however the engine is loaded. */

import { call } from "./engine.js";

export * from "./errors.js";
export type * from "./types.js";

/** Version of this package, as in `0.1.0`. */
export function version(): string {
  return call((engine) => engine.version());
}
