/** H25: a release is made in a copy of the repository, and nothing of it leaves the copy. */

import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { evaluator, exec, pkg, temporaryFolder, ui, vocabularies } from "./project.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const who = { NAME: "test", EMAIL: "test@localhost" };
const env = { ...process.env };
for (const [key, value] of Object.entries(who)) for (const role of ["AUTHOR", "COMMITTER"]) env[`GIT_${role}_${key}`] = value;

const { version: current } = JSON.parse(readFileSync(join(pkg, "package.json"), "utf8"));
/** A version that can be the next one. */
const NEXT = current.replace(/\d+/, (major) => Number(major) + 1);

/** The files of the working tree as the one commit of a repository, with the built package. */
async function copyOf(context) {
  const folder = await temporaryFolder(context);
  const git = async (...args) => (await exec("git", args, { cwd: folder, env })).stdout;
  const { stdout } = await exec("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root });
  for (const file of new Set(stdout.split("\0").filter((file) => file && existsSync(join(root, file))))) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    cpSync(join(root, file), join(folder, file));
  }
  writeFileSync(join(folder, "changes/X1.md"), "* **A change** of the copy.\n");
  await git("init", "--quiet");
  await git("add", "--all");
  await git("commit", "--quiet", "--message", "All");
  for (const [from, name] of [[pkg, "pkg"], [evaluator, "pkg-evaluator"], [vocabularies, "pkg-vocabularies"], [ui, "pkg-ui"]]) cpSync(from, join(folder, name), { recursive: true });
  const read = (path) => readFileSync(join(folder, path), "utf8");
  const release = (...args) => exec(process.execPath, [join(folder, "scripts/release.mjs"), ...args], { env });
  return { folder, git, read, release };
}

test("H25: a dry run makes the release and leaves nothing behind", async (context) => {
  const { git, release, read } = await copyOf(context);
  const before = await git("rev-parse", "HEAD");
  const { stdout } = await release(NEXT, "--dry-run");
  assert.match(stdout, new RegExp(`^Release ${NEXT} .*tag: v${NEXT}`, "m"));
  for (const path of ["CHANGELOG.md", "Cargo.lock", "Cargo.toml", "changes/X1.md", "package-lock.json", "pkg-evaluator/package.json", "pkg-ui/package.json", "pkg-vocabularies/package.json", "pkg/package.json"]) {
    assert.match(stdout, new RegExp(`^ ${path} +\\|`, "m"));
  }
  assert.deepEqual([await git("rev-parse", "HEAD"), await git("tag"), await git("status", "--porcelain")], [before, "", ""]);
  assert.ok(!read("CHANGELOG.md").includes(NEXT));
});

test("H25: a release is a commit and a tag, with one version everywhere and the changes in the changelog", async (context) => {
  const { folder, git, release, read } = await copyOf(context);
  const { stdout } = await release(NEXT, "--built");
  for (const name of ["context-compactor", "context-compactor-evaluator", "context-compactor-ui", "context-compactor-vocabularies"]) {
    assert.match(stdout, new RegExp(`target/release-package/${name}-${NEXT}\\.tgz.*: what CI publishes`));
    assert.ok(existsSync(join(folder, `target/release-package/${name}-${NEXT}.tgz`)));
  }
  assert.deepEqual([await git("log", "-1", "--format=%s"), await git("describe")], [`Release ${NEXT}\n`, `v${NEXT}\n`]);
  assert.equal(await git("status", "--porcelain"), "");

  const { packages } = JSON.parse(read("package-lock.json"));
  const ofWorkspaces = ["bench", "tests", "www"].flatMap((path) => {
    const own = [JSON.parse(read(`${path}/package.json`)).dependencies, packages[path].dependencies];
    return own.flatMap((names) => Object.keys(names).filter((name) => name.startsWith("context-compactor")).map((name) => names[name]));
  });
  assert.equal(ofWorkspaces.length, 18);
  const ofPackages = ["pkg", "pkg-evaluator", "pkg-ui", "pkg-vocabularies"].flatMap((path) => [JSON.parse(read(`${path}/package.json`)).version, packages[path].version]);
  const versions = [...ofPackages, ...ofWorkspaces];
  const { stdout: metadata } = await exec("cargo", ["metadata", "--no-deps", "--offline", "--locked", "--format-version", "1"], { cwd: folder });
  versions.push(...JSON.parse(metadata).packages.map(({ version }) => version));
  assert.deepEqual([...new Set(versions)], [NEXT]);
  assert.ok(versions.length > 15);

  const [head, newest] = read("CHANGELOG.md").split(/^(?=## )/m);
  assert.match(head, /^# Changelog\n/);
  assert.match(newest, new RegExp(`^## ${NEXT} — \\d{4}-\\d\\d-\\d\\d\\n\\n\\* `));
  assert.ok(newest.includes("\n* **A change** of the copy.\n"));
  assert.deepEqual(readdirSync(join(folder, "changes")), ["README.md"]);

  await assert.rejects(release(NEXT, "--dry-run"), { stderr: `release: there is a tag v${NEXT}\n` });
  const later = NEXT.replace(/\d+$/, (patch) => Number(patch) + 1);
  await assert.rejects(release(later, "--dry-run"), { stderr: "release: there is no change in changes/\n" });
  await assert.rejects(release(current, "--dry-run"), { stderr: `release: ${current} is older than ${NEXT}\n` });
});

test("H25: what cannot be released is refused", async (context) => {
  const { folder, git, release } = await copyOf(context);
  const refused = (args, stderr) => assert.rejects(release(...args), { stderr });
  await refused([], "usage: npm run release -- VERSION [--dry-run]\n");
  await refused(["next"], "usage: npm run release -- VERSION [--dry-run]\n");
  await refused([NEXT, "--publish"], "release: there is no --publish\n");
  writeFileSync(join(folder, "changes/X2.md"), "A change.\n");
  await refused([NEXT], "release: there are changes that are not committed\n");
  await git("add", "--all");
  await git("commit", "--quiet", "--message", "Another");
  await refused([NEXT], "release: no list of changes in changes/X2.md\n");
  await git("reset", "--quiet", "--hard", "HEAD~1");

  // The package is checked as it would be installed.
  rmSync(join(folder, "pkg/dist/entry/main.js"));
  await refused([NEXT, "--built"], "release: context-compactor lacks ./dist/entry/main.js\n");
  rmSync(join(folder, "pkg/README.md"));
  await git("reset", "--quiet", "--hard");
  await refused([NEXT, "--built"], "release: context-compactor lacks README.md\n");
  assert.equal(await git("tag"), "");
});
