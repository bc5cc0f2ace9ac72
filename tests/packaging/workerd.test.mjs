import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { bundleWorker, startWorker } from "../support/worker.mjs";
import { expectedAlone } from "./alone.mjs";
import { expectedEvaluation } from "./evaluation.mjs";
import { base64Module, packAll, project, temporaryFolder } from "./project.mjs";
import { expected } from "./scenario.mjs";

const main = `import * as library from "context-compactor";
  import { scenario } from "./scenario.mjs";
  export default { fetch: async () => Response.json(await scenario(library)) };`;

test("a Worker imports the module itself", async (context) => {
  const temporary = await temporaryFolder(context);
  const archives = await packAll(temporary);
  const folder = await project(join(temporary, "worker"), archives, { "main.js": main });
  const { code, wasm } = await bundleWorker(folder, "./main.js");
  const modules = ["compact.wasm", "core.wasm", "rest.wasm", "shared.wasm", "tokenizer.wasm"].map((name) => join(folder, "node_modules/context-compactor", name));
  assert.deepEqual(wasm.toSorted(), modules);
  assert.ok(!code.includes(base64Module), "the module is not inlined as well");
  const plain = await project(join(temporary, "small"), archives, {
    "main.js": 'import { compact } from "context-compactor"; import { validateHistory } from "context-compactor/history"; export default { fetch: () => Response.json(String([compact, validateHistory])) };',
  });
  const small = await bundleWorker(plain, "./main.js");
  for (const part of ["tokenizer.wasm", "o200k_base"]) assert.ok(!small.code.includes(part), `${part} is not asked for`);
  const worker = await startWorker({ code, wasm });
  context.after(() => worker.dispose());
  const response = await worker.dispatchFetch("http://localhost/");
  assert.deepEqual(await response.json(), expected);
});

test("H13: the other entries start the engine without the main one", async (context) => {
  const temporary = await temporaryFolder(context);
  const archives = await packAll(temporary);
  const main = 'import { alone } from "./alone.mjs"; export default { fetch: async () => Response.json(await alone()) };';
  const folder = await project(join(temporary, "worker"), archives, { "main.js": main });
  const { code, wasm } = await bundleWorker(folder, "./main.js");
  assert.ok(!code.includes(base64Module));
  const worker = await startWorker({ code, wasm });
  context.after(() => worker.dispose());
  const response = await worker.dispatchFetch("http://localhost/");
  assert.deepEqual(await response.json(), expectedAlone);
});

test("the evaluator is a package with a module of its own, and brings no engine", async (context) => {
  const temporary = await temporaryFolder(context);
  const archives = await packAll(temporary);
  const main = `import * as evaluator from "context-compactor-evaluator";
    import { evaluation } from "./evaluation.mjs";
    export default { fetch: async () => Response.json(await evaluation(evaluator)) };`;
  const folder = await project(join(temporary, "worker"), archives, { "main.js": main });
  const { code, wasm } = await bundleWorker(folder, "./main.js");
  assert.deepEqual(wasm, [join(folder, "node_modules/context-compactor-evaluator/evaluator.wasm")]);
  assert.ok(code.length < 60_000 && !code.includes(base64Module), `${code.length} characters`);
  const worker = await startWorker({ code, wasm });
  context.after(() => worker.dispose());
  const response = await worker.dispatchFetch("http://localhost/");
  assert.deepEqual(await response.json(), expectedEvaluation);
});

const stored = `import { durableObjectStore } from "context-compactor/cloudflare";
  import { storeConformance } from "context-compactor/testing";
  export class Stored {
    constructor(ctx, env) {
      Object.assign(this, { ctx, env });
    }
    async fetch(request) {
      const bigObjects = new URL(request.url).searchParams.has("bucket") ? this.env.BIG : undefined;
      const open = async () => {
        await this.ctx.storage.deleteAll();
        return durableObjectStore(this.ctx, { bigObjects });
      };
      const failed = [];
      for (const { name, run } of storeConformance(open)) await run().catch((error) => failed.push(name + ": " + error));
      return Response.json(failed);
    }
  }
  export default { fetch: (request, env) => env.STORED.get(env.STORED.idFromName("a")).fetch(request) };`;

test("the store of Durable Objects is a subpath, and brings no engine", async (context) => {
  const temporary = await temporaryFolder(context);
  const archives = await packAll(temporary);
  const alone = 'export { durableObjectStore } from "context-compactor/cloudflare"; export default {};';
  const folder = await project(join(temporary, "worker"), archives, { "main.js": stored, "alone.js": alone });
  const { code, wasm } = await bundleWorker(folder, "./alone.js");
  assert.deepEqual(wasm, []);
  assert.ok(code.length < 60_000, `${code.length} characters`);
  const durableObjects = { STORED: { className: "Stored", useSQLite: true } };
  const worker = await startWorker(await bundleWorker(folder, "./main.js"), { durableObjects, r2Buckets: ["BIG"] });
  context.after(() => worker.dispose());
  for (const query of ["", "?bucket"]) {
    const response = await worker.dispatchFetch(`http://localhost/${query}`);
    assert.deepEqual(await response.json(), []);
  }
});
