import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { build as bundle } from "esbuild";
import { build, createServer } from "vite";
import { launch, resultOf } from "../support/browser.mjs";
import { serve } from "../support/serve.mjs";
import { expectedAlone } from "./alone.mjs";
import { expectedEvaluation } from "./evaluation.mjs";
import { packAll, project, temporaryFolder } from "./project.mjs";
import { expected } from "./scenario.mjs";

const page = '<!doctype html><link rel="icon" href="data:,"><script type="module" src="/main.js"></script>\n';
/** The catalogue of models, the tokenizers and what keeps two copies are files of their own, that only who asks for them loads. */
const finish = `const lazy = ["/catalogue-", "/mirror-", "/o200k_base-", "/cl100k_base-", "/tokenizer-inline-"];
  const loads = () => lazy.map((part) => performance.getEntriesByType("resource").some(({ name }) => name.includes(part)));
  await library.compact([{ role: "user", content: "Hello" }], { model: "mine", contextWindow: 8_000 });
  library.mirrorStore(library.memoryStore(), library.memoryStore());
  const before = loads();
  const done = await scenario(library);
  globalThis.result = { before, done, after: loads() };`;

const named = (...names) => names.map((name) => new RegExp(`^${name}-.{8}\\.js$`));
/** All of them, in order: the engine's files, the same as code, and what is loaded when it is asked for. */
const files = (...names) => names.map((name) => new RegExp(`^${name}-.{8}\\.wasm$`));
const CODE = named("inline", "inline-compact", "inline-rest", "inline-shared");
const ALL = [
  ...named("awake", "bare", "catalogue", "checks", "cl100k", "cl100k_base", "claude3", "claude47", "codec", "codecs"),
  ...files("compact", "core"),
  ...named("database", "database", "errors", "gemini", "history", "index"),
  ...CODE,
  ...named("keys", "llama3", "mirror", "module", "mutex", "o200k_base", "own", "pool", "preload-helper", "qwen3"),
  ...files("rest"),
  ...named("sessions"),
  ...files("shared"),
  ...named("late", "tables", "tokenizer", "tokenizer-inline", "tokens-inline", "translation", "translation", "trap", "unavailable"),
];
/** What is loaded with the page: beside the entry, what it shares with files that are loaded later. */
const AT_ONCE = /^(awake|bare|checks|codec|codecs|database|errors|own|index|keys|module|mutex|sessions|translation|trap|unavailable)-/;

/** A session, and what the page has loaded before it and with it. */
const small = `import { openSession } from "context-compactor";
  const loaded = () => performance.getEntriesByType("resource").map(({ name }) => new URL(name).pathname);
  const before = loaded();
  const session = await openSession({ store: "memory", contextWindow: 8_000 });
  await session.append({ role: "user", content: "Hello" });
  const { messages } = await session.prepare();
  globalThis.result = { before, messages, after: loaded() };`;

/** Apps, and the assets that a build of each must consist of. */
const apps = {
  main: {
    main: `import * as library from "context-compactor"; import { scenario } from "./scenario.mjs"; ${finish}`,
    assets: ALL,
  },
  alone: {
    main: 'import { alone } from "./alone.mjs"; globalThis.result = { done: await alone() };',
    assets: [
      ...named("awake", "bare", "catalogue", "cl100k", "claude3", "claude47"),
      ...files("compact", "core"),
      ...named("database", "errors", "gemini", "history", "index"),
      ...CODE,
      ...named("llama3", "o200k_base", "preload-helper", "qwen3"),
      ...files("rest", "shared"),
      ...named("late", "tables", "tokenizer", "tokenizer-inline", "translation", "translation"),
    ],
    check: ({ done }) => assert.deepEqual(done, expectedAlone),
  },
  evaluator: {
    main: `import * as evaluator from "context-compactor-evaluator";
      import { evaluation } from "./evaluation.mjs";
      const done = await evaluation(evaluator);
      globalThis.result = { done };`,
    assets: named("evaluator-inline", "index"),
    check: ({ done }) => assert.deepEqual(done, expectedEvaluation),
  },
  worker: {
    main: `import { openSession } from "context-compactor/worker";
      const session = await openSession({ contextWindow: 9_000 });
      const message = { role: "user", content: "Hello" };
      await session.append(message);
      const { messages } = await session.prepare();
      globalThis.result = { own: messages[0] === message, durability: session.archive.durability };`,
    assets: [...named("catalogue", "codec"), ...files("compact", "core"), ...named("index"), ...files("rest", "shared"), ...named("translation", "worker-start")],
    check: (result) => assert.deepEqual(result, { own: true, durability: "synced" }),
  },
  slim: {
    main: `import * as library from "context-compactor/slim";
      import wasm from "context-compactor/core.wasm?url&no-inline";
      import { scenario } from "./scenario.mjs";
      await library.initialize(wasm); ${finish}`,
    assets: ALL,
  },
};

function checkAll(result) {
  assert.deepEqual(result, { before: Array(5).fill(false), done: expected, after: Array(5).fill(true) });
}

test("Vite", async (context) => {
  const temporary = await temporaryFolder(context);
  const archives = await packAll(temporary);
  const browser = await launch("chrome");
  context.after(() => browser.close());
  for (const [name, { main, assets, check = checkAll }] of Object.entries(apps)) {
    await context.test(`an app with the ${name} entry`, async () => {
      const folder = await project(join(temporary, name), archives, { "index.html": page, "main.js": main });
      await build({ root: folder, logLevel: "error", build: { target: "esnext" } });
      const found = (await readdir(join(folder, "dist/assets"))).sort();
      // Their order depends on hashes.
      const others = [...found];
      for (const pattern of assets) {
        const at = others.findIndex((file) => pattern.test(file));
        assert.ok(at >= 0, `no ${pattern} in ${found.join(", ")}`);
        others.splice(at, 1);
      }
      assert.deepEqual(others, []);
      const loaded = found.filter((file) => AT_ONCE.test(file));
      for (const file of loaded) assert.doesNotMatch(await readFile(join(folder, "dist/assets", file), "utf8"), /was made again from/);
      const index = join(folder, "dist/assets", found.find((file) => file.startsWith("index-")));
      assert.ok(!(await readFile(index, "utf8")).includes("grok-3"));
      const server = await serve(join(folder, "dist"));
      try {
        const result = await resultOf(browser, `${server.url}/`);
        check(result);
      } finally {
        await server.close();
      }
    });
  }

  await context.test("Z15, Z21: a page loads the engine with its first call, as a file; what it begins with is small", async () => {
    const folder = await project(join(temporary, "small"), archives, { "index.html": page, "main.js": small });
    await build({ root: folder, logLevel: "error", build: { target: "esnext" } });
    const server = await serve(join(folder, "dist"));
    try {
      const { before, messages, after } = await resultOf(browser, `${server.url}/`);
      assert.equal(messages.length, 1);
      assert.deepEqual(before.filter((path) => /wasm|inline/.test(path)), []);
      assert.deepEqual(after.filter((path) => /wasm|inline/.test(path)).map((path) => path.replace(/-.{8}\./, ".")), ["/assets/core.wasm"]);
      const sizes = await Promise.all(before.map(async (path) => gzipSync(await readFile(join(folder, "dist", path)), { level: 9 }).length));
      const first = sizes.reduce((sum, size) => sum + size, 0);
      assert.ok(first > 10_000 && first <= 50_000, `${first} bytes gzipped`);
    } finally {
      await server.close();
    }
  });

  await context.test("Z15: the development server, which moves scripts, finds the engine all the same", async () => {
    const folder = await project(join(temporary, "dev"), archives, { "index.html": page, "main.js": small });
    const server = await createServer({ root: folder, configFile: false, logLevel: "error", server: { host: "127.0.0.1", port: 0 } });
    try {
      await server.listen();
      const { messages } = await resultOf(browser, server.resolvedUrls.local[0]);
      assert.equal(messages.length, 1);
    } finally {
      await server.close();
    }
  });

  await context.test("Z15: a page that is one script has the engine as code", async () => {
    const main = small.replace('"context-compactor"', '"context-compactor/inline"');
    const folder = await project(join(temporary, "one"), archives, { "main.js": main });
    await bundle({ absWorkingDir: folder, entryPoints: ["main.js"], bundle: true, format: "esm", outfile: "main.mjs", minify: true, logLevel: "error" });
    const code = await readFile(join(folder, "main.mjs"), "utf8");
    const server = await serve(folder, { pages: { "/": `<!doctype html><link rel="icon" href="data:,"><script type="module">${code.replaceAll("</script", "<\\/script")}</script>` } });
    try {
      const { before, messages, after } = await resultOf(browser, `${server.url}/`);
      assert.deepEqual([before, messages.length, after], [[], 1, []]);
    } finally {
      await server.close();
    }
  });
});
