/** What a compaction lost: what was there before it, is used again after it, and is in nothing that it left. */

import { proposePins } from "../entry/history.js";
import { estimateTokens } from "../entry/tokens-inline.js";
import type { Change } from "./changes.js";
import type { Input } from "./input.js";
import { partsOf, targetOf, textsOf, type Part } from "./said.js";
import { definedIn, keyOf, kindOf, readingOf, textOf, type Reading, type TermKind } from "./terms.js";

/** Something that was lost, and used again. */
export interface Lost {
  kind: TermKind;
  text: string;
  /** Messages of the model that use it, until the next compaction. */
  uses: number;
  /** How it came back: a tool's result had it, the user said it again, or neither. */
  back: "result" | "user" | "none";
  /** What was called for it, when a result had it. */
  by?: string;
  /** Index of the message that first has it again. */
  index: number;
}

export interface Loss {
  lost: Lost[];
  /** Calls whose results brought something back. */
  lookups: number;
  /** Tokens of these calls and their results. */
  lookupTokens: number;
  /** Of these, tokens of lines that results had before the compaction. */
  repeatedTokens: number;
}

/** Reads what each compaction of a history lost; `onStep` is called between two. */
export async function lossesOf(input: Input, onStep: (done: number, of: number) => void): Promise<Map<Change, Loss>> {
  const compactions = input.changes.filter(({ summary }) => summary !== "");
  const found = new Map<Change, Loss>();
  if (compactions.length === 0) return found;
  const { messages } = input;
  const defined = definedIn(messages.flatMap((message) => partsOf(message).map(({ text }) => text)));
  const readings = messages.map((message) => readingOf(message, defined));
  const tools = new Set(messages.flatMap((message) => partsOf(message).flatMap(({ name }) => (name === undefined ? [] : [name]))));
  for (const [nth, change] of compactions.entries()) {
    onStep(nth, compactions.length);
    const from = compactions[nth - 1]?.at ?? 0;
    const to = compactions[nth + 1]?.at ?? messages.length;
    found.set(change, await lossOf(input, readings, { from, change, to, tools }));
  }
  return found;
}

interface Span {
  from: number;
  change: Change;
  to: number;
  tools: ReadonlySet<string>;
}

async function lossOf(input: Input, readings: readonly Reading[], { from, change, to, tools }: Span): Promise<Loss> {
  const { messages } = input;
  const kept = new Set(change.kept);
  const gone = Array.from({ length: change.at - from }, (_, at) => from + at).filter((at) => !kept.has(at));
  const left = [...change.summaries, ...change.shortened, ...change.kept.map((at) => messages[at])].map(textsOf).join("\n");
  const isLeft = heldBy(left);
  const before = new Set(gone.flatMap((at) => [...(readings[at]?.all ?? [])]));
  const lost = new Map<string, Lost>();
  const seen = new Map<string, { back: Lost["back"]; by?: string; index: number }>();
  const calls = new Map<string, Part>();
  const isGone = memo((key: string) => before.has(key) && !isLeft(key) && !tools.has(textOf(key)));
  const bringing = new Map<Part, Set<string>>();
  for (let index = change.at; index < to; index++) {
    const reading = readings[index] as Reading;
    for (const part of partsOf(messages[index] as object)) if (part.kind === "call" && part.id) calls.set(part.id, part);
    for (const key of reading.used) {
      if (!isGone(key)) continue;
      const one = lost.get(key) ?? { kind: kindOf(key), text: textOf(key), uses: 0, ...(seen.get(key) ?? { back: "none" as const, index }) };
      one.uses++;
      lost.set(key, one);
    }
    for (const { by, part, terms } of reading.brought) {
      for (const key of terms) {
        if (!isGone(key) || seen.has(key) || lost.has(key)) continue;
        const call = part.id === undefined ? undefined : calls.get(part.id);
        seen.set(key, { back: by, index, ...(call === undefined ? {} : { by: `${call.name} ${targetOf(call, 60)}` }) });
        if (by === "result") bringing.set(part, (bringing.get(part) ?? new Set()).add(key));
      }
    }
  }
  for (const one of await constraintsOf(input, gone, change, to, left)) lost.set(keyOf("constraint", one.text), one);
  const lines = new Set(gone.flatMap((at) => partsOf(messages[at] as object).filter(({ kind }) => kind === "result").flatMap(({ text }) => linesOf(text))));
  const again = [...bringing].filter(([, keys]) => [...keys].some((key) => lost.has(key))).map(([part]) => part);
  const sum = (of: (part: Part) => number): number => again.reduce((tokens, part) => tokens + of(part), 0);
  const sorted = [...lost.values()].sort((a, b) => b.uses - a.uses || a.index - b.index || (a.text < b.text ? -1 : 1));
  return {
    lost: sorted,
    lookups: again.length,
    lookupTokens: sum(({ text, id }) => estimateTokens(text) + estimateTokens(calls.get(id ?? "")?.text ?? "")),
    repeatedTokens: sum(({ text }) => repeated(text, lines)),
  };
}

/** Whether what is left has a term. Of a path its file's name is enough. */
function heldBy(left: string): (key: string) => boolean {
  const numbers = left.replace(/(\d),(?=\d{3})/g, "$1");
  const spaced = left.replace(/\s+/g, " ");
  return (key) => {
    const text = textOf(key);
    const kind = kindOf(key);
    if (kind === "path") return left.includes(text.slice(text.lastIndexOf("/") + 1));
    // An id is often named by its beginning.
    if (/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(text)) return left.includes(text.slice(0, 8));
    if (kind === "number") return numbers.includes(text.replace(/,/g, ""));
    return (kind === "command" ? spaced : left).includes(text);
  };
}

function memo<T>(of: (key: string) => T): (key: string) => T {
  const known = new Map<string, T>();
  return (key) => {
    let value = known.get(key);
    if (value === undefined) known.set(key, (value = of(key)));
    return value;
  };
}

/** Lines of a result, without the numbers that a tool prints before them. */
const linesOf = (text: string): string[] => text.split("\n").map((line) => line.replace(/^\s*\d+\s*[→\t|:]/, "").trim());

/** Tokens of the lines that were there before. */
function repeated(text: string, lines: ReadonlySet<string>): number {
  const again = linesOf(text).filter((line) => line.length > 5 && lines.has(line));
  return again.length === 0 ? 0 : estimateTokens(again.join("\n"));
}

/** A constraint is said where most of its words are. */
const MOST = 0.6;

const wordsOf = (text: string): Set<string> => new Set(text.toLowerCase().match(/[\p{L}\p{N}_./-]{4,}/gu) ?? []);

/** Constraints of the user that the summary lacks, and that somebody states again. */
async function constraintsOf({ messages, format }: Input, gone: number[], change: Change, to: number, left: string): Promise<Lost[]> {
  const stated = await proposePins(gone.map((at) => messages[at] as object), { format }).catch(() => []);
  const there = wordsOf(left);
  const found: Lost[] = [];
  for (const constraint of new Set(stated.flatMap(({ constraints }) => constraints))) {
    const words = [...wordsOf(constraint)];
    const isIn = (others: ReadonlySet<string>): boolean => words.filter((word) => others.has(word)).length >= MOST * words.length;
    if (words.length < 4 || isIn(there)) continue;
    let first: { index: number; back: Lost["back"] } | undefined;
    let uses = 0;
    for (let index = change.at; index < to; index++) {
      const said = partsOf(messages[index] as object).filter(({ kind, text }) => kind === "text" && text.length < 20_000);
      if (!said.some(({ text }) => isIn(wordsOf(text)))) continue;
      first ??= { index, back: said[0]?.role === "user" ? "user" : "none" };
      uses++;
    }
    if (first) found.push({ kind: "constraint", text: constraint, uses, ...first });
  }
  return found;
}
