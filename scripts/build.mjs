/** `npm run build`: sets up, then writes the package into pkg/. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Problem, root, run, say, script } from "./process.mjs";
import { setup } from "./setup.mjs";

/** Builds what is not up to date. */
export async function build() {
  const isFirst = !existsSync(join(root, "pkg/core.wasm"));
  if (isFirst) say("build", "the build tool and the engine (a minute or two, this once)");
  const { ok } = await run("cargo", ["xtask", "build"]);
  if (!ok) throw new Problem("build: failed");
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await script(async () => {
    await setup();
    await build();
  });
}
