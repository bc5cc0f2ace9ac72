/** Licenses of all that is built and tested with, in Rust and in JavaScript. `node scripts/lint/licenses.mjs [FOLDER]`. */

import satisfies from "spdx-satisfies";
import { Problem, root, script } from "../process.mjs";
import { crates, npmPackages } from "./packages.mjs";

/** Licenses whose code may be a part of the package. */
const ALLOWED = [
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "CC0-1.0",
  "ISC",
  "MIT",
  "Unicode-3.0",
  "Unlicense",
  "Zlib",
];

/** Further ones of tools: the tests use them as they are, and nothing of them is in the package. */
const TOOLS = new Map([
  [/^(@img\/sharp-|sharp$)/, ["LGPL-3.0-or-later"]],
  [/^(axe-core|lightningcss)/, ["MPL-2.0"]],
  [/^caniuse-lite$/, ["CC-BY-4.0"]],
  [/^postal-mime$/, ["MIT-0"]],
  [/^spdx-(exceptions|ranges)$/, ["CC-BY-3.0"]],
]);

/** Why a package may not be used, if so. */
function problem({ name, version, license }) {
  if (!license) return `${name} ${version} says no license`;
  const further = Array.from(TOOLS).flatMap(([names, licenses]) => (names.test(name) ? licenses : []));
  try {
    // Older crates write a slash for "or".
    if (satisfies(license.replaceAll("/", " OR "), [...ALLOWED, ...further])) return undefined;
  } catch {
    // No expression of SPDX: nobody can say what it allows.
  }
  return `${name} ${version}: ${license}`;
}

await script(async () => {
  const folder = process.argv[2] ?? root;
  const packages = [...npmPackages(folder), ...(await crates(folder))];
  const problems = [...new Set(packages.map(problem).filter(Boolean))];
  if (problems.length > 0) throw new Problem(`licenses that are not in scripts/lint/licenses.mjs:\n${problems.join("\n")}`);
});
