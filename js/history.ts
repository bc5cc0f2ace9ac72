/** Functions on a history alone (`context-compactor/history`): cutting, prompting, checking, mending. */

import { checkFunction, checkOptions, invalidOption, plainOptions } from "./checks.js";
import { decode, pack, type Packed } from "./codec.js";
import { run } from "./driver.js";
import { started, type Engine } from "./engine.js";
import { yesOrNo } from "./replies.js";
import type { Format, Goal, Keep, Level, Message, Mode, NewMessageAmong, PinProposal, Preset, SummaryRequest } from "./types.js";
import type { Problem, Split } from "./types/history.js";

/** Asks the engine about a history as it was when it was packed: what the app changes while the engine is loaded is not seen. */
async function ask<T>({ bytes, ends }: Packed, question: (engine: Engine, bytes: Uint8Array, ends: Uint32Array) => T): Promise<T> {
  await started();
  return run((engine) => question(engine, bytes, ends));
}

// S1.5
/**
 * Where to cut a history so that `keep` (default: the last 5 messages) stays: where `compact` and a session cut it too. No
 * tool call is parted from its result. Leading messages of the system stay, and a message for which `pins.match` returns true stays
 * wherever it stands, with its exchange.
 */
export async function splitMessages<M extends Message>(
  messages: readonly M[],
  options: { keep?: Keep; format?: Format; pins?: { match?: (message: M, index: number) => boolean } } = {},
): Promise<Split<M>> {
  checkOptions(options, ["keep", "format", "pins"]);
  const { keep, format, pins = {} } = options;
  if (keep !== undefined) checkOptions(keep, ["messages", "tokens", "fraction"], "keep.");
  checkOptions(pins, ["match"], "pins.");
  const { match } = pins;
  checkFunction("pins.match", match);
  const given = plainOptions({ keep, format });
  const packed = pack(messages);
  const stay = match ? messages.flatMap((message, index) => (stays(match(message, index)) ? [index] : [])) : [];
  const cut = await ask(packed, (engine, bytes, ends) => engine.splitMessages(bytes, ends, Uint32Array.from(stay), given) as {
    boundary: number;
    requested: number;
    pinned: number[];
  });
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
/** What to ask a summarizer: the conversation is fenced as data, and the whole fits `maxInputTokens`. */
export async function buildSummaryPrompt(
  messages: readonly Message[],
  options: {
    preset?: Preset;
    format?: Format;
    /** What a summary must preserve. */
    mode?: Mode;
    /** How detailed it is to be: 1 compact, 2 moderate, 3 detailed; default by the size of the history. */
    detail?: Level;
    goal?: Goal;
    /** Lengths by `detail` follow it; default 200,000. */
    contextWindow?: number;
    instructions?: string;
    previousSummary?: string;
    targetTokens?: number;
    maxInputTokens?: number;
    /** As in `CompactOptions`; placeholders are numbered within the prompt. `secrets` is true by default. */
    redact?: { secrets?: boolean };
  } = {},
): Promise<SummaryRequest> {
  const known = ["preset", "format", "mode", "detail", "goal", "contextWindow", "instructions", "previousSummary", "targetTokens", "maxInputTokens", "redact"];
  const given = standalone(options, known);
  return ask(pack(messages), (engine, bytes, ends) => engine.buildSummaryPrompt(bytes, ends, given) as SummaryRequest);
}

/** Options of this module that are values. */
function standalone(options: object & { redact?: object | undefined }, known: readonly string[]): object {
  checkOptions(options, known);
  if (options.redact !== undefined) checkOptions(options.redact, ["secrets"], "redact.");
  return plainOptions(options);
}

// S4.3
/** The messages of the user that state constraints, for which a pin is proposed: what an app may answer with the
 *  option `pins.match`. Precise rather than complete; quotes, code and questions are not looked at. */
export async function proposePins(messages: readonly Message[], options: { format?: Format } = {}): Promise<PinProposal[]> {
  const given = standalone(options, ["format"]);
  return ask(pack(messages), (engine, bytes, ends) => engine.proposePins(bytes, ends, given) as PinProposal[]);
}

/** A summary that no model is needed for, of at most `targetTokens` (the default is the preset's); as `preset` has it. */
export async function extractiveSummary(
  messages: readonly Message[],
  options: { preset?: Preset; targetTokens?: number; format?: Format; redact?: { secrets?: boolean } } = {},
): Promise<string> {
  const given = standalone(options, ["preset", "targetTokens", "format", "redact"]);
  return ask(pack(messages), (engine, bytes, ends) => engine.extractiveSummary(bytes, ends, given));
}

/** The format of a history. Plain roles and texts read as `openai-chat`; rejects with `unknown_format` for an empty history. */
export async function detectFormat(messages: readonly Message[]): Promise<Format> {
  return ask(pack(messages), (engine, bytes, ends) => engine.detectFormat(bytes, ends) as Format);
}

/** The provider's rules that a history breaks; `strict` adds those that only some servers enforce. */
export async function validateHistory(
  messages: readonly Message[],
  options: { format?: Format; strict?: boolean } = {},
): Promise<{ valid: boolean; problems: Problem[] }> {
  const given = standalone(options, ["format", "strict"]);
  const problems = await ask(pack(messages), (engine, bytes, ends) => engine.validateHistory(bytes, ends, given) as Problem[]);
  return { valid: problems.length === 0, problems };
}

// S1.15
/** The smallest change that makes a history acceptable; untouched messages are the same objects. */
export async function repairHistory<M extends Message>(
  messages: readonly M[],
  options: { format?: Format } = {},
): Promise<{ messages: (M | NewMessageAmong<M>)[]; changes: Problem[] }> {
  const given = standalone(options, ["format"]);
  const repaired = await ask(pack(messages), (engine, bytes, ends) => engine.repairHistory(bytes, ends, given) as {
    parts: ({ keep: number } | { body: string })[];
    changes: Problem[];
  });
  const parts = repaired.parts.map((part) =>
    "keep" in part ? (messages[part.keep] as M) : (decode(part.body) as NewMessageAmong<M>),
  );
  return { messages: parts, changes: repaired.changes };
}
