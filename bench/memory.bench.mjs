/** Memory that one large tool result takes, from before it is appended until it is offloaded. */

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const title = "Memory for one tool result, appended and offloaded, and after the next prompt (MB)";

const program = fileURLToPath(new URL("memory/measure.mjs", import.meta.url));
const megabytes = (bytes) => Math.round(bytes / 1e5) / 10;

export async function run() {
  const rows = [];
  for (const store of ["memory", "file"]) {
    for (const size of [1, 16, 64]) {
      const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", program, store, `${size * 1e6}`]);
      const { isOffloaded, appended, prepared, next, javascript } = JSON.parse(stdout);
      if (!isOffloaded) throw new Error("nothing was offloaded");
      rows.push({
        case: `${size} MB, ${store}`,
        "engine, append (MB)": megabytes(appended),
        "engine, offload (MB)": megabytes(prepared),
        "engine, next prompt (MB)": megabytes(next),
        "JavaScript, highest (MB)": megabytes(javascript),
      });
    }
  }
  return rows;
}
