#!/usr/bin/env node
/** The command line: over the public entries, and deciding nothing about context. */

import process from "node:process";
import { version } from "../entry/main.js";
import { EXIT, Exit, exitOf } from "./exit.js";
import { isFolder } from "./input.js";
import { Terminal } from "./terminal.js";
import { given, type CommandName, type Given } from "./usage.js";

type Run = (given: Given, terminal: Terminal) => Promise<number>;

/** Each command is loaded when it is asked for. */
const RUNS: Record<CommandName, () => Promise<Run>> = {
  inspect: async () => (await import("./inspect.js")).inspect,
  validate: async () => (await import("./check.js")).validate,
  count: async () => (await import("./check.js")).count,
  compact: async () => (await import("./compact.js")).compactFile,
  replay: async () => (await import("./replay.js")).replay,
  export: async () => (await import("./sessions.js")).exportSession,
  import: async () => (await import("./sessions.js")).importFile,
  mcp: async () => (await import("./mcp.js")).mcp,
  proxy: async () => (await import("./proxy.js")).proxy,
  sql: async () => (await import("./sql.js")).sql,
  doctor: async () => (await import("./doctor.js")).doctor,
};

/** Commands whose standard output is data. */
const DATA: CommandName[] = ["compact", "export"];

async function main(args: readonly string[]): Promise<number> {
  const asked = given(args, version);
  if (typeof asked === "string") {
    process.stdout.write(`${asked}\n`);
    return EXIT.fine;
  }
  const run = (await isFolder(asked)) ? (await import("./folder.js")).ofFolder : await RUNS[asked.command]();
  const terminal = new Terminal(asked.json, DATA.includes(asked.command) && asked.output === undefined);
  try {
    return await run(asked, terminal);
  } finally {
    terminal.done();
  }
}

/** Tells people why a run ended, and the program that asked for `--json`. */
function failed(error: unknown, args: readonly string[]): number {
  const told = (exit: number, message: string): number => {
    process.stderr.write(`context-compactor: ${message}\n`);
    // Behind an empty line comes help.
    const [what] = message.split("\n\n", 1);
    const object = { version: 1, command: args[0], error: { exit, message: what } };
    if (args.includes("--json")) process.stdout.write(`${JSON.stringify(object, undefined, 2)}\n`);
    return exit;
  };
  const { code, message = "", stack } = error as { code?: string; message?: string; stack?: string };
  if (error instanceof Exit) return told(error.code, message);
  return told(exitOf(error), code === undefined ? (stack ?? String(error)) : `${message} (${code})`);
}

// Who reads has read enough, as `head` does.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit(process.exitCode ?? EXIT.fine);
  });
}
process.on("SIGINT", () => {
  process.stderr.write("\n");
  process.exit(EXIT.interrupted);
});

const args = process.argv.slice(2);
void main(args)
  .catch((error: unknown) => failed(error, args))
  .then((code) => {
    process.exitCode = code;
  });
