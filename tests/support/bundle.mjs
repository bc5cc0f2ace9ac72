/** One JavaScript module out of TypeScript sources, for a page or for Node. */

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
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

/** Bundles the sources in `folder` with `changes`: each, `{ file, from, to }`, replaces a text that occurs once. */
export function mutation(changes, folder) {
  const base = join(ROOT, folder);
  return {
    name: "mutation",
    setup(build) {
      build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const name = relative(base, path).split(sep).join("/");
        if (name.startsWith("../")) return undefined;
        let contents = await readFile(path, "utf8");
        for (const { file, from, to } of changes) {
          if (name !== file) continue;
          if (contents.split(from).length !== 2) throw new Error(`${file} does not have once: ${from}`);
          contents = contents.replace(from, () => to);
        }
        return { contents, loader: "ts" };
      });
    },
  };
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
