/** Processes that use a file store, to be killed and stopped. */

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const CHILD = fileURLToPath(new URL("./file-store-child.mjs", import.meta.url));

/**
 * Starts the program of `file-store-child.mjs` that `args` name. `lines` grows with what it tells; `line(wanted)` resolves
 * when it told a line for which that holds; `ended` resolves to its exit code, or its signal.
 */
export function start(args, command = [process.execPath]) {
  const [file, ...before] = command;
  const child = spawn(file, [...before, CHILD, ...args.map(String)], { stdio: ["ignore", "pipe", "pipe"] });
  const lines = [];
  const waiting = new Set();
  let [rest, errors] = ["", ""];
  const look = () => waiting.forEach((check) => check());
  child.stdout.setEncoding("utf8").on("data", (text) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop();
    lines.push(...parts);
    look();
  });
  child.stderr.setEncoding("utf8").on("data", (text) => (errors += text));
  let over = false;
  const ended = new Promise((resolve) => {
    child.on("close", (code, signal) => {
      over = true;
      look();
      resolve(signal ?? code);
    });
  });
  const line = (wanted) =>
    new Promise((resolve, reject) => {
      const check = () => {
        const found = lines.find(wanted);
        if (found === undefined && !over) return;
        waiting.delete(check);
        if (found === undefined) reject(new Error(`it ended before: ${errors}`));
        else resolve(found);
      };
      waiting.add(check);
      check();
    });
  return { child, lines, line, ended, errors: () => errors };
}

/** Runs it to its end, which must be a good one, and returns what it told. */
export async function run(...args) {
  const { ended, lines, errors } = start(args);
  const code = await ended;
  if (code !== 0) throw new Error(`${args.join(" ")}: ended with ${code}\n${errors()}`);
  return lines;
}
