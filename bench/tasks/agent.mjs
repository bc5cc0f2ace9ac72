/**
 * A scripted agent. It knows what stands in the prompt, word for word, and nothing else; with the recall tools it looks
 * for a value that does not stand there by its label, and reads what was found.
 */

import { evaluate, parse, read } from "./steps.mjs";

/** Calls of the recall tools that it spends on one value before it gives up. */
const PATIENCE = 12;
/** What it reads of a search: so many of the first passages. */
const READS = 3;

/** The texts of a prompt, those of calls included. Those that are told again, of long ago, are `old`: a summary, and what was recalled. */
function textsOf(messages) {
  const recalls = new Set();
  return messages.flatMap(({ content, tool_calls = [], tool_call_id }, at) => {
    for (const { id, function: called } of tool_calls) if (called.name.startsWith("recall_")) recalls.add(id);
    const said = typeof content === "string" ? [content] : (content ?? []).map(({ text }) => text ?? "");
    const texts = [...said, ...tool_calls.map((call) => call.function.arguments)];
    return texts.map((text) => ({ text, old: at === 0 || recalls.has(tool_call_id) }));
  });
}

/** Looks for one value: the next call for each answer to the one before. */
class Hunt {
  label;
  #queue;
  #read = new Set();
  #spent = 0;

  constructor(label) {
    this.label = label;
    this.#queue = [["recall_search", { query: label }], ["recall_search", { query: label, limit: 20 }]];
  }

  /** The next call. `once` is for a value that is there, and may have changed since: one search tells. */
  next(once) {
    return this.#spent++ < (once ? 1 : PATIENCE) ? this.#queue.shift() : undefined;
  }

  /** Takes in what a call was answered. */
  answered([name, { ref }], text) {
    if (name === "recall_search") {
      const found = [...text.matchAll(/^\[(\w+)\]/gm)].map(([, reference]) => reference);
      const unread = found.filter((reference) => !this.#read.has(reference)).slice(0, READS);
      for (const reference of unread) this.#read.add(reference);
      this.#queue.unshift(...unread.map((reference) => ["recall_read", { ref: reference }]));
    } else {
      const offset = /; next: offset (\d+)\]$/.exec(text)?.[1];
      if (offset) this.#queue.unshift(["recall_read", { ref, offset: Number(offset) }]);
    }
  }
}

/** One step: what to call next in view of each prompt. */
export class Step {
  #number;
  #canRecall;
  #hunts = new Map();
  #last;

  constructor(number, canRecall) {
    this.#number = number;
    this.#canRecall = canRecall;
  }

  /** `{ recall: [name, arguments] }`, or what it writes at last, as far as it found what that takes: `{ written: [[name, value]], missing }`. */
  decide(messages) {
    const texts = textsOf(messages);
    if (this.#last) this.#last.hunt.answered(this.#last.call, texts.at(-1).text);
    this.#last = undefined;
    const asked = texts.map(({ text }) => new RegExp(`Step ${this.#number}: (.+ = .+)\\.$`, "m").exec(text)?.[1]).find(Boolean);
    const parts = asked ? parse(asked) : [];
    const labels = parts.flatMap(({ terms }) => terms.map(({ label }) => label).filter(Boolean));
    const values = new Map(labels.map((label) => [label, read(texts, label)]));
    const missing = asked ? labels.filter((label) => !values.get(label)) : [`Step ${this.#number}`];
    const doubtful = labels.filter((label) => values.get(label)?.entry !== undefined && values.get(label).old);
    for (const label of this.#canRecall ? [...missing, ...doubtful] : []) {
      const hunt = this.#hunts.get(label) ?? new Hunt(label);
      this.#hunts.set(label, hunt);
      const call = hunt.next(!missing.includes(label));
      if (!call) continue;
      this.#last = { hunt, call };
      return { recall: call };
    }
    const isKnown = ({ terms }) => terms.every(({ label }) => !label || values.get(label));
    const written = parts.filter(isKnown).map(({ name, terms }) => [name, evaluate(terms, (label) => values.get(label).value)]);
    return { written, missing };
  }
}
