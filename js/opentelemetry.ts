/** Compactions as spans and metrics: the GenAI conventions of OpenTelemetry, 0.1.0, and names of our own for what they lack.
 *  No attribute has a text of a conversation, nor that of an error: what a function of the app threw may have one. */

import { invalidOption } from "./checks.js";
import type { Host } from "./effects.js";
import { CompactionError } from "./errors.js";
import { VERSION } from "./generated/build.js";
import { coreOf } from "./nouns/core.js";
import type { EngineResult } from "./options.js";
import { quietly } from "./quietly.js";
import type { OpenTelemetry, TraceAttributes, TraceSpan } from "./types/opentelemetry.js";
import type { Edit, Session } from "./types.js";

type Compact = typeof import("./compact.js").compact;

const NAME = "context-compactor";
const OWN = "context_compactor.compaction";
/** `gen_ai.operation.name`: the conventions have no name for it, and let instrumentations choose one. */
const OPERATION = "compact";
/** `SpanStatusCode.ERROR`. */
const ERROR = 2;
/** In seconds, as the conventions recommend them. */
const BOUNDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/** What is read of the answer of an operation that may compact, of a session or `compact`. */
interface Answer {
  edits?: readonly Edit[];
  usage?: { usedTokens: number };
  result?: Pick<EngineResult, "appliedEdits" | "changed" | "currentTokens" | "previousTokens" | "llmCalls" | "trigger" | "usage"> & {
    error?: { code: string } | undefined;
    fellBack?: { code: string } | undefined;
  };
}

/**
 * Traces the compactions of `session`, and of sessions that are forked from it later: each is a span `compact` of `otel`, the
 * module `@opentelemetry/api`, and is measured if `otel.metrics` is given. Returns `session`. Given the function `compact`
 * instead, returns one that does the same, with a span for each call. Spans have token counts, steps and error codes, and no
 * text of a conversation. Throws `invalid_option`.
 */
export function traced<M, N>(session: Session<M, N>, otel: OpenTelemetry): Session<M, N>;
export function traced<F extends Compact>(compact: F, otel: OpenTelemetry): F;
export function traced(target: object, otel: OpenTelemetry): object {
  const recorder = new Recorder(checked(otel));
  if (typeof target === "function") return ofFunction(target as Compact, recorder);
  const core = coreOf(target);
  const preset = core.options.preset ?? "balanced";
  core.follow = (compacting, host, work) => {
    const traced = new Traced(recorder, compacting.trigger, {
      "gen_ai.conversation.id": compacting.session,
      [`${OWN}.preset`]: preset,
      ...(compacting.isLate && { [`${OWN}.background`]: true }),
    });
    return traced.watching(work(traced.host(host)), (answer) => answer as Answer | null);
  };
  return target;
}

/**
 * Returns attributes for the app's own span of a model call that was sent the context of `session`: `gen_ai.conversation.id`,
 * and `gen_ai.conversation.compacted` if the context is shorter than the conversation.
 */
export function conversationAttributes<M, N>(session: Session<M, N>): TraceAttributes {
  const { context, id } = session;
  const isCompacted = context.checkpoints().length > 0 || context.usage().offloadCount > 0;
  return { "gen_ai.conversation.id": id, ...(isCompacted && { "gen_ai.conversation.compacted": true }) };
}

function checked(otel: OpenTelemetry): OpenTelemetry {
  const { trace, context } = Object(otel) as Partial<OpenTelemetry>;
  if (typeof trace?.getTracer === "function" && typeof trace.setSpan === "function" && typeof context?.with === "function") return otel;
  throw invalidOption("otel", "must be all of the module @opentelemetry/api: import * as otel");
}

function ofFunction(compact: Compact, recorder: Recorder): Compact {
  const call = (...given: Parameters<Compact>) => {
    const traced = new Traced(recorder, "manual", { [`${OWN}.preset`]: given[1]?.preset ?? "balanced" });
    return traced.watching(
      traced.inside(() => compact(...given)),
      (result) => ({ result }),
    );
  };
  return call as Compact;
}

/** Where spans and measurements go. */
class Recorder {
  readonly otel: OpenTelemetry;
  readonly tracer: ReturnType<OpenTelemetry["trace"]["getTracer"]>;
  readonly measure: (seconds: number, freed: number, attributes: TraceAttributes) => void;

  constructor(otel: OpenTelemetry) {
    this.otel = otel;
    this.tracer = otel.trace.getTracer(NAME, VERSION);
    const meter = otel.metrics?.getMeter(NAME, VERSION);
    const advice = { explicitBucketBoundaries: BOUNDS };
    const took = meter?.createHistogram("gen_ai.client.operation.duration", { description: "GenAI operation duration.", unit: "s", advice });
    const description = "Tokens that compactions removed from contexts.";
    const removed = meter?.createCounter(`${OWN}.freed_tokens`, { description, unit: "{token}" });
    this.measure = (seconds, freed, attributes) => {
      took?.record(seconds, attributes);
      if (freed > 0) removed?.add(freed);
    };
  }
}

/** One operation. Most prompts need no compaction: the span is begun when a model is asked, or at the end. */
class Traced {
  readonly #recorder: Recorder;
  readonly #trigger: string;
  readonly #attributes: TraceAttributes;
  readonly #begun = Date.now();
  #span: TraceSpan | undefined;
  #calls = 0;

  constructor(recorder: Recorder, trigger: string, attributes: TraceAttributes) {
    this.#recorder = recorder;
    this.#trigger = trigger;
    this.#attributes = attributes;
  }

  /** The host of the operation: spans of its calls of a model are children of this one. */
  host(host: Host): Host {
    const { summarize, summarizeResult, fetch } = host;
    return {
      ...host,
      summarize: summarize && ((...given) => this.#asking(() => summarize(...given))),
      summarizeResult: summarizeResult && ((...given) => this.#asking(() => summarizeResult(...given))),
      fetch: (...given) => this.#asking(() => (fetch ?? globalThis.fetch)(...given)),
    };
  }

  #asking<T>(call: () => T): T {
    this.#calls++;
    return this.inside(call);
  }

  /** Runs `call` while the span is active. */
  inside<T>(call: () => T): T {
    const { trace, context } = this.#recorder.otel;
    return context.with(trace.setSpan(context.active(), this.#begin()), call);
  }

  async watching<T>(work: Promise<T>, read: (answer: T) => Answer | null): Promise<T> {
    try {
      const answer = await work;
      quietly(() => this.#answered(read(answer) ?? {}));
      return answer;
    } catch (error) {
      quietly(() => this.#failed(error));
      throw error;
    }
  }

  #begin(): TraceSpan {
    return (this.#span ??= this.#recorder.tracer.startSpan(OPERATION, { startTime: this.#begun }));
  }

  #answered({ edits = [], usage, result }: Answer): void {
    const steps = (result?.appliedEdits ?? edits).filter(({ kind }) => kind !== "repair");
    if (!this.#span && !result && steps.length === 0) return;
    const after = result?.currentTokens ?? usage?.usedTokens ?? 0;
    const before = result?.previousTokens ?? steps.reduce((sum, { freedTokens }) => sum + freedTokens, after);
    const code = result?.error?.code;
    this.#end(code, Math.max(before - after, 0), {
      ...((result?.changed ?? steps.length > 0) && { "gen_ai.conversation.compacted": true }),
      ...(result?.usage && {
        "gen_ai.usage.input_tokens": result.usage.inputTokens,
        "gen_ai.usage.output_tokens": result.usage.outputTokens,
      }),
      [`${OWN}.trigger`]: result?.trigger ?? this.#trigger,
      [`${OWN}.tokens_before`]: before,
      [`${OWN}.tokens_after`]: after,
      [`${OWN}.steps`]: [...new Set(steps.map(({ kind }) => kind))],
      [`${OWN}.messages_changed`]: new Set(steps.flatMap(({ indices }) => indices)).size,
      [`${OWN}.model_calls`]: result?.llmCalls ?? this.#calls,
      ...(result?.fellBack && { [`${OWN}.fell_back`]: result.fellBack.code }),
    });
  }

  /** The operation rejected. It was no compaction if no model was asked, and the context was not found to be too large. */
  #failed(error: unknown): void {
    const code = CompactionError.isInstance(error) ? error.code : "_OTHER";
    if (!this.#span && this.#trigger !== "manual" && code !== "context_overflow") return;
    this.#end(code, 0, { [`${OWN}.trigger`]: this.#trigger, [`${OWN}.model_calls`]: this.#calls });
  }

  #end(error: string | undefined, freed: number, attributes: TraceAttributes): void {
    const span = this.#begin();
    const of: TraceAttributes = { "gen_ai.operation.name": OPERATION, ...(error !== undefined && { "error.type": error }) };
    span.setAttributes({ ...of, ...this.#attributes, ...attributes });
    if (error !== undefined) span.setStatus({ code: ERROR });
    span.end();
    this.#recorder.measure((Date.now() - this.#begun) / 1_000, freed, of);
  }
}
