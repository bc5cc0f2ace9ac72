/** The engine's files in Cloudflare Workers, which compile no bytes: they are imported as modules. */

import core from "../../core.wasm";
import { bringFrom } from "../engine.js";
import type { EngineFile, WasmModule } from "../types/platform.js";

const LATER: Record<Exclude<EngineFile, "core">, () => Promise<{ default: WasmModule }>> = {
  compact: () => import("../../compact.wasm"),
  rest: () => import("../../rest.wasm"),
  shared: () => import("../../shared.wasm"),
};

/** Lets the engine come from the modules that the Worker has. */
export function bring(): void {
  bringFrom(async (file) => (file === "core" ? core : (await LATER[file]()).default), true);
}
