/** What the readers of all formats share: the parts of a message, and errors that name the place (`crates/wire/src/read.rs`). */

import { pixelsOf, type Pixels } from "./picture.js";
import { given, isObject, textOf } from "./values.js";

export type Role = "system" | "user" | "assistant" | "tool";

/** Counted by rule, never by the length of its encoding. */
export interface Media {
  kind: "image" | "audio" | "video" | "document";
  bytes: number;
  pixels: Pixels | undefined;
}

/** A part of a message: a text; the characters of what is never read; reasoning, a call, a result, media. */
export type Part = string | number | { thought: string } | { call: string; input: string } | { result: string; media: readonly Media[] } | Media;

/** A message as far as its tokens depend on it. */
export interface Read {
  role: Role;
  parts: Part[];
}

/** Reads a message of a format, or throws `Unreadable`. */
export type Reader = (message: unknown) => Read;

/** Why a message cannot be read. No `Error`: most of them say only that it is of another format. */
export class Unreadable {
  readonly field: string;
  readonly what: string;

  constructor(field: string, what: string) {
    this.field = field;
    this.what = what;
  }
}

export function fail(field: string, what: string): never {
  throw new Unreadable(field, what);
}

/** The path of a field of what stands at `at`. */
export function join(at: string, key: string): string {
  return at === "" ? key : `${at}.${key}`;
}

export function need(value: unknown, key: string, at = ""): string {
  const field = given(value, key) ?? fail(join(at, key), "must be a string, and is missing");
  return textOf(field) ?? fail(join(at, key), "must be a string");
}

export function needObject(value: unknown, key: string, at: string): unknown {
  const field = given(value, key) ?? fail(join(at, key), "must be an object, and is missing");
  return isObject(field) ? field : fail(join(at, key), "must be an object");
}

/** A text that may be missing, and is nothing else. */
export function may(value: unknown, key: string, at = ""): string {
  return given(value, key) === undefined ? "" : need(value, key, at);
}

export function list(value: unknown, at: string): readonly unknown[] {
  return Array.isArray(value) ? value : fail(at, "must be an array");
}

/** A block of content: its type, itself, and its path. */
export type Block = readonly [kind: string, block: unknown, at: string];

export function blocksOf(value: unknown, at: string): Block[] {
  return list(value, at).map((block, nth): Block => {
    const place = `${at}[${nth}]`;
    return isObject(block) ? [need(block, "type", place), block, place] : fail(place, "a content block must be an object with a type");
  });
}

/** The role in an error; what is no name may be anything, and is not repeated. */
export function roleNamed(role: string): string {
  return /^[\w-]{0,24}$/.test(role) ? `\`${role}\`` : "the role";
}

export function failRole(role: string, known: string): never {
  return fail("role", `${roleNamed(role)} is none of ${known}`);
}

export function media(kind: Media["kind"], bytes: number, picture?: unknown): Media {
  return { kind, bytes, pixels: kind === "image" ? pixelsOf(picture) : undefined };
}

/** Kinds by the type of the file. */
export function kindOf(mime: string | undefined): Media["kind"] {
  const [kind] = (mime ?? "").split("/");
  return kind === "image" || kind === "audio" || kind === "video" ? kind : "document";
}

export function isMedia(part: Part): part is Media {
  return typeof part === "object" && "kind" in part;
}

/** True for a text that says something. */
function isSaid(part: Part): boolean {
  return typeof part === "string" && part !== "";
}

/** A result and what stands beside it in its content: its texts are one, and its media are in it. */
export function resultOf(inside: readonly Part[], texts = inside.filter(isSaid)): Part[] {
  const others = inside.filter((part) => typeof part !== "string" && !isMedia(part));
  return [{ result: texts.join("\n"), media: inside.filter(isMedia) }, ...others];
}

/** A message of the user where results stand in such messages: without a text beside them it is the tools'. */
export function ofUser(parts: Part[]): Read {
  const isOfTools = parts.some((part) => typeof part === "object" && "result" in part) && !parts.some(isSaid);
  return { role: isOfTools ? "tool" : "user", parts };
}
