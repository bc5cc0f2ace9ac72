/** X15: compactions as spans and metrics, through the real SDK of OpenTelemetry. */

import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { after, test } from "node:test";
import * as otel from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { compact, openSession } from "context-compactor";
import { contextCompactor } from "context-compactor/ai-sdk";
import { conversationAttributes, traced } from "context-compactor/opentelemetry";
import { chat, exchange, SUMMARY } from "../support/api.mjs";

const spans = new InMemorySpanExporter();
const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
const measured = new InMemoryMetricExporter(AggregationTemporality.DELTA);
const meters = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter: measured, exportIntervalMillis: 3_600_000 })] });
otel.trace.setGlobalTracerProvider(tracers);
otel.metrics.setGlobalMeterProvider(meters);
otel.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
after(() => meters.shutdown());

const own = (name) => `context_compactor.compaction.${name}`;
const ERROR = otel.SpanStatusCode.ERROR;

/** What was exported since the last time. */
function exported() {
  const found = spans.getFinishedSpans();
  spans.reset();
  return found;
}

async function metrics() {
  measured.reset();
  await meters.forceFlush();
  const all = measured.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
  return Object.fromEntries(all.map(({ descriptor, dataPoints }) => [descriptor.name, { unit: descriptor.unit, points: dataPoints }]));
}

/** Summarizes beyond 3,000 tokens; the model's own span is that of an instrumented client. */
function options(answer = async () => ({ text: SUMMARY, usage: { inputTokens: 900, outputTokens: 40 } })) {
  const call = (request, context) => {
    const span = otel.trace.getTracer("client").startSpan("chat");
    return Promise.resolve(answer(request, context)).finally(() => span.end());
  };
  const summarize = { call, attempts: 1, fallback: "none" };
  return { store: "memory", preset: "offload", format: "openai-chat", contextWindow: 9_000, maxOutputTokens: 1_000, compactAt: { tokens: 3_000 }, summarize };
}

const open = async (given) => traced(await openSession(given), otel);

test("X15: a compaction is a span with what was done, the model's is its child, and a prompt that fits has none", async () => {
  const session = await open(options());
  assert.deepEqual(conversationAttributes(session), { "gen_ai.conversation.id": session.id });
  await session.append(...chat(4));
  await session.prepare();
  assert.deepEqual(exported(), []);

  await session.append(...chat(16, 4));
  const parent = otel.trace.getTracer("app").startSpan("turn");
  const active = otel.trace.setSpan(otel.context.active(), parent);
  const { result } = await otel.context.with(active, () => session.prepare());
  const [child, span] = exported();
  assert.deepEqual([child.name, span.name, span.kind, span.status.code], ["chat", "compact", otel.SpanKind.INTERNAL, otel.SpanStatusCode.UNSET]);
  assert.equal(child.parentSpanContext.spanId, span.spanContext().spanId);
  assert.equal(span.parentSpanContext.spanId, parent.spanContext().spanId);
  assert.equal(span.instrumentationScope.name, "context-compactor");
  const { [own("messages_changed")]: changed, ...rest } = span.attributes;
  assert.deepEqual(rest, {
    "gen_ai.operation.name": "compact",
    "gen_ai.conversation.id": session.id,
    "gen_ai.conversation.compacted": true,
    "gen_ai.usage.input_tokens": 900,
    "gen_ai.usage.output_tokens": 40,
    [own("preset")]: "offload",
    [own("trigger")]: "auto",
    [own("steps")]: ["summarize"],
    [own("tokens_before")]: result.previousTokens,
    [own("tokens_after")]: result.currentTokens,
    [own("model_calls")]: 1,
  });
  assert.equal(changed, result.ledger.filter(({ fate }) => fate === "summarized").length);
  assert.deepEqual(conversationAttributes(session), { "gen_ai.conversation.id": session.id, "gen_ai.conversation.compacted": true });

  const found = await metrics();
  const { unit, points } = found["gen_ai.client.operation.duration"];
  assert.deepEqual([unit, points.map(({ value, attributes }) => [value.count, attributes])], ["s", [[1, { "gen_ai.operation.name": "compact" }]]]);
  assert.deepEqual(points[0].value.buckets.boundaries.slice(0, 2), [0.01, 0.02]);
  assert.equal(found[own("freed_tokens")].points[0].value, result.freedTokens);
});

test("X15: a step that asks no model is a span, too: offloaded results", async () => {
  const session = await open({ ...options(), compactAt: { tokens: 6_000 }, contextWindow: 128_000 });
  for (let nth = 0; nth < 8; nth++) await session.append(...exchange(nth, 4_000));
  const { edits, usage, result } = await session.prepare();
  const all = exported();
  assert.equal(result, undefined);
  assert.deepEqual(edits.map(({ kind }) => kind), ["offload"]);
  assert.equal(all.length, 1);
  const { attributes } = all[0];
  assert.deepEqual(attributes[own("steps")], ["offload"]);
  assert.equal(attributes[own("model_calls")], 0);
  assert.equal(attributes[own("tokens_after")], usage.usedTokens);
  assert.equal(attributes[own("tokens_before")], usage.usedTokens + edits[0].freedTokens);
  assert.equal(attributes[own("messages_changed")], edits[0].indices.length);
  assert.equal(conversationAttributes(session)["gen_ai.conversation.compacted"], true);
});

test("X15: a failure has its code and no text, of the conversation or of what was thrown", async () => {
  const secret = "E0502";
  const session = await open(options(async () => {
    throw new Error(`I was asked about ${secret}`);
  }));
  await session.append(...chat(16));
  const result = await session.compact();
  assert.equal(result.error.code, "summary_failed");
  const [, span] = exported();
  assert.equal(span.status.code, ERROR);
  assert.equal(span.status.message, undefined);
  assert.deepEqual(span.events, []);
  assert.equal(span.attributes["error.type"], "summary_failed");
  assert.equal(span.attributes["gen_ai.conversation.compacted"], undefined, "true, or not there");
  assert.equal(span.attributes[own("trigger")], "manual");
  assert.ok(!JSON.stringify([span.attributes, span.name]).includes(secret));
  const { points } = (await metrics())["gen_ai.client.operation.duration"];
  assert.ok(points.some(({ attributes }) => attributes["error.type"] === "summary_failed"));
});

test("X15: a prompt that cannot fit and a call that was stopped are errors; a closed session is no compaction", async () => {
  const session = await open({ ...options(), pins: { match: () => true } });
  await session.append({ role: "user", content: "word ".repeat(40_000) });
  await assert.rejects(session.prepare(), { code: "context_overflow" });
  const [large] = exported();
  assert.deepEqual([large.status.code, large.attributes["error.type"], large.attributes[own("trigger")]], [ERROR, "context_overflow", "auto"]);

  const stop = new AbortController();
  const stopped = await open(options((_, { signal }) => new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
    stop.abort();
  })));
  await stopped.append(...chat(16));
  await assert.rejects(stopped.prepare({ signal: stop.signal }), { code: "aborted" });
  const [, aborted] = exported();
  assert.deepEqual([aborted.attributes["error.type"], aborted.attributes[own("model_calls")]], ["aborted", 1]);

  await stopped.close();
  await assert.rejects(stopped.prepare(), { code: "closed" });
  await assert.rejects(session.prepare({ force: 1 }), { code: "invalid_option" });
  assert.deepEqual(exported(), []);
});

test("X15: a summary in the background, a fork, an endpoint and a second call are traced once", async () => {
  const late = await open({ ...options(), background: true });
  await late.append(...chat(16));
  let prepared = await late.prepare();
  for (let turn = 0; prepared.pending && turn < 1_000; turn++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    prepared = await late.prepare();
  }
  const ofLate = exported().filter(({ name }) => name === "compact");
  assert.equal(ofLate.length, 1);
  assert.equal(ofLate[0].attributes[own("background")], true);

  const child = await traced(late, otel).fork();
  await child.compact();
  const ofChild = exported().filter(({ name }) => name === "compact");
  assert.deepEqual(ofChild.map(({ attributes }) => attributes["gen_ai.conversation.id"]), [child.id]);

  const provider = { kind: "openai", url: "https://model.example/v1", model: "gpt-5", headers: { authorization: "Bearer k" } };
  const body = JSON.stringify({ choices: [{ message: { role: "assistant", content: SUMMARY }, finish_reason: "stop" }], usage: { prompt_tokens: 700, completion_tokens: 30 } });
  const answer = async () => new Response(body, { headers: { "content-type": "application/json" } });
  const fetch = (...given) => otel.trace.getTracer("client").startActiveSpan("POST", (span) => answer(...given).finally(() => span.end()));
  const direct = await open({ ...options(), summarize: { provider, fetch } });
  await direct.append(...chat(16));
  await direct.prepare();
  const [request, span] = exported();
  assert.equal(request.parentSpanContext.spanId, span.spanContext().spanId);
  assert.equal(span.attributes["gen_ai.usage.input_tokens"], 700);
});

test("X15: compact without a session has a span for each call; an adapter hands over its sessions", async () => {
  const { store: _, compactAt: __, ...given } = options();
  const result = await traced(compact, otel)(chat(16), given);
  const [child, span] = exported();
  assert.equal(child.parentSpanContext.spanId, span.spanContext().spanId);
  assert.equal(span.attributes[own("tokens_after")], result.currentTokens);
  assert.equal("gen_ai.conversation.id" in span.attributes, false);
  await assert.rejects(traced(compact, otel)(chat(2), { contextWindow: -1 }), { code: "invalid_option" });
  assert.equal(exported()[0].attributes["error.type"], "invalid_option");

  const seen = [];
  const { format: ___, ...options2 } = given;
  const compactor = contextCompactor({ ...options2, onSession: (session) => seen.push(traced(session, otel).id) });
  const session = await compactor.session("thread 1");
  await session.append(...chat(16).map(({ role, content }) => ({ role, content: [{ type: "text", text: content }] })));
  await session.compact();
  assert.deepEqual(seen, ["thread 1"]);
  assert.deepEqual(exported().filter(({ name }) => name === "compact").map(({ attributes }) => attributes["gen_ai.conversation.id"]), seen);
  assert.throws(() => contextCompactor({ onSession: true }), { code: "invalid_option", field: "onSession" });
  await compactor.close();
});

test("X15: the program of the docs traces its compactions", async () => {
  const page = await readFile(new URL("../../docs/opentelemetry.md", import.meta.url), "utf8");
  const [, program] = /```js otel\n([^]*?)```/.exec(page);
  const path = new URL("opentelemetry-program.mjs", import.meta.url);
  await writeFile(path, program);
  try {
    await import(path);
  } finally {
    await rm(path);
  }
  const found = exported();
  const compactions = found.filter(({ name }) => name === "compact");
  const names = new Set(compactions.flatMap(({ attributes }) => Object.keys(attributes)));
  const documented = [...page.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, cell]) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name.replace(/^\./, `${own("")}`)));
  assert.ok(compactions.length > 0);
  assert.deepEqual([...names].filter((name) => !documented.includes(name)), [], "every attribute is documented");
  assert.equal(found.filter(({ name, attributes }) => name === "chat" && attributes["gen_ai.conversation.compacted"]).length > 0, true);
});

test("X15: without an SDK the calls of the API do nothing, and what is no API is refused", async () => {
  const { trace, context } = otel;
  const noop = { trace: { getTracer: () => new otel.ProxyTracerProvider().getTracer("none"), setSpan: trace.setSpan }, context };
  const session = traced(await openSession(options()), noop);
  await session.append(...chat(16));
  assert.equal((await session.prepare()).result.success, true);
  assert.deepEqual(exported().filter(({ name }) => name === "compact"), []);
  for (const wrong of [undefined, {}, trace]) assert.throws(() => traced(session, wrong), { code: "invalid_option", field: "otel" });
  assert.throws(() => traced({}, otel), { code: "invalid_option", field: "session" });
});
