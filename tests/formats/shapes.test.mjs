/**
 * Shapes: what the engine takes and returns in every format, against the official types (schemas/). Broken histories
 * are there to prove that the types, and the rules, can say no.
 */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { detectFormat, repairHistory, validateHistory } from "context-compactor/history";
import { frozen } from "../support/api.mjs";
import { compacted, prepared } from "../support/formats.mjs";
import { kinds } from "./fixtures/index.mjs";
import { play } from "./fixtures/text.mjs";
import { shapeProblems } from "./schemas/index.mjs";

for (const [name, { format, scenes, broken, versions, takesSummary = true, isDetected = true }] of Object.entries(kinds)) {
  const shape = (messages) => shapeProblems(format, messages, { versions });
  const rules = async (messages) => (await validateHistory(messages, { format })).problems;
  const history = (size) => frozen(play(scenes, 3, size));

  /** The rules that are broken; the error's code when a message cannot be read at all. */
  async function refusals(messages, strict) {
    try {
      return (await validateHistory(messages, { format, strict })).problems.map(({ rule }) => rule);
    } catch (error) {
      return [error.code];
    }
  }

  /** Official in shape, and sound by our rules. */
  async function assertSound(messages, what) {
    assert.deepEqual(await shape(messages), [], `${what}: shape`);
    assert.deepEqual(await rules(messages), [], `${what}: rules`);
  }

  describe(name, () => {
    for (const [scene, make] of Object.entries(scenes)) {
      test(`the official types allow ${scene}`, async () => {
        assert.deepEqual(await shape(make(1, 100)), []);
      });

      test(`the rules allow ${scene}`, async () => {
        assert.deepEqual(await rules(make(1, 100)), []);
      });
    }

    for (const [what, { messages, shape: misshapen = false, rule, strict }] of Object.entries(broken)) {
      test(`the official types ${misshapen ? "refuse" : "cannot see"} ${what}`, async () => {
        const problems = await shape(messages);
        assert.equal(problems.length > 0, misshapen, problems.join("\n"));
      });

      if (rule) {
        test(`${rule} refuses ${what}`, async () => {
          const found = await refusals(messages, strict);
          assert.ok(found.includes(rule), String(found));
        });
      }
      if (rule && rule !== "invalid_message") {
        test(`S1.15 repairs ${what}, in official shapes`, async () => {
          await assertSound((await repairHistory(frozen(messages), { format })).messages, what);
        });
      }
    }

    test("detected as what it is, compacted too", { skip: !isDetected && "the option `format` names it" }, async () => {
      const messages = history(100);
      assert.equal(await detectFormat(messages), format);
      assert.equal(await detectFormat((await compacted(format, messages, 10)).messages), format);
    });

    test("compacted at every place, in official shapes", async () => {
      const messages = history(100);
      // A round of scenes is summarised at least: less may be shorter than its summary.
      const most = messages.length - play(scenes, 1, 100).length;
      for (let keep = 1; keep <= most; keep++) {
        const result = await compacted(format, messages, keep);
        assert.equal(result.summary !== undefined, takesSummary, `${keep} kept: ${result.reason}`);
        await assertSound(result.messages, `${keep} kept`);
      }
    });

    test("compacted again and again, in official shapes", async () => {
      let messages = [];
      for (let round = 0; round < 4; round++) {
        const more = play(scenes, 2 * round + 2, 100, 2 * round);
        ({ messages } = await compacted(format, [...messages, ...more], 5));
        await assertSound(messages, `round ${round}`);
      }
    });

    test("repaired from any place on, in official shapes", async () => {
      const messages = history(100);
      for (let from = 1; from < messages.length; from++) {
        await assertSound((await repairHistory(messages.slice(from), { format })).messages, `from ${from}`);
        await assertSound((await repairHistory(messages.slice(0, from), { format })).messages, `up to ${from}`);
      }
    });

    for (const summarise of [false, true]) {
      const how = summarise ? "results offloaded and a summary" : "results offloaded";
      test(`prepared with ${how}, in official shapes`, async () => {
        const { messages, edits, result } = await prepared(format, history(2_000), { summarise });
        assert.equal(result?.error, undefined);
        const rungs = summarise && takesSummary ? ["offload", "summarize"] : ["offload"];
        assert.deepEqual(
          edits.map(({ kind }) => kind),
          rungs,
        );
        await assertSound(messages, "prepared");
      });
    }
  });
}
