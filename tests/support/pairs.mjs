/** What has to hold of two stores of a browser that are copies of each other, whatever they are (D23). */

import assert from "node:assert/strict";
import { exchange } from "./api.mjs";
import { launch, makeProfile } from "./session.mjs";
import { ready, serveSessions } from "./session-server.mjs";

const TABLES = ["meta", "sessions", "log", "blobs", "views", "jobs"];

export const said = (count) => Array.from({ length: count }, (_, nth) => exchange(nth, 9_000)).flat();

/** The pages of `script`, which has the steps of `pairs-page.mjs`, and what they told. */
export class Pairs {
  /** Exchanges that are stored. */
  acknowledged = 0;
  /** What `serveSessions` returns. */
  pages;
  #call;

  /** `call` calls a step of a page. */
  constructor(call) {
    this.#call = call;
  }

  async serve(script) {
    this.pages = await serveSessions({ "/acknowledged": (nth) => ((this.acknowledged = nth + 1), null) }, script);
  }

  close() {
    return this.pages?.close();
  }

  async look(page, name) {
    return JSON.parse(await this.#call(page, "look", name));
  }

  /** Both copies are alike, row by row. */
  async checkSame(page, name) {
    const { rows, differing } = await this.#call(page, "differing", name);
    assert.ok(rows > 0, "no rows");
    assert.deepEqual(differing, []);
  }

  /** The suite that every store passes. */
  async checkSuite(t, page, kind) {
    const count = await this.#call(page, "cases", kind);
    assert.ok(count > 25);
    for (let i = 0; i < count; i++) {
      const { name, error } = await this.#call(page, "runCase", kind, i);
      await t.test(name, () => assert.equal(error, undefined));
    }
  }

  /** The first or the second copy is damaged table by table, then removed: all of it comes back, and it is told. */
  async checkHurt(page, pair, at) {
    const call = this.#call;
    assert.equal(await call(page, "open", pair), "synced");
    await call(page, "exchanges", pair, 0, 4);
    assert.equal(await call(page, "compact", pair), true);
    await call(page, "exchanges", pair, 4, 1);
    const whole = await this.look(page, pair);
    assert.deepEqual([whole.history, whole.lost, whole.told, whole.ok], [said(5), 0, [], true]);
    await call(page, "close", pair);
    await this.checkSame(page, pair);

    const hurts = TABLES.map((table) => [table, () => call(page, "damageTable", pair, at, table)]);
    hurts.push(["all of it", () => call(page, "remove", pair, at)]);
    let damaged = 0;
    for (const [what, hurt] of hurts) {
      if ((await hurt()) === 0) continue;
      damaged++;
      await page.reload();
      await ready(page);
      await call(page, "open", pair);
      const { told, ...found } = await this.look(page, pair);
      assert.deepEqual(found, { history: whole.history, prepared: whole.prepared, lost: 0, ok: true }, what);
      assert.ok(told.length > 0 && told.every(({ kind }) => kind === "repaired"), `${what}: ${JSON.stringify(told)}`);
      await call(page, "close", pair);
      await this.checkSame(page, pair);
    }
    assert.ok(damaged >= 6, `${damaged} kinds of damage`);
    await call(page, "open", pair);
    await call(page, "exchanges", pair, 5, 1);
    const { history, told } = await this.look(page, pair);
    assert.deepEqual([history, told], [said(6), []]);
    await call(page, "close", pair);
    await this.checkSame(page, pair);
  }

  /** Two tabs begin a pair and append to it at once: each message is there once, in its tab's order. */
  async checkTabs(t, tabs, pair, kind, count) {
    const call = this.#call;
    const texts = ["left", "right"].map((from) => Array.from({ length: count }, (_, nth) => `${from} ${nth}`));
    for (const tab of tabs) await call(tab, "open", pair, kind);
    const waits = await Promise.all(tabs.map((tab, at) => call(tab, "texts", pair, texts[at])));
    t.diagnostic(`longest of each ${waits.map((of) => Math.max(...of).toFixed(0))} ms`);
    const { history, lost, told, ok } = await this.look(tabs[0], pair);
    assert.deepEqual([lost, told, ok], [0, [], true]);
    const found = history.map(({ content }) => content);
    for (const own of texts) assert.deepEqual(found.filter((text) => own.includes(text)), own);
    assert.equal(found.length, 2 * count);
    for (const tab of tabs) assert.ok((await call(tab, "changes", pair)) > 0, "it heard nothing of the other");
    for (const tab of tabs) await call(tab, "close", pair);
  }

  /** Killed while it appends, of which one copy is removed then: what was acknowledged is stored. */
  async checkKills(t, browser, kills) {
    const call = this.#call;
    const profile = await makeProfile();
    let [running, stored] = [undefined, 0];
    try {
      for (let kill = 0; kill <= kills; kill++) {
        running = await launch(browser, { profile });
        const tab = await this.pages.openPage(running);
        if (kill > 0) await call(tab, "remove", "killed", kill % 2);
        await call(tab, "open", "killed");
        const { history, lost, told, ok } = await this.look(tab, "killed");
        assert.deepEqual([lost, ok], [0, true]);
        assert.deepEqual(history, said(history.length >> 2));
        const least = Math.max(this.acknowledged, stored);
        assert.ok(kill === 0 || (history.length >> 2 >= least && history.length >> 2 <= least + 1), `${history.length >> 2} of ${least}`);
        assert.deepEqual(told.map(({ kind }) => kind), kill > 0 ? ["repaired"] : []);
        stored = history.length >> 2;
        if (kill === kills) break;
        call(tab, "exchanges", "killed", stored, 1_000).catch(() => {});
        this.acknowledged = 0;
        while (this.acknowledged < stored + 3) await new Promise((resolve) => setTimeout(resolve, 10));
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 100));
        await running.kill();
      }
      t.diagnostic(`${kills} kills, ${stored} exchanges stored`);
    } finally {
      await running?.close();
      await profile.remove();
    }
  }
}
