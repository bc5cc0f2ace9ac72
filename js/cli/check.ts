/** `validate` and `count`. */

import { modelFacts } from "../entry/inline.js";
import { validateHistory } from "../entry/history-inline.js";
import { estimateTokensDetailed, loadTokenizer } from "../entry/tokens-inline.js";
import { EXIT, wrongUsage } from "./exit.js";
import { readInput } from "./input.js";
import { describe } from "./inspect.js";
import { fixedOf, modelFor } from "./meter.js";
import { number, percent, plural, type Terminal } from "./terminal.js";
import type { Given } from "./usage.js";

export async function validate(given: Given, terminal: Terminal): Promise<number> {
  const input = await readInput(given.file, given.format);
  const { valid, problems } = await validateHistory(input.messages, { format: input.format, strict: given.strict });
  terminal.object("validate", { file: input.name, kind: input.kind, format: input.format, messages: input.messages.length, valid, problems });
  const name = input.name === "-" ? "stdin" : input.name;
  terminal.line(`${name}: ${describe(input)}, ${plural(input.messages.length, "message")}`);
  if (valid) terminal.line(terminal.paint("green", "The provider accepts it: no rule is broken."));
  else {
    terminal.line(terminal.paint("red", `${plural(problems.length, "problem")}:`));
    terminal.table(problems.map(({ rule, index, message }) => [rule, `#${index}`, message]), ["left", "right"]);
  }
  return valid ? EXIT.fine : EXIT.problems;
}

export async function count(given: Given, terminal: Terminal): Promise<number> {
  const input = await readInput(given.file, given.format);
  if (given.model !== undefined) await modelFacts(given.model);
  const model = modelFor(given.model ?? input.model);
  const estimate = estimateTokensDetailed(input.messages, { format: input.format, ...model });
  const fixed = fixedOf(input);
  const exact = given.exact ? await exactly(input, estimate.family, given.model) : undefined;
  const { tokens, low, high, family, byRole } = estimate;
  terminal.object("count", {
    ...{ file: input.name, kind: input.kind, format: input.format, messages: input.messages.length },
    ...{ tokens, low, high, family, byRole, ...fixed },
    ...(exact === undefined ? {} : { exact }),
  });
  terminal.line(`${input.name === "-" ? "stdin" : input.name}: ${describe(input)}, ${plural(input.messages.length, "message")}`);
  const rows = Object.entries(byRole).map(([role, of]) => [role, number(of), percent(of, tokens).padStart(5)]);
  terminal.table([...rows, ["messages", number(tokens), `from ${number(low)} to ${number(high)}, estimated for ${family ?? "?"}`]], ["left", "right"]);
  if (fixed.system > 0) terminal.table([["and the system prompt", number(fixed.system)]]);
  if (fixed.tools > 0) terminal.table([["and the tools", number(fixed.tools)]]);
  if (exact) terminal.line(`  exactly ${number(exact.tokens)} with ${exact.encoding}`);
  return EXIT.fine;
}

type Encoding = "o200k_base" | "cl100k_base";
const ENCODINGS: Record<string, Encoding> = { o200k: "o200k_base", cl100k: "cl100k_base" };

async function exactly({ messages, format }: Parameters<typeof fixedOf>[0], family = "", model = "this model"): Promise<{ tokens: number; encoding: Encoding }> {
  const encoding = ENCODINGS[family];
  if (encoding === undefined) throw wrongUsage(`--exact: only the tokenizers of OpenAI's models are public and in this package; ${model} has another (${family}). Leave --exact out for an estimate with bounds`);
  const tokenizer = await loadTokenizer(encoding);
  return { tokens: tokenizer.countMessages(messages, { format }), encoding };
}
