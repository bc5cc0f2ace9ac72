/**
 * `npm run quick`: format, types, and the tests of what has changed, in about a minute. `npm run quick -- --since main` takes
 * what differs from another commit; without it, from the last commit, or that commit itself when nothing differs from it.
 *
 * What is chosen is printed. It is a guess, by names and imports: `npm test` runs everything.
 */

import { existsSync, readFileSync, readdirSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { buildTool, runTool } from "./build.mjs";
import { checks } from "./lint.mjs";
import { must, root, run, say, script } from "./process.mjs";
import { runFiles, testFiles } from "./test/node.mjs";
import { minutes, step } from "./test/runner.mjs";
import { buildTests, runTests, total } from "./test/rust.mjs";

const read = (path) => readFileSync(join(root, path), "utf8");

/** Paths that differ from `since`, new ones included. */
async function changedSince(since) {
  const lines = async (...args) => (await must("git", args)).split("\n").filter(Boolean);
  const untracked = () => lines("ls-files", "--others", "--exclude-standard");
  if (since) return [...(await lines("diff", "--name-only", since)), ...(await untracked())];
  const now = [...(await lines("diff", "--name-only", "HEAD")), ...(await untracked())];
  return now.length > 0 ? now : lines("diff", "--name-only", "HEAD~1");
}

// ---- Rust -----------------------------------------------------------------------------------------------------

const TESTS = "crates/core/tests/all";

/** Modules of the core's tests that belong to a file of the core: by its name, else by what they import. */
function modulesOf(path) {
  const modules = readdirSync(join(root, TESTS))
    .filter((name) => name.endsWith(".rs") && name !== "main.rs")
    .map((name) => basename(name, ".rs"));
  if (path.startsWith(`${TESTS}/`)) {
    const own = basename(path, ".rs");
    return modules.includes(own) ? [own] : modules;
  }
  const inCore = path.replace(/^crates\/wire\/src\//, "crates/core/src/wire/");
  const parts = relative("crates/core/src", inCore).replace(/\.rs$/, "").split("/").filter((part) => part !== "mod");
  const [room, ...inner] = parts;
  const named = modules.filter((name) => inner.some((part) => name.startsWith(part) || name.includes(`_${part}`)));
  if (named.length > 0) return named;
  const imports = modules.filter((name) => new RegExp(`core::(\\{[^}]*\\b)?${room}\\b`).test(read(`${TESTS}/${name}.rs`)));
  return imports.length > 0 ? imports : modules;
}

/** What cargo is asked for: packages, and for each which tests. */
function rustOf(changed) {
  const wanted = new Map();
  const add = (name, filters) => wanted.set(name, new Set([...(wanted.get(name) ?? []), ...filters]));
  for (const path of changed.filter((path) => path.endsWith(".rs") || path.endsWith(".md"))) {
    const [, crate] = path.match(/^crates\/([\w-]+)\//) ?? [];
    if (!crate) continue;
    if (crate === "core") {
      if (!/^crates\/core\/(src|tests)\//.test(path)) continue;
      const room = path.match(/^crates\/core\/src\/([\w]+)/)?.[1];
      if (room) add("core", [`lib ${room}::`]);
      add("core/tests", modulesOf(path).map((name) => `all ${name}::`));
    } else if (crate !== "store-tests" && path.endsWith(".rs")) {
      add(crate, [""]);
      // Most tests of the formats are the core's.
      if (crate === "wire") add("core/tests", modulesOf(path).map((name) => `all ${name}::`));
    }
    // The simulator and the properties take minutes: a short run of each shows that they still work.
    else if (path.endsWith(".rs")) add(crate, ["all simulation::the_", "all failpoints::the_"]);
  }
  return wanted;
}

async function rust(log, wanted) {
  const packages = Array.from(wanted.keys(), (name) => `context-compactor-${name.replace("/", "-")}`);
  const programs = await buildTests(log, packages, { profile: "dev" });
  const results = [];
  for (const program of programs) {
    const [, crate, target] = program.owner.match(/^(.+)\/(.+)$/);
    const filters = [...(wanted.get(crate) ?? [])];
    const mine = filters.map((filter) => filter.split(" ")).filter(([kind]) => kind === (target === "all" ? "all" : "lib"));
    if (filters.includes("")) results.push(await runTests(log, program));
    else if (mine.length > 0) results.push(await runTests(log, program, mine.map(([, filter]) => filter)));
  }
  return total(results);
}

// ---- JavaScript -----------------------------------------------------------------------------------------------

/** Tests in Node that say most about the package as a whole. */
const SMOKE = ["compact", "session", "options"].map((name) => `tests/node/${name}.test.mjs`);

/** Names that a file exports. */
const exportsOf = (text) =>
  Array.from(text.matchAll(/^export (?:async )?(?:function\*?|const|class) (\w+)/gm), ([, name]) => name);

/** Tests in Node that a change concerns: themselves, what imports it, or what speaks of what it exports. */
function nodeTestsOf(changed) {
  const files = ["tests/node", "tests/conformance", "tests/adapters"].flatMap((folder) => testFiles(folder));
  const chosen = new Set();
  for (const path of changed) {
    if (files.includes(path)) chosen.add(path);
    const stem = basename(path).replace(/\.(test\.)?(mjs|ts|rs)$/, "");
    if (path.startsWith("tests/support/")) {
      files.filter((file) => read(file).includes(`/support/${basename(path)}`)).forEach((file) => chosen.add(file));
    } else if (path.startsWith("js/") && path.endsWith(".ts") && existsSync(join(root, path))) {
      const names = exportsOf(read(path)).filter((name) => name.length > 5);
      const speaks = (file) => basename(file).startsWith(`${stem}.`) || names.some((name) => read(file).includes(name));
      const found = files.filter(speaks);
      (found.length > 0 && found.length < 12 ? found : SMOKE).forEach((file) => chosen.add(file));
    } else if (/^(src|crates\/(core|wire)\/src)\//.test(path)) SMOKE.forEach((file) => chosen.add(file));
    else if (path.startsWith("tests/conformance/")) testFiles("tests/conformance").forEach((file) => chosen.add(file));
    else if (path.startsWith("docs/") || path.startsWith("tests/mutants/")) {
      files.filter((file) => file.endsWith("-index.test.mjs")).forEach((file) => chosen.add(file));
    }
  }
  return [...chosen].filter((file) => existsSync(join(root, file))).sort();
}

/** Runs everything once; resolves to whether it passed. */
export async function quick(since) {
  const started = Date.now();
  const changed = await changedSince(since);
  const wanted = rustOf(changed);
  const files = nodeTestsOf(changed);
  say("quick", `${changed.length} files changed`);
  const untested = changed.filter((path) => /^(xtask|scripts|bench|examples|www|pkg)\//.test(path));
  if (untested.length > 0) say("quick", `no test is chosen for ${untested.join(", ")}`);
  const results = [];
  // Before the tests in Rust take cargo's lock: the modules are then built beside them.
  const tool = files.length > 0 ? await buildTool("dev") : undefined;
  const rustTests = async () => {
    if (wanted.size > 0) results.push(await step("tests in Rust", (log) => rust(log, wanted)));
  };
  const package_ = async () => {
    if (files.length === 0) return;
    await runTool(tool, "--quick");
    say("quick", files.join(" "));
    results.push(await step("tests in Node", (log) => runFiles(log, "quick", files)));
  };
  const style = async () => {
    for (const [name, command, args] of checks) {
      const { ok } = await run(command, args);
      results.push({ name, failed: ok ? 0 : 1, failures: [] });
    }
  };
  await Promise.all([rustTests().then(style), package_()]);
  const failed = results.filter((result) => result.failed > 0);
  for (const { name, failures } of failed) console.log([`failed: ${name}`, ...failures].join("\n  "));
  say("quick", `${failed.length === 0 ? "passed" : "FAILED"} in ${minutes(Date.now() - started)}`);
  return failed.length === 0;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  await script(async () => {
    const at = process.argv.indexOf("--since");
    if (!(await quick(at > 0 ? process.argv[at + 1] : undefined))) process.exitCode = 1;
  });
}
