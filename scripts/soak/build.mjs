/** The tests in Rust, in the profile of the soak. */

import { must, say } from "../process.mjs";

/** Builds the tests of stores and properties, optimized; resolves to the program's path. Its modules are chosen by name. */
export async function buildTests() {
  const args = ["test", "--package", "context-compactor-store-tests", "--profile", "soak", "--no-run"];
  args.push("--test", "all");
  say("soak", `cargo ${args.join(" ")}`);
  const output = await must("cargo", [...args, "--message-format", "json-render-diagnostics"]);
  const artifacts = output.split("\n").filter((line) => line.startsWith("{"));
  return artifacts.map((line) => JSON.parse(line)).findLast(({ executable }) => executable).executable;
}
