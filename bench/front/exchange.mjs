/** The engine's own prompts with another tail of the same size: its oldest messages are exchanged for the best of what is gone. */

import { tokensOf } from "./bill.mjs";
import { best, wordsOf } from "./choice.mjs";

/** @typedef {import("context-compactor").Message} Message */
/** @typedef {import("./replay.mjs").Policy} Policy */

/**
 * What `policy` sends of `messages`, where at each cut the oldest messages of up to `room` tokens leave for chosen texts of as
 * many tokens, which stand behind the page. `work` is made of the same messages.
 * @param {Policy} policy @param {readonly Message[]} messages @param {import("./choice.mjs").Work} work
 * @param {{ room: number, score: import("./choice.mjs").Score }} choice @returns {Policy}
 */
export function exchanged(policy, messages, work, { room, score }) {
  return async (contextWindow, stable) => {
    const { prompt, end } = await policy(contextWindow, stable);
    const at = new Map(messages.map((message, index) => [message, index]));
    /** @type {number[][]} */
    const uses = work.texts.map(() => []);
    /** @type {Set<Message>} */
    let gone = new Set();
    /** @type {Message | undefined} */
    let chosen;
    let [now, page] = [0, ""];
    return {
      end,
      prompt: async (added) => {
        const { messages: sent, edits } = await prompt(added);
        const first = sent.findIndex((message) => !at.has(message) && !isPart(message));
        const text = first < 0 ? "" : JSON.stringify(sent[first]);
        if (text !== page) {
          page = text;
          const tail = sent.filter((message) => at.has(message));
          const last = /** @type {Message} */ (tail.at(-1));
          gone = new Set();
          let freed = 0;
          for (const message of tail.slice(0, -1)) {
            const tokens = await tokensOf(message);
            if (freed + tokens > room) break;
            freed += tokens;
            gone.add(message);
          }
          const stays = new Set(tail.filter((message) => !gone.has(message)).map((message) => at.get(message)));
          const ids = [...work.texts.keys()].filter((id) => {
            const index = work.texts[id].at;
            return index <= /** @type {number} */ (at.get(last)) && !stays.has(index);
          });
          const kept = [...best({ work, now, uses }, ids, freed, score)].sort((one, other) => one - other);
          const parts = kept.map((id) => ({ type: "text", text: wordsOf(messages, work.texts[id]) }));
          chosen = parts.length > 0 ? /** @type {any} */ ({ role: "user", content: parts }) : undefined;
        }
        for (const id of new Set(work.calls[now]?.runs.flatMap(([, ids]) => ids))) uses[id].push(now);
        now++;
        const out = sent.filter((message) => !gone.has(message));
        if (chosen) out.splice(first + 1, 0, chosen);
        return { messages: out, edits };
      },
    };
  };
}

/** True for a message of a call or a result: one that was shortened is no page. @param {Message} message */
function isPart({ content }) {
  return Array.isArray(content) && content.some(({ type }) => type === "tool_use" || type === "tool_result");
}
