/** Crates that a manifest declares and no source names. `node scripts/lint/crates.mjs [FOLDER]`. */

import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { Problem, must, root, script } from "../process.mjs";

/** Where a crate may be used, by the kind of its dependency. */
const PLACES = { normal: ["src"], build: ["build.rs"], dev: ["src", "tests", "benches", "examples"] };

/** Text of the sources at a path, without lines of comments. */
function textAt(path) {
  if (!existsSync(path)) return "";
  const files = statSync(path).isFile() ? [path] : readdirSync(path, { recursive: true }).map((name) => join(path, name));
  const sources = files.filter((file) => file.endsWith(".rs")).map((file) => readFileSync(file, "utf8"));
  return sources.join("\n").replaceAll(/^\s*\/\/.*$/gm, "");
}

const isTest = ({ kind }) => kind.includes("test");

/** What a manifest lists for `cargo machete` as used without being named is left out. */
function unused({ manifest_path, dependencies, metadata, targets }) {
  const ignored = metadata?.["cargo-machete"]?.ignored ?? [];
  return dependencies
    .filter(({ name }) => !ignored.includes(name))
    .filter(({ name, rename, kind }) => {
      const places = PLACES[kind ?? "normal"].map((place) => join(dirname(manifest_path), place));
      if (kind === "dev") places.push(...targets.filter(isTest).map(({ src_path }) => dirname(src_path)));
      const identifier = (rename ?? name).replaceAll("-", "_");
      return !new RegExp(`\\b${identifier}(::|;| as )`).test(places.map(textAt).join("\n"));
    })
    .map(({ name }) => `${manifest_path}: ${name}`);
}

await script(async () => {
  const args = ["metadata", "--quiet", "--no-deps", "--offline", "--format-version", "1"];
  const { packages } = JSON.parse(await must("cargo", args, { cwd: process.argv[2] ?? root }));
  const found = packages.flatMap(unused);
  if (found.length > 0) throw new Problem(`dependencies that nothing uses:\n${found.join("\n")}`);
});
