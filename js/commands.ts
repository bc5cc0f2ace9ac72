/** `/compact`, `/context` and `/help` for chats (`S1.13`): reading, running, and their answers as text. */

import { checkOptions } from "./checks.js";
import { CompactionError } from "./errors.js";
import type { CommandAnswer, CompactionResult, ContextUsage, Session } from "./types.js";

/** The commands, with what follows them and what they do. */
export const COMMANDS: readonly { name: string; argument: string; help: string }[] = [
  { name: "/compact", argument: "[instructions]", help: "Compress conversation history" },
  { name: "/context", argument: "", help: "Show what fills the context window" },
  { name: "/help", argument: "", help: "List the commands" },
];

/** Cells of the bar of `/context`. */
const BAR = 32;

/** True for what `chatCommand` answers, and nobody sends to a model: a text that begins with a slash. */
export function isChatCommand(text: string): boolean {
  return text.trimStart().startsWith("/");
}

/**
 * Runs what was typed into a chat when it is a command, and resolves to its answer when the command has ended; resolves to
 * undefined for anything else. What goes wrong is told in the answer. Numbers are written as `locale` has them (default:
 * the host's).
 */
export async function chatCommand(
  session: Pick<Session, "compact" | "getContextUsage">,
  text: string,
  options: { locale?: string; signal?: AbortSignal } = {},
): Promise<CommandAnswer | undefined> {
  checkOptions(options, ["locale", "signal"]);
  if (!isChatCommand(text)) return undefined;
  const { locale, signal } = options;
  const [, name = "", rest = ""] = /^(\S*)\s*([\s\S]*)$/.exec(text.trim()) ?? [];
  try {
    if (name === "/compact") {
      const asked = { ...(rest === "" ? {} : { instructions: rest }), ...(signal ? { signal } : {}) };
      return compacted(await session.compact(asked), locale);
    }
    if (name === "/context") return { tone: "ok", text: usageText(session.getContextUsage(), locale) };
  } catch (error) {
    return failure(error, name === "/compact");
  }
  if (name === "/help") return { tone: "ok", text: help() };
  return { tone: "error", text: `Unknown command ${name}.\n${help()}` };
}

function compacted(result: CompactionResult, locale: string | undefined): CommandAnswer {
  const number = new Intl.NumberFormat(locale);
  const { success, error, reason, previousTokens, currentTokens, freedTokens, appliedEdits } = result;
  if (error) return failure(error, true);
  if (!success || appliedEdits.length === 0) {
    const why = reason ?? "Nothing to compress";
    return { tone: "idle", text: `${why}\n${number.format(currentTokens)} tokens in context.` };
  }
  const deleted = result.deletedFiles.length;
  const lines = [
    `${number.format(previousTokens)} → ${number.format(currentTokens)} tokens`,
    `Freed ${number.format(freedTokens)} tokens, deleted ${number.format(deleted)} offload${deleted === 1 ? "" : "s"}.`,
    // Such as that the built-in summariser had to write it.
    ...(reason === undefined ? [] : [reason]),
  ];
  return { tone: "ok", text: lines.join("\n") };
}

function usageText(usage: ContextUsage, locale: string | undefined): string {
  const number = new Intl.NumberFormat(locale);
  const { usedTokens, maxTokens, threshold, messageCount, toolCallCount, offloadCount } = usage;
  const share = usedTokens / maxTokens;
  const percent = new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 1 }).format(share);
  const counts = [`${number.format(messageCount)} messages`, `${number.format(toolCallCount)} tool calls`];
  return [
    `${number.format(usedTokens)} / ${number.format(maxTokens)} tokens (${percent})`,
    bar(share, threshold / maxTokens),
    `Compaction at ${number.format(threshold)} tokens`,
    [...counts, `${number.format(offloadCount)} offloads`].join(" · "),
  ].join("\n");
}

/** How full the window is, with the threshold marked; neither ever leaves the bar. */
function bar(share: number, threshold: number): string {
  const cell = (part: number) => Math.min(BAR, Math.max(0, Math.round(part * BAR)));
  const cells = "█".repeat(cell(share)) + "░".repeat(BAR - cell(share));
  return `${cells.slice(0, cell(threshold))}┃${cells.slice(cell(threshold))}`;
}

function help(): string {
  const heads = COMMANDS.map(({ name, argument }) => `${name} ${argument}`.trim());
  const width = Math.max(...heads.map((head) => head.length));
  return COMMANDS.map(({ help }, at) => `${(heads[at] ?? "").padEnd(width)}  ${help}`).join("\n");
}

function failure(error: unknown, compacting: boolean): CommandAnswer {
  const code = CompactionError.isInstance(error) ? error.code : undefined;
  const message = error instanceof Error ? error.message : String(error);
  if (!compacting) return { tone: "error", text: message };
  const why = code === "aborted" ? "Stopped." : `Compaction failed: ${message}`;
  const state = code === "indeterminate" ? "Open the session again to see what it holds." : "The history is unchanged.";
  return { tone: "error", text: `${why}\n${state}` };
}
