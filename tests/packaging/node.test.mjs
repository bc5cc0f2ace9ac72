import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { expectedAlone } from "./alone.mjs";
import { expectedEvaluation } from "./evaluation.mjs";
import { exec, packAll, project, temporaryFolder } from "./project.mjs";
import { expected } from "./scenario.mjs";

const finish = 'import("./scenario.mjs").then(({ scenario }) => scenario(library)).then((result) => console.log(JSON.stringify(result)));';
const programs = {
  "import.mjs": `import * as library from "context-compactor"; ${finish}`,
  "require.cjs": `const library = require("context-compactor"); ${finish}`,
  "inline.mjs": `import * as library from "context-compactor/inline"; ${finish}`,
  "inline.cjs": `const library = require("context-compactor/inline"); ${finish}`,
  "slim-alone.mjs": `import * as library from "context-compactor/slim"; ${finish}`,
  "slim.mjs": `import { readFileSync } from "node:fs";
    import * as library from "context-compactor/slim";
    await library.initialize(readFileSync(new URL(import.meta.resolve("context-compactor/core.wasm"))));
    ${finish}`,
  "slim.cjs": `const { readFileSync } = require("node:fs");
    const library = require("context-compactor/slim");
    library.initialize(readFileSync(require.resolve("context-compactor/core.wasm"))).then(() => ${finish.slice(0, -1)});`,
};

/** Each entry beside the main one, alone in a process. */
const estimated = "estimateTokens([{ role: 'user', content: 'Hello, world!' }])";
const single = {
  "all.mjs": ['import { alone } from "./alone.mjs"; console.log(JSON.stringify(await alone()));', JSON.stringify(expectedAlone)],
  "history.mjs": ['import { detectFormat } from "context-compactor/history"; console.log(await detectFormat([{ role: "user", content: "x" }]));', "openai-chat"],
  "history.cjs": ['require("context-compactor/history").repairHistory([{ role: "user", content: "x" }]).then(({ changes }) => console.log(changes.length));', "0"],
  "tokens.mjs": [`import { estimateTokens } from "context-compactor/tokens"; console.log(${estimated});`, "8"],
  "tokens.cjs": [`const { estimateTokens } = require("context-compactor/tokens"); console.log(${estimated});`, "8"],
  "presets.cjs": ['console.log(Object.keys(require("context-compactor/presets").optionsFromEnv({})).length);', "0"],
};

/** The subpath for Node: what one process wrote, by either way to load the package, the other one reads. */
const files = {
  "write.mjs": `import { openSession } from "context-compactor";
    import { fileStore } from "context-compactor/node";
    const store = fileStore("sessions");
    const session = await openSession({ id: "one", store, contextWindow: 32_000 });
    await session.append({ role: "user", content: "Hello." });
    await session.close();
    await store.close();`,
  "read.cjs": `const { openSession } = require("context-compactor/slim");
    const { fileStore } = require("context-compactor/node");
    const { CompactionError, initialize } = require("context-compactor/slim");
    const { readFileSync } = require("node:fs");
    (async () => {
      await initialize(readFileSync(require.resolve("context-compactor/core.wasm")));
      const store = fileStore("sessions");
      const session = await openSession({ id: "one", store, contextWindow: 32_000 });
      await session.sync([{ role: "user", content: "Hello." }, { role: "assistant", content: "Hi." }]);
      await store.close();
      const error = await store.read([]).catch((error) => error);
      console.log(session.archive.metadata().totalMessages, error instanceof CompactionError, error.code);
    })();`,
};

const evaluate = 'import("./evaluation.mjs").then(({ evaluation }) => evaluation(evaluator)).then((result) => console.log(JSON.stringify(result)));';
const evaluations = {
  "evaluate.mjs": `import * as evaluator from "context-compactor-evaluator"; ${evaluate}`,
  "evaluate.cjs": `const evaluator = require("context-compactor-evaluator"); ${evaluate}`,
};

/** Whichever way the parts of a program load the package, they have one engine and one class of errors. */
const both = `const required = { ...require("context-compactor"), ...require("context-compactor/node") };
  Promise.all([import("context-compactor"), import("context-compactor/node")]).then(([{ CompactionError }, { fileStore }]) => {
    console.log(required.CompactionError === CompactionError, required.fileStore === fileStore);
  });`;

const bun = fileURLToPath(new URL("../../node_modules/@oven/bun-linux-x64/bin/bun", import.meta.url));

test("Node", async (context) => {
  const temporary = await temporaryFolder(context);
  const archives = await packAll(temporary);
  const folder = await project(join(temporary, "node"), archives, { ...programs, ...files, ...evaluations, ...Object.fromEntries(Object.entries(single).map(([name, [program]]) => [name, program])), "both.cjs": both });
  for (const program of Object.keys(programs)) {
    await context.test(program, async () => {
      // `require` of a module warns on Node 20.
      const { stdout } = await exec(process.execPath, ["--no-warnings", program], { cwd: folder });
      assert.deepEqual(JSON.parse(stdout), expected);
    });
  }
  for (const program of Object.keys(evaluations)) {
    await context.test(`context-compactor-evaluator, ${program}`, async () => {
      const { stdout } = await exec(process.execPath, ["--no-warnings", program], { cwd: folder });
      assert.deepEqual(JSON.parse(stdout), expectedEvaluation);
    });
  }
  for (const [name, [, printed]] of Object.entries(single)) {
    await context.test(`H13: without the main entry, ${name}`, async () => {
      const { stdout } = await exec(process.execPath, ["--no-warnings", name], { cwd: folder });
      assert.equal(stdout, `${printed}\n`);
    });
  }
  for (const [name, bin, ...flags] of [["Node", process.execPath, "--no-warnings"], ["Bun", bun]]) {
    await context.test(`F35: what requires and what imports the package share it, in ${name}`, { skip: !existsSync(bin) && "there is no Bun here for this platform" }, async () => {
      const { stdout } = await exec(bin, [...flags, "both.cjs"], { cwd: folder });
      assert.equal(stdout, "true true\n");
    });
  }
  await context.test("E24: the command line, as npx starts it", async () => {
    const history = JSON.stringify([{ role: "user", content: "Hello." }]);
    await writeFile(join(folder, "history.json"), history);
    const npx = (...args) => exec("npx", ["--no-install", "--offline", "context-compactor", ...args], { cwd: folder });
    const { stdout } = await npx("validate", "history.json", "--json");
    assert.equal(JSON.parse(stdout).valid, true);
    assert.match((await npx("--version")).stdout, /^\d+\.\d+\.\d+\n$/);
    const failed = await npx("validat", "history.json").catch((error) => error);
    assert.deepEqual([failed.code, /did you mean validate\?/.test(failed.stderr)], [2, true]);
  });
  await context.test("context-compactor/node", async () => {
    const results = [];
    for (const file of Object.keys(files)) {
      results.push(await exec(process.execPath, ["--no-warnings", file], { cwd: folder }));
    }
    assert.deepEqual(results, [
      { stdout: "", stderr: "" },
      { stdout: "2 true closed\n", stderr: "" },
    ]);
  });
});
