/** Processes of Node that are killed while they append to a session and compact it (`storage` row 18). */

import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { check, Told } from "./kills-check.mjs";
import { KILLS_OF_A_SESSION, Sum } from "./kills-sum.mjs";
import { generator } from "./random.mjs";
import { serve } from "./session.mjs";
import { durable } from "./stores.mjs";

const CHILD = fileURLToPath(new URL("kills-child.mjs", import.meta.url));

/** As `killBrowser`, of a store that outlives a process. One process or two write to it at once. */
export async function killProcess(store, { kills, seed, progress = () => {} }) {
  const random = generator(seed);
  const sum = new Sum(store, seed);
  const place = await durable[store]();
  let told = new Told();
  const posts = Object.entries(Told.posts(() => told));
  const server = await serve(Object.fromEntries(posts.map(([path, tell]) => [path, (body) => tell(JSON.parse(body))])));
  const child = (options) =>
    fork(CHILD, [JSON.stringify({ origin: server.origin, folder: place.folder, ...options })]);
  const running = new Set();
  try {
    for (let nth = 0; nth < kills; nth++) {
      const session = `killed${Math.floor(nth / KILLS_OF_A_SESSION)}`;
      if (nth % KILLS_OF_A_SESSION === 0) told = sum.begin();
      for (let process = random(2); process >= 0; process--) {
        running.add(child({ action: "write", session, who: `w${nth}p${process}`, seed: random(1 << 30) }));
      }
      await told.more(4 + random(12));
      await new Promise((resolve) => setTimeout(resolve, random(200)));
      await Promise.all([...running].map(ended));
      running.clear();
      const after = `${session}/check/${nth}`;
      const since = told.acked.length;
      const reader = child({ action: "read", session, after });
      const [found] = await Promise.race([
        once(reader, "message"),
        once(reader, "disconnect").then(() => Promise.reject(new Error("the reader ended without an answer"))),
      ]);
      told.acked.push({ call: after, since });
      sum.add(check(found, told), `kill ${nth}`, Boolean(found.verified));
      progress(nth + 1, sum.counts());
    }
  } finally {
    await Promise.all([...running].map(ended));
    await server.close();
    await place.remove();
  }
  return sum;
}

/** Kills a process and waits until it is gone. */
async function ended(child) {
  const exit = once(child, "exit");
  if (child.exitCode === null && child.signalCode === null && child.kill("SIGKILL")) await exit;
}
