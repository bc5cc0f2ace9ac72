/** What several of the formats do. */

import type { EditedCall, EditedResult } from "../types/formats.js";

/** A message or a block of another library, as far as it is looked at. */
export type Fields = Record<string, any>;

/** The edits that `patch` is given. */
export interface Edits {
  results: EditedResult[];
  calls: EditedCall[];
}

/** An object without the fields that are undefined: JSON would not have them either. */
export function given(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** Blocks of content, of which a text is one. */
export function blocksOf(content: unknown): Fields[] {
  if (content === undefined || content === null || content === "") return [];
  if (typeof content === "string") return [{ type: "text", text: content }];
  return (Array.isArray(content) ? content : [content]) as Fields[];
}

/** All that blocks say as text. */
export function textIn(content: unknown): string {
  return blocksOf(content)
    .map(({ text }) => text)
    .filter((text) => typeof text === "string")
    .join("\n");
}

/** The blocks of a message with its edits. `call` and `result` return the changed block, or nothing for one that is neither. */
export function edited(
  blocks: readonly Fields[],
  { calls, results }: Edits,
  call: (block: Fields, input: Fields) => Fields | undefined,
  result: (block: Fields, content: any) => Fields | undefined,
): Fields[] {
  let [nthCall, nthResult] = [0, 0];
  return blocks.map((block) => {
    let changed = block;
    // With nothing to put there it only counts.
    if (call(block, {})) {
      const edit = calls.find(({ nth }) => nth === nthCall);
      if (edit) changed = call(changed, edit.input) ?? changed;
      nthCall++;
    }
    if (result(block, "")) {
      const edit = results.find(({ nth }) => nth === nthResult);
      if (edit) changed = result(changed, edit.content) ?? changed;
      nthResult++;
    }
    return changed;
  });
}

/** The input of a call from its JSON text. */
export function parsed(json: unknown): any {
  if (typeof json !== "string") return json ?? {};
  try {
    return JSON.parse(json === "" ? "{}" : json);
  } catch {
    return json;
  }
}

/** The second half of a media type, as in `png` of `image/png`. */
export function kindOf(type: unknown): string {
  return String(type ?? "").split("/").at(-1) ?? "";
}

/** An id for a new message, of a library whose messages must have one: the same for the same text. */
export function idFor(said: unknown): string {
  const text = JSON.stringify(said);
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return `summary-${(hash >>> 0).toString(16).padStart(8, "0")}`;
}
