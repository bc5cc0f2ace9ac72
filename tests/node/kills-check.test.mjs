/** The check of the kills finds what it looks for: a session that was written to is told to it with one thing wrong. */

import assert from "node:assert/strict";
import { before, test } from "node:test";
import * as library from "../support/offload.mjs";
import { check, Told } from "../support/kills-check.mjs";
import { read, write } from "../support/writer.mjs";

let found, told;

before(async () => {
  told = new Told();
  const posts = Told.posts(() => told);
  const tell = async (path, body) => posts[path](body);
  const memory = library.memoryStore();
  const store = () => memory;
  const writers = ["a", "b"].map((who, seed) => write({ library, store, tell, session: "killed0", who, seed }));
  // Two compactions at least, and an offload that stands.
  const isEnough = async () => {
    const session = await library.openSession({ id: "killed0", store: memory });
    return told.counts().compactions >= 2 && (await session.context.explain()).some(({ fate }) => fate === "offloaded");
  };
  while (!(await isEnough())) await told.more(1);
  told.stop = true;
  await Promise.all(writers);
  found = await read({ library, store, session: "killed0", after: "killed0/check/0" });
  told.acked.push({ call: "killed0/check/0", since: told.acked.length });
});

/** What the check says when one thing is wrong. */
function problemsOf(change) {
  const wrong = { found: structuredClone(found), told: Object.assign(new Told(), structuredClone({ ...told })) };
  change(wrong);
  return check(wrong.found, wrong.told).problems;
}

test("nothing is wrong with what two writers were told", () => {
  const { problems, unknown, references } = check(found, told);
  assert.deepEqual({ problems, unknown }, { problems: { lost: [], torn: [], dangling: [] }, unknown: 0 });
  assert.ok(references > 0 && found.marks.length >= 2);
});

/** Each: what is wrong, the kind of problem that it is, and how it is made. */
const WRONGS = [
  [
    "a message that was acknowledged is gone",
    "lost",
    ({ told }) => told.acked.splice(2, 0, { call: "killed0/a/999", since: 2 }),
  ],
  ["half of a call is there", "torn", ({ found: { history } }) => {
    history.splice(history.findIndex(({ role }) => role === "tool"), 1);
  }],
  ["a call is there twice", "torn", ({ found: { history } }) => {
    history.push(...history.filter(({ content }) => content?.includes("[killed0/check/0]")));
  }],
  ["two calls stand in another order", "torn", ({ told: { acked } }) => {
    [acked[0].call, acked.at(-1).call] = [acked.at(-1).call, acked[0].call];
  }],
  ["a character of a message is another", "torn", ({ found }) => (found.history[0].content += " ")],
  ["a call is there that was refused", "torn", ({ told }) => {
    told.refused.set(told.acked.pop().call, "quota_exceeded");
  }],
  ["two calls of a writer are there without an answer", "torn", ({ told }) => {
    const others = told.acked.filter(({ call }) => !call.startsWith("killed0/a/"));
    told.acked = others.map(({ call }) => ({ call, since: 0 }));
  }],
  ["a compaction that was acknowledged is gone", "lost", ({ found }) => found.marks.pop()],
  ["a compaction that was aborted took place", "torn", ({ found, told }) => told.marks.set(found.marks[0], "aborted")],
  ["a checkpoint is gone", "lost", ({ found }) => found.checkpoints.splice(0)],
  ["a reference does not resolve", "dangling", ({ found: { texts } }) => delete texts[Object.keys(texts)[0]]],
  ["a reference is another text", "dangling", ({ found: { texts } }) => (texts[Object.keys(texts)[0]] += "x")],
  ["a message has no fate", "torn", ({ found }) => found.ledger.pop()],
  ["the context is of two states", "torn", ({ found }) => found.messages.shift()],
  ["a loss is told where there is none", "torn", ({ found }) => found.losses.push({ kind: "records", reason: "gone" })],
  ["verify() reports something", "torn", ({ found }) => (found.verified = { ok: false, problems: ["I1"] })],
];

for (const [what, kind, change] of WRONGS) {
  test(`${what}: ${kind}`, () => {
    assert.ok(problemsOf(change)[kind].length > 0);
  });
}
