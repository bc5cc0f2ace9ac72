/** Reads turns of a trajectory (`crates/wire/src/react/read.rs`). */

import { fail, type Part, type Read } from "./read.js";
import { given, has, isObject, json, textIn, textOf } from "./values.js";

const TURN = ["thought", "action", "result"];

/** How many of a turn's fields are given. */
export function fieldsOf(turn: unknown): number {
  return TURN.filter((key) => has(turn, key)).length;
}

export function readTurn(turn: unknown): Read {
  if (fieldsOf(turn) === 0) fail("", "a turn must have a thought, an action and a result");
  const parts: Part[] = [textOfField(turn, "thought")];
  const action = given(turn, "action");
  if (action !== undefined) {
    if (!isObject(action)) fail("action", "must be an object that names the tool and its arguments");
    parts.push({ call: nameOf(action), input: json(action) });
  }
  if (has(turn, "result")) parts.push({ result: textOfField(turn, "result"), media: [] });
  return { role: "assistant", parts };
}

function textOfField(turn: unknown, key: string): string {
  const field = given(turn, key);
  return field === undefined ? "" : (textOf(field) ?? fail(key, "must be a string; write anything else as JSON text"));
}

/** The tool's name: a text, or the name of what stands there. */
function nameOf(action: unknown): string {
  const [name] = ["tool", "name", "tool_name", "toolName", "action", "function", "type"].flatMap(
    (key) => textIn(action, key) ?? textIn(given(action, key), "name") ?? [],
  );
  return name ?? "action";
}
