/**
 * Searching the archive: how often one of the first passages is of a message that has what the agent needed next, on
 * recorded sessions of agents (`crates/store-tests/examples/search/`), and what the pages of terms cost and save.
 */

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const title = "Search of the archive: the agent's own words before it names what it needs, the name masked";

export async function run() {
  const cargo = ["run", "--quiet", "--profile", "soak", "--package", "context-compactor-store-tests", "--example", "search"];
  const { stdout } = await promisify(execFile)("cargo", cargo, {
    cwd: fileURLToPath(new URL("../", import.meta.url)),
    env: { CC_DATA_SET: "full", ...process.env },
    maxBuffer: 1e8,
  });
  const lines = stdout.trim().split("\n");
  lines.filter((line) => !line.startsWith("{")).forEach((line) => console.log(line));
  return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
}
