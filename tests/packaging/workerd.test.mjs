import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import { Miniflare } from "miniflare";
import { pack, project, temporaryFolder } from "./project.mjs";
import { expected } from "./scenario.mjs";

const main = `import * as library from "context-compactor";
  import { scenario } from "./scenario.mjs";
  export default { fetch: async () => Response.json(await scenario(library)) };`;

/** Leaves WebAssembly files to the host, which compiles them itself, and notes where they are. */
function wasmModules(found) {
  return {
    name: "wasm modules",
    setup({ onResolve }) {
      onResolve({ filter: /\.wasm$/ }, ({ path, resolveDir }) => {
        found.push(join(resolveDir, path));
        return { path: "./core.wasm", external: true };
      });
    },
  };
}

test("a Worker imports the module itself", async (context) => {
  const temporary = await temporaryFolder(context);
  const { archive } = await pack(temporary);
  const folder = await project(join(temporary, "worker"), archive, { "main.js": main });
  const wasm = [];
  const { outputFiles } = await build({
    absWorkingDir: folder,
    entryPoints: ["main.js"],
    bundle: true,
    format: "esm",
    conditions: ["workerd", "worker"],
    plugins: [wasmModules(wasm)],
    write: false,
  });
  const code = outputFiles[0].text;
  assert.deepEqual(wasm, [join(folder, "node_modules/context-compactor/core.wasm")]);
  assert.doesNotMatch(code, /fromBase64/, "the module is not inlined as well");
  const worker = new Miniflare({
    compatibilityDate: "2026-04-01",
    modules: [
      { type: "ESModule", path: "main.js", contents: code },
      { type: "CompiledWasm", path: "core.wasm", contents: await readFile(wasm[0]) },
    ],
  });
  context.after(() => worker.dispose());
  const response = await worker.dispatchFetch("http://localhost/");
  assert.deepEqual(await response.json(), expected);
});
