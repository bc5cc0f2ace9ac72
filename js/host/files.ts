/** The engine's files where nobody hands them over: each from its address, and where it cannot be had, the same as code.
 *  Nothing is read or asked for before the first call that needs it. */

import { bringFrom } from "../engine.js";
import { compiled, otherBuild, unavailable } from "../module.js";
import type { EngineFile, WasmModule } from "../types/platform.js";
import { fileOf } from "./addresses.js";

/** Lets the engine come from its files, or as code. */
export function bring(): void {
  bringFrom(load);
}

/** The same as code. */
const CODE = {
  core: () => import("../wasm/inline.js"),
  compact: () => import("../wasm/inline-compact.js"),
  rest: () => import("../wasm/inline-rest.js"),
  shared: () => import("../wasm/inline-shared.js"),
};

async function load(file: EngineFile): Promise<WasmModule> {
  const found = await fileOf(file);
  if (!("isOther" in found)) return found;
  try {
    return await compiled(CODE[file]());
  } catch (cause) {
    const error = unavailable(cause);
    if (error.reason !== undefined || !found.isOther) throw error;
    throw otherBuild(found.cause);
  }
}
