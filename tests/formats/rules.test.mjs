/**
 * Rules: the engine's verdict on histories whose messages were dropped, doubled and moved, against a second opinion
 * (rules.mjs); and what repair makes of them.
 */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { repairHistory, validateHistory } from "context-compactor/history";
import fc from "fast-check";
import { compacted } from "../support/formats.mjs";
import { kinds } from "./fixtures/index.mjs";
import { play } from "./fixtures/text.mjs";
import { sound } from "./rules.mjs";
import { shapeProblems } from "./schemas/index.mjs";

/** What happens to a history: each takes it, and where. */
const EVENTS = {
  drop: (messages, at) => messages.toSpliced(at, 1),
  double: (messages, at) => messages.toSpliced(at, 0, ...messages.slice(at, at + 1)),
  swap: (messages, at) => messages.toSpliced(at, 2, ...messages.slice(at, at + 2).reverse()),
  cut: (messages, at) => messages.slice(0, at + 1),
  begin: (messages, at) => messages.slice(at),
};

/** Some events with their places: shares of the length, so that they stand for something in what is left too. */
const damages = fc.array(
  fc.tuple(fc.constantFrom(...Object.keys(EVENTS)), fc.double({ min: 0, max: 0.999, noNaN: true })),
  { minLength: 1, maxLength: 3 },
);

/** Every event at every place, alone. */
const singles = (messages) =>
  Object.keys(EVENTS).flatMap((event) => messages.map((_, at) => [[event, (at + 0.5) / messages.length]]));

const damaged = (messages, damages) =>
  damages.reduce((left, [event, place]) => EVENTS[event](left, Math.floor(place * left.length)), messages);

for (const [format, isSound] of Object.entries(sound)) {
  const { scenes } = kinds[format];

  describe(format, () => {
    const history = play(scenes, 1, 60);
    const options = { numRuns: 1_500, seed: 7 };

    test("both take every scene, and what a compaction makes of them", async () => {
      assert.ok(isSound(history));
      const twice = play(scenes, 2, 60);
      for (let keep = 1; keep <= twice.length / 2; keep++) {
        const { messages } = await compacted(format, twice, keep);
        assert.ok(isSound(messages), `${keep} kept`);
      }
    });

    test("both say the same of a damaged history", async () => {
      const verdicts = new Set();
      const check = async (events) => {
        const messages = damaged(history, events);
        const { problems } = await validateHistory(messages, { format });
        assert.equal(isSound(messages), problems.length === 0, JSON.stringify({ events, problems }));
        verdicts.add(problems.length === 0);
      };
      for (const single of singles(history)) await check(single);
      await fc.assert(fc.asyncProperty(damages, check), options);
      assert.equal(verdicts.size, 2, "some were broken, some not");
    });

    test("S1.15 both take what was repaired, and it is in official shapes", async () => {
      const check = async (events) => {
        const repaired = (await repairHistory(damaged(history, events), { format })).messages;
        assert.ok(isSound(repaired), JSON.stringify(events));
        assert.deepEqual(await shapeProblems(format, repaired), [], JSON.stringify(events));
      };
      for (const single of singles(history)) await check(single);
      await fc.assert(fc.asyncProperty(damages, check), { ...options, numRuns: 300 });
    });
  });
}
