/** How messages of the app become texts for the engine, and back. */

import { decode, encode, pack, type Packed } from "./codec.js";
import { checkFormat, refuseName } from "./custom.js";
import { unavailable } from "./module.js";
import type { CustomFormat } from "./types/formats.js";
import type { Format, Message, SummaryRequest } from "./types.js";

/** Messages of the app by index, of which one may be the original of an edited copy; those before `from` are not. */
export interface Near<M> {
  from: number;
  readonly length: number;
  at(index: number): M | undefined;
}

/** One way to read and write them. */
export interface Codec<M extends Message> {
  /** Texts of the messages from `first` on. `before`: texts of what is before all of them, the newest first. */
  pack(messages: readonly M[], first?: number, before?: () => Iterable<string>): Packed;
  encode(message: M, index: number): string;
  /** A message of ours, or one that the app has no more; with `near`, an edited copy of one of the app's as well. */
  decode(body: string, near?: Near<M>): M;
  /** A request for a summary as the app's function receives it. */
  asked(request: SummaryRequest): SummaryRequest;
}

export const NATIVE: Codec<Message> = {
  pack: (messages, first = 0) => pack(first === 0 ? messages : messages.slice(first), first),
  encode,
  decode: (body) => decode(body) as Message,
  asked: (request) => request,
};

/** How a session with these options reads and writes messages: what translates those of other formats is loaded. */
export async function loadCodec<M extends Message>({ host }: { host: ReadonlyMap<string, unknown> }): Promise<Codec<M>> {
  const format = host.get("format") as CustomFormat<M> | undefined;
  if (!format) return NATIVE as Codec<M>;
  try {
    const { Translation } = await import("./translation.js");
    return new Translation(format);
  } catch (cause) {
    throw unavailable(cause);
  }
}

/** The native format that an option `format` names, or is based on. */
export function baseOf(format: Format | CustomFormat | undefined): Format | undefined {
  refuseName(format);
  return typeof format === "object" && format !== null ? checkFormat(format).base : format;
}
