import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { exec, pack, project, temporaryFolder } from "./project.mjs";
import { expected } from "./scenario.mjs";

const finish = 'import("./scenario.mjs").then(({ scenario }) => scenario(library)).then((result) => console.log(JSON.stringify(result)));';
const programs = {
  "import.mjs": `import * as library from "context-compactor"; ${finish}`,
  "require.cjs": `const library = require("context-compactor"); ${finish}`,
  "slim.mjs": `import { readFileSync } from "node:fs";
    import * as library from "context-compactor/slim";
    await library.initialize(readFileSync(new URL(import.meta.resolve("context-compactor/core.wasm"))));
    ${finish}`,
  "slim.cjs": `const { readFileSync } = require("node:fs");
    const library = require("context-compactor/slim");
    library.initialize(readFileSync(require.resolve("context-compactor/core.wasm"))).then(() => ${finish.slice(0, -1)});`,
};

test("Node", async (context) => {
  const temporary = await temporaryFolder(context);
  const { archive } = await pack(temporary);
  const folder = await project(join(temporary, "node"), archive, programs);
  for (const program of Object.keys(programs)) {
    await context.test(program, async () => {
      // `require` of a module warns on Node 20.
      const { stdout } = await exec(process.execPath, ["--no-warnings", program], { cwd: folder });
      assert.deepEqual(JSON.parse(stdout), expected);
    });
  }
});
