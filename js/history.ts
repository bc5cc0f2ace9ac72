/** What needs no session: counting, cutting, prompting, checking, and compacting once. */

import { checkFunction, checkObject, checkOptions, invalidOption, plainOptions } from "./checks.js";
import { decode, pack } from "./codec.js";
import { checkAborted, drive, driveSync, quietly, run } from "./driver.js";
import { factsFor, loadedFactsFor } from "./models.js";
import { engineOptions, hostOf, toResult, withFacts, type EngineResult, type Item } from "./options.js";
import { yesOrNo } from "./replies.js";
import { estimateText } from "./text.js";
import { ASSUMED, warnOnce, type Warning } from "./warnings.js";
import type {
  CompactionResult,
  CompactOptions,
  Estimator,
  Format,
  Goal,
  Keep,
  Level,
  Message,
  Mode,
  NewMessageAmong,
  PinProposal,
  Plan,
  Preset,
  Problem,
  Split,
  SummaryRequest,
  TokenEstimate,
} from "./types.js";

/** Estimated tokens of a text, a message or a history, by the tokenizer of `model`'s family; without a name, by OpenAI's
 *  since GPT-4o. Throws `unknown_model`, with the names nearest to it, for one that says nothing. A lone surrogate counts as
 *  U+FFFD. */
export function estimateTokens(
  input: string | Message | readonly Message[],
  options?: { estimator?: Estimator; format?: Format; model?: string },
): number {
  if (options !== undefined) checkOptions(options, ["estimator", "format", "model"]);
  if (typeof input === "string") return estimateText(input, options?.estimator, options?.model);
  const tokens = estimate(Array.isArray(input) ? (input as Message[]) : [input], options ?? {});
  return tokens.reduce((sum, tokens) => sum + tokens, 0);
}

/** The same with bounds, which hold for about 99 of 100 texts, and by role and message. A text has no roles. Frames and media are
 *  counted by rule, which may be half of it off; for `chars4` the bounds are as wide as that is. */
export function estimateTokensDetailed(
  input: string | Message | readonly Message[],
  options: { estimator?: Estimator; format?: Format; model?: string } = {},
): TokenEstimate {
  checkOptions(options, ["estimator", "format", "model"]);
  const { estimator, format, model } = options;
  const given = plainOptions({ estimator, format, model });
  if (typeof input === "string") {
    return run((engine) => engine.estimateTextDetailed(input, given)) as TokenEstimate;
  }
  const { bytes, ends } = pack(Array.isArray(input) ? (input as Message[]) : [input]);
  return run((engine) => engine.estimateDetailed(bytes, ends, given)) as TokenEstimate;
}

function estimate(
  messages: readonly Message[],
  options: { estimator?: Estimator; format?: Format; model?: string },
): Uint32Array {
  const { bytes, ends } = pack(messages);
  const { estimator, format, model } = options;
  const given = plainOptions({ estimator, format, model });
  return run((engine) => engine.estimateMessages(bytes, ends, given));
}

/** Where to cut a history so that `keep` (default: the last 5 messages) stays: where `compact` and a session cut it too. No
 *  tool call is parted from its result (`S1.5`). Leading messages of the system stay, and a `pinned` message stays wherever
 *  it stands, with its exchange. */
export function splitMessages<M extends Message>(
  messages: readonly M[],
  options: { keep?: Keep; format?: Format; pinned?: (message: M, index: number) => boolean } = {},
): Split<M> {
  const { bytes, ends } = pack(messages);
  checkOptions(options, ["keep", "format", "pinned"]);
  const { keep, format, pinned } = options;
  if (keep !== undefined) checkOptions(keep, ["messages", "tokens", "fraction"], "keep.");
  checkFunction("pinned", pinned);
  const given = plainOptions({ keep, format });
  const stay = pinned ? messages.flatMap((message, index) => (stays(pinned(message, index)) ? [index] : [])) : [];
  const cut = run((engine) => engine.splitMessages(bytes, ends, Uint32Array.from(stay), given)) as {
    boundary: number;
    requested: number;
    pinned: number[];
  };
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
    throw invalidOption("pinned", (error as Error).message, error);
  }
}

/** What to ask a summariser (`S1.7`): the conversation is fenced as data, and the whole fits `maxInputTokens`. */
export function buildSummaryPrompt(
  messages: readonly Message[],
  options: {
    preset?: Preset;
    format?: Format;
    mode?: Mode;
    level?: Level;
    goal?: Goal;
    /** Lengths by level follow it; default 200,000. */
    contextWindow?: number;
    instructions?: string;
    previousSummary?: string;
    targetTokens?: number;
    maxInputTokens?: number;
    /** As in `CompactOptions`; placeholders are numbered within the prompt. Default true. */
    redactSecrets?: boolean;
  } = {},
): SummaryRequest {
  const { bytes, ends } = pack(messages);
  checkOptions(options, [
    "preset",
    "format",
    "mode",
    "level",
    "goal",
    "contextWindow",
    "instructions",
    "previousSummary",
    "targetTokens",
    "maxInputTokens",
    "redactSecrets",
  ]);
  const given = plainOptions(options);
  return run((engine) => engine.buildSummaryPrompt(bytes, ends, given)) as SummaryRequest;
}

/** The messages of the user that state constraints, for which a pin is proposed (`S4.3`): what an app may answer with the
 *  option `pins.match`. Precise rather than complete; quotes, code and questions are not looked at. */
export function proposePins(messages: readonly Message[], options: { format?: Format } = {}): PinProposal[] {
  const { bytes, ends } = pack(messages);
  checkOptions(options, ["format"]);
  const given = plainOptions(options);
  return run((engine) => engine.proposePins(bytes, ends, given)) as PinProposal[];
}

/** A summary that no model is needed for, of at most `targetTokens` (the default is the preset's); as `preset` has it. */
export function extractiveSummary(
  messages: readonly Message[],
  options: { preset?: Preset; targetTokens?: number; format?: Format; redactSecrets?: boolean } = {},
): string {
  const { bytes, ends } = pack(messages);
  checkOptions(options, ["preset", "targetTokens", "format", "redactSecrets"]);
  const given = plainOptions(options);
  return run((engine) => engine.extractiveSummary(bytes, ends, given));
}

/** The format of a history. Plain roles and texts read as `openai-chat`; an empty history is an error. */
export function detectFormat(messages: readonly Message[]): Format {
  const { bytes, ends } = pack(messages);
  return run((engine) => engine.detectFormat(bytes, ends)) as Format;
}

/** The provider's rules that a history breaks; `strict` adds those that only some servers enforce. */
export function validateHistory(
  messages: readonly Message[],
  options: { format?: Format; strict?: boolean } = {},
): { valid: boolean; problems: Problem[] } {
  const { bytes, ends } = pack(messages);
  checkOptions(options, ["format", "strict"]);
  const given = plainOptions(options);
  const problems = run((engine) => engine.validateHistory(bytes, ends, given)) as Problem[];
  return { valid: problems.length === 0, problems };
}

/** The smallest change that makes a history acceptable (`S1.15`); untouched messages are the same objects. */
export function repairHistory<M extends Message>(
  messages: readonly M[],
  options: { format?: Format } = {},
): { messages: (M | NewMessageAmong<M>)[]; changes: Problem[] } {
  const { bytes, ends } = pack(messages);
  checkOptions(options, ["format"]);
  const given = plainOptions(options);
  const repaired = run((engine) => engine.repairHistory(bytes, ends, given)) as {
    parts: ({ keep: number } | { body: string })[];
    changes: Problem[];
  };
  const parts = repaired.parts.map((part) =>
    "keep" in part ? (messages[part.keep] as M) : (decode(part.body) as NewMessageAmong<M>),
  );
  return { messages: parts, changes: repaired.changes };
}

/** Options from an environment record such as `process.env` or a Worker's `env` (`S1.12`). */
export function optionsFromEnv(environment: Record<string, unknown>): CompactOptions {
  checkObject(environment);
  return run((engine) => engine.optionsFromEnv(environment)) as CompactOptions;
}

/**
 * Compacts a history once, whatever its size, storing nothing. Kept messages are the same objects. When no summary
 * could be had the result says so and its messages are those that were given.
 */
export async function compact<M extends Message>(
  messages: readonly M[],
  options: CompactOptions = {},
): Promise<CompactionResult<M | NewMessageAmong<M>>> {
  const { bytes, ends } = pack(messages);
  const read = engineOptions(options, "compact");
  const host = hostOf(read, (whose, at, body) => (whose === "ours" ? (decode(body) as Message) : (messages[at] as M)));
  const given = withFacts(read, await factsFor(options));
  checkAborted(options.signal);
  if (run((engine) => engine.assumesWindow(given))) warn(options, ASSUMED);
  const operation = run((engine) => engine.compactOnce(bytes, ends, given));
  // The logger was told where they came up.
  host.notify = ({ event, ...data }) => {
    if (event === "warning" && !options.logger) warnOnce(data as unknown as Warning);
  };
  let thrown = new Map<number, unknown>();
  const { items, result } = await drive<{ items: Item[]; result: EngineResult }>(operation, host, (_, causes) => {
    thrown = causes;
  });
  const kept = items.map((item) =>
    item.seq === undefined ? (decode(item.body ?? "null") as NewMessageAmong<M>) : (messages[item.seq] as M),
  );
  return toResult(result, kept, thrown);
}

function warn({ logger }: CompactOptions, warning: Warning): void {
  if (logger) quietly(() => logger("warn", warning.message));
  else warnOnce(warning);
}

/** What a session with these messages would do at its next `prepare`. The options are those of the `compact` that it plans;
 *  no model is called. With `model` and no
 *  `contextWindow`, call `modelFacts` before: nothing can be loaded here. */
export function planCompaction(messages: readonly Message[], options: CompactOptions = {}): Plan {
  const { bytes, ends } = pack(messages);
  const read = engineOptions(options, "planCompaction");
  const given = withFacts(read, loadedFactsFor(options));
  const host = hostOf(read, (whose, at, body) =>
    whose === "ours" ? (decode(body) as Message) : (messages[at] as Message),
  );
  checkAborted(options.signal);
  return driveSync<Plan>(
    run((engine) => engine.planOnce(bytes, ends, given)),
    host,
  );
}

