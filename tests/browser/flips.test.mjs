/**
 * Bits that flip in the files of the browsers' own databases between two runs (`storage` row 12). `CC_BROWSER_FLIPS` says how
 * many for each engine, `CC_BROWSER_FLIPS_SEED` which. `npm run soak -- --only flips` does more.
 */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { check, flipBrowser } from "../support/browser-flips.mjs";
import { DRIVEN } from "../support/engines.mjs";

const flips = Number(process.env.CC_BROWSER_FLIPS ?? 3);
const seed = Number(process.env.CC_BROWSER_FLIPS_SEED ?? 21);
const chosen = process.env.CC_BROWSERS?.split(",") ?? Object.keys(DRIVEN);

for (const engine of chosen) {
  describe(engine, () => {
    test("D2, D9: a bit is flipped in the files of a database: every loss is told, and the session goes on", async (t) => {
      const { counts, problems } = await flipBrowser(engine, { flips, seed });
      t.diagnostic(`count ${JSON.stringify(counts)}`);
      assert.deepEqual(problems, [], `CC_BROWSER_FLIPS_SEED=${seed} flips the same bits`);
      assert.equal(counts.flips, flips);
    });
  });
}

test("D13: a row that cannot be unpacked closes its connection in Chromium, and costs no other where the database stays", async () => {
  const frame = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
  let chosen = 0;
  /** The one behind that of the database before. */
  const choose = (bytes) => {
    const frames = [];
    for (let at = 0; (at = bytes.indexOf(frame, at)) >= 0; at += frame.length) frames.push(at);
    assert.ok(frames.length > 0, "nothing is packed");
    return frames[chosen++ % frames.length] + 2 * frame.length;
  };
  const { counts, problems } = await flipBrowser("chromium-sqlite", { flips: 5, seed: 1, choose });
  assert.deepEqual(problems, []);
  assert.equal(counts["without effect"], 0);
  // Chromium 148 begins the whole database anew over it; 156 does not.
  const begun = counts["databases begun anew"];
  const most = (begun * counts.messages) / counts.flips + (counts.flips - begun);
  assert.ok(counts["messages lost"] <= most, JSON.stringify(counts));
  assert.equal(counts.silent, 0);
});

test("D9: the check of the flips finds what is silent, and what does not go on", () => {
  const written = ["a", "b", "c"];
  const nothing = { told: [], gaps: [], problems: [] };
  const found = ({ again, ...over }) => {
    const first = { ...nothing, history: written, errors: [], ...over };
    return { ...first, more: ["d"], again: { ...nothing, history: [...first.history, "d"], ...again } };
  };
  const loss = { kind: "session", reason: "it is not there" };
  const rights = [{}, { history: ["a", "c"], gaps: [{ seq: 1 }] }, { history: [], told: [loss] }, { history: [], errors: [{ code: "data_loss" }] }, { again: { history: written, gaps: [{ seq: 3 }] } }];
  for (const right of rights) assert.deepEqual(check(written, found(right)).wrong, []);
  const wrongs = [
    { history: ["a", "c"] },
    { history: ["a", "c"], told: [{ kind: "repaired", reason: "it is mended" }] },
    { history: ["a", "x", "c"], told: [loss] },
    { history: ["b", "a", "c"] },
    { failed: { code: "store_unavailable", message: "no" } },
    { again: { history: written } },
    { again: { history: ["a", "b", "x", "d"] } },
    { again: { history: ["a", "b", "d", "c"], gaps: [{ seq: 1 }] } },
  ];
  for (const wrong of wrongs) assert.equal(check(written, found(wrong)).wrong.length > 0, true, JSON.stringify(wrong));
  assert.equal(check(written, found({ history: [] })).silent, 1);
});
