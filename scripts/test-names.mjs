/**
 * `npm run test-names -- COMMIT`: which tests that commit has and the working tree has not, and the other way round, by
 * name. A test that moved to another file is the same test. Fails when one is gone.
 */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Problem, root, script } from "./process.mjs";

const isTest = (path) => /\.(rs|test\.mjs)$/.test(path) && !path.includes("node_modules");
const git = (...args) => execFileSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 1 << 30 });

/** How often each name occurs; two tests of one name are two tests. */
function names(paths, read) {
  const found = new Map();
  for (const path of paths.filter(isTest)) {
    const text = read(path);
    const pattern = path.endsWith(".rs") ? /#\[test\][^{]*?\bfn (\w+)/g : /\b(?:test|it)\(\s*["`](.+?)["`],/g;
    for (const [, name] of text.matchAll(pattern)) found.set(name, (found.get(name) ?? 0) + 1);
  }
  return found;
}

const more = (one, other) =>
  Array.from(one).flatMap(([name, count]) => Array(Math.max(0, count - (other.get(name) ?? 0))).fill(name));

await script(async () => {
  const [commit] = process.argv.slice(2);
  if (!commit) throw new Problem("npm run test-names -- COMMIT");
  const before = names(git("ls-tree", "-r", "--name-only", commit).split("\n"), (path) => git("show", `${commit}:${path}`));
  const files = git("ls-files", "--cached", "--others", "--exclude-standard").split("\n");
  const now = names(files, (path) => readFileSync(join(root, path), "utf8"));
  const [gone, added] = [more(before, now), more(now, before)];
  for (const name of added) console.log(`new   ${name}`);
  for (const name of gone) console.log(`gone  ${name}`);
  console.log(`${gone.length} gone, ${added.length} new`);
  if (gone.length > 0) process.exitCode = 1;
});
