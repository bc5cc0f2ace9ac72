/** A history as its tokens depend on it, and the tokens of a message. */

import { invalidOption } from "../checks.js";
import { checkKept, checkMessage, checkOne } from "../codec.js";
import { bareOf, tied } from "../bare.js";
import { checkFormat, refuseName } from "../custom.js";
import type { CustomFormat } from "../types/formats.js";
import type { Format, Message } from "../types/messages.js";
import { FORMATS, readAll } from "./detect.js";
import type { Family } from "./families.js";
import type { Part, Read } from "./read.js";
import { rulesOf, tokensOfCall, tokensOfMedia } from "./rules.js";

/** How messages are to be read: in a native format, which may be left to tell, and perhaps from one of the app's own. */
interface Given {
  format: Format | undefined;
  custom?: CustomFormat;
}

/** The option `format`, checked. */
export function givenFormat(format: Format | CustomFormat | undefined): Given {
  refuseName(format);
  if (typeof format === "object" && format !== null) {
    const custom = checkFormat(format);
    return { format: custom.base, custom };
  }
  if (format !== undefined && format !== null && !FORMATS.includes(format)) {
    throw invalidOption("format", `must be one of ${FORMATS.map((name) => `"${name}"`).join(", ")}`);
  }
  return { format: format ?? undefined };
}

/** Throws what the functions of `/history` throw. */
export function readHistory(messages: readonly Message[], { format, custom }: Given): Read[] {
  // Not `map`, which leaves holes out.
  const read = Array.from(messages, (message, index) => {
    if (custom) checkMessage(message, index);
    // Ids tie messages together, and count nothing.
    return custom ? tied(custom, bareOf(custom, message, index), () => "") : message;
  });
  read.forEach((message, index) => {
    checkOne(message, index);
    checkKept(message, index);
  });
  return readAll(read, format);
}

/** Tokens of a message whose texts `count` counts; what is no text, and the frames, are counted by the rules of a family. */
export function tokensOfMessage({ parts }: Read, family: Family, count: (text: string) => number): number {
  const rules = rulesOf(family);
  const of = (part: Part): number => {
    if (typeof part === "string") return count(part);
    // Four characters a token.
    if (typeof part === "number") return Math.ceil(part / 4);
    if ("thought" in part) return count(part.thought);
    if ("call" in part) return count(part.call) + count(part.input) + tokensOfCall(rules, part.input);
    if ("result" in part) return part.media.reduce((sum, item) => sum + tokensOfMedia(rules, item), count(part.result) + rules.result);
    return tokensOfMedia(rules, part);
  };
  return parts.reduce((sum: number, part) => sum + of(part), rules.message);
}
