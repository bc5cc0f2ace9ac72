/** AN8: reasoning that a provider signed is bound to what stood before it, and an edit changes that. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { compact, openSession, validateHistory } from "../support/offload.mjs";
import { chat, frozen, summariser } from "../support/api.mjs";

const thinking = { type: "thinking", thinking: "It is the parser.", signature: "c2lnbmVk" };
const detail = { type: "reasoning.text", text: "It is the parser.", signature: "c2lnbmVk", format: "anthropic-claude-v1" };
const gemini = { type: "reasoning.text", text: "Hm.", signature: "c2lnbmVk", format: "google-gemini-v1" };

/** A long talk whose last answer was thought about. */
const LAST = {
  anthropic: { role: "assistant", content: [thinking, { type: "text", text: "Done." }] },
  "openai-chat": { role: "assistant", content: "Done.", reasoning_details: [detail, gemini] },
};
const WITHOUT = {
  anthropic: { role: "assistant", content: [{ type: "text", text: "Done." }] },
  "openai-chat": { role: "assistant", content: "Done.", reasoning_details: [gemini] },
};

for (const format of ["anthropic", "openai-chat"]) {
  const history = frozen([...chat(8), { role: "user", content: "And now?" }, LAST[format]]);

  test(`an8_${format}: what is bound to an edited past is taken out, and only that`, async () => {
    for (const options of [{}, { advanced: { prefixMismatchBehavior: "error" } }]) {
      const { messages, ledger } = await compact(history, { format, summarize: summariser(), ...options });
      assert.deepEqual(messages.at(-1), WITHOUT[format]);
      assert.equal(ledger.at(-1).fate, "reduced");
      assert.match(ledger.at(-1).reason, /AN8/);
    }
  });

  test(`an8_${format}: where the provider drops it, it stays on the wire`, async () => {
    const options = { format, summarize: summariser(), advanced: { prefixMismatchBehavior: "drop_block" } };
    const { messages, ledger, success } = await compact(history, options);
    assert.equal(success, true);
    assert.equal(messages.at(-1), history.at(-1), "the app's own object");
    assert.equal(ledger.at(-1).fate, "verbatim");
    const session = await openSession({ store: "memory", ...options });
    await session.append(...history);
    await session.compact();
    assert.equal((await session.prepare()).messages.at(-1), history.at(-1));
    await session.close();
    assert.deepEqual((await validateHistory(messages, { format })).problems, []);
  });
}
