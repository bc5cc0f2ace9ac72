/** Frameworks, bundlers and test runners that read a package in ways of their own, as they are by default. */

import assert from "node:assert/strict";
import { mkdir, readdir, readFile, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";
import { startServer } from "../support/started.mjs";
import { expectedEvaluation } from "./evaluation.mjs";
import { base64Module, exec, packAll, project, temporaryFolder } from "./project.mjs";
import { expected } from "./scenario.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const require = createRequire(import.meta.url);

/** A program in the form of an old package: what has no `type`. */
const commonjs = '{ "private": true }\n';

test("F35", async (context) => {
  // Below the repository, where the tools are found.
  await mkdir(join(root, "target"), { recursive: true });
  const temporary = await temporaryFolder(context, join(root, "target"));
  const archives = await packAll(temporary);
  const install = (name, files) => project(join(temporary, name), archives, files);

  await context.test("F35: a test of Jest, which has no ES modules by default, requires every entry", async () => {
    const parts = ["scenario", "evaluation"].map(async (name) => {
      const source = await readFile(join(import.meta.dirname, `${name}.mjs`), "utf8");
      return [`${name}.cjs`, (await transform(source, { format: "cjs", supported: { "dynamic-import": false } })).code];
    });
    const folder = await install("jest", {
      "package.json": commonjs,
      ...Object.fromEntries(await Promise.all(parts)),
      "package.test.js": `
        const { existsSync, readFileSync } = require("node:fs");
        const library = require("context-compactor");
        const { scenario, expected } = require("./scenario.cjs");
        const { evaluation, expectedEvaluation } = require("./evaluation.cjs");

        test("the package", async () => {
          expect(await scenario(library)).toEqual(expected);
        });
        test("context-compactor/slim", async () => {
          jest.resetModules();
          const slim = require("context-compactor/slim");
          await slim.initialize(readFileSync(require.resolve("context-compactor/core.wasm")));
          expect(await require("./scenario.cjs").scenario(slim)).toEqual(expected);
        });
        test("context-compactor-evaluator", async () => {
          expect(await evaluation(require("context-compactor-evaluator"))).toEqual(expectedEvaluation);
        });
        test("the stores", async () => {
          const store = require("context-compactor/node").fileStore("sessions");
          const session = await library.openSession({ id: "one", store, contextWindow: 8_000 });
          await session.append({ role: "user", content: "Hello." });
          await store.close();
          expect(existsSync("sessions")).toBe(true);
          expect(require("context-compactor/cloudflare").durableObjectStore).toBeInstanceOf(Function);
        });
        test("a fetch that the test put in place is what a provider is called with", async () => {
          const asked = jest.spyOn(globalThis, "fetch").mockRejectedValue(new TypeError("no network"));
          const messages = Array.from({ length: 40 }, (_, at) => ({ role: at % 2 ? "assistant" : "user", content: "word ".repeat(400) }));
          const provider = { kind: "openai", model: "m", url: "http://localhost/v1/chat/completions" };
          const { success } = await library.compact(messages, { contextWindow: 8_000, summarize: { provider } });
          expect([success, asked.mock.calls.length > 0]).toEqual([false, true]);
        });`,
    });
    const jest = require.resolve("jest/bin/jest");
    await exec(process.execPath, [jest, "--no-cache"], { cwd: folder }).catch(({ stderr }) => assert.fail(stderr));
  });

  await context.test("F35, Z15: routes of Next in development answer with a compaction, at the edge and on the server", async (context) => {
    const folder = await install("next", {
      "package.json": '{ "private": true, "type": "module" }\n',
      "next.config.mjs": `export default { turbopack: { root: ${JSON.stringify(root)} } };\n`,
      "app/layout.js": "export default ({ children }) => <html><body>{children}</body></html>;\n",
      "app/page.js": "export default () => null;\n",
      "app/compacted/route.js": `
        import * as library from "context-compactor";
        import * as evaluator from "context-compactor-evaluator";
        import { evaluation } from "../../evaluation.mjs";
        import { scenario } from "../../scenario.mjs";
        export const runtime = "edge";
        export async function GET() {
          return Response.json({ done: await scenario(library), evaluated: await evaluation(evaluator) });
        }`,
      "app/served/route.js": `
        import * as library from "context-compactor";
        import { scenario } from "../../scenario.mjs";
        export const GET = async () => Response.json(await scenario(library));`,
    });
    const { url, said, stop } = await startServer([process.execPath, require.resolve("next/dist/bin/next"), "dev", "--port", "PORT"], { cwd: folder });
    context.after(stop);
    const response = await fetch(`${url}/compacted`);
    assert.equal(response.status, 200, said());
    assert.deepEqual(await response.json(), { done: expected, evaluated: expectedEvaluation });
    const served = await fetch(`${url}/served`);
    assert.equal(served.status, 200, said());
    assert.deepEqual(await served.json(), expected);
  });

  const program = `import * as library from "context-compactor";
    import { scenario } from "./scenario.mjs";
    scenario(library).then((result) => console.log(JSON.stringify(result)));`;

  for (const format of ["esm", "cjs", "iife"]) {
    await context.test(`E25: a program that esbuild bundles as ${format} runs alone`, async () => {
      const folder = await install(`esbuild-${format}`, { "main.mjs": program });
      const outfile = join(temporary, `esbuild-${format}-alone`, `main.${format === "esm" ? "mjs" : "cjs"}`);
      await build({ entryPoints: [join(folder, "main.mjs")], bundle: true, platform: "node", format, outfile, logLevel: "error" });
      const { stdout } = await exec(process.execPath, [outfile]);
      assert.deepEqual(JSON.parse(stdout), expected);
    });
  }

  /** What a program prints that Parcel built. */
  async function parcelled(name, program, options) {
    const targets = { main: { context: "node", outputFormat: "esmodule", includeNodeModules: true } };
    const manifest = { private: true, type: "module", source: "main.js", main: "out/main.js", targets, ...options };
    const folder = await install(name, { "package.json": JSON.stringify(manifest), "main.js": program });
    const parcel = join(require.resolve("parcel/package.json"), "../lib/bin.js");
    await exec(process.execPath, [parcel, "build", "--no-cache", "--no-autoinstall"], { cwd: folder }).catch(({ stdout, stderr }) => assert.fail(stdout + stderr));
    const { stdout } = await exec(process.execPath, ["out/main.js"], { cwd: folder });
    return JSON.parse(stdout);
  }

  await context.test("F35: Parcel, which reads no exports, builds a program that runs", async () => {
    const main = `import { compact } from "context-compactor";
      compact([{ role: "user", content: "Hello" }], { contextWindow: 8_000 }).then(({ success }) => console.log(JSON.stringify(success)));`;
    assert.equal(await parcelled("parcel", main), true);
  });

  await context.test("H13: Parcel, asked to read exports, finds every entry", async () => {
    assert.deepEqual(await parcelled("parcel-exports", program, { "@parcel/resolver-default": { packageExports: true } }), expected);
  });

  const bun = join(root, "node_modules/@oven/bun-linux-x64/bin/bun");
  const isElsewhere = `${process.platform} ${process.arch}` !== "linux x64";
  await context.test("F35: Bun's minifier puts each file of the engine in once", { skip: isElsewhere && "there is no Bun here for this platform" }, async () => {
    const folder = await install("bun", { "main.js": program });
    const once = 'export { compact } from "context-compactor";';
    const main = await install("bun-size", { "main.js": once });
    await exec(bun, ["build", "--minify", "--splitting", "--outdir=out", "main.js"], { cwd: main });
    const sources = await Promise.all((await readdir(join(main, "out"))).map((file) => readFile(join(main, "out", file), "latin1")));
    const code = sources.map((source) => source.split(base64Module).length - 1).filter((count) => count > 0);
    assert.deepEqual(code, [1, 1, 1, 1], "each file of the engine, once");
    const { size } = await stat(join(main, "out/main.js"));
    assert.ok(size < 150_000, `${size} bytes before the first call`);
    await exec(bun, ["build", "--minify", "--target=bun", "--outdir=out", "main.js"], { cwd: folder });
    const { stdout } = await exec(bun, ["out/main.js"], { cwd: folder });
    assert.deepEqual(JSON.parse(stdout), expected);
  });
});
