/** One JavaScript module out of TypeScript sources, for a page or for Node. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Bundles `source` (a module that imports paths from the project's root) into `outfile`. */
export async function bundle(source, outfile, options = {}) {
  await build({
    stdin: { contents: source, resolveDir: ROOT, loader: "ts" },
    outfile,
    bundle: true,
    format: "esm",
    target: "es2022",
    logLevel: "error",
    ...options,
  });
}

/** Bundles `source` and imports it. */
export async function load(source) {
  const folder = await mkdtemp(join(tmpdir(), "context-compactor-"));
  try {
    const outfile = join(folder, "bundle.mjs");
    await bundle(source, outfile);
    return await import(pathToFileURL(outfile).href);
  } finally {
    await rm(folder, { recursive: true });
  }
}
