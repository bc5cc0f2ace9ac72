/** An example of a crate, run. */

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const cwd = fileURLToPath(new URL("../", import.meta.url));

/** What example `name` of `crate` prints, on all recordings unless `CC_DATA_SET` says otherwise; how far it is goes to stderr at
 *  once. It ends when this process is asked to. */
export async function example(crate, name, args = []) {
  const cargo = ["run", "--quiet", "--profile", "soak", "--package", crate, "--example", name, "--", ...args];
  const env = { CC_DATA_SET: "full", ...process.env };
  const asked = promisify(execFile)("cargo", cargo, { cwd, env, maxBuffer: 1 << 28 });
  const end = () => asked.child.kill();
  asked.child.stderr.pipe(process.stderr);
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, end);
  try {
    return (await asked).stdout;
  } finally {
    for (const signal of ["SIGINT", "SIGTERM"]) process.removeListener(signal, end);
  }
}
