/**
 * Checks of everything that sessions rely on in a format of the app's own, over histories of that format. They run anywhere, in
 * any test runner:
 *
 *     for (const { name, run } of formatConformance(myFormat, [history])) test(name, run);
 */

import type { Fields } from "../bare.js";
import { checkFormat } from "../custom.js";
import { editsOf, pairedIn, sayTheSame, type Paired } from "../edited.js";
import { validateHistory } from "../history.js";
import { openSession } from "../open.js";
import type { ConformanceCase } from "../store/conformance.js";
import { memoryStore } from "../store/memory.js";
import { check, same } from "../store/probe.js";
import { estimateTokens } from "../tokens.js";
import type { CustomFormat, Message, Session, SessionOptions } from "../types.js";

/** Returns the checks that a `CustomFormat` must pass, for any test runner: `for (const { name, run } of
 *  formatConformance(myFormat, [history])) test(name, run)`. `samples` are histories of that format that the provider accepts,
 *  with each kind of message that it has: calls with results, pictures, reasoning. Throws `invalid_option`. */
export function formatConformance<M extends Message>(format: CustomFormat<M>, samples: readonly (readonly M[])[]): ConformanceCase[] {
  checkFormat(format);
  return Object.entries(CHECKS).map(([name, run]) => ({
    name: `${format.name}: ${name}`,
    async run() {
      for (const [nth, sample] of samples.entries()) await run(new Subject(format as CustomFormat<Message>, sample, `sample ${nth}`));
    },
  }));
}

/** The window of the session that has to compact, in tokens. */
const WINDOW = 16_000;

class Subject {
  readonly format: CustomFormat<Message>;
  readonly messages: readonly Message[];
  readonly name: string;

  constructor(format: CustomFormat<Message>, messages: readonly Message[], name: string) {
    this.format = format;
    this.messages = messages;
    this.name = name;
  }

  read(message: Message): Fields {
    return this.format.read(message);
  }

  paired(message: Message): Paired {
    return pairedIn(this.format.base, this.read(message));
  }

  /** The sample over and over, until it is longer than the window. */
  long(): Message[] {
    const tokens = estimateTokens(this.messages, { format: this.format });
    check(tokens > 0, `${this.name}: its messages count no tokens`);
    return Array.from({ length: Math.ceil((3 * WINDOW) / tokens) }, () => this.messages.map(copyOf)).flat();
  }

  async session<T>(options: SessionOptions, work: (session: Session<any, any>) => Promise<T>): Promise<T> {
    const session = await openSession({ store: memoryStore(), contextWindow: 1_000_000, ...options, format: this.format });
    try {
      return await work(session);
    } finally {
      await session.close();
    }
  }

  async checkValid(messages: readonly Message[], what: string): Promise<void> {
    const { problems } = await validateHistory(messages, { format: this.format });
    check(problems.length === 0, `${this.name}, ${what}: ${problems.map(({ rule, index, message }) => `${rule} of message ${index}: ${message}`).join("; ")}`);
  }
}

const CHECKS: Record<string, (subject: Subject) => Promise<void>> = {
  "read: gives valid messages of `base`": async (subject) => {
    await subject.checkValid(subject.messages, "as it was read");
  },

  "read: gives the same for the same message, also for a copy from a database, and changes none": async (subject) => {
    subject.messages.forEach((message, index) => {
      const [before, read] = [textOf(message), subject.read(message)];
      const where = `${subject.name}, message ${index}`;
      check(sayTheSame(subject.read(message), read), `${where}: read twice, it is not the same`);
      check(sayTheSame(subject.read(copyOf(message)), read), `${where}: a copy of it from JSON is not read as the same`);
      same(textOf(message), before, `${where}, after it was read`);
    });
  },

  "read: loses nothing that counts": async (subject) => {
    subject.messages.forEach((message, index) => {
      const tokens = estimateTokens(message, { format: subject.format });
      const longest = textsOf(message).reduce((most, text) => Math.max(most, estimateTokens(text)), 0);
      const where = `${subject.name}, message ${index}`;
      check(tokens >= longest / 2, `${where}: counts ${tokens} tokens, and a text in it has ${longest}`);
      const most = 2 * estimateTokens(textOf(message)) + 5_000 * mediaIn(message);
      check(tokens <= most + 50, `${where}: counts ${tokens} tokens, and its JSON at most ${most}`);
    });
  },

  "write: is read again as what it was written from": async (subject) => {
    subject.messages.forEach((message, index) => {
      const read = subject.read(message);
      const written = subject.format.write(structuredClone(read), subject.messages);
      check(sayTheSame(withoutId(subject.read(written)), withoutId(read)), `${subject.name}, message ${index}: ${textOf(subject.read(written))} in place of ${textOf(read)}`);
    });
  },

  "patch: changes results and inputs of calls, and nothing else": async (subject) => {
    const { format, messages, name } = subject;
    if (!format.patch) return;
    for (const [index, message] of messages.entries()) {
      const [before, text] = [subject.paired(message), textOf(message)];
      const [calls, results] = [before.calls.map(({ value }) => shorter(value, true)), before.results.map(({ value }) => shorter(value, false))];
      if (calls.length + results.length === 0) continue;
      const wanted: Paired = {
        calls: before.calls.map(({ id }, nth) => ({ id, value: calls[nth] })),
        results: before.results.map(({ id }, nth) => ({ id, value: results[nth] })),
      };
      const patched = format.patch(message, editsOf(before, wanted));
      const where = `${name}, message ${index}`;
      check(sayTheSame(asMessage(subject.paired(patched)), asMessage(wanted)), `${where}: ${textOf(subject.paired(patched))} in place of ${textOf(wanted)}`);
      same(textOf(message), text, `${where}, after the copy was made`);
      // With the old results put back it is what it was.
      const back = format.patch(patched, editsOf(wanted, before));
      check(sayTheSame(subject.read(back), subject.read(message)), `${where}: ${textOf(subject.read(back))} in place of ${textOf(subject.read(message))}`);
    }
  },

  "session: returns the messages that it was given, and recognizes copies of them": async (subject) => {
    const { messages, name } = subject;
    await subject.session({}, async (session) => {
      await session.append(...messages);
      const prepared = await session.prepare();
      check(
        prepared.messages.length === messages.length && prepared.messages.every((message, at) => message === messages[at]),
        `${name}: prepare() does not return the objects that were appended`,
      );
      same(await session.sync(messages.map(copyOf)), { appended: 0, recognized: messages.length }, `${name}: sync of copies`);
    });
  },

  "session: what is left after a compaction is valid, and is recognized when it is handed over again": async (subject) => {
    const messages = subject.long();
    const store = memoryStore();
    const options: SessionOptions = { id: "one", store, contextWindow: WINDOW, maxOutputTokens: 1_000, keep: { messages: 4 } };
    await subject.session(options, async (session) => {
      await session.append(...messages);
      const prepared = await session.prepare();
      const own = prepared.messages.filter((message) => !messages.includes(message));
      check(own.length > 0, `${subject.name}: nothing was compacted`);
      await subject.checkValid(prepared.messages, "after a compaction");
      const handed = await session.sync(prepared.messages.map(copyOf));
      same({ ...handed, recognized: 0 }, { appended: 0, recognized: 0 }, `${subject.name}: sync of copies of what prepare() returned`);
    });
    await subject.session(options, async (session) => {
      let index = 0;
      for await (const message of session.archive.history()) {
        const [read, was] = [subject.read(message), subject.read(messages[index] as Message)].map(withoutIds) as [Fields, Fields];
        check(sayTheSame(read, was), `${subject.name}, message ${index} from the store: ${textOf(read)} in place of ${textOf(was)}`);
        index++;
      }
      same(index, messages.length, `${subject.name}: messages in the store`);
      same(await session.sync(messages.map(copyOf)), { appended: 0, recognized: messages.length }, `${subject.name}: sync with a session of the store`);
      await subject.checkValid((await session.prepare()).messages, "from the store");
    });
  },
};

/** Content of a result in the shape that it has, or the input of a call. */
function shorter(value: any, isCall: boolean): unknown {
  if (isCall) return { shortened: true };
  if (typeof value === "string" || value === undefined || value === null) return "shortened";
  if (Array.isArray(value)) {
    const first = value.find(({ text }) => typeof text === "string");
    return first ? [{ ...first, text: "shortened" }] : value;
  }
  const texts = Object.entries<string>(value).filter(([key, field]) => typeof field === "string" && key !== "type");
  const [key] = texts.sort(([, one], [, other]) => other.length - one.length)[0] ?? [];
  return key === undefined ? value : { ...value, [key]: "shortened" };
}

/** Calls and results as the content of one message, to be compared as that of one. */
function asMessage({ calls, results }: Paired): Message {
  return { content: [...calls, ...results].map(({ id, value }) => ({ id, content: value })) };
}

/** Libraries give some messages an id of their own. */
function withoutId({ id: _, ...message }: Fields): Fields {
  return message;
}

/** And calls without an id get one when they are stored. */
function withoutIds({ tool_calls: calls, tool_call_id: _, name: __, ...message }: Fields): Fields {
  return { ...withoutId(message), tool_calls: calls?.map(withoutId) };
}

function textOf(value: unknown): string {
  return JSON.stringify(value, (_, field: unknown) => (ArrayBuffer.isView(field) ? Array.from(field as Uint8Array) : field));
}

/** A copy as a database returns it: JSON, but for bytes. */
function copyOf<T>(value: T): T {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  const { toJSON } = value as { toJSON?: () => unknown };
  if (typeof toJSON === "function") return copyOf(toJSON.call(value)) as T;
  if (Array.isArray(value)) return value.map(copyOf) as T;
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined).map(([name, field]) => [name, copyOf(field)])) as T;
}

/** All texts in a message that are prose rather than data. */
function textsOf(value: unknown): string[] {
  if (typeof value === "string") return (value.match(/\s/g)?.length ?? 0) > value.length / 40 ? [value] : [];
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return [];
  return Object.values(value).flatMap(textsOf);
}

/** How many pictures and other files there may be in a message. */
function mediaIn(value: unknown): number {
  if (typeof value === "string") return /^(data:|https?:|[\w+/=-]{40,}$)/.test(value) ? 1 : 0;
  if (ArrayBuffer.isView(value)) return 1;
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce<number>((sum, field) => sum + mediaIn(field), 0);
}
