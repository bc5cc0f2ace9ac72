/** The simulation of `npm run bench -- choice`, and what the front says of what had left, small. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { pastUse, SCORES, simulate, workOf } from "../../bench/front/choice.mjs";
import { exchanged } from "../../bench/front/exchange.mjs";
import { isShortened, Needs } from "../../bench/front/needs.mjs";
import { replay, simple } from "../../bench/front/replay.mjs";

const words = (name, count) => Array.from({ length: count }, (_, nth) => `${name}${nth}`).join(" ");
const call = (id, input) => ({ role: "assistant", content: [{ type: "tool_use", id, name: input.new ? "Edit" : "Read", input }] });
const result = (id, content) => ({ role: "user", content: [{ type: "tool_result", tool_use_id: id, content }] });
const exchange = (id, input, content) => [call(id, input), result(id, content)];

/** A file that is read and copied from, one that is read only, much else, and one that copies of `last`. */
function session(last) {
  const [used, unused] = [words("used", 600), words("unused", 600)];
  const copy = (of, from) => of.split(" ").slice(from, from + 40).join(" ");
  const filler = Array.from({ length: 16 }, (_, nth) => exchange(`f${nth}`, { path: `f${nth}` }, words(`filler${nth}x`, 1_800)));
  return [
    { role: "user", content: "Begin." },
    ...exchange("a", { path: "a" }, used),
    ...exchange("b", { path: "b" }, unused),
    ...exchange("c", { path: "a", new: copy(used, 0) }, "ok"),
    ...filler.flat(),
    ...exchange("d", { path: "a", new: copy(last === "used" ? used : unused, 100) }, "ok"),
    { role: "assistant", content: "Done." },
  ];
}

const score = pastUse({ calls: 60, size: 0.5, file: 0, fresh: 0 });

test("W6 at a cut past use keeps whole what was copied from, the newest and what nobody used do not last", async () => {
  const lost = async (last, choice) => simulate(await workOf(session(last)), choice).lost;
  assert.equal(await lost("used", { trigger: Infinity }), 0);
  assert.equal(await lost("used", {}), 1);
  assert.equal(await lost("used", { keeps: 0.3, score: SCORES["the newest"] }), 1);
  assert.equal(await lost("used", { keeps: 0.3, score }), 0);
  assert.equal(await lost("unused", { keeps: 0.3, score }), 1);
  assert.equal(await lost("unused", { keeps: 0.3, score: SCORES["the future"] }), 0);
});

test("W6 the score of past use falls with time and size, and rises with each use and with changes of the file", () => {
  const text = { at: 0, path: "a", result: true, changes: false, tokens: 100, call: 0, nth: 0 };
  const worth = (weights, uses, tokens = 100) =>
    pastUse({ calls: 10, size: 0, file: 0, fresh: 0, ...weights })(
      { work: { texts: [{ ...text, tokens }, { ...text, result: false, changes: true, call: 10 }], calls: [] }, now: 10, uses: [uses, []] },
      0,
    );
  assert.equal(worth({}, []), 0);
  assert.equal(worth({}, [10]), 1);
  assert.equal(worth({}, [0]), Math.exp(-1));
  assert.equal(worth({}, [0, 10]), 1 + Math.exp(-1));
  assert.equal(worth({ size: 0.5 }, [10], 400), 1 / 20);
  assert.equal(worth({ file: 1 }, []), 1);
  assert.equal(worth({ fresh: 0.5 }, []), 0.5 * Math.exp(-1));
});

test("W6 chosen texts take the place of as many tokens of what a policy sends", async () => {
  const messages = session("used");
  const page = { role: "user", content: "What happened." };
  const shorten = async (all) => (all.length < 20 ? all : [page, ...all.slice(-8)]);
  const work = await workOf(messages);
  const { lost, tokens } = await replay(messages, simple(shorten), 200_000);
  assert.equal(lost, 1);
  const chosen = await replay(messages, exchanged(simple(shorten), messages, work, { room: 12_000, score }), 200_000);
  assert.equal(chosen.lost, 0);
  assert.ok(chosen.tokens <= tokens, `${chosen.tokens} of ${tokens}`);
});

test("W17 a need is of a message that left, or of one that stands shortened", () => {
  const [source, other] = [result("a", words("used", 60)), result("b", words("other", 60))];
  const cleared = result("a", "Cleared.");
  const copy = call("c", { new: words("used", 60) });
  const needs = new Needs();
  needs.read(source, 0);
  assert.equal(needs.source(copy, [source, other], 1, [source]), undefined);
  assert.equal(needs.source(copy, [source, other], 1, [cleared]), source);
  assert.equal(isShortened(source, [cleared, other]), true);
  assert.equal(isShortened(source, [other]), false);
  const [asked, answer] = [{ role: "assistant", tool_calls: [{ id: "x" }] }, { role: "tool", tool_call_id: "x", content: "" }];
  assert.equal(isShortened(answer, [asked]), false, "its call is no rest of a result");
  assert.equal(isShortened(answer, [{ ...answer, content: "Cleared." }]), true);
  assert.equal(isShortened({ role: "user", content: "Hi." }, [{ role: "user", content: "Hi." }]), false);
});
