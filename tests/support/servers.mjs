/** Servers of databases that a test starts for itself, on sockets in a folder of their own, and may kill. */

import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { createClient } from "redis";
import { findServer } from "../../scripts/servers.mjs";

const exec = promisify(execFile);

/** Why a server cannot be started, for `skip`; false when it can. */
export const missing = (server) => !findServer(server) && `${server} is not installed`;

/** PostgreSQL does not run as root. */
function otherUser() {
  if (process.getuid?.() !== 0) return {};
  const id = (flag) => {
    for (const name of ["postgres", "nobody"]) {
      const { status, stdout } = spawnSync("id", [flag, name], { encoding: "utf8" });
      if (status === 0) return Number(stdout);
    }
    throw new Error("there is no user postgres and no user nobody");
  };
  return { uid: id("-u"), gid: id("-g") };
}

/** Starts `command` again and again until `answers` holds; `kill` ends it as a crash would. */
async function mortal(command, args, options, answers) {
  let child;
  const start = async () => {
    for (let tries = 1; ; tries++) {
      let said = "";
      child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
      for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (said += text));
      let ended = false;
      child.once("exit", () => (ended = true));
      while (!ended) {
        if (await answers().then(() => true, () => false)) return;
        await new Promise((resolve) => setTimeout(resolve, 25));
      }
      // What the one before it left is being cleared away.
      if (tries === 40) throw new Error(`${command} does not start: ${said}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  const end = async (signal) => {
    const exit = once(child, "exit");
    if (child.exitCode === null && child.signalCode === null && child.kill(signal)) await exit;
  };
  await start();
  return { start, end, kill: () => end("SIGKILL") };
}

/** A PostgreSQL: `{ at, kill, start, stop }`; clients connect to `at`. `settings` as in `synchronous_commit=off`. */
export async function startPostgres(...settings) {
  const program = findServer("postgres");
  const folder = await mkdtemp(join(tmpdir(), "context-compactor-postgres-"));
  const user = otherUser();
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid);
  chmodSync(folder, 0o755);
  const data = join(folder, "data");
  const options = { ...user, cwd: folder, env: { ...process.env, LC_ALL: "C" } };
  const initial = ["-D", data, "-U", "test", "-A", "trust", "-E", "UTF8", "--no-sync", "--no-instructions"];
  await exec(join(dirname(program), "initdb"), initial, options);
  const at = { host: folder, user: "test", database: "postgres" };
  const given = ["listen_addresses=", `unix_socket_directories=${folder}`, "shared_buffers=16MB", "max_connections=60", ...settings];
  const answers = async () => {
    const client = new pg.Client(at);
    client.on("error", () => {});
    try {
      await client.connect();
      await client.query("SELECT 1");
    } finally {
      await client.end().catch(() => {});
    }
  };
  const { start, end, kill } = await mortal(program, ["-D", data, ...given.flatMap((setting) => ["-c", setting])], options, answers);
  const stop = async () => {
    await end("SIGQUIT");
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  };
  return { at, start, kill, stop };
}

/** A Redis that keeps every write on the disk: `{ at, kill, start, stop }`; `at` is the path of its socket. */
export async function startRedis(...settings) {
  const folder = await mkdtemp(join(tmpdir(), "context-compactor-redis-"));
  const at = join(folder, "redis.sock");
  const given = ["--port", "0", "--unixsocket", at, "--dir", folder, "--save", "", "--appendonly", "yes", "--appendfsync", "always", ...settings];
  const answers = async () => {
    const client = createClient({ socket: { path: at, reconnectStrategy: false } });
    client.on("error", () => {});
    try {
      await client.connect();
      await client.ping();
    } finally {
      client.destroy();
    }
  };
  const { start, end, kill } = await mortal(findServer("redis"), given, { cwd: folder }, answers);
  const stop = async () => {
    await end("SIGKILL");
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  };
  return { at, start, kill, stop };
}
