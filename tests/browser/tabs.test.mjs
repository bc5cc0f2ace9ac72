/** Several tabs on one session: each gets its turn, and hears what the others wrote. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { browsers } from "../support/browser.mjs";
import { launch } from "../support/session.mjs";
import { call, callInWorker, serveSessions } from "../support/session-server.mjs";

/** With it the waits are held to their bounds, over as many appends as those are meant for. */
const measured = process.env.CC_TURNS !== undefined;
const APPENDS = measured ? 500 : 100;

const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];
const untimed = (changes) => changes.map(({ messages, generation }) => ({ messages, generation }));

let pages;
before(async () => {
  pages = await serveSessions({});
});
after(() => pages?.close());

for (const name of browsers) {
  describe(name, () => {
    let session;
    before(async () => {
      session = await launch(name);
    });
    after(() => session?.close());

    /** As many tabs, each with the session `id` open. */
    async function tabs(count, id, kind = "default", run = call) {
      const opened = [];
      for (let nth = 0; nth < count; nth++) {
        const tab = await pages.openPage(session);
        await run(tab, "openOver", id, id, kind);
        opened.push(tab);
      }
      return opened;
    }

    for (const [writers, bound] of [
      [2, 10],
      [4, 20],
    ]) {
      test(`D10: ${writers} tabs append at once: none waits for all the others, nothing is lost`, async (context) => {
        const id = `turns of ${writers}`;
        const all = await tabs(writers, id);
        const ended = await Promise.all(all.map((tab, nth) => call(tab, "appendMany", id, `tab ${nth}`, APPENDS)));
        for (const [nth, { waits }] of ended.entries()) {
          const [most, middle] = [Math.max(...waits), median(waits)];
          const total = waits.reduce((sum, ms) => sum + ms, 0);
          const figures = [most, middle, total].map((ms) => ms.toFixed(1));
          context.diagnostic(`tab ${nth}: longest ${figures[0]} ms, median ${figures[1]} ms, in all ${figures[2]} ms, ratio ${(most / middle).toFixed(1)}`);
        }
        assert.deepEqual(ended.flatMap(({ failed }) => failed), []);
        const found = await call(all[0], "logged", id);
        assert.equal(found.length, writers * APPENDS);
        for (let nth = 0; nth < writers; nth++) {
          const mine = found.filter((text) => text.startsWith(`tab ${nth} `));
          assert.deepEqual(mine, Array.from({ length: APPENDS }, (_, at) => `tab ${nth} ${at}`));
        }
        const waits = ended.flatMap(({ waits }) => waits);
        if (measured) assert.ok(Math.max(...waits) <= bound * median(waits), `longest wait over ${bound} × the median`);
        for (const tab of all) await tab.close();
      });
    }

    test("D10: a tab that is stopped with the lock in its hands stops nobody", async () => {
      const id = "stopped";
      const [stopped, other] = await tabs(2, id);
      await call(stopped, "append", id, "before");
      await call(stopped, "holdLocks");
      // It takes the lock and never writes.
      void call(stopped, "append", id, "never written").catch(() => {});
      await call(other, "appendMany", id, "other", 3).then(({ failed }) => assert.deepEqual(failed, []));
      assert.deepEqual(await call(other, "logged", id), ["before", "other 0", "other 1", "other 2"]);
      for (const tab of [stopped, other]) await tab.close();
    });

    for (const kind of ["default", "own", "encrypted"]) {
      for (const [where, run] of [
        ["a page", call],
        ["a worker", callInWorker],
      ]) {
        test(`D20: ${where} hears what another tab appended, store: ${kind}`, async (context) => {
          const id = `heard in ${where}, ${kind}`;
          const [writer] = await tabs(1, id, kind);
          await call(writer, "append", id, "first");
          const [reader] = await tabs(1, id, kind, run);
          const written = await call(writer, "append", id, "second");
          const [change] = await run(reader, "changes", id, 1);
          assert.ok(change, "nothing was heard");
          context.diagnostic(`heard ${change.at - written} ms after it was acknowledged`);
          assert.ok(change.at - written < 2_000);
          assert.deepEqual(untimed([change]), [{ messages: 2, generation: 0 }]);
          assert.equal(await run(reader, "count", id), 2);
          assert.deepEqual(await run(reader, "prepared", id), ["first", "second"]);
          // Back again, and never of one's own.
          await run(reader, "append", id, "third");
          assert.deepEqual(untimed(await call(writer, "changes", id, 1)), [{ messages: 3, generation: 0 }]);
          assert.equal((await run(reader, "changes", id)).length, 1);
          for (const tab of [writer, reader]) await tab.close();
        });
      }
    }

    test("D20: a compaction is heard of with its generation, and a session that another tab began", async () => {
      const id = "begun elsewhere";
      const [reader, writer] = await tabs(2, id);
      await call(writer, "append", id, "hello");
      assert.deepEqual(untimed(await call(reader, "changes", id, 1)), [{ messages: 1, generation: 0 }]);
      for (let nth = 0; nth < 12; nth++) await call(writer, "append", id, `${nth} ${"some long text ".repeat(80)}`);
      assert.equal((await call(writer, "compact", id)).success, true);
      const before = await call(writer, "prepared", id);
      await call(writer, "append", id, "the end");
      await call(reader, "changes", id, 14);
      assert.deepEqual(untimed(await call(reader, "changes", id)).at(-1), { messages: 14, generation: 1 });
      assert.deepEqual(await call(reader, "prepared", id), [...before, "the end"]);
      for (const tab of [reader, writer]) await tab.close();
    });

    test("D20: two sessions of one page over one store hear each other, and none itself", async () => {
      const page = await pages.openPage(session);
      for (const name of ["first", "second"]) await call(page, "openOver", name, "one page", "shared");
      await call(page, "append", "first", "from the first");
      assert.deepEqual(untimed(await call(page, "changes", "second", 1)), [{ messages: 1, generation: 0 }]);
      await call(page, "append", "second", "from the second");
      assert.deepEqual(untimed(await call(page, "changes", "first", 1)), [{ messages: 2, generation: 0 }]);
      assert.equal((await call(page, "changes", "second")).length, 1);
      await page.close();
    });

    test("D20: without channels, what another tab wrote is there at the next prepare", async () => {
      const id = "no channel";
      const all = [await pages.openPage(session), await pages.openPage(session)];
      for (const tab of all) {
        await call(tab, "hideChannels");
        await call(tab, "openOver", id, id, "default");
      }
      const [writer, reader] = all;
      await call(writer, "append", id, "first");
      await call(writer, "append", id, "second");
      assert.deepEqual(await call(reader, "changes", id), []);
      assert.deepEqual(await call(reader, "prepared", id), ["first", "second"]);
      assert.deepEqual(untimed(await call(reader, "changes", id)), [{ messages: 2, generation: 0 }]);
      for (const tab of all) await tab.close();
    });

    test("D20: a channel says which session and which version, is the database's own, and ends with the session", async () => {
      const page = await pages.openPage(session);
      await call(page, "watchChannels");
      await call(page, "openOver", "plain", "a name that is nobody's business", "default");
      await call(page, "openOver", "sealed", "another such name", "encrypted");
      await call(page, "append", "plain", "a text that is nobody's business");
      await call(page, "append", "sealed", "another such text");
      const { names, said } = await call(page, "channels");
      assert.equal(names.length, 2);
      for (const name of names) assert.match(name, /^context-compactor\/[0-9a-z]{20,}$/);
      assert.equal(said.length, 2);
      for (const message of said) {
        assert.deepEqual(Object.keys(message).sort(), ["sid", "ver"]);
        assert.match(message.sid, /^[0-9a-z]{26}$/);
        assert.equal(message.ver, 1);
      }
      for (const name of ["plain", "sealed"]) await call(page, "close", name);
      assert.equal((await call(page, "channels")).open, 0);
      await page.close();
    });
  });
}
