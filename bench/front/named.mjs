/** What a call names that it can only know from its context: names that have left it, and that nobody knows from elsewhere. */

import { names } from "./names.mjs";

/** @typedef {import("context-compactor").Message} Message */
/** A message's text, also in small letters, where its names stand, those as every convention spells them, and its words.
 *  @typedef {{ text: string, low: string, places: Map<string, number[]>, folded: Set<string>, words?: [string, number][] }} Read */

/** Characters around a name that are its context, and how many words of it say that the same is meant. */
const [REACH, WORDS] = [280, 2];
/** A name that so many other sessions write untold is known from their system prompt, or is an obvious one. */
const SEVERAL = 2;
const GRAMMAR = new Set(
  ("that this with from have will your what when then them they there here into also which were been would could should about " +
    "these those some more than only just like each does done where their while after before other such very both because").split(" "),
);

/** @type {WeakMap<Message, Read>} */
const reads = new WeakMap();

/** @param {Message} message @returns {Read} */
function readOf(message) {
  let read = reads.get(message);
  if (!read) {
    const text = textOf(message);
    /** @type {Read["places"]} */
    const places = new Map();
    for (const { name, at } of names(text)) enter(places, name).push(at);
    const folded = new Set([...places.keys()].map(fold));
    reads.set(message, (read = { text, low: text.toLowerCase(), places, folded }));
  }
  return read;
}

/** What a message says: of a call what it is given. @param {Message} message */
function textOf({ content }) {
  /** @type {string[]} */
  const texts = [];
  const gather = (/** @type {unknown} */ value) => {
    if (typeof value === "string" || typeof value === "number") texts.push(String(value));
    else if (value && typeof value === "object") Object.values(value).forEach(gather);
  };
  const parts = typeof content === "string" ? [{ text: content }] : /** @type {any[]} */ (content ?? []);
  for (const { text, thinking, input, content: result } of parts) {
    gather([text, thinking, input, Array.isArray(result) ? result.map((part) => part.text) : result]);
  }
  return texts.join("\n");
}

/** A call without its reasoning, which needs nothing to the letter. @param {Message} call @returns {Message} */
function spoken(call) {
  const { content } = /** @type {any} */ (call);
  return Array.isArray(content) ? { ...call, content: content.filter(({ type }) => type !== "thinking") } : call;
}

/** A name without what its convention adds. @param {string} name */
function fold(name) {
  return name.toLowerCase().replace(/[_-]/g, "");
}

/** Words that say something, each once, around some places of a message. @param {Message} message @param {number[]} places */
function wordsAround(message, places) {
  const read = readOf(message);
  read.words ??= wordsOf(read.text);
  const near = read.words.filter(([, at]) => places.some((place) => Math.abs(place - at) <= REACH));
  return new Set(near.map(([word]) => word));
}

/** Such words outside of names, and where they stand. @param {string} text */
function wordsOf(text) {
  const taken = names(text);
  let next = 0;
  /** @type {[string, number][]} */
  const words = [];
  for (const { 0: word, index } of text.matchAll(/\p{L}+/gu)) {
    while (next < taken.length && taken[next].end <= index) next++;
    if (next < taken.length && taken[next].at < index + word.length) continue;
    const low = word.toLowerCase();
    if (/^[a-z]+$/.test(low) ? low.length >= 4 && !GRAMMAR.has(low) : low.length >= 2) words.push([low, index]);
  }
  return words;
}

/** What declares a name of code: a word of the language before it, a type or a value behind it. */
const DECLARED =
  /\b(?:func|type|const|var|let|def|class|function|interface|enum|struct|fn)\s+(?:\([^)\n]*\)\s*)?(\w+)|^[ \t\d→]*(\w+)[ \t]+(?:[\w*[]|=[ \t]+["'`\d])/gm;
/** Names of Go that one function has. */
const LOCAL = /((?:\w+, *)*\w+) *:=/g;
const CODE = /^[A-Za-z]+\d*[A-Za-z]*$/;

/** Names that are known from elsewhere: other projects have them, several other sessions write them untold, or they are names
 *  of code that the project declares nowhere, as those of libraries, or within a function. */
export class Known {
  /** @type {Map<string, string[]>} */
  #projects = new Map();
  /** @type {Map<string, string[]>} */
  #untold = new Map();
  #declared = new Set();
  #local = new Set();

  /** @param {{ id: string, source: string, messages: Message[] }} record */
  add({ id, source, messages }) {
    const told = new Set();
    for (const message of messages) {
      const { text, places } = readOf(message);
      for (const [, behind, before] of text.matchAll(DECLARED)) this.#declared.add(behind ?? before);
      for (const [, left] of text.matchAll(LOCAL)) for (const name of left.split(/, */)) this.#local.add(name);
      for (const name of places.keys()) {
        if (told.has(name)) continue;
        told.add(name);
        const projects = enter(this.#projects, name);
        if (!projects.includes(projectOf(source))) projects.push(projectOf(source));
        if (/** @type {any} */ (message).role === "assistant") enter(this.#untold, name).push(id);
      }
    }
  }

  /** @param {string} name @param {{ id: string, source: string }} record whose name it is */
  has(name, { id, source }) {
    if (this.#projects.get(name)?.some((project) => project !== projectOf(source))) return true;
    if (CODE.test(name) && (!this.#declared.has(name) || this.#local.has(name))) return true;
    return (this.#untold.get(name) ?? []).filter((other) => other !== id).length >= SEVERAL;
  }
}

/** A source without its commit. @param {string} source */
function projectOf(source) {
  return source.split("@")[0];
}

/** The list of `key`, which is made if there is none. @template T @param {Map<string, T[]>} map @param {string} key @returns {T[]} */
function enter(map, key) {
  const list = map.get(key) ?? [];
  if (list.length === 0) map.set(key, list);
  return list;
}

/** Which messages of a history that grows have each name. */
export class Named {
  /** @type {Map<string, number[]>} */
  #at = new Map();
  #isKnown;

  /** @param {(name: string) => boolean} isKnown names that no call lacks */
  constructor(isKnown) {
    this.#isKnown = isKnown;
  }

  /** Takes in the message at `index`. @param {Message} message @param {number} index */
  read(message, index) {
    for (const name of readOf(message).places.keys()) enter(this.#at, name).push(index);
  }

  /** The first name of `call` that stood in messages that were read, and that no message of `prompt` has: one of the `history`
   *  has it wherever it stands there, another one beside two words that surrounded it.
   *  @param {Message} call @param {readonly Message[]} history @param {readonly Message[]} prompt @returns {string | undefined} */
  lost(call, history, prompt) {
    const own = new Set(history);
    const whole = prompt.filter((message) => own.has(message));
    const said = spoken(call);
    for (const [name, places] of readOf(said).places) {
      const at = this.#at.get(name);
      if (!at || whole.some((message) => readOf(message).places.has(name)) || this.#isKnown(name)) continue;
      const around = new Set(at.flatMap((index) => [...wordsAround(history[index], placesOf(history[index], name))]));
      const isMeant = (/** @type {Message} */ message, /** @type {number[]} */ places) =>
        [...wordsAround(message, places)].filter((word) => around.has(word)).length >= WORDS;
      // The same number may be another thing's.
      if (/^\d/.test(name) && !isMeant(said, places)) continue;
      const has = (/** @type {Message} */ message) =>
        isNamed(message, name) && (own.has(message) || isMeant(message, placesOf(message, name)));
      if (!prompt.some(has)) return name;
    }
    return undefined;
  }
}

/** True when a message has a name as any convention spells it. @param {Message} message @param {string} name */
function isNamed(message, name) {
  return readOf(message).folded.has(fold(name)) || placesOf(message, name).length > 0;
}

/** Where a message has a name; without it, where its text has it in any case, and of a path the file.
 *  @param {Message} message @param {string} name */
function placesOf(message, name) {
  const { places, low } = readOf(message);
  const known = places.get(name);
  if (known) return known;
  const wanted = name.toLowerCase().replace(/^.*\/(?=[^/]*\.)/, "");
  /** @type {number[]} */
  const found = [];
  for (let at = low.indexOf(wanted); at >= 0; at = low.indexOf(wanted, at + 1)) {
    if (!/\w/.test(low[at - 1] ?? "") && !/\w/.test(low[at + wanted.length] ?? "")) found.push(at);
  }
  return found;
}
