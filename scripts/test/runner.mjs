/** Steps of `npm test`: each writes a log of its own, so that several can run side by side. */

import { createWriteStream, mkdirSync } from "node:fs";
import { spawn } from "node:child_process";
import { join, relative } from "node:path";
import { root } from "../process.mjs";

/** Where the logs and the counts of the last run are. */
export const reports = join(root, "target/test-reports");

/** A busy machine is not a silent one. */
const STILL_MS = 30_000;

const running = new Map();

/** `3:07` */
export function minutes(ms) {
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/**
 * Runs `work(log)` under a name and prints when it begins and ends. Resolves to what `work` does, with `name` and `ms`.
 * What throws is one failure.
 */
export async function step(name, work) {
  mkdirSync(reports, { recursive: true });
  const path = join(reports, `${name.replaceAll(/[^\w.-]+/g, "-")}.log`);
  const log = createWriteStream(path);
  const started = Date.now();
  running.set(name, started);
  console.log(`${name}: begins`);
  let result;
  try {
    result = await work(log);
  } catch (error) {
    log.write(`${error?.stack ?? error}\n`);
    result = { failed: 1, failures: [String(error?.message ?? error)] };
  }
  await new Promise((resolve) => log.end(resolve));
  running.delete(name);
  const done = { passed: 0, failed: 0, skipped: 0, failures: [], slowest: [], skips: [], ...result, name, ms: Date.now() - started };
  const skipped = done.skipped > 0 ? `, ${done.skipped} skipped` : "";
  console.log(`${name}: ${done.passed} passed, ${done.failed} failed${skipped} in ${minutes(done.ms)}`);
  if (done.failed > 0) console.log(`${name}: see ${relative(root, path)}`);
  return done;
}

/** Prints what is still running from time to time; call the result to stop. */
export function heartbeat() {
  const timer = setInterval(() => {
    const names = Array.from(running, ([name, since]) => `${name} (${minutes(Date.now() - since)})`);
    if (names.length > 0) console.log(`still running: ${names.join(", ")}`);
  }, STILL_MS);
  return () => clearInterval(timer);
}

/** Runs a command in the repository; its output goes to the log. Resolves to `{ ok, output }`. */
export function logged(log, command, args, { cwd = root, env = {} } = {}) {
  log.write(`$ ${[command, ...args].join(" ")}\n`);
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    const collect = (chunk) => {
      output += chunk;
      log.write(chunk);
    };
    child.stdout.setEncoding("utf8").on("data", collect);
    child.stderr.setEncoding("utf8").on("data", collect);
    child.on("error", (error) => resolve({ ok: false, output: `${command}: ${error.message}` }));
    child.on("close", (code) => resolve({ ok: code === 0, output }));
  });
}

/** A run that ended badly has failed, whatever it counted. */
export function failedAtLeastOnce(result, ok) {
  return ok || result.failed > 0 ? result : { ...result, failed: 1 };
}
