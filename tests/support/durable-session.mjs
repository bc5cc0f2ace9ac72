/** A Worker that keeps one session in a Durable Object, and the history that it is given: both sides know it by number. */

import { CompactionError, openSession } from "./offload.mjs";
import { durableObjectStore } from "context-compactor/cloudflare";

const WORDS = "queue worker retry timeout shard replica commit offset partition lease 队列 작업 مهلة 🧵".split(" ");

/** Message `n` of every history: a question, a call, its result, an answer. Every third result is big. */
export function message(n) {
  const round = n >> 2;
  const id = `call_${round}`;
  switch (n % 4) {
    case 0:
      return { role: "user", content: `${n}: what about the ${WORDS[round % WORDS.length]}?` };
    case 1: {
      const call = { name: "read", arguments: JSON.stringify({ round }) };
      return { role: "assistant", content: null, tool_calls: [{ id, type: "function", function: call }] };
    }
    case 2: {
      const line = Array.from({ length: 12 }, (_, i) => WORDS[(round * 7 + i) % WORDS.length]).join(" ");
      return { role: "tool", tool_call_id: id, content: `${n}: ${line}\n`.repeat(round % 3 === 2 ? 4_000 : 40) };
    }
    default:
      return { role: "assistant", content: `${n}: it is fine.` };
  }
}

const summarize = async ({ facts }) => `## Current Status\nAll of it is fine. ${facts.length} facts.\n\n## Key Decisions\nNone.`;

export class Chat {
  #session;

  constructor(ctx, env) {
    Object.assign(this, { ctx, env });
  }

  async fetch(request) {
    const { action, ...given } = await request.json();
    try {
      const session = await (this.#session ??= this.#open());
      return Response.json((await this.#answer(session, action, given)) ?? null);
    } catch (error) {
      this.#session = undefined;
      if (!CompactionError.isInstance(error)) throw error;
      return Response.json({ code: error.code, message: error.message });
    }
  }

  #open() {
    const store = this.store();
    return openSession({ id: "chat", format: "openai-chat", store, contextWindow: 16_000, maxOutputTokens: 1_000, summarize });
  }

  store() {
    return durableObjectStore(this.ctx, this.env.BIG && { bigObjects: this.env.BIG });
  }

  /** Appends what is missing up to message `to`, or what is to be said; two handles append `together`, or compact. */
  async #answer(session, action, { to, say, together }) {
    switch (action) {
      case "append": {
        for (let n = session.archive.metadata().totalMessages; n < to; n++) await session.append(message(n));
        return session.archive.metadata().totalMessages;
      }
      case "prepare": {
        const { messages, usage } = await session.prepare();
        return { messages: messages.length, used: usage.usedTokens };
      }
      case "compact":
        return (await session.compact()).success;
      case "look":
        return look(session);
      case "outgrow": {
        // Another session of the isolate has a result that takes much of the engine's memory, once.
        const logged = [];
        const logger = (_, line) => logged.push(line);
        const other = await openSession({ store: "memory", format: "openai-chat", contextWindow: 16_000, maxOutputTokens: 1_000, logger });
        const result = { ...message(2), content: "a line of a result\n".repeat(1_000_000) };
        await other.append(message(0), message(1), result, message(3), ...Array.from({ length: 8 }, (_, nth) => message(nth + 4)));
        await other.prepare();
        const { messages } = await other.prepare();
        const { ok } = await other.archive.verify();
        return { logged: logged.filter((line) => line.includes("fresh engine")), ok, messages: messages.length };
      }
      case "say":
        return session.append(...say);
      case "both": {
        // A second handle on the same session, as two requests have that open it each.
        const other = await this.#open();
        if (!together) {
          const results = await Promise.allSettled([session, other].map((one) => one.compact()));
          this.#session = undefined;
          return results.map(({ value, reason }) => (reason ?? value.error)?.code ?? (value?.success ? "compacted" : String(reason)));
        }
        const outcomes = await Promise.allSettled([session, other].map((one, nth) => one.append(together[nth])));
        this.#session = undefined;
        return outcomes.map(({ reason }) => reason?.code ?? (reason ? String(reason) : "written"));
      }
      case "abort":
        this.ctx.abort("aborted by the test");
        return new Promise(() => {});
      default:
        throw new TypeError(`unknown action ${action}`);
    }
  }
}

/** Everything that a session has: what differs from the history by number, as texts, and counts. */
async function look(session) {
  const problems = [];
  const originals = [];
  for await (const found of session.archive.history()) {
    const n = originals.push(found) - 1;
    if (JSON.stringify(found) !== JSON.stringify(message(n))) problems.push(`message ${n} is ${JSON.stringify(found).slice(0, 80)}`);
  }
  const fates = {};
  for (const { index, fate, ref } of (await session.context.explain())) {
    fates[fate] = (fates[fate] ?? 0) + 1;
    if (!ref || fate !== "offloaded") continue;
    const text = await session.recall.read(ref).catch((error) => String(error));
    if (text !== originals[index]?.content) problems.push(`reference of message ${index}: ${text.slice(0, 80)}`);
  }
  const accounted = Object.values(fates).reduce((sum, count) => sum + count, 0);
  if (accounted !== originals.length) problems.push(`${accounted} of ${originals.length} messages have a fate`);
  return { count: originals.length, fates, problems };
}

export default {
  async fetch(request, env) {
    const { name, ...question } = await request.json();
    const body = JSON.stringify(question);
    return env.CHAT.get(env.CHAT.idFromName(name)).fetch(request.url, { method: "POST", body });
  },
};
