/** A success is one: what does not fit the window is none, and no failure of a summariser is hidden by a fallback that nobody chose. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { compact, CompactionError, openSession } from "context-compactor";
import { chat } from "../support/api.mjs";
import { presets } from "../support/names.mjs";

const turns = (n, w = 30) =>
  Array.from({ length: n }, (_, i) => [
    { role: "user", content: `Question ${i} ${"alpha beta gamma ".repeat(w)}` },
    { role: "assistant", content: `Answer ${i} ${"delta epsilon ".repeat(w)}` },
  ]).flat();
const read = (text) => [
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c", type: "function", function: { name: "read_file", arguments: "{}" } }],
  },
  { role: "tool", tool_call_id: "c", content: text },
];

for (const preset of presets) {
  test(`F1: ${preset}: a success of compact fits, and what cannot fit says so`, async () => {
    const large = [...turns(8), { role: "user", content: "go" }, ...read("word and more ".repeat(25_000)), { role: "assistant", content: "ok" }];
    const done = await compact(large, { preset, contextWindow: 8_000 });
    assert.equal(done.success, done.fits, done.error?.message);
    assert.equal(done.fits, done.currentTokens <= 6_000);
    assert.ok(!JSON.stringify(done.messages).includes("off_"), "nobody can read a reference");
    // Nothing may shorten the words of the system.
    const fixed = [{ role: "system", content: "Obey the rule of the house. ".repeat(3_000) }, ...turns(2)];
    const { success, fits, error, currentTokens } = await compact(fixed, { preset, contextWindow: 8_000 });
    assert.deepEqual([success, fits, error.code, error.index], [false, false, "context_overflow", 0]);
    assert.ok(currentTokens > 8_000 && CompactionError.isInstance(error));
    assert.match(error.message, /cannot go below \d+ tokens.*the largest message is 0 with \d+ tokens/);
  });

  test(`F1: ${preset}: nothing to do is a success`, async () => {
    const { success, fits, error, reason, freedTokens } = await compact(turns(1), { preset });
    assert.deepEqual([success, fits, error, freedTokens], [true, true, undefined, 0]);
    assert.ok(reason);
  });
}

const boom = Object.assign(new Error("invalid key"), { status: 401 });
const gone = Object.assign(new Error("no such account"), { statusCode: 403 });

for (const preset of presets.filter((name) => name !== "react")) {
  test(`F2: ${preset}: a wrong key is no success, unless the app chose the built-in summariser`, async () => {
    for (const thrown of [boom, gone]) {
      let calls = 0;
      const summarize = async () => {
        calls += 1;
        throw thrown;
      };
      const failed = await compact(chat(80), { preset, summarize });
      assert.deepEqual([failed.success, failed.fits, failed.error.code, failed.fellBack, calls], [false, true, "summary_failed", undefined, 1]);
      assert.equal(failed.error.cause, thrown);
      const warnings = [];
      const session = await openSession({ preset, summarize: { call: summarize, fallback: "extractive" }, store: "memory" });
      session.on("warning", (warning) => warning.code === "summary_failed" && warnings.push(warning));
      await session.append(...chat(80));
      const done = await session.compact();
      assert.deepEqual([done.success, done.error], [true, undefined]);
      assert.ok(CompactionError.isInstance(done.fellBack) && done.fellBack.cause === thrown);
      assert.deepEqual([done.fellBack.code, done.fellBack.message], ["summary_failed", thrown.message]);
      assert.equal(warnings.length, 1);
      await session.close();
    }
  });
}

for (const preset of presets) {
  test(`F7: ${preset}: a message of ten windows does not end a session, and reads back`, async () => {
    const text = Array.from({ length: 12_000 }, (_, at) => `${at}: the parser reads src/file_${at}.rs`).join("\n");
    for (const large of [[{ role: "user", content: "go" }, ...read(text)], [{ role: "user", content: text }]]) {
      const session = await openSession({ preset, contextWindow: 16_000, recall: true, store: "memory" });
      await session.append(...turns(2), ...large);
      const { messages, usage } = await session.prepare();
      assert.ok(usage.usedTokens <= 12_000, `${usage.usedTokens}`);
      const last = messages.at(-1).content;
      const refs = (await session.context.explain()).flatMap(({ ref, refs = [] }) => [ref, ...refs]).filter(Boolean);
      assert.ok(refs.length > 0 && (preset === "react" || refs.some((ref) => last.includes(ref))), last);
      const texts = await Promise.all(refs.map((ref) => session.recall.read(ref)));
      assert.ok(texts.includes(text));
      await session.close();
    }
  });
}
