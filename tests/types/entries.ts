/** The package's types, as an app sees them. Compiled, never run. */

import * as otel from "@opentelemetry/api";
import * as inlined from "context-compactor";
import * as evaluator from "context-compactor-evaluator";
import * as formats from "context-compactor/formats";
import { fileStore } from "context-compactor/node";
import { conversationAttributes, traced } from "context-compactor/opentelemetry";
import * as slim from "context-compactor/slim";
import * as worker from "context-compactor/worker";
import { opfsStore, serve, type OpfsOptions } from "context-compactor/worker-thread";

export const version: string = inlined.version();
export const started: Promise<void> = slim.initialize(new URL("https://example.org/core.wasm"));
export const placed: Promise<void> = slim.initialize(async (name: "core.wasm" | "compact.wasm" | "rest.wasm" | "shared.wasm") => new URL(name, "https://example.org/"));
export const error: Error = new inlined.CompactionError("closed", "…");

export const store: inlined.Store = fileStore("sessions", { durability: "relaxed", rewriteBytes: 1 });

// The module of OpenTelemetry is taken as it is, and what is traced keeps its type.
export const tracedSession: Promise<inlined.Session> = inlined.openSession().then((session) => traced(session, otel));
export const tracedCompact: typeof inlined.compact = traced(inlined.compact, otel);
export const ofSpan = (session: inlined.Session, span: otel.Span): otel.Span => span.setAttributes(conversationAttributes(session));

// The two entries differ in `initialize` alone.
type Missing = Exclude<keyof typeof inlined, keyof typeof slim>;
type Added = Exclude<keyof typeof slim, keyof typeof inlined>;
export const differences: [Missing extends never ? true : false, Added] = [true, "initialize"];

// A session of a worker is the same session.
const thread = new Worker(new URL("https://example.org/worker.js"), { type: "module" });
export const inWorker: Promise<inlined.Session> = worker.openSession({ worker: thread, contextWindow: 9_000 });
export const inShared: Promise<inlined.Session> = worker.openSession({ worker: new SharedWorker("/worker.js"), store });
export const through: Promise<inlined.SessionInfo[]> = worker.listSessions({ worker: new MessageChannel().port1 });
export const served: void = serve({ store });
const files: OpfsOptions = { name: "sessions", durability: "relaxed", rewriteBytes: 1 };
export const copies: inlined.MirrorStore = inlined.mirrorStore(opfsStore(files), inlined.indexedDbStore());
// @ts-expect-error: it is no thread.
void worker.openSession({ worker: "worker.js" });

// With a format of the app's own, all messages are the app's.
type Line = { from: "me" | "it"; text: string };
const lines: inlined.CustomFormat<Line> = {
  name: "lines",
  base: "openai-chat",
  read: ({ from, text }) => ({ role: from === "me" ? "user" : "assistant", content: text }),
  write: ({ role, content }) => ({ from: role === "user" ? "me" : "it", text: content }),
};
export const inLines: Promise<Line[]> = inlined.openSession({ format: lines }).then(async (session) => (await session.prepare()).messages);
export const compacted: Promise<Line[]> = inlined.compact([{ from: "me", text: "…" } as Line], { format: lines }).then(({ messages }) => messages);
export const carried: Promise<inlined.State | null> = inlined.compact<Line>([], { format: lines, state: null }).then(({ state }) => state);
// A table fits whatever types its library has.
export const ofBedrock = inlined.openSession<Line>({ format: formats.bedrock }).then((session) => session.sync([]));
export const all: inlined.CustomFormat[] = Object.values(formats);
// @ts-expect-error: messages of another type.
void inlined.openSession({ format: lines }).then((session) => session.append({ role: "user", content: "…" }));
// @ts-expect-error: it must say how it is written.
void inlined.openSession({ format: { name: "lines", base: "openai-chat", read: () => ({}) } });

// The evaluator stands alone: it is typed by the messages of its transcripts.
type Own = { role: "user" | "assistant"; content: string; at: Date };
const transcript: evaluator.Transcript<Own> = { messages: [], id: "one", compactions: [3] };
const prices: evaluator.Prices = { input: 3, output: 15 };
export const one: Promise<evaluator.ReplayReport> = evaluator.replay(transcript, "balanced", prices);
export const several: Promise<evaluator.ReplayReport[]> = evaluator.replay(
  transcript,
  ["balanced", { kind: "slide", at: 2, to: 1 }, ({ tokens }) => (tokens > 9 ? { kind: "compact", keep: 1 } : undefined)],
  prices,
  { optimum: true, onProgress: ({ stage }) => stage === "optimum" },
);
export const retained: Promise<evaluator.RecallReport> = evaluator.recall(
  [transcript],
  async (before, budget, { at }) => before.filter((message) => message.at.getTime() < at + budget),
  [0.1],
);
// @ts-expect-error: no compactor has this name.
void evaluator.recall(transcript, "tale", [0.1]);
// @ts-expect-error: a threshold needs to know what stays.
void evaluator.replay(transcript, { kind: "threshold", at: 1 }, prices);
