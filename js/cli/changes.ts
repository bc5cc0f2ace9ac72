/** The compactions that an archive or another agent's transcript records: what the model had before, and what after. */

import type { Message, Session } from "../index.js";
import { partsOf, textsOf } from "./said.js";
import { estimateTokens } from "../entry/tokens-inline.js";
import type { Kind } from "./input.js";

/** A change of the context. */
export interface Change {
  /** Messages before it. */
  at: number;
  /** When, in ms since 1970. */
  time: number;
  /** The text of a summary that replaced messages; empty where none did. */
  summary: string;
  /** Indices of the messages that stayed, whole. */
  kept: number[];
  /** The summaries in the context after it. */
  summaries: Message[];
  /** Messages in it that were shortened. */
  shortened: Message[];
}

type Item =
  | { messages: [number, number, number] }
  | { offloaded: { index: number; body: Message } }
  | { summary: { checkpoint: string; body: Message } }
  | { acknowledgement: { body: Message } };
interface View {
  appended?: [number, number, number][];
  whole?: Item[];
  splices?: { at: number; remove: number; insert: Item[] }[];
}

/** One message of a context. */
interface Place {
  index?: number;
  body?: Message;
  checkpoint?: string;
}

const placesOf = (items: Item[]): Place[] =>
  items.flatMap((item): Place[] => {
    if ("messages" in item) return run(item.messages);
    if ("offloaded" in item) return [{ body: item.offloaded.body }];
    if ("summary" in item) return [{ body: item.summary.body, checkpoint: item.summary.checkpoint }];
    return [{ body: item.acknowledgement.body }];
  });

const run = ([, from, count]: [number, number, number]): Place[] => Array.from({ length: count }, (_, at) => ({ index: from + at }));

/** Codex keeps the user's newest messages of so many tokens beside its summary. */
const CODEX_KEEPS = 20_000;

/** Reads the archive's changes of the context in their order. */
export async function changesOf(session: Session, kind: Kind, messages: readonly Message[]): Promise<Change[]> {
  const changes: Change[] = [];
  let context: Place[] = [];
  for await (const line of linesOf(session.archive.jsonl())) {
    if (!line.includes('"kind":"view"')) continue;
    const { kind: what, index, timestamp, view } = JSON.parse(line) as { kind: string; index: number; timestamp: number; view?: View };
    if (what !== "view" || !view) continue;
    const before = new Set(context.map(({ checkpoint }) => checkpoint));
    if (view.whole) context = placesOf(view.whole);
    else {
      context.push(...(view.appended ?? []).flatMap(run));
      // Their places are those before any of them.
      for (const { at, remove, insert } of [...(view.splices ?? [])].reverse()) context.splice(at, remove, ...placesOf(insert));
    }
    const made = context.find(({ checkpoint }) => checkpoint !== undefined && !before.has(checkpoint));
    const kept = made && kind === "codex" ? keptByCodex(messages, index) : context.flatMap(({ index: at }) => (at === undefined ? [] : [at]));
    const bodies = (isSummary: boolean): Message[] =>
      context.flatMap(({ body, checkpoint }) => (body && (checkpoint !== undefined) === isSummary ? [body] : []));
    const summary = made?.body ? textsOf(made.body) : "";
    changes.push({ at: index, time: timestamp, summary, kept, summaries: bodies(true), shortened: bodies(false) });
  }
  return changes;
}

function keptByCodex(messages: readonly Message[], end: number): number[] {
  const kept: number[] = [];
  for (let at = end - 1, tokens = 0; at >= 0; at--) {
    const message = messages[at] as Message;
    if (!partsOf(message).some(({ role, kind }) => role === "user" && kind === "text")) continue;
    if ((tokens += estimateTokens(message, { format: "openai-responses" })) > CODEX_KEEPS) break;
    kept.unshift(at);
  }
  return kept;
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let torn = "";
  for await (const bytes of stream) {
    const lines = (torn + decoder.decode(bytes, { stream: true })).split("\n");
    torn = lines.pop() ?? "";
    yield* lines;
  }
  if (torn) yield torn;
}
