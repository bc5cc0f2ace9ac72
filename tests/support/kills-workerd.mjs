/** Durable Objects that are ended, and processes of workerd that are killed, under sessions (`storage` row 16). */

import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { killRounds } from "./kills-rounds.mjs";
import { bundleWorker, startMortal } from "./worker.mjs";

const { version } = createRequire(createRequire(import.meta.url).resolve("miniflare"))("workerd/package.json");

/** As `killBrowser`, of objects with SQLite and a bucket. Some of the results are kept in the bucket. */
export async function killWorkerd(name, options) {
  const bundled = await bundleWorker(fileURLToPath(new URL(".", import.meta.url)), "./kills-worker.mjs");
  const folder = await mkdtemp(join(tmpdir(), "context-compactor-killed-"));
  const start = () =>
    startMortal(bundled, {
      durableObjects: { WRITTEN: { className: "Written", useSQLite: true } },
      durableObjectsPersist: join(folder, "objects"),
      r2Buckets: ["BIG"],
      r2Persist: join(folder, "bucket"),
    });
  return killRounds(name, { version: `workerd ${version}`, name: "big", ...options }, async (origin) => {
    let host = await start();
    /** The session that is written to now, and the calls that no answer is expected of. */
    let session;
    const open = new Set();
    const ask = async (body) => {
      const response = await host.worker.dispatchFetch("http://localhost/", { method: "POST", body: JSON.stringify(body) });
      if (!response.ok) throw new Error(await response.text());
      return response.json();
    };
    const noted = (call) => open.add(call.catch(() => {}));
    return {
      write(options) {
        session = options.session;
        noted(ask({ action: "write", origin, ...options }));
      },
      async kill(random) {
        const isObject = random(2) === 0;
        if (isObject) noted(ask({ action: "abort", session }));
        else {
          await host.kill();
          host = await start();
        }
        await Promise.all(open);
        open.clear();
        return isObject ? "object" : "process";
      },
      read: (options) => ask({ action: "read", ...options }),
      async end() {
        await host.kill();
        await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
      },
    };
  });
}
