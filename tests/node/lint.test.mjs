/** H24: every lint finds what it is for, in a folder that it has nothing to say about before. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { compiled, lints } from "../../scripts/lint.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** A folder of files with the setup of the lints. */
function folderOf(context, files) {
  const folder = mkdtempSync(join(tmpdir(), "context-compactor-lint-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const file of [".typos.toml", ".oxlintrc.json", "knip.jsonc"]) copyFileSync(join(root, file), join(folder, file));
  write(folder, files);
  return folder;
}

function write(folder, files) {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

function run(folder, command, args, env = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: folder, env: { ...process.env, ...env } });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
    child.on("error", reject);
    child.on("close", (code) => resolve({ ok: code === 0, output }));
  });
}

const crate = (name, license, more = "") =>
  `[package]\nname = "${name}"\nversion = "1.0.0"\nedition = "2024"\nlicense = "${license}"\n\n[workspace]\n${more}`;
const uses = '\n[dependencies]\nother = { path = "other" }\n';
/** Two crates, of which one uses the other. */
const CRATES = {
  "Cargo.toml": crate("one", "MIT", uses),
  "Cargo.lock": '[[package]]\nname = "one"\nversion = "1.0.0"\ndependencies = ["other"]\n\n[[package]]\nname = "other"\nversion = "1.0.0"\n',
  "src/lib.rs": "//! See [`other`].\n\npub use other::two;\n",
  "other/Cargo.toml": crate("other", "MIT/Apache-2.0").replace("\n[workspace]\n", ""),
  "other/src/lib.rs": "//! Two.\n\n/// Two.\npub fn two() {}\n",
};
const npmLock = (license) => JSON.stringify({ packages: { "": {}, "node_modules/a": { version: "1.0.0", license } } });
const SCRIPTS = {
  "package.json": '{ "name": "w", "private": true, "type": "module" }',
  "js/entry/slim.ts": 'export { used } from "../part.js";\n',
  "js/part.ts": "export const used = 1;\n",
};

/** By the name of the lint: files without a finding, then for each fault files to add and what is said of them. */
const FAULTS = {
  spelling: [{ "a.md": "It receives a text.\n" }, [{ "a.md": `It re${"cie"}ves a text.\n` }, /should be `receives`/]],
  JavaScript: [
    { "a.mjs": "async function go() {}\nawait go();\n" },
    [{ "a.mjs": "const left = 1;\n" }, /no-unused-vars/],
    [{ "a.mjs": 'import { join } from "node:path";\n' }, /no-unused-vars/],
    [{ "a.mjs": "console.log(nowhere);\n" }, /no-undef/],
    [{ "a.mjs": "async function go() {}\ngo();\n" }, /no-floating-promises/],
  ],
  "unused files, exports and packages": [
    SCRIPTS,
    [{ "js/more.ts": "export const more = 1;\n" }, /Unused files[^]*js\/more\.ts/],
    [{ "js/part.ts": "export const used = 1;\nexport const unused = 2;\n" }, /Unused exports[^]*unused/],
    [{ "package.json": '{ "name": "w", "type": "module", "dependencies": { "zod": "4.6.7" } }' }, /Unused dependencies[^]*zod/],
  ],
  "unused crates": [CRATES, [{ "src/lib.rs": "//! Of [`other::two`].\n" }, /nothing uses:\n.*: other$/m]],
  licenses: [
    { ...CRATES, "package-lock.json": npmLock("(MIT OR GPL-3.0-only)") },
    [{ "package-lock.json": npmLock("GPL-3.0-only") }, /a 1\.0\.0: GPL-3\.0-only/],
    [{ "package-lock.json": npmLock() }, /a 1\.0\.0 says no license/],
    [{ "package-lock.json": npmLock("SEE LICENSE IN x") }, /a 1\.0\.0: SEE LICENSE/],
    [{ "other/Cargo.toml": crate("other", "AGPL-3.0-only").replace("\n[workspace]\n", "") }, /other 1\.0\.0: AGPL-3\.0-only/],
  ],
  rustdoc: [CRATES, [{ "src/lib.rs": "//! See [`nothing`].\n\npub use other::two;\n" }, /unresolved link to `nothing`/]],
};

/** The linter of JavaScript looks for its other half in the folder itself. */
const OXLINT_TSGOLINT_PATH = join(root, "node_modules/oxlint-tsgolint/bin/tsgolint.js");

/** What only the whole repository has. */
const whole = (argument) => ["--workspace", "--exclude", "context-compactor-core"].includes(argument);

describe("H24: a lint", () => {
  const all = [...lints, ...compiled.filter(([name]) => !name.startsWith("clippy"))];
  test("is tried below", () => assert.deepEqual(all.map(([name]) => name), Object.keys(FAULTS)));

  for (const [name, command, args] of all) {
    test(`finds its faults: ${name}`, async (context) => {
      const [files, ...faults] = FAULTS[name];
      const folder = folderOf(context, files);
      const own = args.filter((argument) => !whole(argument));
      const lint = () => run(folder, command, [...own, ...(args[0]?.includes("scripts") ? [folder] : [])], { OXLINT_TSGOLINT_PATH });
      const { ok, output } = await lint();
      assert.ok(ok, output);
      for (const [fault, found] of faults) {
        write(folder, fault);
        const { ok, output } = await lint();
        assert.ok(!ok, `passed: ${JSON.stringify(fault)}`);
        assert.match(output, found);
        // The next fault is to be found by itself.
        for (const path of Object.keys(fault)) rmSync(join(folder, path));
        write(folder, files);
      }
    });
  }
});

test("H24: advisories on packages of either lock file are told, and a database that is not reached is no failure", async (context) => {
  const asked = [];
  let answer;
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (text) => (body += text));
    request.on("end", () => {
      const { queries } = JSON.parse(body);
      asked.push(...queries.map(({ package: { ecosystem, name }, version }) => `${ecosystem} ${name} ${version}`));
      const [status, vulnerable] = answer;
      const results = queries.map(({ package: { name } }) => (name === vulnerable ? { vulns: [{ id: "GHSA-x" }] } : {}));
      response.writeHead(status).end(JSON.stringify({ results }));
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => server.close());
  const CC_ADVISORIES = `http://127.0.0.1:${server.address().port}`;
  const look = (env) => run(root, process.execPath, [join(root, "scripts/advisories.mjs")], { CC_ADVISORIES, ...env });

  answer = [200, "nothing"];
  assert.deepEqual(await look(), { ok: true, output: `advisories: none on ${asked.length} packages\n` });
  assert.ok(asked.some((package_) => package_.startsWith("crates.io serde 1.")));
  // By its own name, and nothing of this repository.
  assert.ok(asked.some((package_) => package_.startsWith("npm ai 6.")) && !asked.some((package_) => package_.includes(" ai6 ")));
  assert.deepEqual(asked.filter((package_) => /^\S+ context-compactor/.test(package_)), []);
  for (const name of ["serde", "typescript"]) {
    answer = [200, name];
    const { ok, output } = await look();
    assert.ok(!ok);
    assert.match(output, new RegExp(`^https://osv.dev has advisories on\n${name} \\S+: GHSA-x\n`));
  }
  const skipped = { ok: true, output: "advisories: skipped: not reachable\n" };
  answer = [503];
  assert.deepEqual(await look(), skipped);
  assert.deepEqual(await look({ CC_ADVISORIES: "http://127.0.0.1:1" }), skipped);
});
