/** Replays sessions call by call, for the bench and for the demo: what each call was sent under a policy, what it cost, what it lacked. */

import { openSession } from "context-compactor";
import { Bill, PRICES, stableOf, tokensOf } from "./bill.mjs";
import { isShortened, Needs } from "./needs.mjs";

/** @typedef {import("context-compactor").Message} Message */
/** @typedef {import("context-compactor").SessionOptions} SessionOptions */
/** @typedef {{ messages: Message[], edits: number }} Prompt */
/** @typedef {(contextWindow: number, stable: number) => Promise<{ prompt(added: Message[]): Promise<Prompt>, recall?: (call: unknown) => Promise<Message>, end(): Promise<void> }>} Policy */
/** What is known after a call: its own prompt and edits, and the sums so far.
 *  @typedef {{ calls: number, lost: number, cost: number, tokens: number, edits: number }} Call */

/**
 * What the engine sends: a session that is driven as an app drives it. With `tools` the model is given the recall tools, and
 * `recall` answers a call of them. `more` is asked for options of each session.
 * @param {SessionOptions} options @param {{ tools?: boolean, more?: () => SessionOptions }} [how] @returns {Policy}
 */
export function engine(options, { tools = false, more = () => ({}) } = {}) {
  return async (contextWindow, stable) => {
    const own = /** @type {SessionOptions} */ ({ store: "memory", contextWindow, reserveTokens: stable, prices: PRICES, logger: () => {} });
    const session = await openSession({ ...own, ...options, ...more() });
    const { definitions, handle } = session.recall.tools(options.format);
    return {
      prompt: async (added) => {
        await session.append(...added);
        const { messages, edits } = await session.prepare(tools ? { tools: definitions } : undefined);
        return { messages, edits: edits.length };
      },
      ...(tools ? { recall: handle } : {}),
      end: () => session.close({ delete: true }),
    };
  };
}

/** What a policy of a few lines sends: `shorten(messages, window, tokensOf, stable)` may return fewer of them. `stable` tokens
 *  of the window are the system prompt's and the tools'.
 *  @param {(messages: Message[], window: number, tokensOf: (message: Message) => Promise<number>, stable: number) => Promise<Message[]>} shorten
 *  @returns {Policy} */
export function simple(shorten) {
  return async (contextWindow, stable) => {
    /** @type {Message[]} */
    let messages = [];
    return {
      prompt: async (added) => {
        messages.push(...added);
        messages = await shorten(messages, contextWindow, tokensOf, stable);
        return { messages: [...messages], edits: 0 };
      },
      end: async () => {},
    };
  };
}

/** What finds the names that a call lacks, as `Named` of `named.mjs` does.
 *  @typedef {{ read(message: Message, index: number): void,
 *    lost(call: Message, history: readonly Message[], prompt: readonly Message[]): string | undefined }} Names */

/**
 * Replays one history; `calls`, `lost` of them, those of these that lack what a message had that is `shortened` in the prompt,
 * `cost` in USD, `tokens` of all prompts, and the `last` of them. With `names`: how many lack a name (`named`), and how many
 * lack that or a copy (`either`). `stable`: tokens of the system prompt
 * and the tools. `onCall` is awaited after each call, and ends the replay where it throws.
 * @param {readonly Message[]} messages @param {Policy} policy @param {number} contextWindow
 * @param {{ stable?: number, names?: Names, onCall?: (call: Call) => unknown }} [options]
 */
export async function replay(messages, policy, contextWindow, { stable = stableOf(contextWindow), names, onCall } = {}) {
  const { prompt, end } = await policy(contextWindow, stable);
  const [needs, bill] = [new Needs(), new Bill(stable)];
  let [lost, shortened, named, either, from, tokens] = [0, 0, 0, 0, 0, 0];
  /** @type {Message[]} */
  let sent = [];
  try {
    for (const [index, message] of messages.entries()) {
      if (!isCall(message, index)) continue;
      const { messages: now, edits } = await prompt(messages.slice(from, index));
      await bill.add(now, message);
      tokens += bill.tokens;
      // What came since the last call was just given.
      const source = needs.source(message, messages, from, now);
      if (source) lost++;
      if (source && isShortened(source, now)) shortened++;
      const lacksName = names?.lost(message, messages, now) !== undefined;
      if (lacksName) named++;
      if (lacksName || source) either++;
      for (let at = from; at < index; at++) {
        const told = /** @type {Message} */ (messages[at]);
        needs.read(told, at);
        names?.read(told, at);
      }
      [from, sent] = [index, now];
      await onCall?.({ calls: bill.calls, lost, cost: bill.cost, tokens: bill.tokens, edits });
    }
    if (from < messages.length) sent = (await prompt(messages.slice(from))).messages;
  } finally {
    await end();
  }
  return { calls: bill.calls, lost, shortened, named, either, cost: bill.cost, tokens, last: sent };
}

/** True for an answer of the model: a call came before it. @param {Message} message @param {number} index */
export function isCall(message, index) {
  return /** @type {{ role?: unknown }} */ (message).role === "assistant" && index > 0;
}
