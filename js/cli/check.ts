/** `validate` and `count`. */

import { modelFacts } from "../entry/main.js";
import { validateHistory } from "../entry/history.js";
import { estimateTokensDetailed, loadTokenizer, type Encoding, type Vocabulary } from "../entry/tokens-inline.js";
import { EXIT, wrongUsage } from "./exit.js";
import { readInput, type Input } from "./input.js";
import { firstLine } from "./inspect.js";
import { fixedOf, learn, modelFor } from "./meter.js";
import { besides } from "./packages.js";
import { number, percent, plural, type Terminal } from "./terminal.js";
import type { Given } from "./usage.js";

/** What `validate` finds in a history. */
export async function validationOf(input: Input, { strict }: Pick<Given, "strict">) {
  const { valid, problems } = await validateHistory(input.messages, { format: input.format, strict });
  return { file: input.name, kind: input.kind, format: input.format, messages: input.messages.length, valid, problems };
}

export async function validate(given: Given, terminal: Terminal): Promise<number> {
  const input = await readInput(given.file, given.format);
  const found = await validationOf(input, given);
  terminal.object("validate", found);
  terminal.line(firstLine(input));
  if (found.valid) terminal.line(terminal.paint("green", "The provider accepts it: no rule is broken."));
  else {
    terminal.line(terminal.paint("red", `${plural(found.problems.length, "problem")}:`));
    terminal.table(found.problems.map(({ rule, index, message }) => [rule, `#${index}`, message]), ["left", "right"]);
  }
  return found.valid ? EXIT.fine : EXIT.problems;
}

/** What `count` finds in a history. */
export async function countOf(input: Input, given: Pick<Given, "exact" | "model">) {
  if (given.model !== undefined) await modelFacts(given.model);
  await learn(given.model, input.model);
  const model = modelFor(given.model ?? input.model);
  const estimate = estimateTokensDetailed(input.messages, { format: input.format, ...model });
  const exact = given.exact ? await exactly(input, estimate.family, given.model) : undefined;
  const { tokens, low, high, family, byRole } = estimate;
  return {
    ...{ file: input.name, kind: input.kind, format: input.format, messages: input.messages.length },
    ...{ tokens, low, high, family, byRole, ...fixedOf(input) },
    ...(exact === undefined ? {} : { exact }),
  };
}

export async function count(given: Given, terminal: Terminal): Promise<number> {
  const input = await readInput(given.file, given.format);
  const found = await countOf(input, given);
  const { tokens, low, high, family, byRole, system, tools, exact } = found;
  terminal.object("count", found);
  terminal.line(firstLine(input));
  const rows = Object.entries(byRole).map(([role, of]) => [role, number(of), percent(of, tokens).padStart(5)]);
  terminal.table([...rows, ["messages", number(tokens), `from ${number(low)} to ${number(high)}, estimated for ${family ?? "?"}`]], ["left", "right"]);
  if (system > 0) terminal.table([["and the system prompt", number(system)]]);
  if (tools > 0) terminal.table([["and the tools", number(tools)]]);
  if (exact) terminal.line(`  exactly ${number(exact.tokens)} with ${exact.encoding}`);
  return EXIT.fine;
}

const ENCODINGS: Record<string, Encoding> = { o200k: "o200k_base", cl100k: "cl100k_base" };

async function exactly({ messages, format }: Parameters<typeof fixedOf>[0], family = "", model = "this model"): Promise<{ tokens: number; encoding: Encoding }> {
  const encoding = ENCODINGS[family];
  if (encoding === undefined) throw wrongUsage(`--exact: only the tokenizers of OpenAI's models are public; ${model} has another (${family}). Leave --exact out for an estimate with bounds`);
  const tokenizer = await loadTokenizer(await besides<Vocabulary>(`context-compactor-vocabularies/${encoding}`, "--exact", "count"));
  return { tokens: tokenizer.countMessages(messages, { format }), encoding };
}
