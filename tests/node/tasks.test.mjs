/** The closed loop of `npm run bench -- tasks`, small: a scripted agent that sees only what `prepare` returned. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Step } from "../../bench/tasks/agent.mjs";
import { generate, kinds } from "../../bench/tasks/generate.mjs";
import { METHODS, play } from "../../bench/tasks/play.mjs";
import { evaluate, parse, read } from "../../bench/tasks/steps.mjs";

const STEPS = 20;

test("W23: with recall every small task is solved, and with the newest messages alone hardly one", async () => {
  const solved = async (method, task) => (await play(task, METHODS[method], 16_000)).wrong.length === 0;
  let [recalled, tail] = [0, 0];
  for (const kind of kinds) {
    const task = generate(kind, STEPS, 1_500, 7);
    assert.ok(await solved("no compaction, endless window", task), kind);
    assert.ok(await solved("balanced, recall", task), kind);
    recalled++;
    tail += (await solved("newest messages", task)) ? 1 : 0;
  }
  assert.ok(tail < recalled / 2, `${tail} of ${recalled}`);
});

test("W23: the agent knows what the prompt says, and nothing else", () => {
  const asked = { role: "user", content: "Step 4: door 4 = {door 3} plus {mark of the owl in room 2}." };
  const told = { role: "assistant", content: "Recorded. door 3: 30. On its plate: mark of the owl in room 2: 7." };
  assert.deepEqual(new Step(4, false).decide([asked, told]).written, [["door 4", "37"]]);
  assert.deepEqual(new Step(4, false).decide([asked]).written, []);
  assert.deepEqual(new Step(5, false).decide([asked, told]).written, []);
  // With the tools it looks first, and gives up at last.
  const step = new Step(4, true);
  assert.deepEqual(step.decide([asked]).recall, ["recall_search", { query: "door 3" }]);
  let decided;
  for (let calls = 0; calls < 40 && !decided?.written; calls++) decided = step.decide([asked, { role: "tool", content: "Nothing was found." }]);
  assert.deepEqual(decided.missing, ["door 3", "mark of the owl in room 2"]);
});

test("W23: a value is read by its label, the latest entry first, and not where it is cut", () => {
  const texts = (...all) => all.map((text) => ({ text }));
  const valueOf = (label, ...all) => read(texts(...all), label)?.value;
  assert.equal(valueOf("door 1", "door 12: 7", "door 1: 8"), "8");
  assert.equal(valueOf("fir balance", '{"fir balance after entry 9":"5"}', "fir balance after entry 2: 6"), "5");
  assert.equal(valueOf("my fir code", "By the way, my fir code is 77."), "77");
  assert.equal(valueOf("door 1", "door 1: 48…"), undefined);
  assert.equal(valueOf("door 1", "Step 2: door 2 = {door 1} plus 1"), undefined);
  const [{ name, terms }] = parse("new name of a = {tag} then a");
  assert.deepEqual([name, evaluate(terms, () => "x1")], ["new name of a", "x1-a"]);
});

test("W23: a seed gives the same task, of the size that was asked for", () => {
  for (const kind of kinds) {
    const [one, other] = [generate(kind, 5, 500, 9), generate(kind, 5, 500, 9)];
    assert.deepEqual(one, other);
    assert.notDeepEqual(generate(kind, 5, 500, 10), one);
    assert.ok(one.steps.every(({ material }) => material.length > 1_000), kind);
  }
});
