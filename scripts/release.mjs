/**
 * `npm run release -- VERSION`: versions, changelog, build, checked archives of the packages, commit and tag. It publishes
 * nothing: CI does when the tag is pushed. `--dry-run` does it all in a copy, with the packages as they were built.
 */

import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { build } from "./build.mjs";
import { Problem, must, root, run, say, script } from "./process.mjs";
import { setup } from "./setup.mjs";

const NAME = "context-compactor";
/** The folders of what is published, a line that shows that it runs, and where that is in the package. */
const PACKAGES = {
  pkg: ["version", "console.log(version())"],
  "pkg-evaluator": ["baselines", "baselines().then(({ policies }) => console.log(policies.length > 0))"],
  "pkg-vocabularies": ["text", "console.log(text.length > 500_000)", "/cl100k_base"],
  "pkg-ui": ["stepsOf", "console.log(stepsOf([]) === 'Compacted')"],
};

const [version = "", flag] = process.argv.slice(2);
const tag = `v${version}`;
/** In the copy of a dry run nothing is compiled: the engine there has the version of before. */
const isBuilt = flag === "--built";

const read = (path) => readFileSync(join(root, path), "utf8");
const write = (path, text) => writeFileSync(join(root, path), text);
const current = JSON.parse(read("pkg/package.json")).version;
const git = (...args) => must("git", args);
const npm = (args, options) => must("npm", args, options);

const fragments = readdirSync(join(root, "changes"))
  .filter((name) => name !== "README.md")
  .sort()
  .map((name) => `changes/${name}`);

await script(async () => {
  await check();
  if (flag === "--dry-run") return rehearse();
  try {
    await setVersions();
    writeChangelog();
    if (!isBuilt) {
      await setup();
      await build();
    }
    const archives = await pack();
    await checkArchives(archives);
    await git("commit", "--quiet", "--all", "--message", `Release ${version}`);
    await git("tag", "--annotate", tag, "--message", version);
    const shown = archives.map((archive) => relative(root, archive)).join(", ");
    say("release", `${shown}: what CI publishes when the tag is pushed: git push --follow-tags`);
  } catch (error) {
    say("release", "failed; git reset --hard takes back what was written");
    throw error;
  }
});

/** Whether there can be such a release, before anything is written. */
async function check() {
  if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)) throw new Problem("usage: npm run release -- VERSION [--dry-run]");
  if (flag && !["--dry-run", "--built"].includes(flag)) throw new Problem(`release: there is no ${flag}`);
  const [given, before] = [version, current].map((text) => text.replace(/-.*/, ""));
  if (given.localeCompare(before, "en", { numeric: true }) < 0) throw new Problem(`release: ${version} is older than ${current}`);
  if ((await git("status", "--porcelain")) !== "") throw new Problem("release: there are changes that are not committed");
  if ((await git("tag", "--list", tag)) !== "") throw new Problem(`release: there is a tag ${tag}`);
  if (fragments.length === 0) throw new Problem("release: there is no change in changes/");
  const bad = fragments.filter((path) => !path.endsWith(".md") || !read(path).startsWith("* "));
  if (bad.length > 0) throw new Problem(`release: no list of changes in ${bad.join(", ")}`);
}

/** Into the manifests, and from there into the lock files. */
async function setVersions() {
  say("release", `${current} → ${version}`);
  const replace = (path, key) => {
    const [before, after] = [current, version].map((value) => key.replace("VERSION", value));
    if (!read(path).includes(before)) throw new Problem(`release: ${path} has no ${before}`);
    write(path, read(path).replace(before, after));
  };
  replace("Cargo.toml", '\nversion = "VERSION"');
  for (const folder of Object.keys(PACKAGES)) replace(`${folder}/package.json`, '"version": "VERSION"');
  for (const workspace of ["bench", "tests", "www"]) replace(`${workspace}/package.json`, `"${NAME}": "VERSION"`);
  for (const workspace of ["tests", "www"]) {
    for (const part of ["evaluator", "ui"]) replace(`${workspace}/package.json`, `"${NAME}-${part}": "VERSION"`);
  }
  for (const workspace of ["bench", "tests"]) replace(`${workspace}/package.json`, `"${NAME}-vocabularies": "VERSION"`);
  await npm(["install", "--package-lock-only", "--ignore-scripts", "--offline", "--no-audit", "--no-fund"]);
  await must("cargo", ["update", "--quiet", "--workspace", "--offline"]);
}

/** The fragments become the newest entry. */
function writeChangelog() {
  const entries = fragments.map((path) => `${read(path).trimEnd()}\n`).join("");
  const [head, ...older] = read("CHANGELOG.md").split(/\n(?=## )/);
  const date = new Date().toISOString().slice(0, 10);
  write("CHANGELOG.md", [head, `## ${version} — ${date}\n\n${entries}`, ...older].join("\n"));
  for (const path of fragments) rmSync(join(root, path));
}

async function pack() {
  const folder = join(root, "target/release-package");
  mkdirSync(folder, { recursive: true });
  // What npm warns of would stand beside the JSON.
  const args = ["pack", "--json", "--loglevel=error", "--pack-destination", folder];
  const archives = [];
  for (const from of Object.keys(PACKAGES)) {
    const packed = JSON.parse(await npm(args, { cwd: join(root, from) }));
    archives.push(join(folder, packed[0].filename));
  }
  return archives;
}

/** The archives, installed in an empty project: their versions and files, and that they run. CI goes through every host. */
async function checkArchives(archives) {
  const folder = mkdtempSync(join(tmpdir(), `${NAME}-release-`));
  try {
    writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }\n');
    await npm(["install", "--offline", "--no-audit", "--no-fund", ...archives], { cwd: folder });
    for (const [from, [member, line, part = ""]] of Object.entries(PACKAGES)) {
      const { name } = JSON.parse(read(`${from}/package.json`));
      const installed = join(folder, "node_modules", name);
      const manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
      if (manifest.version !== version) throw new Problem(`release: ${name} says ${manifest.version}`);
      const missing = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"].filter((file) => !readdirSync(installed).includes(file));
      if (missing.length > 0) throw new Problem(`release: ${name} lacks ${missing.join(", ")}`);
      // Each host loads its own file of an entry; below they are loaded in Node alone.
      const absent = paths(manifest.exports).filter((path) => !path.includes("*") && !existsSync(join(installed, path)));
      if (absent.length > 0) throw new Problem(`release: ${name} lacks ${absent.join(", ")}`);
      const module = `import { ${member} } from "${name}${part}"; ${line}`;
      const common = `const { ${member} } = require("${name}${part}"); ${line}`;
      const expected = member === "version" ? (isBuilt ? current : version) : "true";
      for (const [type, code] of Object.entries({ module, commonjs: common })) {
        const found = await must(process.execPath, [`--input-type=${type}`, "--eval", code], { cwd: folder });
        if (found.trim() !== expected) throw new Problem(`release: ${name} says ${found.trim()}`);
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The files that some `exports` name, each once. */
function paths(ways) {
  return typeof ways === "string" ? [ways] : [...new Set(Object.values(ways).flatMap(paths))];
}

async function rehearse() {
  const copy = mkdtempSync(join(tmpdir(), `${NAME}-rehearsal-`));
  try {
    await git("clone", "--quiet", root, copy);
    for (const folder of Object.keys(PACKAGES)) cpSync(join(root, folder), join(copy, folder), { recursive: true });
    const who = { NAME: "dry run", EMAIL: "dry-run@localhost" };
    const env = Object.fromEntries(
      ["AUTHOR", "COMMITTER"].flatMap((role) => Object.entries(who).map(([key, value]) => [`GIT_${role}_${key}`, value])),
    );
    const { ok } = await run(process.execPath, [join(copy, "scripts/release.mjs"), version, "--built"], { cwd: copy, env });
    if (!ok) throw new Problem("release: the dry run failed");
    console.log(await must("git", ["show", "--stat", "--format=%s (%D)"], { cwd: copy }));
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}
