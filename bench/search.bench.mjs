/**
 * Searching the archive, beside textbook BM25 (whole messages, k1 1.2, b 0.75, no recency): how often one of the first hits is
 * a message that has what was asked for (`crates/store-tests/examples/search/`), and what the pages of terms cost and save.
 * With `--data FILE`, over the questions of that file alone; `docs/recall.md` has its shape.
 */

import { resolve } from "node:path";
import { example } from "./cargo.mjs";

export const title = "Search of the archive: what agents needed next, the name masked, and questions about what users said";

export async function run({ data } = {}) {
  const args = data === undefined ? [] : ["--data", resolve(data)];
  const stdout = await example("context-compactor-store-tests", "search", args).catch((error) => {
    // What is wrong with the file was printed.
    if (data !== undefined && error.code === 1) process.exit(1);
    throw error;
  });
  const lines = stdout.trim().split("\n");
  lines.filter((line) => !line.startsWith("{")).forEach((line) => console.log(line));
  return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
}
