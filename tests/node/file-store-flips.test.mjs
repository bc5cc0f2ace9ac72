/**
 * A file store whose files are damaged: what is damaged is lost and nothing else (fault row 12). `CC_FLIPS` says how many
 * bits are flipped, `CC_FLIPS_SEED` which.
 */

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { damageChecks } from "../support/file-damage.mjs";
import { gapChecks } from "../support/file-gaps.mjs";
import { seedChecks } from "../support/file-seeds.mjs";
import { folder, loadStore, QUICK } from "../support/file-store.mjs";
import { encryptedStore } from "../support/offload.mjs";
import { generator } from "../support/random.mjs";
import { checkSeen, flipSessions, lookAll, makeSessions } from "../support/session-flips.mjs";

for (const [name, check] of Object.entries({ ...damageChecks, ...gapChecks, ...seedChecks })) {
  test(`damage: ${name}`, async (context) => check(await loadStore([QUICK]), await folder(context)));
}

// ---- sessions -------------------------------------------------------------------------------------------------------

const { CC_FLIPS = "30", CC_FLIPS_SEED = "7" } = process.env;
const COUNT = CC_FLIPS === "all" ? 1_000 : Number(CC_FLIPS);

let encryptionKey;
before(async () => {
  encryptionKey = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
});

/** So many bits out of all that there are. */
function* drawn(bits, count = COUNT) {
  const random = generator(Number(CC_FLIPS_SEED));
  for (let nth = 0; nth < count; nth++) yield random(bits);
}

const PLACES = {
  "D2: files": (inner) => inner,
  "D4: encrypted files": (inner) => encryptedStore(inner, { encryptionKey }),
};

for (const [place, over] of Object.entries(PLACES)) {
  test(`${place} of three sessions, a bit flipped anywhere: one message at most, told, and every session goes on`, async (context) => {
    const directory = await folder(context);
    await makeSessions(directory, over);
    const counts = await flipSessions(directory, over, drawn);
    context.diagnostic(`count ${JSON.stringify({ check: "flips", of: place, seed: Number(CC_FLIPS_SEED), ...counts })}`);
    assert.equal(counts.flips, COUNT);
    assert.ok(COUNT < 20 || (counts["messages lost"] > 0 && counts["without effect"] > 0), JSON.stringify(counts));
  });
}

/** Stores that are wrong in one way each, and what the flips say of them. */
const WRONG_STORES = {
  "one row closes the session": [/is not what was written/, (values) => {
    const damaged = values.find((value) => value?.damaged);
    if (damaged) throw Object.assign(new Error(damaged.damaged), { code: "store_corrupt" });
    return values;
  }],
  "a damaged row takes those of its page along": [/one message is missing at most/, (values) => {
    const damaged = values.find((value) => value?.damaged);
    return damaged ? values.map((value) => value && damaged) : values;
  }],
};

for (const [wrong, [says, change]] of Object.entries(WRONG_STORES)) {
  test(`D2: the flips find a store in which ${wrong}`, async (context) => {
    const over = (inner) => ({
      ...inner,
      read: async (keys) => change(await inner.read(keys)),
      async scan(prefix, options) {
        const found = await inner.scan(prefix, options);
        const values = change(found.map(([, value]) => value));
        return found.map(([key], i) => [key, values[i]]);
      },
    });
    const directory = await folder(context);
    await makeSessions(directory, over);
    await assert.rejects(flipSessions(directory, over, (bits) => drawn(bits, 200)), says);
  });
}

test("D2: the check finds a change that nobody told of", async (context) => {
  const directory = await folder(context);
  const over = (inner) => inner;
  await makeSessions(directory, over);
  const { a: whole } = await lookAll(directory, over);
  const wrongs = [
    (seen) => seen.history.pop(),
    (seen) => (seen.history[3] += " "),
    (seen) => seen.lines.pop(),
    (seen) => (seen.messages.at(-1).content += " "),
    (seen) => (seen.fates[0] = "dropped "),
    (seen) => (seen.texts[Object.keys(seen.texts)[0]] += " "),
    (seen) => (seen.texts[Object.keys(seen.texts)[0]] = { code: "store_corrupt" }),
    // A gap that `verify` does not know of.
    (seen) => {
      seen.gaps.push({ index: seen.history.length - 1, messages: 1 });
      for (const list of [seen.history, seen.lines]) list.pop();
    },
  ];
  assert.deepEqual(checkSeen(structuredClone(whole), whole, "whole"), { places: [], isTold: false });
  for (const [nth, change] of wrongs.entries()) {
    const seen = structuredClone(whole);
    change(seen);
    assert.throws(() => checkSeen(seen, whole, "wrong"), assert.AssertionError, `wrong ${nth}`);
  }
});
