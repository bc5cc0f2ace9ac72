/** Functions on a history alone (`context-compactor/history`): cut, prompt, check, repair. */

import { checkFunction, checkOptions, invalidOption, plainOptions } from "./checks.js";
import { pack, type Packed } from "./codec.js";
import { run } from "./driver.js";
import { started, type Engine } from "./engine.js";
import { yesOrNo } from "./replies.js";
import { loadStage, type Stage } from "./stages.js";
import { readFormat } from "./translation.js";
import type { CustomFormat, Format, Goal, Keep, Level, Message, Mode, NewMessageAmong, PinProposal, Preset, SummaryRequest } from "./types.js";
import type { Problem, Split } from "./types/history.js";

/** Options of which one is the format of the messages. */
type InFormat = { format?: Format | CustomFormat };

type Question<T> = (engine: Engine, bytes: Uint8Array, ends: Uint32Array) => T;

/** Asks the engine, or a stage of it, about a history as it was when it was packed: what the app changes while that is
 *  loaded is not seen. */
async function ask<T>({ bytes, ends }: Packed, question: Question<T>, stage?: Stage): Promise<T> {
  await (stage ? loadStage(stage) : started());
  return run((engine) => question(engine, bytes, ends));
}

// S1.5
/**
 * Cuts a history so that `keep` (default: the last 5 messages) stays, in the same place as `compact` and sessions do. A
 * tool call is never separated from its results. Leading messages of the system stay, and so does a message for which
 * `pins.match` returns true, with its call or results. Rejects with `invalid_option`, `invalid_message`,
 * `unknown_format`.
 */
export async function splitMessages<M extends Message>(
  messages: readonly M[],
  options: InFormat & { keep?: Keep; pins?: { match?: (message: M, index: number) => boolean } } = {},
): Promise<Split<M>> {
  checkOptions(options, ["keep", "format", "pins"]);
  const { keep, pins = {} } = options;
  const { format, codec } = readFormat(options.format);
  if (keep !== undefined) checkOptions(keep, ["messages", "tokens", "fraction"], "keep.");
  checkOptions(pins, ["match"], "pins.");
  const { match } = pins;
  checkFunction("pins.match", match);
  const given = plainOptions({ keep, format });
  const packed = codec.pack(messages);
  const stay = match ? messages.flatMap((message, index) => (stays(match(message, index)) ? [index] : [])) : [];
  const cut = await ask(packed, (engine, bytes, ends) => engine.splitMessages(bytes, ends, Uint32Array.from(stay), given) as {
    boundary: number;
    requested: number;
    pinned: number[];
  }, "compact");
  const staying = new Set(cut.pinned);
  const split: Split<M> = {
    toCompress: messages.filter((_, index) => index < cut.boundary && !staying.has(index)),
    toPreserve: messages.filter((_, index) => index >= cut.boundary || staying.has(index)),
    boundary: cut.boundary,
    requested: cut.requested,
  };
  if (cut.boundary !== cut.requested) {
    split.reason = `moved from ${cut.requested} to ${cut.boundary} so that no tool call is parted from its result`;
  }
  return split;
}

function stays(answer: unknown): boolean {
  try {
    return yesOrNo(answer);
  } catch (error) {
    throw invalidOption("pins.match", (error as Error).message, error);
  }
}

// S1.7
/** Builds the request for a summary of a history, for a model of your own: a system prompt, and the conversation fenced as
 *  data. */
export async function buildSummaryPrompt(
  messages: readonly Message[],
  options: {
    /** The preset whose prompt to use. Default: `balanced`. */
    preset?: Preset;
    /** Default: detected. */
    format?: Format | CustomFormat;
    /** The kind of work, which decides what a summary must preserve. */
    mode?: Mode;
    /** How detailed the summary is: 1 compact, 2 moderate, 3 detailed. Default: by the size of the history. */
    detail?: Level;
    /** What the conversation is for. */
    goal?: Goal;
    /** The model's window in tokens, which scales the length that `detail` asks for. Default: 200,000. */
    contextWindow?: number;
    /** More guidance for the summary. */
    instructions?: string;
    /** A summary of what came before, to be continued. */
    previousSummary?: string;
    /** Length of the summary, in tokens. Default: the preset's. */
    targetTokens?: number;
    /** The most tokens of the request; longer texts are shortened to fit. Default: no limit. */
    maxInputTokens?: number;
    /** `secrets`: replace secrets by placeholders, numbered within the prompt. Default: true. */
    redact?: { secrets?: boolean };
  } = {},
): Promise<SummaryRequest> {
  const known = ["preset", "format", "mode", "detail", "goal", "contextWindow", "instructions", "previousSummary", "targetTokens", "maxInputTokens", "redact"];
  const { given, codec } = standalone(options, known);
  return ask(codec.pack(messages), (engine, bytes, ends) => engine.buildSummaryPrompt(bytes, ends, given) as SummaryRequest, "compact");
}

/** Options of this module that are values, and how messages are read and written. */
function standalone(options: InFormat & { redact?: object | undefined }, known: readonly string[]) {
  checkOptions(options, known);
  if (options.redact !== undefined) checkOptions(options.redact, ["secrets"], "redact.");
  const { format, codec } = readFormat(options.format);
  return { given: plainOptions({ ...options, format }), codec };
}

// S4.3
/** Finds the messages of the user that state constraints, such as "never push to main": candidates for the option
 *  `pins.match`. Precise rather than complete; quotes, code and questions are skipped. */
export async function proposePins(messages: readonly Message[], options: InFormat = {}): Promise<PinProposal[]> {
  const { given, codec } = standalone(options, ["format"]);
  return ask(codec.pack(messages), (engine, bytes, ends) => engine.proposePins(bytes, ends, given) as PinProposal[], "compact");
}

/** Summarizes a history without a model, by its most important sentences, in at most `targetTokens` (default: the
 *  preset's). */
export async function extractiveSummary(
  messages: readonly Message[],
  options: InFormat & { preset?: Preset; targetTokens?: number; redact?: { secrets?: boolean } } = {},
): Promise<string> {
  const { given, codec } = standalone(options, ["preset", "targetTokens", "format", "redact"]);
  return ask(codec.pack(messages), (engine, bytes, ends) => engine.extractiveSummary(bytes, ends, given), "compact");
}

/** Detects the format of a history; messages of plain roles and texts are `openai-chat`. Rejects with `unknown_format` if
 *  the history is empty or its format is none of those known. */
export async function detectFormat(messages: readonly Message[]): Promise<Format> {
  return ask(pack(messages), (engine, bytes, ends) => engine.detectFormat(bytes, ends) as Format);
}

/** Checks a history against the rules of its provider, and lists the violations. `strict` adds rules that only some
 *  servers enforce. */
export async function validateHistory(
  messages: readonly Message[],
  options: InFormat & { strict?: boolean } = {},
): Promise<{ valid: boolean; problems: Problem[] }> {
  const { given, codec } = standalone(options, ["format", "strict"]);
  const problems = await ask(codec.pack(messages), (engine, bytes, ends) => engine.validateHistory(bytes, ends, given) as Problem[], "rest");
  return { valid: problems.length === 0, problems };
}

// S1.15
/** Makes the smallest change after which a history breaks no rule of its provider. Unchanged messages are the same
 *  objects. */
export async function repairHistory<M extends Message>(
  messages: readonly M[],
  options: InFormat = {},
): Promise<{ messages: (M | NewMessageAmong<M>)[]; changes: Problem[] }> {
  const { given, codec } = standalone(options, ["format"]);
  const repaired = await ask(codec.pack(messages), (engine, bytes, ends) => engine.repairHistory(bytes, ends, given) as {
    parts: ({ keep: number } | { body: string })[];
    changes: Problem[];
  }, "rest");
  const parts = repaired.parts.map((part) =>
    "keep" in part ? (messages[part.keep] as M) : codec.decode(part.body),
  );
  return { messages: parts, changes: repaired.changes };
}
