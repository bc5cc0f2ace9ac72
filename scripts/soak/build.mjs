/** The tests in Rust, in the profile of the soak. */

import { must, say } from "../process.mjs";

/** Builds tests of these names, optimised; resolves to the path of each by its name. */
export async function buildTests(names) {
  const args = ["test", "--package", "context-compactor-store-tests", "--profile", "soak", "--no-run"];
  args.push(...names.flatMap((name) => ["--test", name]));
  say("soak", `cargo ${args.join(" ")}`);
  const output = await must("cargo", [...args, "--message-format", "json-render-diagnostics"]);
  const artifacts = output.split("\n").filter((line) => line.startsWith("{"));
  const tests = artifacts.map((line) => JSON.parse(line)).filter(({ executable }) => executable);
  return Object.fromEntries(tests.map(({ target, executable }) => [target.name, executable]));
}
