/** What of a text can be lost: names, paths, numbers and commands that only this conversation has. */

import { isAnswer, partsOf, type Part } from "./said.js";
import type { Message } from "../index.js";

export type TermKind = "path" | "name" | "number" | "command" | "constraint";

/** Terms by their key, `kind text`. */
type Terms = Set<string>;

export const keyOf = (kind: TermKind, text: string): string => `${kind} ${text}`;
export const kindOf = (key: string): TermKind => key.slice(0, key.indexOf(" ")) as TermKind;
export const textOf = (key: string): string => key.slice(key.indexOf(" ") + 1);

const PATH = /(?<![\w/.:@~-])(?:[\w.@~+-]+)?(?:\/[\w.@+-]+)+/g;
const WORD = /[A-Za-z_$][\w$]{4,}/g;
const DEFINED = /\b(?:func|function|def|class|type|struct|enum|interface|trait|fn|const|impl|mod)\s+(?:\([^()\n]{0,60}\)\s*)?([A-Za-z_$][\w$]{4,})/g;
const CONSTANT = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/;
/** `parseLine`, `parse_line`, `Line2`: no word of a language. */
const MADE_UP = /[a-z][A-Z]|[A-Za-z]_[A-Za-z]|[A-Z]{2,}[a-z]{2}|[a-z]\d/;
const TICKET = /(?<![\w-])[A-Z][A-Z0-9]{1,9}-\d{1,6}(?![\w-])/g;
const UUID = /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g;
const HASH = /(?<![\w-])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}(?![\w-])/g;
const NUMBER = /(?<![\w.,:/#-])\d[\d,]*(?:\.\d+)?%?(?![\w:/-]|\.\d)/g;

/** A word that is no identifier of a ticket, though it looks like one. */
const NO_TICKET = /^(?:UTF|ISO|SHA|RFC|HTTP|MD|AES|RSA|GPT|CVE|ES|X)-/;

/** Names that some text of the conversation defines. */
export function definedIn(texts: Iterable<string>): Set<string> {
  const found = new Set<string>();
  for (const text of texts) for (const [, name = ""] of text.matchAll(DEFINED)) if (MADE_UP.test(name) && name.length > 8) found.add(name);
  return found;
}

/** The last two parts of a path: from where it is looked at differs. */
const tailOf = (path: string): string => path.split("/").filter(Boolean).slice(-2).join("/");

/** Terms of a text. Numbers only where they are `said`: elsewhere most are positions. */
function termsOf(text: string, defined: ReadonlySet<string>, withNumbers: boolean): Terms {
  const found: Terms = new Set();
  for (const [path] of text.matchAll(PATH)) {
    const clean = path.replace(/[.,]+$/, "");
    if (/\/[\w.@+-]*\.[A-Za-z]\w{0,7}$/.test(clean) && !/^\/?\d/.test(clean)) found.add(keyOf("path", tailOf(clean)));
  }
  for (const [word] of text.matchAll(WORD)) if (defined.has(word) || CONSTANT.test(word)) found.add(keyOf("name", word));
  for (const [ticket] of text.matchAll(TICKET)) if (!NO_TICKET.test(ticket)) found.add(keyOf("name", ticket));
  for (const [id] of text.matchAll(UUID)) found.add(keyOf("name", id));
  for (const [hash] of text.matchAll(HASH)) found.add(keyOf("name", hash.slice(0, 7)));
  if (withNumbers) for (const [number] of text.matchAll(NUMBER)) if (isTelling(number)) found.add(keyOf("number", number.replace(/[,.]$/, "")));
  return found;
}

/** Four digits and more, or a fraction; no year, no round number, no power of two. */
function isTelling(text: string): boolean {
  const digits = text.replace(/[,%]/g, "");
  const value = Number(digits);
  if (/\.\d{2,}/.test(digits)) return true;
  if (digits.length < 4 || !Number.isInteger(value)) return false;
  return !(value >= 1900 && value < 2100) && value % 100 !== 0 && !Number.isInteger(Math.log2(value));
}

/** Commands that everybody knows without having read them. */
const TRIVIAL = /^(?:cd|ls|cat|echo|head|tail|pwd|grep|rg|find|wc|sed|mkdir|rm|cp|mv|sleep|which|true|git (?:status|diff|log|add|commit|push|pull|show|branch|checkout|stash|rev-parse))\b/;

/** The commands of a call, each by itself. */
function commandsOf(part: Part): Terms {
  const { command, cmd } = Object(part.input) as { command?: unknown; cmd?: unknown };
  const given = command ?? cmd;
  const text = Array.isArray(given) ? String(given.at(-1)) : typeof given === "string" ? given : "";
  const found: Terms = new Set();
  for (const one of (text.split("\n", 1)[0] ?? "").split(/&&|\|\||;|\|/)) {
    const line = one.replace(/\s+\d?>.*$/, "").replace(/\s+/g, " ").trim();
    if (line.split(" ").length >= 2 && line.length >= 12 && line.length <= 200 && !TRIVIAL.test(line)) found.add(keyOf("command", line));
  }
  return found;
}

/** What a message holds, by who brought it. */
export interface Reading {
  /** Everything in it. */
  all: Terms;
  /** What the model itself wrote. */
  used: Terms;
  /** What came from outside, by part: results, and what the user said. */
  brought: { by: "result" | "user"; part: Part; terms: Terms }[];
  isAnswer: boolean;
}

export function readingOf(message: Message, defined: ReadonlySet<string>): Reading {
  const reading: Reading = { all: new Set(), used: new Set(), brought: [], isAnswer: isAnswer(message) };
  for (const part of partsOf(message)) {
    if (part.kind === "thinking") continue;
    const terms = termsOf(part.text, defined, true);
    if (part.kind === "call") for (const key of commandsOf(part)) terms.add(key);
    for (const key of terms) reading.all.add(key);
    if (part.role === "assistant") {
      // Of a call's numbers most are positions and limits.
      for (const key of terms) if (part.kind === "text" || kindOf(key) !== "number") reading.used.add(key);
    } else reading.brought.push({ by: part.kind === "result" ? "result" : "user", part, terms });
  }
  return reading;
}
