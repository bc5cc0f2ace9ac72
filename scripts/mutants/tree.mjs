/** A copy of the tree that mutants are tried in, and what runs there. */

import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";

/**
 * Brings a copy of a folder up to date, but for the folders `except`. Only what differs is written: what was compiled stays
 * as long as it can.
 */
export function mirror(from, to, except = []) {
  if (except.includes(from)) return;
  mkdirSync(to, { recursive: true });
  const names = readdirSync(from).filter((name) => name !== "node_modules");
  for (const name of readdirSync(to)) {
    if (!names.includes(name)) rmSync(join(to, name), { recursive: true });
  }
  for (const name of names) {
    const [source, target] = [join(from, name), join(to, name)];
    if (statSync(source).isDirectory()) mirror(source, target, except);
    else if (!existsSync(target) || !readFileSync(source).equals(readFileSync(target))) cpSync(source, target);
  }
}

/** The output of a process and its exit code, which is `null` when it was ended: by itself, or as it took too long. */
export function ran(command, args, { cwd, env, timeout }) {
  return new Promise((resolve, reject) => {
    // A file that hangs has been started by Node's runner: both are of one group.
    const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "ignore"], detached: true });
    const timer = setTimeout(() => process.kill(-child.pid, "SIGKILL"), timeout);
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk) => (text += chunk));
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ text, code });
    });
  });
}
