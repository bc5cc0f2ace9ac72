/** What the app's own functions returned: what is of another type fails, and the error says what it was. */

import { named } from "./advice.js";
import { invalidOption } from "./checks.js";

/** An answer that must be true or false: a Promise would be true, and pin everything. */
export function yesOrNo(answer: unknown): boolean {
  if (typeof answer === "boolean") return answer;
  // As of a field that most messages do not have.
  if (answer === undefined) return false;
  throw wrong(answer, "true or false");
}

/** A count of tokens. */
export function countOf(answer: unknown): number {
  if (typeof answer === "number" && Number.isFinite(answer) && answer >= 0) return answer;
  throw wrong(answer, "a finite number from 0");
}

export function textOf(answer: unknown): string {
  if (typeof answer === "string") return answer;
  throw wrong(answer, "a text");
}

/** Vectors, as lists of numbers. The engine judges them. */
export function vectorsOf(answer: unknown): Float64Array[] {
  const isList = (list: unknown): list is ArrayLike<number> => Array.isArray(list) || ArrayBuffer.isView(list);
  if (Array.isArray(answer) && answer.every(isList)) return answer.map((vector) => Float64Array.from(vector, Number));
  const { data, embeddings } = Object(answer) as Record<string, unknown>;
  const instead = Array.isArray(data) ? ": return response.data.map((item) => item.embedding)" : Array.isArray(embeddings) ? ": return its embeddings" : "";
  throw new WrongReply(`it resolved to ${named(answer)}, and must resolve to number[][]${instead}`);
}

/** An id: any text, or what makes one. */
export function idOf(answer: unknown): string {
  if (typeof answer === "object" || answer === undefined) throw wrong(answer, "a text");
  return String(answer);
}

/** Nothing was thrown, so the error that comes of it has no cause. */
export class WrongReply extends TypeError {}

function wrong(answer: unknown, wanted: string): WrongReply {
  const what = typeof answer === "number" ? String(answer) : named(answer);
  const asynchronous = answer instanceof Promise ? ": the function cannot be asynchronous" : "";
  return new WrongReply(`it returned ${what}, and must return ${wanted}${asynchronous}`);
}

/** What to return in place of what was not a text: the answers of models' clients are known. */
export function notAText(answer: unknown): string {
  const { choices, content, candidates, output, text } = Object(answer) as Record<string, unknown>;
  if (Array.isArray(choices)) return ": return response.choices[0].message.content";
  if (Array.isArray(candidates)) return ": return response.text";
  if (Array.isArray(content)) return ": return response.content[0].text";
  if (Array.isArray(output)) return ": return response.output_text";
  if (text instanceof Promise || typeof (text as { then?: unknown } | undefined)?.then === "function") return ": await its text";
  return "";
}

/** Usage as it was reported, its numbers such as can be counted. */
export function usageOf(usage: unknown): string | undefined {
  if (typeof usage !== "object" || usage === null) return undefined;
  const countable = (number: number) => Math.min(Math.max(Math.trunc(number) || 0, 0), Number.MAX_SAFE_INTEGER);
  return JSON.stringify(usage, (_, value: unknown) => (typeof value === "number" ? countable(value) : value));
}

/** Definitions of tools as a provider is sent them, or what it answered: what JSON has not, such as code, is left out. */
export function asSent(field: string, value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch (error) {
    throw invalidOption(field, "must be what a provider can be sent: JSON without cycles", error);
  }
}
