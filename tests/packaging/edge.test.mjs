import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { test } from "node:test";
import { EdgeRuntime } from "edge-runtime";
import { build } from "esbuild";
import { expectedAlone } from "./alone.mjs";
import { expectedEvaluation } from "./evaluation.mjs";
import { base64Module, packAll, project, temporaryFolder } from "./project.mjs";
import { expected } from "./scenario.mjs";

const main = `import * as library from "context-compactor";
  import * as evaluator from "context-compactor-evaluator";
  import { evaluation } from "./evaluation.mjs";
  import { scenario } from "./scenario.mjs";
  const both = async () => ({ done: await scenario(library), evaluated: await evaluation(evaluator) });
  addEventListener("fetch", (event) => event.respondWith(both().then((result) => Response.json(result))));`;

/** As frameworks do it: modules are compiled outside of the sandbox, which finds them in globals. */
const wasmGlobal = {
  name: "wasm global",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\.wasm\?module$/ }, ({ path, resolveDir }) => ({
      path: join(resolveDir, path.replace("?module", "")),
      namespace: "wasm",
    }));
    onLoad({ filter: /.*/, namespace: "wasm" }, ({ path }) => ({ contents: `export default globalThis["${basename(path)}"];` }));
  },
};

const lonely = `import { alone } from "./alone.mjs";
  addEventListener("fetch", (event) => event.respondWith(alone().then((result) => Response.json(result))));`;

test("an edge function gets the module from another realm", async (context) => {
  assert.deepEqual(await answer(context, main), { done: expected, evaluated: expectedEvaluation });
});

test("H13: the other entries start the engine without the main one", async (context) => {
  assert.deepEqual(await answer(context, lonely), expectedAlone);
});

/** What an edge function answers. */
async function answer(context, main) {
  const temporary = await temporaryFolder(context);
  const archives = await packAll(temporary);
  const folder = await project(join(temporary, "edge"), archives, { "main.js": main });
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
  const paths = ["core", "compact", "rest", "shared", "tokenizer"].map((file) => `context-compactor/${file}.wasm`).concat("context-compactor-evaluator/evaluator.wasm");
  const compiled = async (path) => WebAssembly.compile(await readFile(join(folder, "node_modules", path)));
  const modules = await Promise.all(paths.map(async (path) => [basename(path), await compiled(path)]));
  const runtime = new EdgeRuntime({
    initialCode: code,
    extend: (globals) => Object.assign(globals, Object.fromEntries(modules)),
  });
  const response = await runtime.dispatchFetch("http://localhost/");
  return response.json();
}
