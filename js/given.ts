/** The options that an app gave, checked against the table. */

import { checkObject, invalidOption, namedApart, plainOptions } from "./checks.js";
import { checkFormat, refuseName } from "./custom.js";
import { OPTIONS, type Documented, type Option } from "./generated/options.js";
import { distance, near } from "./near.js";
import { plainHeaders } from "./provider.js";
import type { CustomFormat } from "./types.js";

/** Checked here: errors show nothing of a key. */
const HEADERS = "summarize.provider.headers";

export type Call = "compact" | "planCompaction" | "openSession" | "importSession";

/** Options that were read: those for the engine, and the functions and objects that stay here. */
export interface Given {
  /** As they were given, with `true` for a function. */
  values: Record<string, unknown>;
  /** Functions, and what only the host uses, by the path of the option. */
  host: Map<string, unknown>;
}

/** Throws `invalid_option`, which names the option, for whatever the table or the call does not have. */
export function readOptions(options: unknown, call: Call): Given {
  checkObject(options);
  const preset = typeof options["preset"] === "string" ? options["preset"] : "balanced";
  const reading = new Reading(call, preset);
  return { values: reading.members("", "", options), host: reading.host };
}

class Reading {
  readonly host = new Map<string, unknown>();
  readonly #call: Call;
  readonly #preset: string;
  /** The names by which options were given. */
  readonly #shown = new Map<string, string>();

  constructor(call: Call, preset: string) {
    this.#call = call;
    this.#preset = preset;
  }

  /** The members of the group `real`, which was given as `shown`. */
  members(shown: string, real: string, group: Record<string, unknown>): Record<string, unknown> {
    const values: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(group)) {
      if (value === undefined) continue;
      const path = join(shown, name);
      if (value === null) throw invalidOption(path, "is null: leave it out for the default");
      const read = this.#take(path, real, name, group);
      if (read !== undefined) values[name] = read;
    }
    return values;
  }

  #take(shown: string, group: string, name: string, beside: Record<string, unknown>): unknown {
    const value = beside[name];
    if (group === "presetOptions") {
      const [option, documented] = documentedAs(`${this.#preset}.${name}`) ?? [];
      if (option && documented) return this.#documented(option, documented, shown, value);
      throw notOfPreset(shown, this.#preset, name);
    }
    const option = OPTIONS.find(({ path }) => path === join(group, name));
    if (!option || isAlone(option)) throw unknown(shown, group, name, this.#call, beside);
    if (!takes(this.#call, option)) throw invalidOption(shown, `${this.#call} has no use for it: ${option.remedy ?? "leave it out"}`);
    return this.#value(option, shown, value);
  }

  /** An option by its name in an original system. The engine reads what is off by it. */
  #documented(option: Option, [, off, on]: Documented, shown: string, value: unknown): unknown {
    if (off === "false") {
      if (typeof value !== "boolean") throw invalidOption(shown, "must be true or false");
      return value;
    }
    if (off === "Infinity" && value === Infinity) return off;
    if (on !== undefined && value !== off && value !== on) throw invalidOption(shown, `must be one of "${off}", "${on}"`);
    return value === off || value === on ? value : this.#value(option, shown, value);
  }

  #value(option: Option, shown: string, value: unknown): unknown {
    if (option.off && value === false) return value;
    if (option.kind === "group") return this.#group(option, shown, value);
    const other = this.#shown.get(option.path);
    if (other !== undefined) throw invalidOption(shown, `is ${other} by another name: give one of them`);
    this.#shown.set(option.path, shown);
    return this.#checked(option, shown, value);
  }

  #group({ path, short, off }: Option, shown: string, value: unknown): unknown {
    if (isGroup(value)) return this.members(shown, path, value);
    const member = OPTIONS.find((option) => option.path === short);
    if (member?.kind === "flag") {
      if (typeof value === "boolean") return this.#value(member, shown, value);
      throw invalidOption(shown, "must be true, false or an object");
    }
    if (member && (value === "extractive" || value === "server")) return value;
    if (member && typeof value === "function") return this.#value(member, shown, value);
    if (member) throw invalidOption(shown, 'must be a function, an object, "server" or "extractive"');
    throw invalidOption(shown, off ? "must be an object or false" : "must be an object");
  }

  #checked(option: Option, shown: string, value: unknown): unknown {
    const { kind, path, least = 0, most = 0, names = [] } = option;
    switch (kind) {
      case "count":
      case "number":
        checkNumber(shown, value, least, most);
        if (kind === "count" && !Number.isInteger(value)) throw invalidOption(shown, `must be a whole number, not ${value}`);
        return value;
      case "flag":
        if (typeof value !== "boolean") throw invalidOption(shown, "must be true or false");
        return value;
      case "text":
        if (!isText(value)) throw invalidOption(shown, "must be a text that is not empty");
        return value;
      case "names":
        if (!Array.isArray(value) || !value.every(isText)) throw invalidOption(shown, "must be a list of texts that are not empty");
        return value;
      case "choice":
        if (path === "format" && isGroup(value)) {
          this.host.set(path, checkFormat(value));
          return (value as unknown as CustomFormat).base;
        }
        refuseName(path === "format" && value);
        if (!names.includes(value as string)) throw invalidOption(shown, `must be one of ${names.map((name) => `"${name}"`).join(", ")}${meant(value, names)}`);
        return value;
      case "function":
        if (typeof value !== "function") throw invalidOption(shown, "must be a function");
        this.host.set(path, value);
        return true;
      case "host":
        this.host.set(path, value);
        return undefined;
      default:
        if (typeof value !== "object" || value === null) throw invalidOption(shown, "must be an object");
        return path === HEADERS ? plainHeaders(value, shown) : plainOptions(value, shown);
    }
  }
}

function join(group: string, name: string): string {
  return group === "" ? name : `${group}.${name}`;
}

function last(path: string): string {
  return path.slice(path.lastIndexOf(".") + 1);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

/** A `RegExp` or a `Map` has no members to read, and would be ignored without a word. */
function isGroup(value: unknown): value is Record<string, unknown> {
  return Object.prototype.toString.call(value) === "[object Object]";
}

/** Options that have no name but that of an original system. */
function isAlone({ path }: Option): boolean {
  return path.startsWith("presetOptions.");
}

function documentedAs(name: string): [Option, Documented] | undefined {
  for (const option of OPTIONS) {
    const documented = option.was?.find(([own]) => own === name);
    if (documented) return [option, documented];
  }
  return undefined;
}

function takes(call: Call, { calls }: Option): boolean {
  if (calls === undefined || calls === call) return true;
  if (calls === "compact") return false;
  return call === "openSession" || (call === "importSession" && calls === "sessions");
}

function checkNumber(shown: string, value: unknown, least: number, most: number): void {
  if (typeof value !== "number") throw invalidOption(shown, `must be a number from ${least} to ${most}`);
  if (!Number.isFinite(value)) throw invalidOption(shown, `must be a finite number, not ${value}`);
  if (value < least || value > most) throw invalidOption(shown, `must lie in ${least} to ${most}, not ${value}`);
}

/** A name with a letter too many, too few, exchanged or of the other case; or two, in a longer one. */
function meant(value: unknown, names: readonly string[]): string {
  const given = typeof value === "string" ? value.toLowerCase() : "";
  const near = names.find((name) => distance(given, name) <= Math.max(1, Math.floor(name.length / 4)));
  return near === undefined ? "" : `; did you mean "${near}"?`;
}

/** A misspelt option would be ignored without a word. */
function unknown(shown: string, group: string, name: string, call: Call, beside: Record<string, unknown>): Error {
  const known = OPTIONS.filter((option) => takes(call, option) && !isAlone(option)).map(({ path }) => path);
  const own = known.filter((path) => path === join(group, last(path))).map(last);
  const there = pathOf(name);
  if (there) {
    const names = near(name, own, 4);
    return invalidOption(shown, `is not an option here${names.length > 0 ? didYouMean([...names, there]) : giving(there)}`);
  }
  const isProvider = group === "summarize.provider";
  if ((isProvider ? /key|token|auth/i : /^(api|auth|access|secret|bearer|headers?$)/i).test(name)) {
    return invalidOption(shown, `is not an option of this release: the key is a header of summarize.provider, ${keyOf(beside["kind"])}`);
  }
  // All of a small group; else what is near in this one, and then the nearest of others.
  const [nearest] = near(name, known.map(last), 1);
  const others = known.filter((path) => path !== join(group, last(path)) && last(path) === nearest);
  const named = own.length > 0 && own.length <= 5 ? namedApart(name, own) : didYouMean([...near(name, own, 5), ...others]);
  return invalidOption(shown, `is not an option of this release${named}`);
}

function notOfPreset(shown: string, preset: string, name: string): Error {
  const known = OPTIONS.flatMap(({ was = [] }) => was.map(([own]) => own)).filter((own) => own.startsWith(`${preset}.`));
  const there = pathOf(name);
  return invalidOption(shown, `is not an option of preset ${preset}${there ? giving(there) : namedApart(name, known.map(last))}`);
}

/** Where an option of this name is: the last part of its own name, or one of an original system. */
function pathOf(name: string): string | undefined {
  const same = OPTIONS.filter(({ path }) => path.includes(".") && last(path) === name);
  return (same.find((option) => !isAlone(option)) ?? same[0] ?? documentedOf(name))?.path;
}

function giving(path: string): string {
  return `: give ${path}, as in ${nested(path)}`;
}

function didYouMean(names: readonly string[]): string {
  return names.length > 0 ? `; did you mean ${names.slice(0, 5).join(", ")}?` : "";
}

/** The option that has this name in an original system. */
function documentedOf(name: string): Option | undefined {
  return OPTIONS.find(({ was }) => was?.some(([own]) => last(own) === name));
}

function nested(path: string): string {
  return path.split(".").reduceRight((inner, name) => `{ ${inner === "" ? name : `${name}: ${inner}`} }`, "");
}

/** How each kind of provider learns who asks. */
const KEYS: Record<string, string> = {
  openai: 'headers: { authorization: "Bearer …" }',
  anthropic: 'headers: { "x-api-key": "…" }',
  gemini: 'headers: { "x-goog-api-key": "…" }',
  ollama: "headers, where your server asks for one",
};

function keyOf(kind: unknown): string {
  const known = typeof kind === "string" && Object.hasOwn(KEYS, kind) ? KEYS[kind] : undefined;
  return known ?? Object.entries(KEYS).map(([name, key]) => `${name}: ${key}`).join("; ");
}
