/**
 * Hostile text and sizes through the store of Durable Objects (fault 21). `CC_HOSTILE=1` takes 10^5 messages
 * and the largest results.
 */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { bundleWorker, startWorker } from "../support/worker.mjs";

const options = process.env.CC_HOSTILE === "1" ? { most: 100_000, large: true } : { most: 2_000 };

let worker;
before(async () => {
  const bundled = await bundleWorker(fileURLToPath(new URL("../support", import.meta.url)), "./hostile-worker.mjs");
  worker = await startWorker(bundled, {
    durableObjects: { HOSTILE: { className: "Hostile", useSQLite: true } },
    r2Buckets: ["BIG"],
  });
});
after(() => worker?.dispose());

async function ask(question) {
  const body = JSON.stringify({ ...question, options });
  const response = await worker.dispatchFetch("http://localhost/", { method: "POST", body });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

for (const store of ["tables", "tables and a bucket"]) {
  test(`hostile text and sizes in a Durable Object with ${store}`, async (context) => {
    let objects = 0;
    for (const name of await ask({ store })) {
      await context.test(name, async () => {
        const found = await ask({ store, name });
        assert.equal(found.wrong, null);
        objects += found.objects;
      });
    }
    assert.equal(objects > 0, store.includes("bucket"), `${objects} objects in the bucket`);
  });
}
