/** A copy of the built package, in which files can be missing or wrong; without what is not needed to open a session. */

import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const pkg = fileURLToPath(new URL("../../pkg/", import.meta.url));

/** Files of the engine. */
const FILES = ["core.wasm", "compact.wasm", "rest.wasm", "shared.wasm"];

/** A folder with the copy, which is gone after the test. */
export function copied(context) {
  const folder = mkdtempSync(join(tmpdir(), "context-compactor-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const filter = (path) => !/\b(cli|adapters)$|(catalogue|_base|estimates)\.js$|\.d\.ts$/.test(path);
  for (const part of ["dist", "cjs", ...FILES, "package.json"]) cpSync(join(pkg, part), join(folder, part), { recursive: true, filter });
  return folder;
}
