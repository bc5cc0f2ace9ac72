/** Servers of frameworks and bundlers, as processes. */

import { spawn } from "node:child_process";
import { createServer } from "node:net";

/**
 * Starts a server, whose argument `PORT`, and variable, is a port that nobody listens on, and waits until it answers. Resolves to
 * its `url`, what it `said` until now, and how to `stop` it.
 */
export async function startServer([program, ...args], { cwd, env = process.env }) {
  const port = String(await freePort());
  const given = args.map((word) => (word === "PORT" ? port : word));
  const child = spawn(program, given, { cwd, env: { ...env, PORT: port, NEXT_TELEMETRY_DISABLED: "1" }, detached: true });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text));
  const ended = new Promise((done) => child.once("exit", done));
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, "SIGKILL");
    await ended;
  };
  const url = `http://localhost:${port}`;
  const early = ended.then(() => Promise.reject(new Error(`${program} ${given.join(" ")} ended:\n${said}`)));
  await Promise.race([early, whenReady(url, child)]);
  return { url, said: () => said, stop };
}

/** A port that nobody listens on. */
async function freePort() {
  const server = createServer();
  await new Promise((listening) => server.listen(0, listening));
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return port;
}

/** Waits until a server answers, or has ended. */
async function whenReady(url, child) {
  while (child.exitCode === null && child.signalCode === null) {
    const response = await fetch(url).catch(() => undefined);
    if (response) return response.body?.cancel();
    await new Promise((done) => setTimeout(done, 100));
  }
}
