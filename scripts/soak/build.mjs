/** The tests in Rust, in the profile of the soak. */

import { must, say } from "../process.mjs";

/** Builds the tests, optimised; resolves to the path of each by its name. */
export async function buildTests() {
  say("soak", "cargo test --profile soak --no-run");
  const args = ["test", "--package", "context-compactor-store-tests", "--profile", "soak", "--no-run"];
  const output = await must("cargo", [...args, "--message-format", "json-render-diagnostics"]);
  const artifacts = output.split("\n").filter((line) => line.startsWith("{"));
  const tests = artifacts.map((line) => JSON.parse(line)).filter(({ executable }) => executable);
  return Object.fromEntries(tests.map(({ target, executable }) => [target.name, executable]));
}
