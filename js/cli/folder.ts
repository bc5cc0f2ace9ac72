/** A folder in place of a file: the command for each history in it, and the sum. */

import { readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { countOf, validationOf } from "./check.js";
import { EXIT, Exit, exitOf, notUnderstood, wrongUsage } from "./exit.js";
import { readInput, type Input } from "./input.js";
import { inspectionOf, type Compaction } from "./inspect.js";
import { policiesOf, replayOf, type Outcome } from "./replay.js";
import { changeOf, dollars, number, percent, plural, type Terminal } from "./terminal.js";
import type { Given } from "./usage.js";

/** What is done with the histories of a folder. */
interface Work<T> {
  of(input: Input, given: Given, terminal: Terminal): Promise<T>;
  head: string[];
  row(found: T): string[];
  /** The row under the others; none where a sum says nothing. */
  sum?(all: readonly T[]): string[];
  /** What is said at the end. */
  close?(all: readonly T[], terminal: Terminal): void;
  code?(all: readonly T[]): number;
}

const total = <T>(all: readonly T[], of: (one: T) => number): number => all.reduce((sum, one) => sum + of(one), 0);
const lostIn = (compactions: readonly Compaction[]): number => total(compactions, ({ lost }) => lost.length);
const tokensIn = (compactions: readonly Compaction[]): number => total(compactions, ({ lookupTokens }) => lookupTokens);

const inspecting: Work<Awaited<ReturnType<typeof inspectionOf>>["report"]> = {
  of: async (input, given, terminal) => (await inspectionOf(input, given, terminal)).report,
  head: ["messages", "peak", "of window", "compactions", "lost", "looked up"],
  row: ({ messages, peak, window, compactions }) => [number(messages), number(peak.meter.total), percent(peak.meter.total, window.tokens), number(compactions.length), number(lostIn(compactions)), number(tokensIn(compactions))],
  sum: (all) => {
    const compactions = all.flatMap((one) => one.compactions);
    return [number(total(all, ({ messages }) => messages)), "", "", number(compactions.length), number(lostIn(compactions)), number(tokensIn(compactions))];
  },
  close: (_, terminal) => terminal.line(terminal.paint("dim", "  Lost: what compactions lost and the model used again. Looked up: tokens of the calls that brought it back.")),
};

const validating: Work<Awaited<ReturnType<typeof validationOf>>> = {
  of: validationOf,
  head: ["messages", "problems", "rules"],
  row: ({ messages, problems }) => [number(messages), number(problems.length), [...new Set(problems.map(({ rule }) => rule))].join(", ")],
  sum: (all) => [number(total(all, ({ messages }) => messages)), number(total(all, ({ problems }) => problems.length)), ""],
  code: (all) => (all.every(({ valid }) => valid) ? EXIT.fine : EXIT.problems),
};

const counting: Work<Awaited<ReturnType<typeof countOf>>> = {
  of: countOf,
  head: ["messages", "tokens", "low", "high", "exactly"],
  row: ({ messages, tokens, low, high, exact }) => [number(messages), number(tokens), number(low), number(high), exact ? number(exact.tokens) : ""],
  sum: (all) => [
    ...[number(total(all, ({ messages }) => messages)), number(total(all, ({ tokens }) => tokens)), number(total(all, ({ low }) => low)), number(total(all, ({ high }) => high))],
    all.some(({ exact }) => exact) ? number(total(all, ({ exact }) => exact?.tokens ?? 0)) : "",
  ],
};

const replaying: Work<Awaited<ReturnType<typeof replayOf>>["found"]> = {
  of: async (input, given, terminal) => (await replayOf(input, given, terminal)).found,
  head: ["calls", "cheapest", "cost", "against"],
  row: ({ outcomes }) => {
    const cheapest = [...outcomes].sort((a, b) => a.usd - b.usd)[0] as Outcome;
    const [first = cheapest] = outcomes;
    return [number(first.calls), cheapest.policy, dollars(cheapest.usd), `${dollars(first.usd)} ${first.policy}`];
  },
  close: (all, terminal) => {
    const names = all[0]?.outcomes.map(({ policy }) => policy) ?? [];
    const sums = names.map((policy, nth) => {
      const sum = (of: (outcome: Outcome) => number): number => total(all, ({ outcomes }) => of(outcomes[nth] as Outcome));
      return { policy, usd: sum(({ usd }) => usd), misses: sum(({ cacheMisses }) => cacheMisses), compactions: sum((one) => one.compactions), refused: sum((one) => one.refused) };
    });
    const rows = sums.map(({ policy, usd, misses, compactions, refused }, nth) => [policy, dollars(usd), nth === 0 ? "" : changeOf(usd, sums[0]?.usd ?? 0), number(misses), number(compactions), number(refused)]);
    terminal.heading(`All ${number(all.length)}`);
    terminal.table([["policy", "cost", "", "cache misses", "compactions", "refused"], ...rows], ["left", "right", "right", "right", "right", "right"]);
  },
};

export function ofFolder(given: Given, terminal: Terminal): Promise<number> {
  if (given.report !== undefined) throw wrongUsage(`${given.command}: --report is of one file, and ${given.file} is a folder`);
  if (given.optimum) throw wrongUsage(`${given.command}: --optimum is of one file, and ${given.file} is a folder`);
  policiesOf(given);
  if (given.command === "inspect") return each(inspecting, given, terminal);
  if (given.command === "validate") return each(validating, given, terminal);
  return given.command === "count" ? each(counting, given, terminal) : each(replaying, given, terminal);
}

/** Files that may hold a history; none in folders of programs or that are hidden. */
async function filesIn(folder: string): Promise<string[]> {
  const files: string[] = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (!entry.name.startsWith(".") && entry.name !== "node_modules") files.push(...(await filesIn(path)));
    } else if (/\.(?:jsonl|ndjson|json)$/i.test(entry.name)) files.push(path);
  }
  return files.sort();
}

async function each<T extends object>(work: Work<T>, given: Given, terminal: Terminal): Promise<number> {
  const paths = await filesIn(given.file);
  if (paths.length === 0) throw notUnderstood(given.file, "no file in it ends in .jsonl, .ndjson or .json");
  const files: { path: string; found: T }[] = [];
  const notRead: { file: string; message: string }[] = [];
  for (const [nth, path] of paths.entries()) {
    terminal.progress(`${nth + 1} of ${paths.length}: ${path}`);
    try {
      const input = await readInput(path, given.format);
      files.push({ path, found: await work.of(input, given, terminal) });
    } catch (error) {
      if (exitOf(error) !== EXIT.input) throw error;
      const { message } = error as Error;
      notRead.push({ file: path, message: message.startsWith(path) ? message : `${path}: ${message}` });
    }
  }
  terminal.done();
  const all = files.map(({ found }) => found);
  if (all.length === 0) throw new Exit(EXIT.input, `${given.file}: none of ${plural(paths.length, "file")} is understood; ${notRead[0]?.message}`);
  terminal.object(given.command, { folder: given.file, files: all, notUnderstood: notRead });
  terminal.line(`${given.file}: ${plural(all.length, "file")}`);
  const rows = files.map(({ path, found }) => [relative(given.file, path), ...work.row(found)]);
  const sum = work.sum?.(all);
  const table = [["", ...work.head], ...rows, ...(sum && all.length > 1 ? [["all", ...sum]] : [])];
  // A column may have nothing but its name.
  const isUsed = (_: unknown, at: number): boolean => table.slice(1).some((row) => row[at] !== "");
  terminal.table(table.map((row) => row.filter(isUsed)), ["left", ...work.head.map(() => "right" as const)]);
  work.close?.(all, terminal);
  if (notRead.length > 0) {
    terminal.heading(terminal.paint("yellow", `Not understood: ${plural(notRead.length, "file")}`));
    for (const { message } of notRead.slice(0, MOST)) terminal.line(`  ${message}`);
    if (notRead.length > MOST) terminal.line(`  … ${number(notRead.length - MOST)} more with --json`);
  }
  return work.code?.(all) ?? EXIT.fine;
}

const MOST = 10;
