/** Two copies of a store of which one does not open (D23): all is read from the other one, and nothing is written. */

import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { memoryStore, mirrorStore } from "context-compactor";
import { fileStore } from "context-compactor/node";
import { fails } from "../support/api.mjs";
import { folder } from "../support/file-store.mjs";
import { checkSame, Process, SESSION } from "../support/mirror.mjs";
import { collect, disks, moment, over, session } from "../support/mirror-pairs.mjs";

describe("D23: a copy that does not open", () => {
  const NAMES = ["first", "second"];

  /** The pair as a process has it for which one of the disks does not open, until it does. */
  const lacking = (pair, at, options) => {
    const process = Object.assign(new Process(), { without: pair[at] });
    return { store: over(pair, options, process), mount: () => (process.without = undefined) };
  };
  const texts = async (opened) => (await collect(opened.archive.history())).map(({ content }) => content);
  const say = (opened, content) => opened.append({ role: "user", content });
  const begun = async () => {
    const pair = disks();
    const opened = await session(over(pair));
    for (const content of ["one", "two"]) await say(opened, content);
    await opened.close();
    return pair;
  };

  for (const at of [0, 1]) {
    test(`the ${NAMES[at]}: all is read from the other with one warning, nothing is written, and the same store goes on when it opens`, async () => {
      const pair = await begun();
      const before = pair.map((disk) => disk.contents());
      const { store, mount } = lacking(pair, at);
      const opened = await session(store);
      assert.deepEqual(await texts(opened), ["one", "two"]);
      assert.equal((await opened.prepare()).messages.length, 2);
      assert.equal((await opened.archive.verify()).ok, true);
      await assert.rejects(say(opened, "three"), (error) => error.code === "store_unavailable" && error.message.includes(`the ${NAMES[at]} copy`));
      await moment();
      const warnings = opened.told.filter(({ message }) => message?.includes(`the ${NAMES[at]} copy`));
      assert.equal(warnings.length, 1, JSON.stringify(opened.told));
      assert.match(warnings[0].message, new RegExp(`read from the ${NAMES[1 - at]} copy, and nothing can be written`));
      assert.equal(opened.archive.durability, "none");
      assert.deepEqual(pair.map((disk) => disk.contents()), before, "nothing was written");
      mount();
      await say(opened, "four");
      assert.equal(opened.archive.durability, "synced");
      assert.deepEqual(await texts(opened), ["one", "two", "four"]);
      await opened.close();
      checkSame(...pair);
    });

    test(`the ${NAMES[at]}: it opens again as an empty one, and is made again`, async () => {
      const pair = await begun();
      const { store, mount } = lacking(pair, at);
      const opened = await session(store);
      assert.deepEqual(await texts(opened), ["one", "two"]);
      pair[at].lose();
      mount();
      await say(opened, "three");
      await moment();
      assert.ok(opened.told.some(({ kind, reason }) => kind === "repaired" && reason.includes(`${NAMES[at]} copy was made again`)), JSON.stringify(opened.told));
      await opened.close();
      assert.deepEqual(pair[1].contents(), pair[0].contents());
      pair[1 - at].lose();
      assert.deepEqual(await texts(await session(over(pair))), ["one", "two", "three"]);
    });
  }

  test("the first: who only reads goes on with it, too, as soon as it opens", async () => {
    const pair = await begun();
    const { store, mount } = lacking(pair, 0);
    const opened = await session(store);
    pair[0].lose();
    mount();
    assert.deepEqual(await texts(opened), ["one", "two"]);
    await moment();
    await texts(opened);
    await moment();
    assert.deepEqual(pair[0].contents(), pair[1].contents());
  });

  test("the first, with `first`: an append that no copy but the second would have is refused; without the second it goes on", async () => {
    const pair = await begun();
    const opened = await session(lacking(pair, 0, { acknowledge: "first" }).store);
    await assert.rejects(say(opened, "three"), fails("store_unavailable"));
    const other = await session(lacking(pair, 1, { acknowledge: "first" }).store);
    await say(other, "three");
    assert.equal(other.archive.durability, "synced");
    assert.deepEqual(await texts(other), ["one", "two", "three"]);
  });

  test("the first, while the second is new, being made or half written: nothing is read that is no whole copy", async () => {
    const refuses = (pair) => assert.rejects(lacking(pair, 0).store.read([SESSION]), fails("store_unavailable"));
    await refuses(disks());
    const made = await begun();
    made[1].lose();
    const process = new Process();
    process.dieAt = 25;
    await Promise.race([over(made, {}, process).check(), process.died]);
    assert.ok(made[1].keys().length > 0, "it was begun");
    await refuses(made);
    const half = await begun();
    const kept = [["meta", "mirror", "kept", JSON.stringify(SESSION)], new Uint8Array(9)];
    half[1].rows.commit({ expect: [], puts: [kept], deletes: [], durability: "strict" });
    await refuses(half);
  });

  test("both: the error of the first", async () => {
    const none = memoryStore();
    const gone = { ...none, read: () => Promise.reject(new Error("gone")), scan: () => Promise.reject(new Error("gone")) };
    await assert.rejects(mirrorStore(gone, { ...gone }).read([SESSION]), ({ message }) => /first copy: gone/.test(message));
  });

  test("another process has the first open: what it writes meanwhile is there, in both", async () => {
    const pair = await begun();
    const { store, mount } = lacking(pair, 0);
    const opened = await session(store);
    const other = await session(over(pair));
    await say(other, "three");
    await opened.prepare();
    assert.deepEqual(await texts(opened), ["one", "two", "three"]);
    mount();
    await say(opened, "four");
    assert.deepEqual(await texts(opened), ["one", "two", "three", "four"]);
    checkSame(...pair);
  });

  for (const at of [0, 1]) {
    test(`the ${NAMES[at]} of two directories is a file: told, read from the other, and made again in a new directory`, async (context) => {
      const parent = await folder(context);
      const paths = ["a", "b"].map((name) => join(parent, name));
      const open = () => session(mirrorStore(...paths.map((path) => fileStore(path))));
      const first = await open();
      for (const content of ["one", "two"]) await say(first, content);
      await first.close();
      await rm(paths[at], { recursive: true });
      await writeFile(paths[at], "no directory");
      const opened = await open();
      assert.deepEqual(await texts(opened), ["one", "two"]);
      await assert.rejects(say(opened, "three"), ({ message }) => message.includes(`the ${NAMES[at]} copy`));
      await opened.close();
      await rm(paths[at]);
      const again = await open();
      await say(again, "four");
      await again.close();
      for (const path of paths) assert.deepEqual(await texts(await session(fileStore(path))), ["one", "two", "four"]);
    });
  }
});
