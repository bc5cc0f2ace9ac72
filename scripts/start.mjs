/** `npm start`: sets up, builds, and serves the demo, with the docs under `docs/`; the last line is its address. */

import { existsSync, readdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "./build.mjs";
import { root, say, script } from "./process.mjs";
import { setup } from "./setup.mjs";

const site = join(root, "www");
/** What demo and docs are made of. */
const inputs = ["pkg", "pkg-evaluator", "pkg-ui", "docs", "examples", "bench/reports"].map((name) => join(root, name));
/** Pages of the docs that are in the root. */
const texts = readdirSync(root).filter((name) => name.endsWith(".md")).map((name) => join(root, name));

await script(async () => {
  await setup();
  await build();
  const vite = await import(pathToFileURL(createRequire(join(site, "package.json")).resolve("vite")).href);
  const page = join(site, "dist/index.html");
  const times = [...[site, ...inputs].map(newest), ...texts.map((text) => statSync(text).mtimeMs)];
  if (!existsSync(page) || Math.max(...times) > statSync(page).mtimeMs) {
    say("build", "vite build");
    await vite.build({ root: site, logLevel: "warn" });
  }
  const port = process.env.PORT ? Number(process.env.PORT) : 4173;
  const server = await vite.preview({ root: site, logLevel: "warn", preview: { port, strictPort: "PORT" in process.env } });
  console.log(server.resolvedUrls.local[0]);
});

/** Time of the last change below a folder, in ms. A folder changes when something is added or removed. */
function newest(folder) {
  const isInput = (entry) => entry.name !== "node_modules" && !(folder === site && entry.name === "dist");
  const inputs = readdirSync(folder, { withFileTypes: true }).filter(isInput);
  const times = inputs.map((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? Math.max(newest(path), statSync(path).mtimeMs) : statSync(path).mtimeMs;
  });
  return Math.max(0, ...times);
}
