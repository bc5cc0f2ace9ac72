/** Processes of Node that are killed while they append to a session and compact it (`storage` row 18). */

import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { killRounds } from "./kills-rounds.mjs";
import { durable } from "./stores.mjs";

const CHILD = fileURLToPath(new URL("kills-child.mjs", import.meta.url));

/**
 * As `killBrowser`, of a store that outlives a process. `make()` makes its place, whose `where` a process connects to, and
 * which is a `folder` of files otherwise; `server` is killed now and then, and the processes some time after it; `execPath`
 * is that of their Node.
 */
export async function killProcess(store, { make = durable[store], server, execPath = process.execPath, ...options }) {
  const place = await make();
  const running = new Set();
  const kill = async (random) => {
    const isServer = server && random?.(2) === 0;
    if (isServer) {
      await server.kill();
      await server.start();
      // Those who were cut off go on.
      await new Promise((resolve) => setTimeout(resolve, random(500)));
    }
    await Promise.all([...running].map(ended));
    running.clear();
    return isServer ? "server" : "processes";
  };
  return killRounds(store, { version: `Node ${process.version}`, ...options }, (origin) => {
    const { folder, where } = place;
    const child = (options) => fork(CHILD, [JSON.stringify({ origin, folder, where, ...options })], { execPath });
    return {
      write: (options) => void running.add(child({ action: "write", ...options })),
      kill,
      async read(options) {
        const reader = child({ action: "read", ...options });
        const [found] = await Promise.race([
          once(reader, "message"),
          once(reader, "disconnect").then(() => Promise.reject(new Error("the reader ended without an answer"))),
        ]);
        return found;
      },
      async end() {
        await kill();
        await place.remove();
      },
    };
  });
}

/** Kills a process and waits until it is gone. */
async function ended(child) {
  const exit = once(child, "exit");
  if (child.exitCode === null && child.signalCode === null && child.kill("SIGKILL")) await exit;
}
