/** `npm run build`: sets up, then writes the package into pkg/. */

import { pathToFileURL } from "node:url";
import { Problem, run, say, script } from "./process.mjs";
import { setup } from "./setup.mjs";

/** Builds what is not up to date. */
export async function build() {
  say("build", "cargo xtask build (a minute or two the first time)");
  const { ok } = await run("cargo", ["xtask", "build"]);
  if (!ok) throw new Problem("build: failed");
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await script(async () => {
    await setup();
    await build();
  });
}
