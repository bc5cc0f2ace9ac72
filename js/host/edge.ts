/** The engine's files in edge runtimes, which import them compiled by `?module`, and none later. */

import compact from "../../compact.wasm?module";
import core from "../../core.wasm?module";
import rest from "../../rest.wasm?module";
import shared from "../../shared.wasm?module";
import { bringFrom } from "../engine.js";

/** Lets the engine come from the modules that the function has. */
export function bring(): void {
  const modules = { compact, core, rest, shared };
  bringFrom((file) => modules[file], true);
}
