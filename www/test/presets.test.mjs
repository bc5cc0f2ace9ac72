import assert from "node:assert/strict";
import { test } from "node:test";
import { openSession } from "context-compactor";
import { Needs } from "../../bench/front/needs.mjs";
import { shared } from "../../bench/front/bill.mjs";
import { engine, replay, simple } from "../../bench/front/replay.mjs";
import { stepsOf } from "context-compactor-ui";
import { hasEconomy, NAMES, PRESETS, soonerOf, triggerOf, whyOf } from "../src/logic/presets.js";
import { transcripts } from "../transcript/generate.mjs";

const RUNS = Object.entries(transcripts()).map(([name, text]) => [name, JSON.parse(text)]);
const POLICIES = NAMES.flatMap((preset) => [
  { preset, economy: false },
  ...(hasEconomy(preset) ? [{ preset, economy: true }] : []),
]);
const options = ({ preset, economy }) => ({ preset, recall: true, ...(economy ? { economy } : {}) });

/** Drives a session as the page does, up to where nothing fits; what happened at each call. */
async function drive(messages, contextWindow, policy) {
  const session = await openSession({ store: "memory", contextWindow, ...options(policy), logger: () => {} });
  const calls = [];
  let trigger;
  for (const [index, message] of messages.entries()) {
    if (message.role === "assistant" && index > 0) {
      const usage = session.context.usage();
      trigger = triggerOf(usage, trigger);
      const { reason: plan } = await session.context.plan();
      const prepared = await session.prepare().catch((error) => assert.equal(error.code, "context_overflow"));
      if (!prepared) break;
      const { edits, messages: sent } = prepared;
      calls.push({ trigger, previousTokens: usage.usedTokens, plan, edits, sent });
    }
    await session.append(message);
  }
  await session.close();
  return calls;
}

for (const policy of POLICIES)
  test(`W16 it compacts at the number that is shown, or as is said: ${Object.values(policy).join(" ")}`, async () => {
    let reached = 0;
    for (const [name, messages] of RUNS)
      for (const window of [8_192, 32_768])
        for (const { trigger, previousTokens, plan, edits } of await drive(messages, window, policy)) {
          const at = `${name} in ${window}: ${previousTokens} of ${trigger}, ${plan}`;
          assert.ok(trigger < window, at);
          const why = whyOf({ trigger, previousTokens, plan, edits }, policy);
          if (previousTokens >= trigger) {
            reached++;
            // What could not help is said in the plan's words.
            if (edits.length === 0) assert.doesNotMatch(plan, /below|does not pay|afterwards/, at);
          } else if (edits.some(({ kind }) => PRESETS[policy.preset].sooner[kind] === undefined)) {
            assert.ok(policy.economy, at);
            assert.match(why, /has cost what a compaction costs/, at);
          } else if (edits.length > 0) assert.match(why, /^below the trigger: |has cost what/, at);
          if (edits.length > 0) assert.doesNotMatch(`${why}${stepsOf(edits)}`, /undefined/, at);
        }
    assert.ok(reached > 0, "the trigger was never reached");
  });

test("W16 economy takes effect with balanced, which is where the switch is on", async () => {
  assert.deepEqual(NAMES.filter(hasEconomy), ["balanced"]);
  const [, messages] = RUNS.find(([name]) => name.startsWith("invoicing"));
  const first = async (policy) =>
    (await drive(messages, 32_768, policy)).findIndex(({ edits }) => edits.some(({ kind }) => kind === "summarize"));
  const [later, sooner] = [
    await first({ preset: "balanced", economy: false }),
    await first({ preset: "balanced", economy: true }),
  ];
  assert.ok(sooner > 0 && sooner < later, `${sooner}, ${later}`);
  assert.match(soonerOf({ preset: "balanced", economy: true }), /as much as a compaction/);
});

test("W16 where an answer's room is taken up, the number stays what it was", () => {
  const usage = (used, buffer) => ({
    threshold: 26_214,
    maxTokens: 32_768,
    categories: [
      { name: "user", tokens: used, kind: "used" },
      { name: "answer", tokens: buffer, kind: "buffer" },
    ],
  });
  const first = triggerOf(usage(0, 8_192));
  assert.equal(first, 24_576);
  assert.equal(triggerOf(usage(26_000, 6_768), first), 24_576);
  assert.equal(triggerOf({ ...usage(0, 8_192), threshold: 16_384 }), 16_384);
});

test("W16 a replay drives the session: call by call what a session by hand is sent", async () => {
  const [, messages] = RUNS.find(([name]) => name.startsWith("queue"));
  for (const policy of POLICIES) {
    const calls = [];
    const onCall = (call) => calls.push(call);
    const found = await replay(messages, engine(options(policy)), 8_192, { stable: 0, onCall });
    const byHand = await drive(messages, 8_192, policy);
    assert.deepEqual(
      calls.map(({ edits }) => edits),
      byHand.map(({ edits }) => edits.length),
      policy.preset,
    );
    assert.deepEqual([found.calls, found.lost, found.cost], [calls.length, calls.at(-1).lost, calls.at(-1).cost]);
    assert.ok(calls.every(({ cost }, at) => at === 0 || cost > calls[at - 1].cost));
  }
});

test("W16 a replay ends where its listener throws, and gives the session back", async () => {
  const [, messages] = RUNS[0];
  let ended = 0;
  const policy = async (...given) => {
    const driven = await engine({})(...given);
    return { ...driven, end: () => driven.end().then(() => ended++) };
  };
  const stop = new Error("stop");
  const onCall = ({ calls }) => {
    if (calls === 3) throw stop;
  };
  await assert.rejects(replay(messages, policy, 32_768, { stable: 0, onCall }), stop);
  assert.equal(ended, 1);
});

test("W16 a policy that forgets loses the needs that the session keeps, in every format", async () => {
  const fact = "the ledger books one cent more than the printed invoice because the discount is rounded twice per group of taxes";
  const call = (text) => [
    { role: "assistant", content: [{ type: "tool_use", id: "t", name: "write", input: { text } }] },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "t", function: { name: "write", arguments: JSON.stringify({ text: `Note:\n${text}` }) } }],
    },
    { role: "assistant", content: text },
  ];
  const words = fact.split(" ");
  const three = [0, 1, 2].map((nth) => words.slice(nth * 3, nth * 3 + 8).join(" "));
  const source = { role: "user", content: three.join(". ") };
  const other = { role: "user", content: "go on" };
  const needs = new Needs();
  needs.read(source, 0);
  for (const one of call(three.join("\n"))) {
    assert.equal(needs.isLost(one, [source, other], 1, [other]), true);
    assert.equal(needs.isLost(one, [source, other], 1, [source, other]), false);
    assert.equal(needs.isLost(one, [source, other], 1, [{ role: "user", content: `Summary: ${source.content}` }]), false);
    assert.equal(needs.isLost(one, [source, other], 0, [other]), false, "it was just given");
  }
  const [, messages] = RUNS.find(([name]) => name.startsWith("invoicing"));
  const none = await replay(messages, simple(async (all) => all), 32_768, { stable: 0 });
  const last = await replay(messages, simple(async (all) => all.slice(-4)), 32_768, { stable: 0 });
  assert.equal(none.lost, 0);
  assert.ok(last.lost > 2, String(last.lost));
});

test("W16 what the provider has in its cache is what comes first and is the same", () => {
  const [a, b, c] = ["a", "b", "c"].map((content) => ({ role: "user", content }));
  assert.equal(shared([a, b], [a, b, c]), 2);
  assert.equal(shared([a, b], [{ ...a }, c]), 1);
  assert.equal(shared([], [a]), 0);
});
