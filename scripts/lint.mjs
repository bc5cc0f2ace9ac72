/** `npm run lint`: format, types and lints, with the time of each. `npm run lint -- types` runs those whose names begin so. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "./build.mjs";
import { Problem, root, run, script } from "./process.mjs";
import { setup, spellChecker } from "./setup.mjs";

const typescript = join(root, "node_modules/typescript/bin/tsc");
const projects = [
  ...["tsconfig.json", "tsconfig.node.json", "tsconfig.evaluator.json", "tsconfig.ui.json", "www/tsconfig.json"],
  ...["tests/types/tsconfig.json", "tests/types/sdks/tsconfig.json"],
];

/** Format and types. Each is a name and a command. */
export const checks = [
  ["rustfmt", "cargo", ["fmt", "--all", "--check"]],
  ...projects
    .filter((project) => existsSync(join(root, project)))
    .map((project) => [`types of ${project}`, process.execPath, [typescript, "--noEmit", "--project", project]]),
];

const program = (path, ...args) => [process.execPath, [join(root, path), ...args]];

/** Lints that compile nothing. Types of promises come from the built package. */
export const lints = [
  ["spelling", spellChecker, []],
  ["JavaScript", ...program("node_modules/oxlint/bin/oxlint", "--type-aware")],
  ["unused files, exports and packages", ...program("node_modules/knip/bin/knip.js", "--no-progress")],
  ["unused crates", ...program("scripts/lint/crates.mjs")],
  ["licenses", ...program("scripts/lint/licenses.mjs")],
];

const WASM = ["--target", "wasm32-unknown-unknown"];
const DENIED = ["--config", 'build.rustdocflags=["-Dwarnings"]'];

/** Lints that compile. The tokenizer has code that only WebAssembly compiles. */
export const compiled = [
  ["clippy", "cargo", ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]],
  [
    "clippy of the tokenizer, as WebAssembly",
    "cargo",
    ["clippy", "--quiet", "--package", "context-compactor-tokenizer", ...WASM, "--", "-D", "warnings"],
  ],
  // The core is left out: some of its links are broken.
  ["rustdoc", "cargo", [...DENIED, "doc", "--quiet", "--no-deps", "--workspace", "--exclude", "context-compactor-core"]],
];

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await script(async () => {
    const asked = process.argv.slice(2);
    const wanted = [...checks, ...lints, ...compiled].filter(
      ([name]) => asked.length === 0 || asked.some((begin) => name.startsWith(begin)),
    );
    if (wanted.length === 0) throw new Problem(`lint: there is no ${asked.join(", ")}`);
    await setup({ tools: true });
    await build();
    const failed = [];
    for (const [name, command, args] of wanted) {
      const started = performance.now();
      const { ok } = await run(command, args);
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      console.log(`${seconds.padStart(6)} s  ${name}${ok ? "" : ": FAILED"}`);
      if (!ok) failed.push(name);
    }
    if (failed.length > 0) throw new Problem(`\nfailed: ${failed.join(", ")}`);
  });
}
