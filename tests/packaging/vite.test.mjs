import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "vite";
import { launch, resultOf } from "../support/browser.mjs";
import { serve } from "../support/serve.mjs";
import { expectedAlone } from "./alone.mjs";
import { expectedEvaluation } from "./evaluation.mjs";
import { packBoth, project, temporaryFolder } from "./project.mjs";
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
/** All of them, in order: the engine as code, and what is loaded when it is asked for. */
const FIRST = named("catalogue", "cl100k_base");
const LAST = named(
  ...["index", "inline", "inline", "keys", "mirror", "mutex", "o200k_base", "own", "pool", "session"],
  ...["tokenizer-inline", "tokens-inline", "translation"],
);
/** What is loaded with the page: beside the entry, what it shares with files that are loaded later. */
const AT_ONCE = /^(own|index|keys|mutex|session|translation)-/;

/** Apps, and the assets that a build of each must consist of. */
const apps = {
  inlined: {
    main: `import * as library from "context-compactor"; import { scenario } from "./scenario.mjs"; ${finish}`,
    assets: [...FIRST, ...LAST],
  },
  alone: {
    main: 'import { alone } from "./alone.mjs"; globalThis.result = { done: await alone() };',
    assets: named("catalogue", "cl100k_base", "index", "inline", "inline", "o200k_base", "tokenizer-inline"),
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
  slim: {
    main: `import * as library from "context-compactor/slim";
      import wasm from "context-compactor/core.wasm?url&no-inline";
      import { scenario } from "./scenario.mjs";
      await library.initialize(wasm); ${finish}`,
    assets: [...FIRST, /^core-.{8}\.wasm$/, ...LAST],
  },
};

function checkAll(result) {
  assert.deepEqual(result, { before: Array(5).fill(false), done: expected, after: Array(5).fill(true) });
}

test("Vite", async (context) => {
  const temporary = await temporaryFolder(context);
  const archives = await packBoth(temporary);
  const browser = await launch("chrome");
  context.after(() => browser.close());
  for (const [name, { main, assets, check = checkAll }] of Object.entries(apps)) {
    await context.test(`an app with the ${name} entry`, async () => {
      const folder = await project(join(temporary, name), archives, { "index.html": page, "main.js": main });
      await build({ root: folder, logLevel: "error", build: { target: "esnext" } });
      const found = (await readdir(join(folder, "dist/assets"))).sort();
      assert.ok(
        found.length === assets.length && assets.every((pattern, at) => pattern.test(found[at])),
        `assets: ${found.join(", ")}`,
      );
      const loaded = found.filter((file) => AT_ONCE.test(file));
      for (const file of loaded) assert.doesNotMatch(await readFile(join(folder, "dist/assets", file), "utf8"), /was made again from/);
      const index = join(folder, "dist/assets", found.find((file) => file.startsWith("index-")));
      assert.ok(!(await readFile(index, "utf8")).includes("claude-haiku"));
      const server = await serve(join(folder, "dist"));
      try {
        const result = await resultOf(browser, `${server.url}/`);
        check(result);
      } finally {
        await server.close();
      }
    });
  }
});
