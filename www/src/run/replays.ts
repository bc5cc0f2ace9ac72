import { engine, isCall, replay, simple, type Call, type Policy } from "../../../bench/front/replay.mjs";
import { detectFormat, type Message } from "../engine.js";
import type { Curve } from "../logic/cost.js";
import { hasEconomy } from "../logic/presets.js";
import { describe } from "./describe.js";
import { sessionOptions } from "./session-options.js";
import type { Setup, SourceName } from "./types.js";

/** A transcript, and the sessions that are asked about it. */
export interface Question extends Omit<Setup, "economy"> {
  source: readonly Message[];
}

export interface Watch {
  signal: AbortSignal;
  onProgress(progress: { label: string; done: number; total: number }): void;
  /** More of the answer is known. */
  onPart(): void;
}

/** By transcript and policy. */
const found = new Map<string, Curve>();
/** Names of imported transcripts: recorded ones have theirs, and come anew with every session. */
const imported = new WeakMap<readonly Message[], string>();
let imports = 0;

/** Milliseconds of work after which the page has its turn. */
const SLICE = 12;

/** The curves that are known, or none. */
export function curvesOf(question: Question): Curve[] | undefined {
  const curves = wanted(question).map(({ key }) => found.get(key));
  return curves.every((curve) => curve !== undefined) ? curves : undefined;
}

/** Drives a session over the transcript for each curve that is not known yet. Rejects when it is aborted. */
export async function replayAll(question: Question, { signal, onProgress, onPart }: Watch): Promise<void> {
  const format = await detectFormat([...question.source]);
  const all = wanted(question).filter(({ key }) => !found.has(key));
  const calls = question.source.filter(isCall).length;
  let began = performance.now();
  for (const [at, { key, id, name, policy }] of all.entries()) {
    const steps: Call[] = [];
    const onCall = async (call: Call) => {
      steps.push(call);
      onProgress({ label: `Replaying ${name}`, done: at * calls + steps.length, total: all.length * calls });
      if (performance.now() - began < SLICE) return;
      await new Promise((resolve) => setTimeout(resolve));
      signal.throwIfAborted();
      began = performance.now();
    };
    const curve: Curve = { id, name, calls: steps };
    await replay(question.source, policy(format), question.contextWindow, { stable: 0, onCall }).catch((error) => {
      signal.throwIfAborted();
      curve.error = describe(error);
    });
    found.set(key, curve);
  }
  onPart();
}

interface Wanted extends Pick<Curve, "id" | "name"> {
  key: string;
  policy(format: Awaited<ReturnType<typeof detectFormat>>): Policy;
}

function wanted(question: Question): Wanted[] {
  const { contextWindow, preset } = question;
  const key = (name: string) => [transcriptKey(question), name, contextWindow].join("/");
  const session = (id: "preset" | "economy", name: string): Wanted => ({
    key: key(name),
    id,
    name,
    policy: (format) => engine(sessionOptions({ ...question, economy: id === "economy" }, format)),
  });
  return [
    { key: key("none"), id: "none", name: "No compaction", policy: () => simple(async (messages) => messages) },
    session("preset", preset),
    ...(hasEconomy(preset) ? [session("economy", `${preset}, economy`)] : []),
  ];
}

export function transcriptKey({ sourceName, source }: { sourceName: SourceName; source: readonly Message[] }): string {
  if (sourceName !== "own") return sourceName;
  const name = imported.get(source) ?? `own ${(imports += 1)}`;
  imported.set(source, name);
  return name;
}
