/** What finds the package by other ways than `exports`, and what makes other things of it. */

import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import { base64Module, exec, packAll, project, temporaryFolder } from "./project.mjs";

const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");

const imports = `import { compact } from "context-compactor";
  import { openSession } from "context-compactor/inline";
  import { initialize } from "context-compactor/slim";
  import { fileStore } from "context-compactor/node";
  import { durableObjectStore, withCompaction } from "context-compactor/cloudflare";
  import { redisStore, type RedisStoreOptions } from "context-compactor/redis";
  import { sqliteDriver, sqlStore, type SqlDriver } from "context-compactor/sql";
  import { recall } from "context-compactor-evaluator";
  import { chatCommand } from "context-compactor/commands";
  import { detectFormat, type Split } from "context-compactor/history";
  import { optionsFromEnv, type DocumentedSession } from "context-compactor/presets";
  import { stats, type ReactStats } from "context-compactor/react";
  import { storeConformance } from "context-compactor/testing";
  import { estimateTokens, type TokenEstimate } from "context-compactor/tokens";
  import { contextCompactor, type AiSdkCompactor } from "context-compactor/ai-sdk";
  import { compactingFetch } from "context-compactor/fetch";
  import { compactionMiddleware } from "context-compactor/langchain";
  import { ContextCompactor as MastraCompactor } from "context-compactor/mastra";
  import { contextCompactor as tanStackCompactor } from "context-compactor/tanstack-ai";
  import { CompactingSession } from "context-compactor/openai-agents";
  import { chrome } from "context-compactor/summarizers";
  import { bedrock } from "context-compactor/formats";
  import { traced, type OpenTelemetry } from "context-compactor/opentelemetry";
  import { verifyReceipt, type CompactionReceipt } from "context-compactor/receipts";
  import { openSession as openInWorker, type EngineThread } from "context-compactor/worker";
  import { serve } from "context-compactor/worker-thread";
  export type Types = [EngineThread, AiSdkCompactor, RedisStoreOptions, SqlDriver, Split, DocumentedSession, ReactStats, TokenEstimate, OpenTelemetry, CompactionReceipt];
  export const tokens: number = estimateTokens("x");
  export const result: Promise<{ success: boolean }> = compact([]);
  export const started: Promise<void> = initialize(new Uint8Array(8));
  export const others: unknown[] = [openSession, fileStore, durableObjectStore, redisStore, sqliteDriver, sqlStore, recall, chatCommand, detectFormat, optionsFromEnv, stats, storeConformance, contextCompactor, compactingFetch, compactionMiddleware, MastraCompactor, tanStackCompactor, CompactingSession, withCompaction, chrome, bedrock, traced, verifyReceipt, openInWorker, serve];`;

/** Who has parts of a page has the browser's types, too. */
const parts = `import { mountContextPanel } from "context-compactor-ui";
  export const part: unknown = mountContextPanel;`;

test("F35", async (context) => {
  const temporary = await temporaryFolder(context);
  const archives = await packAll(temporary);
  const files = { "ui.ts": parts, "ui.cts": parts, "main.ts": imports, "main.js": 'export * from "context-compactor"; export * from "context-compactor/history"; export * from "context-compactor/presets"; export * from "context-compactor/tokens";' };
  const folder = await project(join(temporary, "project"), archives, files);

  /** The errors of TypeScript with these options, beside which nothing is read. */
  async function errors(...options) {
    const all = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2023,esnext.disposable", ...options, "main.ts"];
    const { stdout } = await exec(process.execPath, [tsc, ...all], { cwd: folder }).catch((error) => error);
    return stdout.split("\n").filter((line) => line.includes("error TS"));
  }
  const node = ["--typeRoots", join(import.meta.dirname, "../../node_modules/@types"), "--types", "node"];

  await context.test("F35: TypeScript that knows no exports (node10) finds the types of every subpath", async () => {
    const options = ["--module", "commonjs", "--moduleResolution", "node10", "--skipLibCheck"];
    assert.deepEqual(await errors(...options, ...node), []);
  });

  await context.test("F35: TypeScript without the browser's types compiles the package's own", async () => {
    for (const module of [["--module", "nodenext"], ["--module", "esnext", "--moduleResolution", "bundler"]]) {
      assert.deepEqual(await errors(...module, ...node), []);
    }
  });

  await context.test("F35: TypeScript that compiles to CommonJS finds types of CommonJS", async () => {
    await writeFile(join(folder, "main.cts"), imports);
    for (const module of ["node16", "node18", "nodenext"]) {
      const found = await errors("--module", module, "--outDir", "out", ...node, "main.cts");
      assert.deepEqual(found, [], module);
    }
  });

  await context.test("F35: parts of a page have their types beside those of the browser", async () => {
    for (const module of ["node16", "nodenext"]) {
      const found = await errors("--module", module, "--lib", "es2023,esnext.disposable,dom,dom.iterable", "--outDir", "out", ...node, "ui.ts", "ui.cts");
      assert.deepEqual(found, [], module);
    }
  });

  await context.test("F35: a bundler that knows no exports finds the entry for every host", async () => {
    const { main, types, exports } = JSON.parse(await readFile(join(folder, "node_modules/context-compactor/package.json"), "utf8"));
    assert.deepEqual([main, types], [exports["."].default, exports["."].default.replace(".js", ".d.ts")]);
    const { compact } = await import(join(folder, "node_modules/context-compactor", main));
    assert.equal((await compact([{ role: "user", content: "Hello" }], { contextWindow: 8_000 })).success, true);
  });

  await context.test("F35: a minifier copies the module into no second place", async () => {
    const options = { absWorkingDir: folder, entryPoints: ["main.js"], bundle: true, format: "esm", write: false };
    const { outputFiles } = await build({ ...options, splitting: true, outdir: "out", minify: true });
    const modules = outputFiles.map(({ text }) => text.split(base64Module).length - 1);
    assert.deepEqual(modules.filter((count) => count > 0), Array(5).fill(1), "each file of the engine and the tokenizer, each once");
    // A constant that is used more than once is what Bun copies.
    const engine = ["inline", "inline-compact", "inline-rest", "inline-shared"].map((name) => [name, ""]);
    for (const [name, own] of [...engine, ["tokenizer-inline", ""], ["evaluator-inline", "-evaluator"]]) {
      const source = await readFile(join(folder, `node_modules/context-compactor${own}/dist/wasm/${name}.js`), "utf8");
      assert.deepEqual([/^const /m.test(source), source.split(base64Module).length - 1], [false, 1], name);
    }
  });

  await context.test("H13, Z15: only /inline has the engine as code at once; all others load it apart, if at all", async () => {
    const sized = async (program) => {
      await writeFile(join(folder, "slim.js"), `export * from "context-compactor/slim"; ${program}`);
      const options = { absWorkingDir: folder, entryPoints: ["slim.js"], bundle: true, format: "esm", write: false, splitting: true, outdir: "slim" };
      const { outputs } = (await build({ ...options, metafile: true })).metafile;
      const atOnce = new Set(["slim/slim.js"]);
      for (const file of atOnce) {
        for (const { path, kind } of outputs[file].imports) if (kind === "import-statement") atOnce.add(path);
      }
      return [...atOnce].some((file) => Object.entries(outputs[file].inputs).some(([path, { bytesInOutput }]) => path.endsWith("wasm/inline.js") && bytesInOutput > 0));
    };
    assert.equal(await sized(""), false);
    assert.equal(await sized('export * from "context-compactor";'), false);
    assert.equal(await sized('export { compact } from "context-compactor/inline";'), true);
    assert.equal(await sized('export * from "context-compactor/history"; export * from "context-compactor/presets";'), false);
    assert.equal(await sized('export * from "context-compactor/ai-sdk"; export * from "context-compactor/fetch"; export * from "context-compactor/langchain"; export { ContextCompactor } from "context-compactor/mastra"; export { contextCompactor as tanStackCompactor } from "context-compactor/tanstack-ai"; export { CompactingSession } from "context-compactor/openai-agents"; export * from "context-compactor/cloudflare";'), false);
    assert.equal(await sized('export * from "context-compactor/tokens";'), false);
  });

  await context.test("F35: no call of WebAssembly has an await in its arguments, which Next wraps in code that takes none", async () => {
    for (const name of ["context-compactor", "context-compactor-evaluator"]) {
      const dist = join(folder, "node_modules", name, "dist");
      const scripts = (await readdir(dist, { recursive: true })).filter((file) => file.endsWith(".js") && !file.includes("-inline"));
      for (const file of scripts) {
        assert.doesNotMatch(await readFile(join(dist, file), "utf8"), /WebAssembly\.\w+\([^;)]*\bawait\b/, file);
      }
    }
  });
});
