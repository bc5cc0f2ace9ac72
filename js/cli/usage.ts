/** The commands, and how their options are read. */

import { parseArgs, type ParseArgsConfig } from "node:util";
import type { Format, Preset } from "../entry/main.js";
import { near } from "../near.js";
import { wrongUsage } from "./exit.js";

type OptionName = keyof typeof OPTIONS;

/** Every option: its type and what the help says. */
const OPTIONS = {
  json: { type: "boolean", help: "one JSON object on standard output" },
  format: { type: "string", value: "NAME", help: "the messages' format; default: detected" },
  model: { type: "string", value: "NAME", help: "the model, which says window, prices and tokenizer" },
  window: { type: "string", value: "TOKENS", help: "the context window" },
  report: { type: "string", value: "OUT.html", help: "also write a page for a browser" },
  "no-redact": { type: "boolean", help: "leave secrets in the page" },
  strict: { type: "boolean", help: "also rules that only some servers enforce" },
  exact: { type: "boolean", help: "count with the tokenizer of OpenAI's models" },
  preset: { type: "string", value: "NAME", help: "the strategy; default: balanced" },
  provider: { type: "string", value: "KIND:MODEL", help: "let a model write the summary: the history is sent to it" },
  url: { type: "string", value: "URL", help: "the endpoint of --provider" },
  output: { type: "string", short: "o", value: "FILE", help: "write there, not to standard output" },
  policies: { type: "string", value: "A,B", help: "what to compare: none, or PRESET[@FRACTION]; default: none, balanced@0.8, balanced" },
  optimum: { type: "boolean", help: "also published thresholds, and the best that any could be: needs context-compactor-evaluator" },
  store: { type: "string", value: "DIR", help: "the folder of fileStore" },
  id: { type: "string", value: "ID", help: "the session's name; default: what it was called" },
  upstream: { type: "string", value: "URL", help: "the provider that requests are forwarded to" },
  port: { type: "string", value: "PORT", help: "the port to listen on; default: 8484" },
  host: { type: "string", value: "ADDRESS", help: "the address to listen on; default: 127.0.0.1, this machine alone" },
  thread: { type: "string", value: "HEADER", help: "the header that names a request's conversation; default: recognized by its messages" },
  table: { type: "string", value: "NAME", help: "the table's name; default: context_compactor" },
} as const;

/** What stands behind a command's name, and how it is asked for. */
const NEEDS = { FILE: "a FILE, or - for stdin", ID: "the ID of a session", DIALECT: "a DIALECT: postgres or sqlite" };

interface Command {
  argument?: keyof typeof NEEDS;
  help: string;
  options: OptionName[];
}

const READING: OptionName[] = ["format", "json"];

const COMMANDS = {
  inspect: { argument: "FILE", help: "what fills the context, and what the agent's own compactions lost", options: ["window", "model", "report", "no-redact", ...READING] },
  validate: { argument: "FILE", help: "what the provider would refuse", options: ["strict", ...READING] },
  count: { argument: "FILE", help: "tokens by role, with bounds", options: ["exact", "model", ...READING] },
  compact: { argument: "FILE", help: "the history made shorter, in the format that it came in", options: ["preset", "window", "model", "output", "provider", "url", "report", "no-redact", ...READING] },
  replay: { argument: "FILE", help: "what policies of compaction cost on this history, call by call", options: ["policies", "optimum", "window", "model", "report", "no-redact", ...READING] },
  export: { argument: "ID", help: "the archive of a stored session", options: ["store", "output", "json"] },
  import: { argument: "FILE", help: "a session from an archive, a transcript or messages", options: ["store", "id", ...READING] },
  mcp: { help: "serves recall over stored sessions to a client of the Model Context Protocol", options: ["store"] },
  proxy: { help: "compacts the prompts of an agent that cannot be changed, between it and its provider", options: ["upstream", "port", "host", "window", "model", "preset", "store", "thread", "json"] },
  sql: { argument: "DIALECT", help: "the table of sqlStore, for postgres or sqlite", options: ["table", "json"] },
  doctor: { help: "what this runtime can do", options: ["json"] },
} satisfies Record<string, Command>;

export type CommandName = keyof typeof COMMANDS;

/** What the person asked for. */
export interface Given {
  command: CommandName;
  /** The path or `-`; of `export`, the id; of `sql`, the dialect. */
  file: string;
  json: boolean;
  strict: boolean;
  exact: boolean;
  optimum: boolean;
  redact: boolean;
  format?: Format;
  model?: string;
  window?: number;
  report?: string;
  preset?: Preset;
  provider?: string;
  url?: string;
  output?: string;
  policies?: string[];
  store?: string;
  id?: string;
  upstream?: string;
  port?: number;
  host?: string;
  thread?: string;
  table?: string;
}

const NAMES = Object.keys(COMMANDS) as CommandName[];
const commandOf = (name: CommandName): Command => COMMANDS[name];

/** Reads the arguments; a text is what to print instead of a run. */
export function given(args: readonly string[], version: () => string): Given | string {
  const [first, ...rest] = args;
  if (first === undefined || first === "help" || first === "--help" || first === "-h") {
    const topic = rest[0];
    return topic !== undefined && NAMES.includes(topic as CommandName) ? helpFor(topic as CommandName) : help();
  }
  if (first === "--version" || first === "-v") return version();
  if (!NAMES.includes(first as CommandName)) throw wrongUsage(`there is no command ${first}${meant(first, NAMES)}\n\n${help()}`);
  const command = first as CommandName;
  const { argument, options } = commandOf(command);
  const { values, positionals } = parsed(command, rest, options);
  if (values["help"]) return helpFor(command);
  const [file, more] = positionals;
  if (argument !== undefined && file === undefined) throw wrongUsage(`${command} needs ${NEEDS[argument]}\n\n${helpFor(command)}`);
  if (more !== undefined || (argument === undefined && file !== undefined)) throw wrongUsage(`${command} takes ${argument === undefined ? "nothing" : `one ${argument}`}, and ${String(more ?? file)} was given as well`);
  return { ...settled(values), command, file: file ?? "" };
}

type Values = Record<string, string | boolean | undefined>;

function parsed(command: string, args: string[], names: readonly OptionName[]): { values: Values; positionals: string[] } {
  const options: ParseArgsConfig["options"] = { help: { type: "boolean", short: "h" } };
  for (const name of names) {
    const option = OPTIONS[name];
    options[name] = "short" in option ? { type: option.type, short: option.short } : { type: option.type };
  }
  try {
    return parseArgs({ args, options, allowPositionals: true }) as { values: Values; positionals: string[] };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const wrong = /'-{1,2}([\w-]+)/.exec(message)?.[1] ?? "";
    if (code !== "ERR_PARSE_ARGS_UNKNOWN_OPTION") throw wrongUsage(`${command}: ${message.split(". ", 1)[0] ?? message}`);
    throw wrongUsage(`${command} has no option --${wrong}${meant(wrong, names, "--")}; it has ${names.map((name) => `--${name}`).join(", ")}`);
  }
}

export const PRESETS: Preset[] = ["balanced", "offload", "react", "layered", "factor3", "checkpoint"];
const FORMATS: Format[] = ["openai-chat", "anthropic", "openai-responses", "gemini", "ai-sdk", "react"];

function settled(values: Values): Omit<Given, "command" | "file"> {
  const one: Omit<Given, "command" | "file"> = {
    json: values["json"] === true,
    strict: values["strict"] === true,
    exact: values["exact"] === true,
    optimum: values["optimum"] === true,
    redact: values["no-redact"] !== true,
  };
  for (const name of ["model", "report", "provider", "url", "output", "store", "id", "upstream", "host", "thread", "table"] as const) {
    const value = values[name];
    if (value === "") throw wrongUsage(`--${name} is empty`);
    if (typeof value === "string") one[name] = value;
  }
  const { window, format, policies, port, preset, thread } = values;
  if (typeof window === "string") {
    const [, digits, unit] = /^([\d_,.]+)([kKmM]?)$/.exec(window) ?? [];
    one.window = Number(digits?.replace(/[_,]/g, "")) * (unit === undefined || unit === "" ? 1 : /k/i.test(unit) ? 1_000 : 1_000_000);
    if (!Number.isInteger(one.window) || one.window < 1_000) throw wrongUsage(`--window ${window}: a number of tokens from 1,000, as in 200000 or 200k`);
  }
  if (typeof port === "string") {
    one.port = Number(port);
    if (!/^\d+$/.test(port) || one.port > 65_535) throw wrongUsage(`--port ${port}: a number from 0 (any that is free) to 65535`);
  }
  if (typeof preset === "string") {
    if (!PRESETS.includes(preset as Preset)) throw wrongUsage(`--preset ${preset}${meant(preset, PRESETS)}; there are ${PRESETS.join(", ")}`);
    one.preset = preset as Preset;
  }
  if (typeof thread === "string" && !/^[\w!#$%&'*+.^`|~-]+$/.test(thread)) throw wrongUsage(`--thread ${thread}: the name of a header, as in x-session-id`);
  if (typeof format === "string") {
    if (!FORMATS.includes(format as Format)) throw wrongUsage(`--format ${format}${meant(format, FORMATS)}; there are ${FORMATS.join(", ")}`);
    one.format = format as Format;
  }
  if (typeof policies === "string") one.policies = policies.split(",").map((name) => name.trim());
  return one;
}

/** What a misspelt name may mean. */
export function meant(wrong: string, names: readonly string[], before = ""): string {
  const [name] = near(wrong, names, 1);
  return name === undefined ? "" : `: did you mean ${before}${name}?`;
}

function help(): string {
  const rows = NAMES.map((name) => `  ${`${name} ${commandOf(name).argument ?? ""}`.padEnd(18)}${commandOf(name).help}`);
  return [
    "context-compactor COMMAND [options]",
    "",
    ...rows,
    "",
    "FILE is an archive, a transcript of Claude Code or Codex, messages (JSON or JSON lines) of OpenAI, Anthropic, Gemini or",
    "the AI SDK, or a request body; - is stdin. inspect, validate, count and replay take a folder, too. Nothing leaves this",
    "machine, unless --provider or --upstream is given. `context-compactor help COMMAND` lists its options. Exit codes: 0 fine,",
    "1 problems found, 2 usage, 3 input not understood, 4 does not fit, 130 interrupted.",
  ].join("\n");
}

function helpFor(name: CommandName): string {
  const { argument, help: what, options } = commandOf(name);
  const rows = options.map((option) => {
    const { help: text, ...rest } = OPTIONS[option];
    const value = "value" in rest ? ` ${rest.value}` : "";
    return `  ${`${"short" in rest ? `-${rest.short}, ` : ""}--${option}${value}`.padEnd(26)}${text}`;
  });
  return [`context-compactor ${name}${argument ? ` ${argument}` : ""} [options]: ${what}`, "", ...rows].join("\n");
}
