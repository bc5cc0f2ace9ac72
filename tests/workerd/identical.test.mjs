/** One package, the same bytes everywhere: Node, Chromium, Firefox and the Workers runtime. */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { after, before, describe, test } from "node:test";
import * as library from "../support/library.mjs";
import { longTask } from "../fixtures/long-task.mjs";
import { browsers } from "../support/browser.mjs";
import { everything } from "../support/everything.mjs";
import { launch, serve } from "../support/session.mjs";
import { longHistory, transcripts } from "../support/transcripts.mjs";
import { bundleWorker, startWorker } from "../support/worker.mjs";

const TOKENS = 200_000;
const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const PAGE = `<!doctype html><link rel="icon" href="data:,"><script type="module">
  import * as main from "/pkg/dist/entry/main.js";
  import * as history from "/pkg/dist/entry/history.js";
  import * as tokens from "/pkg/dist/entry/tokens-inline.js";
  import { everything } from "/support/everything.mjs";
  globalThis.everything = async (name) => everything({ ...main, ...history, ...tokens }, await (await fetch("/history/" + name, { method: "POST" })).json());
</script>`;

/** Histories by name; real ones only where they are. */
const histories = {
  "a composed task, openai-chat": () => longTask("openai-chat"),
  "a composed task, anthropic": () => longTask("anthropic"),
  "recorded tasks, openai-chat": () => recorded("core/openai/claude_code"),
  "recorded tasks, anthropic": () => recorded("core/anthropic/claude_code"),
};

async function recorded(file) {
  const records = transcripts(file);
  return records && (await library.repairHistory(longHistory(records, TOKENS, library.estimateTokens))).messages;
}

const composed = new Map();

/** The history called `name`, made once, or undefined; of a recorded one, a promise. */
function history(name) {
  if (!composed.has(name)) composed.set(name, histories[name]());
  return composed.get(name);
}

/** What Node makes of it. */
const inNode = new Map();
async function expected(name) {
  if (!inNode.has(name)) inNode.set(name, await everything(library, await history(name)));
  return inNode.get(name);
}

let server;
before(async () => {
  const answers = Object.keys(histories).map((name) => [`/history/${encodeURIComponent(name)}`, () => history(name)]);
  server = await serve({
    "/": PAGE,
    "/pkg/": path("../../pkg"),
    "/support/": path("../support"),
    ...Object.fromEntries(answers),
  });
});
after(() => server?.close());

describe("Node", () => {
  for (const name of Object.keys(histories)) {
    test(`${name}: large, valid, compacted, and the same again`, async (t) => {
      const messages = await history(name);
      if (!messages) return t.skip("the recorded transcripts are not here (CC_DATA)");
      assert.ok(library.estimateTokens(messages) >= TOKENS, `${library.estimateTokens(messages)} tokens`);
      const found = await expected(name);
      const { problems } = await library.validateHistory(messages);
      assert.deepEqual(problems.filter(({ message }) => !message.includes("lone surrogate")), []);
      const { success, summary, previousTokens, currentTokens } = JSON.parse(found["compact: the rest"]);
      assert.equal(success, true);
      assert.match(summary, /Asked [0-9a-f]+, attempt 1, (history|merge)/);
      assert.ok(currentTokens < previousTokens / 2);
      same(await everything(library, messages), found);
    });
  }
});

for (const name of browsers) {
  describe(name, () => {
    let session, page;
    before(async () => {
      session = await launch(name);
      page = (await session.openPage(`${server.origin}/`)).page;
      await page.waitForFunction(() => "everything" in globalThis);
    });
    after(() => session?.close());
    onEach((name) => page.evaluate((name) => globalThis.everything(name), encodeURIComponent(name)));
  });
}

describe("workerd", () => {
  let worker;
  before(async () => {
    worker = await startWorker(await bundleWorker(path("."), "./everything-worker.mjs"));
  });
  after(() => worker?.dispose());
  onEach(async (name) => {
    const body = JSON.stringify(await history(name));
    const response = await worker.dispatchFetch("http://localhost/", { method: "POST", body });
    return response.json();
  });
});

/** A test for each history: what `run` resolves to is what Node makes of it. */
function onEach(run) {
  for (const name of Object.keys(histories)) {
    test(name, async (t) => {
      if (!(await history(name))) return t.skip("the recorded transcripts are not here (CC_DATA)");
      same(await run(name), await expected(name));
    });
  }
}

/** Compares results by name; says where they part rather than show megabytes. */
function same(found, wanted) {
  assert.deepEqual(Object.keys(found), Object.keys(wanted));
  for (const [name, text] of Object.entries(wanted)) {
    if (found[name] === text) continue;
    let at = 0;
    while (found[name][at] === text[at]) at++;
    const around = (text) => JSON.stringify(text.slice(Math.max(0, at - 60), at + 60));
    assert.fail(`${name}: ${around(found[name])} in place of ${around(text)}, from character ${at}`);
  }
}
