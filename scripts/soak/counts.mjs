/** Programs that print lines `count {…}`. */

import { spawn } from "node:child_process";
import { join, relative } from "node:path";
import { createInterface } from "node:readline";
import { Problem, root } from "../process.mjs";

/** Runs a program to its end, one after the other as each uses every core; resolves to its counts. */
export function countsOf(binary, args, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(binary, args, {
      cwd: join(root, "crates/store-tests"),
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const counts = [];
    createInterface({ input: child.stdout }).on("line", (line) => {
      console.log(line);
      const found = line.match(/count (\{.*\})$/);
      if (found) counts.push(JSON.parse(found[1]));
    });
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (signal) reject(new Problem(`soak: ended by ${signal}; nothing was written`));
      const failed = counts.some(({ failures }) => failures > 0);
      // A test that failed in a way that it did not count.
      if (code !== 0 && !failed) counts.push({ check: relative(root, binary), of: "the whole run", failures: 1 });
      resolve(counts);
    });
  });
}
