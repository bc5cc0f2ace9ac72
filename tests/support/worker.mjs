/** The Workers runtime. */

import childProcess from "node:child_process";
import { readFile } from "node:fs/promises";
import { builtinModules } from "node:module";
import { basename, join } from "node:path";
import { build } from "esbuild";
import { Miniflare } from "miniflare";

/** Leaves WebAssembly files to the host, which compiles them itself, and notes where they are. */
function wasmModules(found) {
  return {
    name: "wasm modules",
    setup({ onResolve }) {
      onResolve({ filter: /\.wasm$/ }, ({ path, resolveDir }) => {
        const file = join(resolveDir, path);
        if (!found.includes(file)) found.push(file);
        return { path: `./${basename(path)}`, external: true };
      });
    },
  };
}

/** Leaves Node's modules to a host with `nodejs_compat`, as wrangler does, also those that CommonJS requires. */
const nodeModules = {
  name: "modules of Node",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: new RegExp(`^(node:.*|${builtinModules.join("|")})$`) }, ({ path, kind }) => {
      const name = path.replace(/^(node:)?/, "node:");
      return kind === "require-call" ? { path: name, namespace: "required" } : { path: name, external: true };
    });
    onLoad({ filter: /./, namespace: "required" }, ({ path }) => ({ contents: `import all from "${path}"; module.exports = all;` }));
  },
};

/** Bundles the Worker whose module `entry` is in `folder`: its `code`, and the paths of the `wasm` that it imports. With `node`
 *  it may import Node's modules. */
export async function bundleWorker(folder, entry, { node = false } = {}) {
  const wasm = [];
  const { outputFiles, metafile } = await build({
    absWorkingDir: folder,
    entryPoints: [entry],
    bundle: true,
    format: "esm",
    target: "es2022",
    conditions: ["workerd", "worker"],
    external: ["cloudflare:*"],
    plugins: [wasmModules(wasm), ...(node ? [nodeModules] : [])],
    write: false,
    metafile: true,
    logLevel: "error",
  });
  const [{ imports }] = Object.values(metafile.outputs);
  const isImported = (file) => imports.some(({ path }) => path === `./${basename(file)}`);
  return { code: outputFiles[0].text, wasm: wasm.filter(isImported) };
}

/** Runs a bundled Worker. The caller disposes of it. */
export async function startWorker({ code, wasm }, options = {}) {
  const modules = [{ type: "ESModule", path: "main.js", contents: code }];
  for (const path of wasm) modules.push({ type: "CompiledWasm", path: basename(path), contents: await readFile(path) });
  return new Miniflare({ compatibilityDate: "2026-04-01", modules, ...options });
}

/** Starts as `startWorker` does, and resolves to the Worker with `kill()`, which ends its process as a crash would. */
export async function startMortal(bundled, options) {
  const { spawn } = childProcess;
  const children = [];
  childProcess.spawn = (...command) => {
    const child = spawn(...command);
    children.push(child);
    return child;
  };
  try {
    const worker = await startWorker(bundled, options);
    await worker.ready;
    const kill = async () => {
      const ended = children.map((child) => new Promise((resolve) => child.once("exit", resolve)));
      for (const child of children) child.kill("SIGKILL");
      await Promise.all(ended);
      await worker.dispose().catch(() => {});
    };
    return { worker, kill, processes: children.length };
  } finally {
    childProcess.spawn = spawn;
  }
}
