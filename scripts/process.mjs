/** Processes and messages of the scripts. Plain Node, so that they run before anything is installed. */

import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Root of the repository. */
export const root = fileURLToPath(new URL("..", import.meta.url));

/** An error that is shown as its message alone. */
export class Problem extends Error {}

/** One line on what is done now. */
export function say(step, what) {
  console.log(`${step}: ${what}`);
}

/**
 * Runs a command in the repository and resolves to `{ ok, output }`.
 *
 * `output` of the options: `show` passes it through, `both` also returns it, `hide` only returns it.
 */
export function run(command, args, { output = "show", env = {}, cwd = root } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: output === "show" ? "inherit" : ["ignore", "pipe", "pipe"],
      shell: process.platform === "win32" && command === "npm",
    });
    let text = "";
    const collect = (sink) => (chunk) => {
      text += chunk;
      if (output === "both") sink.write(chunk);
    };
    child.stdout?.setEncoding("utf8").on("data", collect(process.stdout));
    child.stderr?.setEncoding("utf8").on("data", collect(process.stderr));
    child.on("error", (error) => resolve({ ok: false, output: `${command}: ${error.message}` }));
    child.on("close", (code) => resolve({ ok: code === 0, output: text }));
  });
}

/** Runs a command that must succeed; its output is shown only when it fails. */
export async function must(command, args, options = {}) {
  const { ok, output } = await run(command, args, { output: "hide", ...options });
  if (!ok) throw new Problem(`${command} ${args.join(" ")} failed\n${output}`.trimEnd());
  return output;
}

/** Whether a command can be started. */
export function exists(command) {
  return !spawnSync(command, ["--version"], { stdio: "ignore" }).error;
}

/** Runs a script's `main`: a `Problem` is printed as one message, and its exit code is 1. */
export async function script(main) {
  try {
    await main();
  } catch (error) {
    console.error(error instanceof Problem ? error.message : error);
    process.exitCode = 1;
  }
}
