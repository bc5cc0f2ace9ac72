/** All packages that the lock files name, installed for this platform or not. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { must } from "../process.mjs";

export function npmPackages(folder) {
  const { packages } = JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8"));
  return Object.entries(packages)
    .filter(([path, { link }]) => path.includes("node_modules/") && !link)
    .map(([path, { name, version, license }]) => ({ name: name ?? path.split("node_modules/").pop(), version, license }));
}

export async function crates(folder) {
  const args = ["metadata", "--quiet", "--locked", "--format-version", "1"];
  return JSON.parse(await must("cargo", args, { cwd: folder })).packages;
}
