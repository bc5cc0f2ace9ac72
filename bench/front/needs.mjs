/** What a call writes that it can only have from its context: runs of words that an earlier message has. */

const RUN = 8;
/** A call needs what it copies so many runs of. */
const LEAST = 3;

/** The words of a message, whatever it is made of. */
function words(message) {
  const texts = [];
  (function gather(value) {
    if (typeof value === "string") texts.push(value);
    else if (value && typeof value === "object") Object.values(value).forEach(gather);
  })(message.content ?? message);
  return texts.join(" ").match(/[\p{L}\p{N}_]+/gu) ?? [];
}

/** Where each run of words was read last, for a history that grows. */
export class Needs {
  #at = new Map();
  /** By message, its words as one text. */
  #texts = new WeakMap();

  /** Takes in the message at `index`. */
  read(message, index) {
    const all = words(message);
    for (let at = 0; at + RUN <= all.length; at++) this.#at.set(all.slice(at, at + RUN).join(" "), index);
  }

  #text(message) {
    let text = this.#texts.get(message);
    if (text === undefined) this.#texts.set(message, (text = ` ${words(message).join(" ")} `));
    return text;
  }

  /** True when `call` copies what stood in messages before `given`, and no message of `prompt` has it any more. */
  isLost(call, history, given, prompt) {
    const stands = new Set(prompt);
    let foreign;
    const all = words(call);
    let missing = 0;
    for (let at = 0; at + RUN <= all.length && missing < LEAST; at++) {
      const run = all.slice(at, at + RUN).join(" ");
      const index = this.#at.get(run);
      if (index === undefined || index >= given || stands.has(history[index])) continue;
      foreign ??= prompt.map((message) => this.#text(message)).join("");
      if (foreign.includes(` ${run} `)) continue;
      missing++;
      at += RUN - 1;
    }
    return missing === LEAST;
  }
}
