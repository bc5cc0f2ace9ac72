/** `npm run lint`: format, lints and types. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "./build.mjs";
import { Problem, root, run, script } from "./process.mjs";
import { setup } from "./setup.mjs";

const typescript = join(root, "node_modules/typescript/bin/tsc");
const projects = ["tsconfig.json", "tsconfig.node.json", "tests/types/tsconfig.json", "www/tsconfig.json"];

/** Format and types. Each is a name and a command. */
export const checks = [
  ["rustfmt", "cargo", ["fmt", "--all", "--check"]],
  ...projects
    .filter((project) => existsSync(join(root, project)))
    .map((project) => [`types of ${project}`, process.execPath, [typescript, "--noEmit", "--project", project]]),
];

const WASM = ["--target", "wasm32-unknown-unknown"];

/** The lints of Rust, which compile. The tokenizer has code that only WebAssembly compiles. */
export const clippy = [
  ["clippy", "cargo", ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]],
  [
    "clippy of the tokenizer, as WebAssembly",
    "cargo",
    ["clippy", "--quiet", "--package", "context-compactor-tokenizer", ...WASM, "--", "-D", "warnings"],
  ],
];

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await script(async () => {
    await setup();
    await build();
    const failed = [];
    for (const [name, command, args] of [...checks, ...clippy]) {
      console.log(`\n== ${name}`);
      if (!(await run(command, args)).ok) failed.push(name);
    }
    if (failed.length > 0) throw new Problem(`\nfailed: ${failed.join(", ")}`);
  });
}
