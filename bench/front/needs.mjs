/** What a call writes that it can only have from its context: runs of words that an earlier message has. */

export const RUN = 8;
/** A call needs what it copies so many runs of. */
export const LEAST = 3;

/** @typedef {import("context-compactor").Message} Message */

/** The words of a message, whatever it is made of. @param {Message} message @returns {string[]} */
export function words(message) {
  /** @type {string[]} */
  const texts = [];
  const { content, tool_calls: calls } = /** @type {Record<string, any>} */ (message);
  (function gather(/** @type {unknown} */ value) {
    if (typeof value === "string") texts.push(value);
    else if (value && typeof value === "object") Object.values(value).forEach(gather);
  })(calls ? [content, calls.map(inputOf)] : (content ?? message));
  return texts.join(" ").match(/[\p{L}\p{N}_]+/gu) ?? [];
}

/** The input of a call that has it as JSON: there a line break is no letter. @param {{ function?: { arguments?: string } }} call */
function inputOf(call) {
  try {
    return JSON.parse(call.function?.arguments ?? "");
  } catch {
    return call;
  }
}

/** Where each run of words was read last, for a history that grows. */
export class Needs {
  /** @type {Map<string, number>} */
  #at = new Map();
  /** By message, its words as one text. @type {WeakMap<Message, string>} */
  #texts = new WeakMap();

  /** Takes in the message at `index`. @param {Message} message @param {number} index */
  read(message, index) {
    const all = words(message);
    for (let at = 0; at + RUN <= all.length; at++) this.#at.set(all.slice(at, at + RUN).join(" "), index);
  }

  /** @param {Message} message @returns {string} */
  #text(message) {
    let text = this.#texts.get(message);
    if (text === undefined) this.#texts.set(message, (text = ` ${words(message).join(" ")} `));
    return text;
  }

  /** True when `call` copies what stood in messages before `given`, and no message of `prompt` has it any more.
   *  @param {Message} call @param {readonly Message[]} history @param {number} given @param {readonly Message[]} prompt */
  isLost(call, history, given, prompt) {
    return this.source(call, history, given, prompt) !== undefined;
  }

  /** The message that had what such a call copies, the first of them; nothing where it lacks nothing.
   *  @param {Message} call @param {readonly Message[]} history @param {number} given @param {readonly Message[]} prompt
   *  @returns {Message | undefined} */
  source(call, history, given, prompt) {
    const stands = new Set(prompt);
    let foreign;
    const all = words(call);
    const missing = [];
    for (let at = 0; at + RUN <= all.length && missing.length < LEAST; at++) {
      const run = all.slice(at, at + RUN).join(" ");
      const index = this.#at.get(run);
      const source = index === undefined || index >= given ? undefined : history[index];
      if (!source || stands.has(source)) continue;
      foreign ??= prompt.map((message) => this.#text(message)).join("");
      if (foreign.includes(` ${run} `)) continue;
      missing.push(source);
      at += RUN - 1;
    }
    return missing.length === LEAST ? missing[0] : undefined;
  }
}

/** True when a message of the prompt is what is left of `source`: it is the same side's, and has a call of it, or a result.
 *  @param {Message} source @param {readonly Message[]} prompt */
export function isShortened(source, prompt) {
  const [own, side] = [new Set(ids(source)), roleOf(source)];
  return prompt.some((message) => roleOf(message) === side && ids(message).some((id) => own.has(id)));
}

/** @param {Message} message @returns {unknown} */
function roleOf(message) {
  return /** @type {{ role?: unknown }} */ (message).role;
}

/** What the calls and results of a message are known by. @param {Message} message @returns {unknown[]} */
function ids(message) {
  const { content, tool_calls: calls, tool_call_id: answers } = /** @type {Record<string, any>} */ (message);
  const parts = [...(Array.isArray(content) ? content : []), ...(calls ?? [])];
  return [answers, ...parts.map((/** @type {any} */ part) => part.tool_use_id ?? part.id)].filter((id) => id !== undefined);
}
