/** The commands of chats: one table has their names, arguments and actions. */

import { checkOptions, invalidOption } from "./checks.js";
import { CompactionError } from "./errors.js";
import type { CompactionResult, ContextUsage, Session, SessionContext, SessionRecall } from "./types.js";

/** The answer of a command, to show in the chat. */
export interface CommandAnswer {
  /** `ok`: done. `idle`: there was nothing to do. `error`: it failed, as `text` says. */
  tone: "ok" | "idle" | "error";
  /** Lines of plain text, aligned for a fixed-width font. */
  text: string;
}

/** A session, or the parts of it that commands need: `compact` and `context`, and for other commands those that they name. */
type Target = { compact: Session["compact"]; context: Pick<SessionContext<unknown>, "usage"> } & Partial<
  Pick<Session, "goal" | "pins" | "snapshots"> & { recall: Pick<SessionRecall, "search"> }
>;

/** What follows the command, and how its answer is written. */
interface Asked {
  rest: string;
  locale: string | undefined;
  signal: AbortSignal | undefined;
}

interface Command {
  name: string;
  /** What may follow: in braces it must, in brackets it may; nothing may where it is empty. */
  argument: string;
  help: string;
  /** Parts and calls of the session. */
  needs: readonly (keyof Target)[];
  run(session: Required<Target>, asked: Asked): Promise<CommandAnswer> | CommandAnswer;
}

// S1.13
const TABLE: readonly Command[] = [
  {
    name: "/compact",
    argument: "[instructions]",
    help: "Compress conversation history",
    needs: ["compact"],
    async run(session, { rest, locale, signal }) {
      try {
        const asked = { ...(rest === "" ? {} : { instructions: rest }), ...(signal ? { signal } : {}) };
        return compacted(await session.compact(asked), locale);
      } catch (error) {
        return failure(error, true);
      }
    },
  },
  {
    name: "/context",
    argument: "",
    help: "Show what fills the context window",
    needs: ["context"],
    run: (session, { locale }) => ok(usageText(session.context.usage(), locale)),
  },
  {
    name: "/goal",
    argument: "[description]",
    help: "Show or set what the conversation is for",
    needs: ["goal"],
    async run(session, { rest }) {
      if (rest === "") return session.goal.current ? ok(session.goal.current.description) : idle("There is no goal yet: /goal {description} sets one.");
      // The same words are the same goal, which keeps what it reached.
      const goal = { id: rest, description: rest, priority: "medium", status: "active" } as const;
      await session.goal.set({ ...goal, checkpoints: [], decisions: [], artifacts: [] });
      return ok(`Goal: ${rest}`);
    },
  },
  {
    name: "/pin",
    argument: "[index]",
    help: "Keep a message word for word, or list what could be",
    needs: ["pins"],
    async run(session, { rest }) {
      if (rest === "") {
        const lines = (await session.pins.proposals()).map(({ index, constraints }) => `${index}  ${constraints.join(" ")}`);
        return lines.length > 0 ? ok(lines.join("\n")) : idle("No message is proposed: /pin {index} keeps any.");
      }
      if (!/^\d+$/.test(rest)) return wrong("/pin takes the index of a message, as in /pin 4.");
      await session.pins.add(Number(rest));
      return ok(`Message ${rest} stays word for word.`);
    },
  },
  {
    name: "/search",
    argument: "{words}",
    help: "Search the whole conversation",
    needs: ["recall"],
    async run(session, { rest }) {
      const hits = await session.recall.search(rest);
      return hits.length > 0 ? ok(hits.map(({ snippet }) => snippet).join("\n")) : idle("Nothing was found.");
    },
  },
  {
    name: "/snapshot",
    argument: "",
    help: "Take a snapshot to go back to",
    needs: ["snapshots"],
    run: async (session) => ok(`Snapshot ${await session.snapshots.take()}`),
  },
  {
    name: "/restore",
    argument: "[snapshot]",
    help: "Go back to a snapshot, or list them",
    needs: ["snapshots"],
    async run(session, { rest, locale }) {
      if (rest === "") {
        const time = new Intl.DateTimeFormat(locale, { dateStyle: "short", timeStyle: "medium" });
        const lines = (await session.snapshots.list()).map(({ id, timestamp, messageCount }) => `${id}  ${time.format(timestamp)}  ${messageCount} messages`);
        return lines.length > 0 ? ok(lines.join("\n")) : idle("There are no snapshots: /snapshot takes one.");
      }
      await session.snapshots.restore(rest);
      return ok(`Back at ${rest}.`);
    },
  },
  {
    name: "/help",
    argument: "",
    help: "List the commands",
    needs: [],
    run: (session) => ok(helpOf(session)),
  },
];

/** The commands that `chatCommand` knows, with their argument (`{required}`, `[optional]`, or empty) and a line of help. */
export const COMMANDS: readonly { name: string; argument: string; help: string }[] = TABLE.map(({ name, argument, help }) => ({
  name,
  argument,
  help,
}));

/** Cells of the bar of `/context`. */
const BAR = 32;

/** Returns whether the first word of `text` is one of `COMMANDS`: `chatCommand` answers such a text, and it is not for the
 *  model. */
export function isChatCommand(text: string): boolean {
  return read(text) !== undefined;
}

function read(text: string): { command: Command; rest: string } | undefined {
  const [, name, rest = ""] = /^(\/\S*)\s*([\s\S]*)$/.exec(String(text).trim()) ?? [];
  // Keyboards of phones begin with a capital.
  const written = name?.replace(/^\/[A-Z]/, (start) => start.toLowerCase());
  const command = TABLE.find((command) => command.name === written);
  return command && { command, rest };
}

/**
 * Runs a text typed into a chat if it is one of `COMMANDS`, and resolves to its answer when the command has ended;
 * resolves to `undefined` for any other text. Errors of the command are in the answer (`tone: "error"`). `locale`: format
 * of numbers (default: the host's).
 */
export async function chatCommand(
  session: Target,
  text: string,
  options: { locale?: string; signal?: AbortSignal } = {},
): Promise<CommandAnswer | undefined> {
  if (typeof session !== "object" || session === null) {
    throw invalidOption("session", "must be a session: chatCommand(session, text)");
  }
  if (typeof text !== "string") throw invalidOption("text", "must be what was typed: chatCommand(session, text)");
  checkOptions(options, ["locale", "signal"]);
  const asked = read(text);
  if (!asked) return undefined;
  const { command, rest } = asked;
  const { name, argument } = command;
  const usage = `${name} ${argument}`.trim();
  if (argument === "" && rest !== "") return wrong(`${name} takes nothing behind it.`);
  if (argument.startsWith("{") && rest === "") return wrong(`${usage}: say what.`);
  const missing = command.needs.find((need) => session[need] === undefined);
  if (missing !== undefined) return wrong(`${name} cannot be done here: this chat has no session.${missing}.`);
  const { locale, signal } = options;
  try {
    return await command.run(session as Required<Target>, { rest, locale, signal });
  } catch (error) {
    return failure(error, false);
  }
}

const ok = (text: string): CommandAnswer => ({ tone: "ok", text });
const idle = (text: string): CommandAnswer => ({ tone: "idle", text });
const wrong = (text: string): CommandAnswer => ({ tone: "error", text });

function compacted(result: CompactionResult, locale: string | undefined): CommandAnswer {
  const number = new Intl.NumberFormat(locale);
  const { success, error, reason, previousTokens, currentTokens, freedTokens, appliedEdits } = result;
  if (error) return failure(error, true, appliedEdits.length > 0);
  if (!success || appliedEdits.length === 0) {
    const why = reason ?? "Nothing to compress";
    return { tone: "idle", text: `${why}\n${number.format(currentTokens)} tokens in context.` };
  }
  const deleted = result.retiredRefs.length;
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

/** Those that can be done here. */
function helpOf(session: Target): string {
  const offered = TABLE.filter(({ needs }) => needs.every((need) => session[need] !== undefined));
  const heads = offered.map(({ name, argument }) => `${name} ${argument}`.trim());
  const width = Math.max(...heads.map((head) => head.length));
  return offered.map(({ help }, at) => `${(heads[at] ?? "").padEnd(width)}  ${help}`).join("\n");
}

function failure(error: unknown, compacting: boolean, changed = false): CommandAnswer {
  const code = CompactionError.isInstance(error) ? error.code : undefined;
  const message = error instanceof Error ? error.message : String(error);
  if (!compacting) return { tone: "error", text: message };
  const why = code === "aborted" ? "Stopped." : `Compaction failed: ${message}`;
  const state = code === "indeterminate" ? "Open the session again to see what it holds." : "The history is unchanged.";
  return { tone: "error", text: changed ? why : `${why}\n${state}` };
}
