/** What left the context is held by nobody but the app: heap snapshots of Chromium. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { launch } from "../support/browser.mjs";
import { serve } from "../support/serve.mjs";

const TURNS = Number(process.env.CC_HELD_TURNS ?? 400);
const pkg = fileURLToPath(new URL("../../pkg/", import.meta.url));

/** Every message has a field of this name, which a snapshot tells from all else. */
const MARK = "markOfTheApp";

const page = `<!doctype html><link rel="icon" href="data:,"><script type="module">
  import { openSession } from "/dist/entry/main.js";
  const session = await openSession({ id: "held", contextWindow: 16_000, preset: "offload" });
  const message = (role, nth) => ({ role, content: (role + " " + nth + " ").repeat(30), ${MARK}: "yes" });
  globalThis.turns = async (from, to) => {
    let count;
    for (let nth = from; nth < to; nth++) {
      await session.append(message("user", nth), message("assistant", nth));
      count = (await session.prepare()).messages.length;
    }
    return count;
  };
  globalThis.keep = (count) => { globalThis.kept = Array.from({ length: count }, (_, nth) => message("user", nth)); };
  globalThis.ready = true;
</script>`;

/** How many objects of the page have the mark. Taking a snapshot collects garbage first. */
async function marked(client) {
  const parts = [];
  const collect = ({ chunk }) => parts.push(chunk);
  client.on("HeapProfiler.addHeapSnapshotChunk", collect);
  await client.send("HeapProfiler.takeHeapSnapshot", { reportProgress: false });
  client.off("HeapProfiler.addHeapSnapshotChunk", collect);
  const { snapshot, edges, strings } = JSON.parse(parts.join(""));
  const { edge_fields: fields, edge_types: types } = snapshot.meta;
  const [type, name] = [fields.indexOf("type"), fields.indexOf("name_or_index")];
  const property = types[type].indexOf("property");
  let count = 0;
  for (let at = 0; at < edges.length; at += fields.length) {
    if (edges[at + type] === property && strings[edges[at + name]] === MARK) count++;
  }
  return count;
}

test(`F15: over ${TURNS} turns in Chromium, messages that left the context are collected`, { timeout: 1_200_000 }, async (context) => {
  const server = await serve(pkg, { pages: { "/held": page } });
  context.after(() => server.close());
  const browser = await launch("chrome");
  context.after(() => browser.close());
  const tab = await browser.newPage();
  tab.setDefaultTimeout(1_000_000);
  await tab.goto(`${server.url}/held`);
  await tab.waitForFunction("globalThis.ready");
  const client = await tab.createCDPSession();
  await client.send("HeapProfiler.enable");
  const step = Math.min(500, Math.ceil(TURNS / 4));
  for (let from = 0; from < TURNS; from += step) {
    const held = await tab.evaluate((from, to) => globalThis.turns(from, to), from, Math.min(from + step, TURNS));
    const alive = await marked(client);
    console.log(`turn ${Math.min(from + step, TURNS)}: ${alive} objects, ${held} in the context`);
    assert.ok(alive <= held + 10, `${alive} objects are alive, ${held} messages are in the context`);
  }
  // What the page itself holds is seen.
  const before = await marked(client);
  await tab.evaluate((count) => globalThis.keep(count), 100);
  assert.ok((await marked(client)) >= before + 100);
});
