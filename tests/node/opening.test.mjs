/** An IndexedDB that never answers: an error in time, which counts only the time that the page itself had. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "../support/bundle.mjs";

const { openDatabase } = await load(`export { openDatabase } from "./js/store/opening.ts";`);

/** Opens with an engine that forgets the request; `tick` lets time pass and says whether the call has ended. */
function forgotten(t) {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  const request = new EventTarget();
  globalThis.indexedDB = { open: () => request };
  t.after(() => delete globalThis.indexedDB);
  let error;
  openDatabase("forgotten", 100, { id: "x", encrypted: false }).catch((reason) => (error = reason));
  return {
    request,
    async tick(ms) {
      // In steps: the clock of a mock stands where a step ends.
      for (let at = 0; at < ms; at += 100) t.mock.timers.tick(100);
      await new Promise(setImmediate);
      return error;
    },
  };
}

test("an open request without any event is given up after 10 s", async (t) => {
  const { request, tick } = forgotten(t);
  assert.equal(await tick(9_400), undefined);
  const { code, message } = await tick(1_100);
  assert.equal(code, "store_unavailable");
  assert.match(message, /10 s.*reload/);
  // An answer that comes after all leaves no connection behind.
  let closed = 0;
  request.result = { close: () => closed++ };
  request.onsuccess();
  assert.equal(closed, 1);
});

test("the time that a page was frozen does not count", async (t) => {
  const { tick } = forgotten(t);
  await tick(1_000);
  t.mock.timers.setTime(Date.now() + 3_600_000);
  assert.equal(await tick(500), undefined);
  assert.equal(await tick(6_000), undefined);
  assert.equal((await tick(2_000))?.code, "store_unavailable");
});
