/**
 * The generators (`npm run new-format` and others), all of them in one copy of the repository: what they write is formatted, has its
 * types, and is in every list; what they refuse changes nothing. `CC_NEW=1` builds the copy as well and runs the lints of Rust, the
 * engine's tests, and those in Node that go over lists of formats, events and stores.
 */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { testFiles } from "../../scripts/test/node.mjs";
import { formats, presets } from "../support/names.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const run = promisify(execFile);
const whole = process.env.CC_NEW === "1";

/** A name for each kind, and names that are taken. */
const KINDS = {
  event: ["context-nearly-full", "warning", "progress", "data-loss"],
  format: ["bedrock-converse", "gemini", "ai-sdk", "detect"],
  rung: ["superseded-reads", "clear", "rollover", "ladder"],
  store: ["postgres", "file", "memory"],
};

describe("H23: generators", () => {
  let copy;
  const inCopy = (command, args, options = {}) => run(command, args, { cwd: copy, maxBuffer: 1 << 26, ...options });
  const generate = (kind, ...args) => inCopy(process.execPath, ["scripts/new.mjs", kind, ...args]);
  const changes = async () => (await inCopy("git", ["status", "--porcelain", "--untracked-files=all"])).stdout;

  before(async () => {
    // Below the repository, where packages are found.
    await mkdir(join(root, "target"), { recursive: true });
    copy = await mkdtemp(join(root, "target/new-"));
    const { stdout } = await run("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root });
    for (const path of stdout.split("\0").filter((path) => path && existsSync(join(root, path)))) {
      await mkdir(dirname(join(copy, path)), { recursive: true });
      await cp(join(root, path), join(copy, path));
    }
    await inCopy("git", ["init", "--quiet"]);
    await inCopy("git", ["add", "--all"]);
    await inCopy("git", ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message", "all"]);
  });
  after(() => rm(copy, { recursive: true, force: true }));

  for (const [kind, [, ...taken]] of Object.entries(KINDS)) {
    test(`new-${kind} refuses names that are taken, and changes nothing`, async () => {
      for (const name of taken) await assert.rejects(generate(kind, name), { stderr: new RegExp(`new-${kind}: ${name} is taken: `) });
      assert.equal(await changes(), "");
    });
  }

  test("what is no name is refused", async () => {
    for (const name of ["Name", "a_b", "-a", "a--b", ""]) await assert.rejects(generate("event", name), { stderr: /a name in small letters/ });
    await assert.rejects(generate("rung", "type"), { stderr: /a word of Rust/ });
    await assert.rejects(generate("thing", "a"), { stderr: /there are event, format, rung, store/ });
  });

  test("an anchor that is gone is named with its file, and nothing is written", async () => {
    const path = join(copy, "docs/presets.md");
    const page = await readFile(path, "utf8");
    await writeFile(path, page.replace("| compress: ", "| shorten: "));
    await assert.rejects(generate("rung", KINDS.rung[0]), { stderr: /new-rung: docs\/presets\.md has not exactly one anchor \| compress/ });
    assert.equal(await changes(), " M docs/presets.md\n");
    await writeFile(path, page);
  });

  for (const [kind, [name, ...taken]] of Object.entries(KINDS)) {
    test(`new-${kind} writes what its dry run shows, and says what to fill in`, async () => {
      const before = await changes();
      const shown = (await generate(kind, name, "--dry-run")).stdout;
      assert.equal(await changes(), before);
      const { stdout } = await generate(kind, name);
      const written = (await changes()).split("\n").length - before.split("\n").length;
      assert.ok(written > 4, stdout);
      const places = Array.from(stdout.matchAll(/^(\S+):(\d+): ./gm));
      assert.ok(places.length > 3, stdout);
      for (const [, path, line] of places) {
        const lines = (await readFile(join(copy, path), "utf8")).split("\n");
        assert.ok(lines[line - 1].trim().length > 0, `${path}:${line}`);
        assert.ok(!lines.some((line) => /\/\/~|\{\{(kebab|snake|camel|Pascal|[wW]ords|key|wire|tools)\}\}/.test(line)), path);
      }
      for (const path of stdout.match(/^crates\S+mod\.rs(?=:)/gm) ?? []) assert.ok(shown.includes(path), path);
      await assert.rejects(generate(kind, name), { stderr: /is taken/ });
      assert.ok(taken.length > 0);
    });
  }

  test("what they wrote is formatted", async () => {
    await inCopy("cargo", ["fmt", "--all", "--check"]);
  });

  test("what they wrote has its types, once the build has made the names", async () => {
    const options = await readFile(join(root, "js/generated/options.ts"), "utf8");
    const named = options.replace("  format: ", `  format: "${KINDS.format[0]}" | `).replace("  step: ", `  step: "${KINDS.rung[0]}" | `);
    assert.notEqual(named, options);
    await cp(join(root, "js/generated"), join(copy, "js/generated"), { recursive: true });
    await writeFile(join(copy, "js/generated/options.ts"), named);
    await symlink(join(root, "js/wasm"), join(copy, "js/wasm"));
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    await inCopy(process.execPath, [tsc, "--noEmit", "--project", "tsconfig.json"]).catch(({ stdout }) => assert.fail(stdout));
    await rm(join(copy, "js/wasm"));
  });

  test("what they wrote is in every list", async () => {
    const names = [
      { path: "format", names: [...formats, KINDS.format[0]] },
      { path: "preset", names: presets },
    ];
    await mkdir(join(copy, "pkg/dist/generated"), { recursive: true });
    await writeFile(join(copy, "pkg/dist/generated/options.js"), `export const OPTIONS = ${JSON.stringify(names)};\n`);
    const tests = ["--test", "--test-name-pattern", "H23: every (event|format|preset)|where a change begins", "tests/node/lists.test.mjs", "tests/node/readme.test.mjs"];
    const env = { ...process.env };
    delete env.NODE_TEST_CONTEXT;
    const { stdout } = await inCopy(process.execPath, tests, { env }).catch((error) => assert.fail(error.stdout));
    assert.match(stdout, /(#|ℹ) pass 4\n/);
    await rm(join(copy, "pkg/dist"), { recursive: true });
  });

  describe("what they wrote passes", { skip: !whole && "CC_NEW=1 builds it" }, () => {
    // Packages of others are compiled once for all copies.
    const env = { ...process.env, CARGO_TARGET_DIR: join(root, "target") };
    delete env.NODE_TEST_CONTEXT;
    const passes = (command, ...args) => inCopy(command, args, { env }).catch((error) => assert.fail(`${args}\n${error.stdout}\n${error.stderr}`));
    const crate = (name) => ["--package", `context-compactor-${name}`];

    before(async () => {
      // The package of the copy is its own, all others are those of the repository.
      await mkdir(join(copy, "node_modules"));
      for (const name of await readdir(join(root, "node_modules"))) {
        const isOwn = name.startsWith("context-compactor");
        await symlink(isOwn ? `../${name.replace("context-compactor", "pkg")}` : join(root, "node_modules", name), join(copy, "node_modules", name));
      }
      await symlink(join(root, "tests/node_modules"), join(copy, "tests/node_modules"));
    });

    test("the lints of Rust", () => passes("cargo", "clippy", "--workspace", "--all-targets", "--", "-D", "warnings"));

    test("the tests of the engine", () => passes("cargo", "test", ...crate("core"), ...crate("core-tests"), ...crate("wire"), "--lib", "--test", "all"));

    test("the properties of formats", () => passes("cargo", "test", ...crate("store-tests"), "--test", "all", "formats::"));

    test("the tests in Node", async () => {
      await passes("cargo", "run", "--package", "xtask", "--", "build", "--quick");
      const all = ["conformance", "formats"].flatMap((folder) => testFiles(`tests/${folder}`));
      const some = ["delete-session", "exports", "failpoints", "hostile", "lists", "options", "postgres-store", "presets", "readme", "recall", "rooms", "type-names"];
      await passes(process.execPath, "--test", ...all, ...some.map((name) => `tests/node/${name}.test.mjs`));
    });
  });
});
