/** Results are typed by what goes in: the app's own message types come out again. Compiled, never run. */

import { chatCommand, type CommandAnswer } from "context-compactor/commands";
import { repairHistory, splitMessages, validateHistory, type Problem, type Split } from "context-compactor/history";
import { optionsFromEnv, restoreBackup, withDocumentedNames, type DocumentedResult } from "context-compactor/presets";
import { addTurn, exportTrajectory, stats, type ReactStats, type Trajectory } from "context-compactor/react";
import { storeConformance } from "context-compactor/testing";
import { estimateTokens, estimateTokensDetailed, loadTokenizer, ready, type TokenEstimate, type Tokenizer } from "context-compactor/tokens";
import {
  compact,
  CompactionError,
  deleteSession,
  importSession,
  isContextOverflow,
  memoryStore,
  mirrorStore,
  modelFacts,
  openSession,
  planCompaction,
  recallTools,
  salvage,
  sessionPool,
  type AdapterOptions,
  type CarriedResult,
  type ContextParts,
  type Checkpoint,
  type CompactionResult,
  type CompactOptions,
  type Edit,
  type ErrorCode,
  type Format,
  type LedgerEntry,
  type Message,
  type MirrorReport,
  type NewMessage,
  type NewMessageAmong,
  type Plan,
  type RecallPart,
  type RecallTools,
  type SalvageGap,
  type SearchHit,
  type Session,
  type SnapshotInfo,
  type SessionMetadata,
  type SessionOptions,
  type Store,
  type Summarize,
  type ToolAnswer,
  type ToolDefinition,
} from "context-compactor";

/** True when both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(...holds: Same<A, B> extends true ? [] : ["these types differ"]): void {
  void holds;
}

// ---- message types as the vendors' packages declare them --------------------------------------------------------------

interface ChatText {
  type: "text";
  text: string;
}
interface ChatImage {
  type: "image_url";
  image_url: { url: string; detail?: "auto" | "low" | "high" };
}
interface ChatCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}
type ChatMessage =
  | { role: "system" | "developer"; content: string | ChatText[]; name?: string }
  | { role: "user"; content: string | (ChatText | ChatImage)[]; name?: string }
  | { role: "assistant"; content?: string | ChatText[] | null; refusal?: string | null; tool_calls?: ChatCall[] }
  | { role: "tool"; content: string | ChatText[]; tool_call_id: string };

type ContentBlock =
  | { type: "text"; text: string; cache_control?: { type: "ephemeral" } | null }
  | { type: "thinking"; thinking: string; signature: string }
  | { type: "tool_use"; id: string; name: string; input: unknown }
  | { type: "tool_result"; tool_use_id: string; content?: string | { type: "text"; text: string }[]; is_error?: boolean };
interface MessageParam {
  role: "user" | "assistant";
  content: string | ContentBlock[];
}

interface InputText {
  type: "input_text";
  text: string;
}
type InputItem =
  | { type?: "message"; role: "user" | "assistant" | "system" | "developer"; content: string | InputText[] }
  | { type: "function_call"; id?: string; call_id: string; name: string; arguments: string }
  | { type: "function_call_output"; id?: string | null; call_id: string; output: string | InputText[] }
  | { type: "reasoning"; id: string; summary: { type: "summary_text"; text: string }[] };

declare const input: InputItem[];
declare const chat: ChatMessage[];
declare const params: readonly MessageParam[];
/** What a vendor's client takes. */
declare function create(body: { messages: ChatMessage[] }): void;
declare function createMessage(body: { messages: MessageParam[] }): void;
declare function createResponse(body: { input: InputItem[] }): void;

// ---- inference --------------------------------------------------------------------------------------------------------

export async function functions(): Promise<void> {
  const one = await compact(chat);
  same<typeof one, CompactionResult<ChatMessage | NewMessageAmong<ChatMessage>>>();
  create({ messages: one.messages });
  const other = await compact(params, { format: "anthropic" });
  same<typeof other, CompactionResult<MessageParam | NewMessageAmong<MessageParam>>>();
  createMessage({ messages: other.messages });
  createResponse({ input: (await compact(input)).messages });
  const carried = await compact(chat, { state: null, contextWindow: 16_000 });
  same<typeof carried, CarriedResult<ChatMessage | NewMessageAmong<ChatMessage>>>();
  create({ messages: carried.messages });
  await compact(chat, { state: carried.state });
  await compact(chat, { state: { value: carried.state, when: "now", key: new Uint8Array(32), id: "chat-1" } });
  // @ts-expect-error an array is none
  await compact(chat, { state: [] });
  // @ts-expect-error a plan is that of a session
  await planCompaction(chat, { state: { value: carried.state } });
  for (const state of [{}, { value: carried.state }]) {
    // @ts-expect-error a session keeps its state itself
    await openSession({ state });
    // @ts-expect-error a session keeps its state itself
    await importSession("", { state });
    // @ts-expect-error a session keeps its state itself
    sessionPool({ store: memoryStore(), state });
  }
  same<Extract<keyof SessionOptions, "state" | "goal" | "systemPrompt">, "goal" | "systemPrompt">();
  same<Extract<keyof AdapterOptions, "state" | "goal">, "goal">();
  create({ messages: [await (await recallTools<"openai-chat">(chat, carried.state)).handle({})] });
  createMessage({ messages: [await (await recallTools(params, null, { format: "anthropic" })).handle({})] });

  const split = await splitMessages(params, { pins: { match: (message) => message.role === "user" } });
  same<typeof split, Split<MessageParam>>();
  const { toCompress, toPreserve } = split;
  same<typeof toCompress, MessageParam[]>();
  createMessage({ messages: [...toCompress, ...toPreserve] });
  create({ messages: (await repairHistory(chat)).messages });
  same<Awaited<ReturnType<typeof validateHistory>>["problems"], Problem[]>();

  const plan = await planCompaction(params);
  same<typeof plan, Plan>();
  same<ReturnType<typeof optionsFromEnv>, CompactOptions>();
  await openSession(optionsFromEnv(process.env));
}
declare const process: { env: Record<string, string | undefined> };

export async function sessions(): Promise<void> {
  const session = await openSession<ChatMessage>({ store: "memory", systemPrompt: () => "You are brief." });
  same<typeof session, Session<ChatMessage>>();
  await session.append(...chat);
  await session.append({ role: "tool", tool_call_id: "a", content: "x" });
  // @ts-expect-error: a message of another format.
  await session.append({ role: "function", content: "x" });
  const { messages, system } = await session.prepare({ append: chat, tools: [], force: true });
  // @ts-expect-error: a message of another format.
  await session.prepare({ append: [{ role: "function", content: "x" }] });
  // @ts-expect-error: the whole history is handed over.
  await session.step(chat, { append: chat });
  create({ messages });
  same<typeof system, string | undefined>();
  create({ messages: (await session.compact({ instructions: "short" })).messages });
  const { appended, ...found } = await session.sync(chat);
  same<typeof found, { recognized: number; replaced?: number; branchedAt?: number; alignedAt?: number }>();
  same<typeof appended, number>();
  const off = session.on("compact", ({ previousTokens, retiredRefCount }) => {
    same<typeof previousTokens, number>();
    same<typeof retiredRefCount, number>();
  });
  same<typeof off, () => void>();
  // @ts-expect-error: no such event.
  session.on("compacted", () => {});
  session.on("change", (change) => same<typeof change, { messages: number; generation: number }>());
  session.on("branch", (branch) => same<typeof branch, { index: number; given: number; reason: string }>());
  session.on("data-loss", ({ kind, lostRecords, seq, index, reason }) => {
    const lost: number | undefined = kind === "records" ? lostRecords : undefined;
    same<typeof seq, number | undefined>();
    same<typeof index, number | undefined>();
    // @ts-expect-error: not a kind of loss
    if (kind === "everything") return;
    void [lost, reason satisfies string];
  });
  same<typeof session.context.format, Format>();
  // @ts-expect-error: what an offload does not tell.
  session.on("offload", ({ previousTokens }) => previousTokens);
  const untyped = await openSession();
  same<typeof untyped.archive.durability, "synced" | "process" | "none">();
  untyped.on("warning", ({ durable }) => same<typeof durable, "none" | undefined>());
  same<typeof untyped, Session<Message>>();
}

export async function recall(): Promise<void> {
  const session = await openSession<ChatMessage>({ store: "memory" });
  same<Awaited<ReturnType<typeof session.recall.search>>, SearchHit[]>();
  await session.recall.search("x", { limit: 5 });
  same<Awaited<ReturnType<typeof session.recall.expand>>, RecallPart[]>();
  for (const part of await session.recall.expand("cp_x")) {
    if (part.kind === "checkpoint") await session.recall.expand(part.id);
    else await session.recall.read(part.ref);
  }
  const { definitions, handle } = session.recall.tools("openai-chat");
  same<typeof definitions, ToolDefinition<"openai-chat">[]>();
  const tools: { type: "function"; function: { name: string; parameters?: Record<string, unknown> } }[] = definitions;
  await session.prepare({ tools });
  await session.step([], { tools, usage: { input_tokens: 5, output_tokens: 1 }, model: "m", signal: new AbortController().signal, force: false });
  // An answer is a message of the app's own type.
  await session.append(await handle({} as ChatCall));
  const anthropic = session.recall.tools("anthropic");
  same<typeof anthropic, RecallTools<"anthropic">>();
  createMessage({ messages: [await anthropic.handle({} as ContentBlock)] });
  // A tool part of a UI message comes back as that part.
  const part = await session.recall.tools().handle({ type: "tool-recall_read", state: "input-available" });
  same<typeof part, { type: string; state: string }>();
  const unknown = await session.recall.tools().handle({} as unknown);
  same<typeof unknown, ToolAnswer>();
  // @ts-expect-error: no such format.
  session.recall.tools("claude");
}

async function* lines(): AsyncGenerator<string | Uint8Array> {
  yield "{}";
}

/** A summariser may answer at once, in whatever words its usage is; headers may be what `fetch` takes. */
export async function summarised(messages: ChatMessage[]): Promise<void> {
  const atOnce: Summarize = ({ targetTokens }) => `A summary of ${targetTokens} tokens.`;
  const reported: Summarize = async () => ({ text: "A summary.", usage: { prompt_tokens: 5 } });
  await compact(messages, { summarize: { call: atOnce, forResults: reported } });
  await compact(messages, { summarize: ({ system }, { attempt }) => system.repeat(attempt) });
  await compact(messages, { summarize: { call: async ({ system }, { attempt }) => system.repeat(attempt), attempts: 1 } });
  for (const headers of [new Headers(), new Map<string, string>(), { "x-api-key": "k" }]) {
    await compact(messages, { summarize: { provider: { kind: "openai", model: "m", headers } } });
  }
  // @ts-expect-error: a key that may not be set.
  await compact(messages, { summarize: { provider: { kind: "openai", model: "m", headers: { "x-api-key": undefined } } } });
}

export async function transcript(): Promise<void> {
  const session = await openSession<ChatMessage>({ store: "memory" });
  for await (const message of session.archive.history()) same<typeof message, ChatMessage>();
  for await (const message of session.archive.history({ onGap: ({ index }) => same<typeof index, number>() })) void message;
  const store: Store = {
    ...memoryStore(),
    read: (keys) => keys.map(() => ({ damaged: "its checksum differs" })),
  };
  storeConformance(async () => store, { damage: (damaged, key) => void [damaged.caps.reportsDamage, key] });
  const stream = session.archive.jsonl();
  same<typeof stream, ReadableStream<Uint8Array>>();
  same<Awaited<ReturnType<typeof session.archive.markdown>>, string>();
  same<ReturnType<typeof session.archive.metadata>, SessionMetadata>();
  same<Awaited<ReturnType<typeof session.archive.checkpoints>>, Checkpoint[]>();
  const again = await importSession<ChatMessage>(stream, {
    id: "again",
    store: "memory",
    from: "transcript",
    onImport: ({ kind, skipped }) => {
      same<typeof kind, "context-compactor" | "claude-code" | "codex" | "messages">();
      same<typeof skipped, Record<string, number>>();
    },
  });
  same<typeof again, Session<ChatMessage>>();
  await importSession(new Uint8Array(), { store: "memory" });
  await importSession(lines());
  for await (const { id, archive, gaps } of salvage(store)) {
    if (archive) await importSession(archive, { id });
    same<typeof gaps, SalvageGap[]>();
    same<(typeof gaps)[number]["error"], CompactionError | undefined>();
  }
  const mirror = mirrorStore(store, memoryStore(), { acknowledge: "first" });
  same<typeof mirror.behind, number>();
  same<Awaited<ReturnType<typeof mirror.check>>, MirrorReport>();
  // @ts-expect-error: it waits for both copies or for the first.
  mirrorStore(store, memoryStore(), { acknowledge: "second" });
  // @ts-expect-error: a session is restored from its context or from its transcript.
  await importSession("", { from: "summary" });
}

export async function snapshots(): Promise<void> {
  const session = await openSession<ChatMessage>({ store: "memory", advanced: { maxSnapshots: 3 } });
  const id = await session.snapshots.take("rollback");
  same<typeof id, string>();
  await session.snapshots.restore(id);
  // @ts-expect-error: the session's own purpose.
  await session.snapshots.take("emergency");
  const taken = await session.snapshots.list();
  same<typeof taken, SnapshotInfo[]>();
  // @ts-expect-error: a snapshot is no message (S5.4).
  await session.append(...taken);
  same<Awaited<ReturnType<typeof session.context.remove>>, number[]>();
  const state = await session.context.parts();
  same<typeof state, ContextParts<ChatMessage>>();
  create({ messages: [...state.recentMessages] });
  // @ts-expect-error: it is looked at only.
  state.tokenCount.total = 5;
  // @ts-expect-error: it is looked at only.
  state.recentMessages.push({ role: "user", content: "x" });
}

export async function disposed(): Promise<void> {
  await using session = await openSession({ store: "memory" });
  await session.append({ role: "user", content: "x" });
}

// ---- options and errors -----------------------------------------------------------------------------------------------

export const plain: Summarize = async ({ system, messages, maxTokens }, { signal, attempt, purpose }) =>
  `${system} ${messages.length} ${maxTokens} ${signal.aborted} ${attempt} ${purpose}`;
export const withUsage: Summarize = async () => ({ text: "x", usage: { inputTokens: 1, outputTokens: 1 } });
// @ts-expect-error: a summary is a text.
export const junk: Summarize = async () => 5;

export const options: CompactOptions[] = [
  { preset: "offload", keep: { fraction: 0.2 }, signal: new AbortController().signal },
  { summarize: { provider: { kind: "anthropic", model: "m", headers: { "x-api-key": "k" } }, fetch, fallback: "extractive" } },
  { summarize: "server", format: "anthropic" },
  // @ts-expect-error: no such preset.
  { preset: "fastest" },
  // @ts-expect-error: a provider needs its model.
  { summarize: { provider: { kind: "openai" } } },
  // @ts-expect-error: no such option.
  { offload: { minChar: 5 } },
];

/** What this release does, and nothing that it does not. */
export function release(edit: Edit, entry: LedgerEntry, { logger }: CompactOptions): void {
  void (edit.kind === "repair" || edit.kind === "summarize");
  // @ts-expect-error: no such step.
  void (edit.kind === "summarise");
  same<Plan["edits"][number]["kind"], Edit["kind"]>();
  same<Parameters<Summarize>[1]["purpose"], "history" | "result" | "chunk" | "merge" | "age">();
  same<Parameters<NonNullable<typeof logger>>["length"], 2>();
  // @ts-expect-error: messages have no ids.
  void entry.id;
  same<NewMessage<"react">, never>();
  same<NewMessage, NewMessage<"anthropic"> | NewMessage<"openai-responses"> | NewMessage<"gemini"> | NewMessage<"ai-sdk">>();
  same<NewMessageAmong<Message>, NewMessage>();
  same<NewMessageAmong<InputItem>, NewMessage<"openai-responses">>();
  createMessage({ messages: [{} as NewMessage<"anthropic">] });
}

export function handle(thrown: unknown): ErrorCode | undefined {
  if (isContextOverflow(thrown)) return "context_overflow";
  if (isContextOverflow(thrown, { patterns: ["the page is full"] })) return "context_overflow";
  if (!CompactionError.isInstance(thrown)) return undefined;
  same<typeof thrown.code, ErrorCode>();
  same<typeof thrown.index, number | undefined>();
  same<typeof thrown.cause, unknown>();
  return thrown.code;
}

export async function command(session: Session<ChatMessage>): Promise<number | undefined> {
  const answer = await chatCommand(session, "/compact", { locale: "de" });
  same<typeof answer, CommandAnswer | undefined>();
  const { contextWindow, maxOutputTokens, prices } = await modelFacts("gpt-4o");
  same<typeof contextWindow, number>();
  same<typeof maxOutputTokens, number | undefined>();
  return prices?.tiers?.[0]?.cacheRead;
}

/** A store of one's own needs nothing of the package but its types. */
export const store: Store = {
  caps: { atomic: "batch", cas: true, durable: "none", maxValueBytes: 1e6, maxBatchOps: 1e3 },
  read: (keys) => keys.map(() => undefined),
  scan: async () => [],
  commit: async ({ expect, puts, deletes }) => void [expect, puts, deletes],
};

/** What the platform may take, and how it is noticed. */
export async function loss(): Promise<string[]> {
  const marks = new Map<string, string>();
  const session = await openSession({
    id: "s",
    store,
    advanced: { watermark: { get: (key) => marks.get(key), set: async (key, value) => void marks.set(key, value) } },
    acceptDataLoss: true,
    onDiverged: "throw",
  });
  // @ts-expect-error: a watermark is set, too
  await openSession({ advanced: { watermark: { get: () => null } } });
  const { ok, problems } = await session.archive.verify({ signal: new AbortController().signal });
  return ok satisfies boolean ? [] : problems;
}

/** Members of an object, and calls in it. */
type Calls<T> = { [K in keyof T]: T[K] extends (...args: never[]) => unknown ? K : never }[keyof T] & string;
type Values<T> = Exclude<keyof T & string, Calls<T>>;

/** H12: what a session has. Whoever adds a member changes this list, with at most 15 and 45 calls in all. */
export function members(): void {
  type S = Session<Message>;
  same<Calls<S>, "append" | "sync" | "prepare" | "step" | "compact" | "fork" | "on" | "close">();
  same<Values<S>, "id" | "context" | "recall" | "pins" | "snapshots" | "goal" | "archive">();
  type Shown = "parts" | "usage" | "availableTokens" | "recordUsage" | "explain" | "plan" | "checkpoints";
  same<Calls<S["context"]>, Shown | "validate" | "reliability" | "remove">();
  same<Calls<S["recall"]>, "read" | "search" | "expand" | "tools">();
  same<Calls<S["pins"]>, "add" | "reject" | "proposals">();
  same<Calls<S["snapshots"]>, "take" | "list" | "restore" | "rewind" | "preview" | "undo">();
  same<Calls<S["goal"]>, "set" | "applyMarkers">();
  type Kept = "erase" | "verify" | "children" | "history" | "jsonl" | "markdown";
  same<Calls<S["archive"]>, Kept | "metadata" | "compactionLog" | "checkpoints">();
}

/** Reason-and-act trajectories. */
export async function trajectory(session: Session): Promise<void> {
  await addTurn(session, { thought: "I read.", action: { tool: "read" }, result: "text" });
  same<ReturnType<typeof stats>, Promise<ReactStats>>();
  (await exportTrajectory(session)) satisfies Trajectory;
}

/** The names of the original systems' documents, and what is done to sessions that are not open. */
export async function documented(session: Session<ChatMessage>): Promise<void> {
  const { compact: compactNow, getState, on, prepare, removeMessages } = withDocumentedNames(session);
  const result = await compactNow();
  same<typeof result, DocumentedResult<ChatMessage | NewMessageAmong<ChatMessage>>>();
  create({ messages: [...result.messages, ...(await prepare()).messages, ...(await getState()).recentMessages] });
  // @ts-expect-error: the name of today.
  void result.retiredRefs;
  on("compact", ({ deletedFileCount }) => same<typeof deletedFileCount, number>());
  on("offload", ({ count }) => same<typeof count, number>());
  same<Awaited<ReturnType<typeof removeMessages>>, number[]>();
  same<Awaited<ReturnType<typeof restoreBackup>>, number>();
  await deleteSession("old", { store: memoryStore(), watermark: { get: () => null, set: () => {} } });
  // @ts-expect-error: a store must be named.
  await deleteSession("old");
}

/** Estimated and exact tokens. */
export async function exact(messages: readonly Message[]): Promise<number> {
  await ready({ model: "gpt-4o" });
  same<ReturnType<typeof estimateTokens>, number>();
  same<ReturnType<typeof estimateTokensDetailed>, TokenEstimate>();
  const tokenizer: Tokenizer = await loadTokenizer(import("context-compactor-vocabularies/o200k_base"));
  const ids: Uint32Array = tokenizer.encode("Hello");
  const text: string = tokenizer.decode([...ids, 0]);
  const counter = tokenizer.counter();
  counter.append(text);
  await loadTokenizer("o200k_base");
  // @ts-expect-error: there is no such vocabulary
  await loadTokenizer("p50k_base");
  return counter.count + tokenizer.count(text) + tokenizer.countMessages(messages, { format: "openai-chat" });
}
