import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { EdgeRuntime } from "edge-runtime";
import { build } from "esbuild";
import { base64Module, pack, project, temporaryFolder } from "./project.mjs";
import { expected } from "./scenario.mjs";

const main = `import * as library from "context-compactor";
  import { scenario } from "./scenario.mjs";
  addEventListener("fetch", (event) => event.respondWith(scenario(library).then((result) => Response.json(result))));`;

/** As frameworks do it: the module is compiled outside of the sandbox, which finds it in a global. */
const wasmGlobal = {
  name: "wasm global",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\.wasm\?module$/ }, ({ path, resolveDir }) => ({
      path: join(resolveDir, path),
      namespace: "wasm",
    }));
    onLoad({ filter: /.*/, namespace: "wasm" }, () => ({ contents: "export default globalThis.coreWasm;" }));
  },
};

test("an edge function gets the module from another realm", async (context) => {
  const temporary = await temporaryFolder(context);
  const { archive } = await pack(temporary);
  const folder = await project(join(temporary, "edge"), archive, { "main.js": main });
  const { outputFiles } = await build({
    absWorkingDir: folder,
    entryPoints: ["main.js"],
    bundle: true,
    format: "iife",
    conditions: ["edge-light"],
    plugins: [wasmGlobal],
    write: false,
  });
  const code = outputFiles[0].text;
  assert.ok(!code.includes(base64Module), "the module is not inlined as well");
  const coreWasm = await WebAssembly.compile(await readFile(join(folder, "node_modules/context-compactor/core.wasm")));
  const runtime = new EdgeRuntime({
    initialCode: code,
    extend: (globals) => Object.assign(globals, { coreWasm }),
  });
  const response = await runtime.dispatchFetch("http://localhost/");
  assert.deepEqual(await response.json(), expected);
});
