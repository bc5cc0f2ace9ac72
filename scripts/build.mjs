/** `npm run build`: sets up, then writes the package into pkg/. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Problem, must, root, run, say, script } from "./process.mjs";
import { setup } from "./setup.mjs";

/** Builds the build tool; resolves to its program. It is compiled as the tests are: what both need is compiled once. */
export async function buildTool(profile = "test") {
  const args = ["build", "--package", "xtask", "--profile", profile, "--message-format", "json-render-diagnostics"];
  const messages = (await must("cargo", args)).split("\n").filter((line) => line.startsWith("{"));
  return messages.map((line) => JSON.parse(line)).find(({ executable }) => executable).executable;
}

/** Builds what is not up to date. The tool is started by itself: `cargo run` would wait for any other call of cargo. */
export async function runTool(tool, ...options) {
  const { ok } = await run(tool, ["build", ...options]);
  if (!ok) throw new Problem("build: failed");
}

/** The build tool, and with it the package. */
export async function build(...options) {
  const isFirst = !existsSync(join(root, "pkg/core.wasm"));
  if (isFirst) say("build", "the build tool and the engine (a minute or two, this once)");
  await runTool(await buildTool(), ...options);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await script(async () => {
    await setup();
    await build();
  });
}
