// @ts-check
/** The chat's commands (`S1.13`): parsing, running and their answers as text. */

/** @typedef {import("context-compactor").ContextUsage} ContextUsage */
/** @typedef {import("context-compactor").CompactionResult} CompactionResult */
/** @typedef {{ name: "compact", instructions: string } | { name: "context" | "help" } | { name: "unknown", text: string }} Command */
/** @typedef {{ tone: "ok" | "idle" | "error", text: string }} Answer */
/** @typedef {{ compact(options: { instructions?: string, signal?: AbortSignal }): Promise<CompactionResult>, getContextUsage(): ContextUsage }} Target */

/** Name, argument and help text of every command. */
export const COMMANDS = /** @type {const} */ ([
  { name: "/compact", argument: "[instructions]", help: "Compress conversation history" },
  { name: "/context", argument: "", help: "Show what fills the context window" },
  { name: "/help", argument: "", help: "List the commands" },
]);

/** `undefined` for plain text. @param {string} input @returns {Command | undefined} */
export function parseCommand(input) {
  const text = input.trim();
  if (!text.startsWith("/")) return undefined;
  const [, word = "", rest = ""] = /^\/(\S*)\s*([\s\S]*)$/.exec(text) ?? [];
  if (word === "compact") return { name: "compact", instructions: rest.trim() };
  if (word === "context" || word === "help") return { name: word };
  return { name: "unknown", text: `/${word}` };
}

/** Resolves when the command has ended, not when it has begun.
 *  @param {Command} command @param {Target} session @param {{ locale?: string, signal?: AbortSignal }} [options]
 *  @returns {Promise<Answer>} */
export async function runCommand(command, session, { locale, signal } = {}) {
  switch (command.name) {
    case "compact": {
      /** @type {{ instructions?: string, signal?: AbortSignal }} */
      const options = {};
      if (command.instructions !== "") options.instructions = command.instructions;
      if (signal) options.signal = signal;
      try {
        return compactAnswer(await session.compact(options), locale);
      } catch (error) {
        return failure(error);
      }
    }
    case "context":
      return { tone: "ok", text: contextText(session.getContextUsage(), locale) };
    case "help":
      return { tone: "ok", text: helpText() };
    default:
      return { tone: "error", text: `Unknown command ${command.text}.\n${helpText()}` };
  }
}

/** @param {CompactionResult} result @param {string} [locale] @returns {Answer} */
export function compactAnswer(result, locale) {
  const number = new Intl.NumberFormat(locale);
  if (!result.success) return failure(result.error ?? new Error(result.reason ?? "the summary was refused"));
  if (result.freedTokens === 0) {
    return {
      tone: "idle",
      text: `Nothing to compact${result.reason ? `: ${result.reason}` : "."}\n${number.format(result.currentTokens)} tokens in context.`,
    };
  }
  const deleted = result.deletedFiles.length;
  return {
    tone: "ok",
    text:
      `${number.format(result.previousTokens)} → ${number.format(result.currentTokens)} tokens\n` +
      `Freed ${number.format(result.freedTokens)} tokens, deleted ${number.format(deleted)} offload${deleted === 1 ? "" : "s"}.` +
      (result.reason ? `\n${result.reason}` : ""),
  };
}

/** @param {ContextUsage} usage @param {string} [locale] @returns {string} */
export function contextText(usage, locale) {
  const number = new Intl.NumberFormat(locale);
  const share = usage.maxTokens > 0 ? usage.usedTokens / usage.maxTokens : 0;
  const percent = new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 1 }).format(share);
  return [
    `${number.format(usage.usedTokens)} / ${number.format(usage.maxTokens)} tokens (${percent})`,
    bar(share, usage.maxTokens > 0 ? usage.threshold / usage.maxTokens : 1),
    `Compaction at ${number.format(usage.threshold)} tokens`,
    `${number.format(usage.messageCount)} messages · ${number.format(usage.toolCallCount)} tool calls · ${number.format(usage.offloadCount)} offloads`,
  ].join("\n");
}

/** A bar of 32 cells with the threshold marked. @param {number} share @param {number} threshold @returns {string} */
export function bar(share, threshold) {
  const width = 32;
  const filled = Math.min(width, Math.max(0, Math.round(share * width)));
  const mark = Math.min(width, Math.max(0, Math.round(threshold * width)));
  const cells = "█".repeat(filled) + "░".repeat(width - filled);
  return `${cells.slice(0, mark)}┃${cells.slice(mark)}`;
}

/** @returns {string} */
export function helpText() {
  const heads = COMMANDS.map(({ name, argument }) => (argument === "" ? name : `${name} ${argument}`));
  const width = Math.max(...heads.map((head) => head.length));
  return COMMANDS.map(({ help }, i) => `${(heads[i] ?? "").padEnd(width)}  ${help}`).join("\n");
}

/** @param {unknown} error @returns {Answer} */
function failure(error) {
  const aborted =
    error instanceof Error &&
    (error.name === "AbortError" || /** @type {{ code?: string }} */ (error).code === "aborted");
  const why = aborted
    ? "Stopped."
    : `Compaction failed: ${error instanceof Error ? error.message : String(error)}`;
  return { tone: "error", text: `${why}\nThe history is unchanged.` };
}
