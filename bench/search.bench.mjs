/**
 * Searching the archive: how often one of the first passages is of a message that has what the agent needed next, on
 * recorded sessions of agents (`crates/store-tests/examples/search/`), and what the pages of terms cost and save.
 */

import { example } from "./cargo.mjs";

export const title = "Search of the archive: the agent's own words before it names what it needs, the name masked";

export async function run() {
  const stdout = await example("context-compactor-store-tests", "search");
  const lines = stdout.trim().split("\n");
  lines.filter((line) => !line.startsWith("{")).forEach((line) => console.log(line));
  return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
}
