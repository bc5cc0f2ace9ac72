/** Sessions in real browsers: the default store, a reload, a worker, two tabs. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { browsers } from "../support/browser.mjs";
import { launch } from "../support/session.mjs";
import { Summaries, call, callInWorker, ready, serveSessions } from "../support/session-server.mjs";

const RESULT = "line of a result, 结果 😀\n".repeat(400);
const texts = (from, count) => Array.from({ length: count }, (_, at) => `${from} ${at}`);

const summaries = new Summaries();
let pages;

before(async () => {
  pages = await serveSessions({
    "/moment": () => new Promise((resolve) => setTimeout(resolve, Math.random() * 10)),
    "/summarise": (mark) => (mark === "at once" ? undefined : summaries.ask(mark)),
  });
});
after(() => pages?.close());

for (const name of browsers) {
  describe(name, () => {
    let session;
    before(async () => {
      session = await launch(name);
    });
    after(() => session?.close());

    for (const [where, run] of [
      ["a page", call],
      ["a module worker", callInWorker],
    ]) {
      test(`P17: what a large result took of memory in ${where} is given back, and the session goes on`, async () => {
        const page = await pages.openPage(session);
        const id = `large in ${where}`;
        await run(page, "open", "stays", "at once");
        await run(page, "append", "stays", "before");
        const { logged, same, isThere, ok } = await run(page, "outgrow", id, 19_000_000);
        assert.deepEqual(logged, ["The session goes on in a fresh engine: most of the memory of the other one was not used any more."]);
        assert.deepEqual(same, same.map((_, at) => at !== 2));
        assert.deepEqual([isThere, ok], [true, true]);
        await run(page, "append", "stays", "after");
        assert.deepEqual(await run(page, "prepared", "stays"), ["before", "after"]);
        await run(page, "delete", "stays");
      });

      test(`a session in ${where}, from its beginning to its deletion`, async () => {
        const page = await pages.openPage(session);
        const id = `life in ${where}`;
        await run(page, "open", id, "at once");
        assert.ok((await run(page, "databases")).includes("context-compactor"), "kept in IndexedDB by default");
        for (const nth of [1, 2, 3]) await run(page, "appendExchange", id, `call_${nth}`, `${nth} ${RESULT}`);
        const offloaded = await run(page, "seen", id);
        assert.deepEqual(Object.values(offloaded.texts), [1, 2, 3].map((nth) => `${nth} ${RESULT}`));
        for (const at of [2, 6, 10]) {
          assert.equal(offloaded.messages[at].content, `Tool result is at: ${offloaded.ledger[at].ref}`);
        }
        const compacted = await run(page, "compact", id);
        assert.equal(compacted.success, true);
        assert.match(compacted.messages[0].content, /^\[Compressed History\]\n\n/);
        const before = await run(page, "seen", id);
        assert.deepEqual(before.messages, compacted.messages);
        assert.deepEqual(before.messages.slice(1), offloaded.messages.slice(-before.messages.length + 1));

        await page.reload();
        await ready(page);
        assert.deepEqual(await run(page, "view", id), before);

        await run(page, "open", id, "at once");
        await run(page, "delete", id);
        assert.equal(await run(page, "codeOfUse", id), "closed");
        assert.deepEqual(await run(page, "view", id), { messages: [], ledger: [], texts: {} });
        await page.close();
      });
    }

    test("two tabs append to one session at once: every message is there once, each tab's in its order", async () => {
      const tabs = [await pages.openPage(session), await pages.openPage(session)];
      for (const tab of tabs) await call(tab, "open", "shared", "at once");
      const said = [texts("left", 30), texts("right", 30)];
      await Promise.all(tabs.map((tab, at) => call(tab, "say", "shared", said[at], true)));
      const { messages, ledger } = await call(tabs[0], "view", "shared");
      const found = messages.map(({ content }) => content);
      assert.deepEqual(found.filter((text) => text.startsWith("left")), said[0]);
      assert.deepEqual(found.filter((text) => text.startsWith("right")), said[1]);
      assert.equal(found.length, 60);
      assert.deepEqual(ledger.map(({ index }) => index), [...found.keys()]);
      assert.notDeepEqual(found, said.flat(), "the tabs never met: nothing was tested");
      for (const tab of tabs) await tab.close();
    });

    for (const [fallback, meanwhile] of [
      ["none", []],
      // What the second tab writes before it has its summary tells it of the first one's compaction.
      ["none", ["meanwhile"]],
      ["extractive", ["meanwhile"]],
    ]) {
      const how = `fallback ${fallback}, ${meanwhile.length} appended meanwhile`;
      test(`two tabs compact one session, ${how}: the first wins, the other is told`, async () => {
        const id = `contested, ${how}`;
        summaries.clear();
        const [first, second] = [await pages.openPage(session), await pages.openPage(session)];
        await call(first, "open", id, "first");
        await call(first, "say", id, texts("before", 12).map((text) => `${text} ${RESULT}`));
        await call(second, "open", id, "second", { fallback });
        const compactions = [first, second].map((tab) => call(tab, "compact", id));
        const [releaseFirst, releaseSecond] = [await summaries.asked("first"), await summaries.asked("second")];
        releaseFirst();
        const won = await compactions[0];
        assert.equal(won.success, true);
        await call(second, "say", id, meanwhile);
        releaseSecond();
        const lost = await compactions[1];
        assert.deepEqual([lost.success, lost.code], [false, "conflict"]);

        // The session holds the first one's context, and goes on in both tabs.
        await call(first, "say", id, ["first goes on"]);
        await call(second, "say", id, ["second goes on"]);
        const said = [...meanwhile, "first goes on", "second goes on"];
        const { messages, ledger } = await call(second, "view", id);
        assert.deepEqual(messages, [...won.messages, ...said.map((content) => ({ role: "user", content }))]);
        assert.deepEqual(ledger.map(({ index }) => index), [...Array(12 + said.length).keys()]);
        assert.deepEqual((await call(second, "seen", id)).messages, messages);
        for (const tab of [first, second]) await tab.close();
      });
    }
  });
}
