/** Options out of their bounds are refused with the option's path, by every function that takes them. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import * as library from "../support/offload.mjs";
import { chat, fails, frozen, summariser } from "../support/api.mjs";
import { VERSION } from "../support/version.mjs";

const { compact, openSession, optionsFromEnv, planCompaction } = library;

const provider = { kind: "openai", model: "m" };
const itself = {};
itself.itself = itself;

/** Options, and the path of the one at fault. */
const BAD = [
  [{ preset: "fastest" }, "preset"],
  [{ preset: 5 }, "preset"],
  [{ format: "morse" }, "format"],
  [{ advanced: 5 }, "advanced"],
  [{ advanced: { estimator: "exact" } }, "advanced.estimator"],
  [{ model: "" }, "model"],
  [{ model: 4 }, "model"],
  [{ contextWindow: 999 }, "contextWindow"],
  [{ contextWindow: -1 }, "contextWindow"],
  [{ contextWindow: 1e10 }, "contextWindow"],
  [{ contextWindow: 2000.5 }, "contextWindow"],
  [{ contextWindow: Number.NaN }, "contextWindow"],
  [{ contextWindow: Infinity }, "contextWindow"],
  [{ contextWindow: "200000" }, "contextWindow"],
  [{ contextWindow: 200_000n }, "contextWindow"],
  [{ contextWindow: 20_000, maxOutputTokens: 20_000 }, "contextWindow"],
  [{ maxOutputTokens: -1 }, "maxOutputTokens"],
  [{ reserveTokens: -1 }, "reserveTokens"],
  [{ reserveTokens: 1.5 }, "reserveTokens"],
  [{ compactAt: 5 }, "compactAt"],
  [{ compactAt: { tokens: 0 } }, "compactAt.tokens"],
  [{ compactAt: { fraction: 0 } }, "compactAt.fraction"],
  [{ compactAt: { fraction: 1.1 } }, "compactAt.fraction"],
  [{ compactAt: { tokens: 5, fraction: 0.5 } }, "compactAt"],
  [{ economy: 1 }, "economy"],
  [{ prices: 3 }, "prices"],
  [{ prices: { input: 3 } }, "prices.output"],
  [{ prices: { input: -3, output: 15 } }, "prices.input"],
  [{ prices: { input: 3, output: 15, cacheRead: -1 } }, "prices.cacheRead"],
  [{ prices: { input: 3, output: 15, cacheWrite: 1e7 } }, "prices.cacheWrite"],
  [{ prices: { input: 3, output: 15, ttlMs: 0.5 } }, "prices.ttlMs"],
  [{ prices: { input: 3, output: 15, tiers: [{ input: 6, output: 20 }] } }, "prices.tiers[0].above"],
  [{ toolPolicies: [] }, "toolPolicies"],
  [{ toolPolicies: { Bash: "always" } }, "toolPolicies.Bash"],
  [{ toolPolicies: { Bash: { keep: "never" } } }, "toolPolicies.Bash.keep"],
  [{ toolPolicies: { Bash: { maxTokens: 0 } } }, "toolPolicies.Bash.maxTokens"],
  [{ toolPolicies: { Bash: { digest: "file" } } }, "toolPolicies.Bash.digest"],
  [{ toolPolicies: { Bash: { max: 5 } } }, "toolPolicies.Bash.max"],
  [{ toolPolicies: { Bash: {}, bash: {} } }, "toolPolicies.bash"],
  [{ keep: "5" }, "keep"],
  [{ keep: { messages: 0 } }, "keep.messages"],
  [{ keep: { messages: 1.5 } }, "keep.messages"],
  [{ keep: { tokens: -5 } }, "keep.tokens"],
  [{ keep: { fraction: 2 } }, "keep.fraction"],
  [{ keep: { fraction: Number.NaN } }, "keep.fraction"],
  [{ keep: { messages: 5, tokens: 5 } }, "keep"],
  [{ summarize: "gpt" }, "summarize"],
  [{ summarize: [] }, "summarize"],
  [{ summarize: { call: "gpt" } }, "summarize.call"],
  [{ summarize: { forResults: {} } }, "summarize.forResults"],
  [{ summarize: { model: "  " } }, "summarize.model"],
  [{ summarize: { contextWindow: 999 } }, "summarize.contextWindow"],
  [{ summarize: { contextWindow: "8000" } }, "summarize.contextWindow"],
  [{ summarize: { longHistory: "split" } }, "summarize.longHistory"],
  [{ summarize: { longHistory: true } }, "summarize.longHistory"],
  [{ summarize: { fallback: "retry" } }, "summarize.fallback"],
  [{ summarize: { attempts: 0 } }, "summarize.attempts"],
  [{ summarize: { attempts: 101 } }, "summarize.attempts"],
  [{ summarize: { attempts: "3" } }, "summarize.attempts"],
  [{ summarize: { timeoutMs: 0 } }, "summarize.timeoutMs"],
  [{ summarize: { timeoutMs: 1e9 } }, "summarize.timeoutMs"],
  [{ summarize: { instructions: "" } }, "summarize.instructions"],
  [{ summarize: { instructions: ["x"] } }, "summarize.instructions"],
  [{ summarize: { targetTokens: 0 } }, "summarize.targetTokens"],
  [{ summarize: { detail: 4 } }, "summarize.detail"],
  [{ summarize: { mode: "" } }, "summarize.mode"],
  [{ summarize: { provider, fetch: {} } }, "summarize.fetch"],
  [{ summarize: { provider: "openai" } }, "summarize.provider"],
  [{ summarize: { provider: { model: "m" } } }, "summarize.provider.kind"],
  [{ summarize: { provider: { kind: "clippy", model: "m" } } }, "summarize.provider.kind"],
  [{ summarize: { provider: { kind: "openai" } } }, "summarize.provider.model"],
  [{ summarize: { provider: { ...provider, url: 5 } } }, "summarize.provider.url"],
  [{ summarize: { provider: { ...provider, headers: { authorization: 5 } } } }, "summarize.provider.headers.authorization"],
  [{ summarize: { provider: { ...provider, headers: { authorization: () => "key" } } } }, "summarize.provider.headers.authorization"],
  [{ advanced: { prefixMismatchBehavior: "drop" } }, "advanced.prefixMismatchBehavior"],
  [{ advanced: { prefixMismatchBehavior: true } }, "advanced.prefixMismatchBehavior"],
  [{ tokenCounter: 4 }, "tokenCounter"],
  [{ pins: { match: [0] } }, "pins.match"],
  [{ redact: /secret/ }, "redact"],
  [{ redact: (text) => text }, "redact"],
  [{ redact: { text: /secret/ } }, "redact.text"],
  [{ redact: { secrets: "yes" } }, "redact.secrets"],
  [{ redact: { secrets: () => true } }, "redact.secrets"],
  [{ onProgress: true }, "onProgress"],
  [{ logger: console }, "logger"],
  [{ signal: {} }, "signal"],
  [{ signal: "abort" }, "signal"],
  [{ advanced: { runtime: 5 } }, "advanced.runtime.now"],
  [{ advanced: { runtime: { now: Date.now } } }, "advanced.runtime.id"],
  [{ offload: [] }, "offload"],
  [{ offload: true }, "offload"],
  [{ offload: new Map([["minChars", 5]]) }, "offload"],
  [{ offload: { minChars: 0 } }, "offload.minChars"],
  [{ advanced: { offload: { scanFraction: -0.1 } } }, "advanced.offload.scanFraction"],
  [{ advanced: { offload: { scanFraction: 1.1 } } }, "advanced.offload.scanFraction"],
  [{ advanced: { minOffloadGain: 0 } }, "advanced.minOffloadGain"],
  [{ advanced: { cooldownSteps: -1 } }, "advanced.cooldownSteps"],
  [{ presetOptions: [] }, "presetOptions"],
  [{ presetOptions: { offloadThreshold: 0 } }, "presetOptions.offloadThreshold"],
  [{ presetOptions: { scanRatio: 1.1 } }, "presetOptions.scanRatio"],
  [{ presetOptions: { minChars: 0 } }, "presetOptions.minChars"],
  [{ presetOptions: { compactTriggerThreshold: 0 } }, "presetOptions.compactTriggerThreshold"],
  [{ presetOptions: { compactCooldownSteps: -1 } }, "presetOptions.compactCooldownSteps"],
  [{ presetOptions: { preserveCount: 0 } }, "presetOptions.preserveCount"],
  [{ presetOptions: { targetTokens: 0 } }, "presetOptions.targetTokens"],
  [{ presetOptions: { retryCount: 0 } }, "presetOptions.retryCount"],
  [{ preset: "checkpoint", checkpoints: [] }, "checkpoints"],
  [{ preset: "checkpoint", checkpoints: { mergeCount: 1 } }, "checkpoints.mergeCount"],
  [{ preset: "checkpoint", presetOptions: { tier: "TIER_6" } }, "presetOptions.tier"],
  [{ preset: "checkpoint", presetOptions: { mergeCount: 1 } }, "presetOptions.mergeCount"],
  [{ preset: "checkpoint", presetOptions: { profiles: {} } }, "presetOptions.profiles"],
  [{ preset: "checkpoint", presetOptions: { profiles: [{ size: 8_000 }] } }, "presetOptions.profiles[0].model"],
  [{ goal: { id: "g" } }, "goal.description"],
  [{ preset: "react", compress: { structured: 1 } }, "compress.structured"],
  [{ preset: "react", presetOptions: { strategies: 1 } }, "presetOptions.strategies"],
  [{ preset: "react", presetOptions: { singleEnabled: 1 } }, "presetOptions.singleEnabled"],
  [{ preset: "react", presetOptions: { relianceRatio: 2 } }, "presetOptions.relianceRatio"],
  [{ preset: "factor3", presetOptions: { verbosity: "loud" } }, "presetOptions.verbosity"],
  [{ preset: "factor3", presetOptions: { fileLines: 0 } }, "presetOptions.fileLines"],
  [{ preset: "factor3", presetOptions: { processTools: { files: "read_file" } } }, "presetOptions.processTools.files"],
  [{ digest: { tools: { files: "read_file" } } }, "digest.tools.files"],
  [{ clear: { when: "often" } }, "clear.when"],
  [{ preset: "layered", presetOptions: { clear: "often" } }, "presetOptions.clear"],
  // What does nothing in the preset, and what is given twice.
  [{ compress: { structured: true } }, "compress"],
  [{ advanced: { emergencyFraction: 0.5 } }, "advanced.emergencyFraction"],
  [{ advanced: { digest: { fileLines: 5 } } }, "advanced.digest"],
  [{ preset: "layered", clear: false, presetOptions: { clearMinTokens: 5 }, offload: false, advanced: { offload: { scanFraction: 0.5 } } }, "advanced.offload.scanFraction"],
  [{ keep: { messages: 3 }, presetOptions: { preserveCount: 3 } }, "presetOptions.preserveCount"],
];

/** Names that no option has, and their path. */
const UNKNOWN = [
  [{ contextwindow: 100_000 }, "contextwindow"],
  [{ presetOptions: { offloadTreshold: 100 } }, "presetOptions.offloadTreshold"],
  [{ offload: { minChar: 100 } }, "offload.minChar"],
  [{ compactAt: { token: 5 } }, "compactAt.token"],
  [{ digest: { tools: { file: [] } } }, "digest.tools.file"],
  [{ preset: "factor3", presetOptions: { processTools: { file: [] } } }, "presetOptions.processTools.file"],
  [{ keep: { message: 5 } }, "keep.message"],
  [{ summarize: { provider: { ...provider, apiKey: "k" } } }, "summarize.provider.apiKey"],
  [{ preset: "layered", presetOptions: { keepLast: 3 } }, "presetOptions.keepLast"],
  [{ preset: "layered", presetOptions: { scanRatio: 0.5 } }, "presetOptions.scanRatio"],
  [{ preset: "react", presetOptions: { ratio: 0.1 } }, "presetOptions.ratio"],
  [{ preset: "checkpoint", presetOptions: { mergeAt: 3 } }, "presetOptions.mergeAt"],
  [{ preset: "balanced", presetOptions: { preserveCount: 3 } }, "presetOptions.preserveCount"],
  [{ prices: { input: 3, output: 15, read: 0.3 } }, "prices.read"],
  // Names that other releases had.
  [{ trigger: { tokens: 5_000 } }, "trigger"],
  [{ layered: { keepRecent: 3 } }, "layered"],
  [{ offload: { offloadThreshold: 5_000 } }, "offload.offloadThreshold"],
  [{ pinned: () => true }, "pinned"],
  [{ retryCount: 2 }, "retryCount"],
];

for (const [options, field] of [...BAD, ...UNKNOWN]) {
  test(`options: ${inspect(options, { breakLength: Infinity, depth: 5 })} is refused as ${field}`, async () => {
    const check = (error) => {
      fails("invalid_option", { field })(error);
      return error.message.startsWith(`${field}: `);
    };
    await assert.rejects(compact(chat(10), options), check);
    await assert.rejects(openSession({ store: "memory", ...options }), check);
    await assert.rejects(() => planCompaction(chat(10), options), check);
  });
}

test("options: none of those of a session alone is taken as it comes", async () => {
  for (const [options, field] of [
    [{ id: "" }, "id"],
    [{ id: 5 }, "id"],
    [{ id: "\ud800" }, "id"],
    [{ store: "disk" }, "store"],
    [{ store: null }, "store"],
    [{ store: {} }, "store"],
    [{ systemPrompt: 5 }, "systemPrompt"],
  ]) {
    await assert.rejects(openSession(options), fails("invalid_option", { field }), JSON.stringify(options));
  }
});

test("lesson: a misspelt option is not ignored; the error names those that there are", async () => {
  const check = (field, ...known) => (error) => {
    fails("invalid_option", { field })(error);
    return known.every((name) => error.message.includes(name));
  };
  for (const [options, field, ...known] of [
    [{ presetOptions: { offloadTreshold: 5 } }, "presetOptions.offloadTreshold", "did you mean offloadThreshold?"],
    [{ advanced: { cooldownStep: 5 } }, "advanced.cooldownStep", "did you mean cooldownSteps?"],
    // One that is elsewhere is named with its group.
    [{ cooldownSteps: 5 }, "cooldownSteps", "{ advanced: { cooldownSteps } }"],
    [{ cooldownStep: 5 }, "cooldownStep", "did you mean advanced.cooldownSteps?"],
    [{ targetToken: 500 }, "targetToken", "did you mean summarize.targetTokens?"],
    [{ retryCount: 5 }, "retryCount", "{ summarize: { attempts } }"],
  ]) {
    await assert.rejects(compact(chat(1), options), check(field, ...known));
  }
  await assert.rejects(openSession({ systemprompt: "x" }), check("systemprompt", "systemPrompt"));
  for (const [name, options, field, ...known] of [
    ["estimateTokens", { estimater: "chars4" }, "estimater", "estimator", "format", "model"],
    ["splitMessages", { pinned: () => true }, "pinned", "pins", "keep"],
    ["splitMessages", { keep: { message: 5 } }, "keep.message", "messages", "fraction"],
    ["buildSummaryPrompt", { targetToken: 5 }, "targetToken", "targetTokens"],
    ["extractiveSummary", { maxTokens: 5 }, "maxTokens", "targetTokens"],
    ["validateHistory", { stict: true }, "stict", "strict"],
    ["repairHistory", { strict: true }, "strict", "format"],
    ["planCompaction", { keeps: {} }, "keeps", "keep"],
  ]) {
    await assert.rejects(async () => library[name](chat(1), options), check(field, ...known), `${name} ${field}`);
  }
  assert.throws(() => library.estimateTokens("text", { estimater: 5 }), check("estimater", "estimator"));
  assert.throws(() => library.indexedDbStore({ names: "x" }), check("names", "name", "durability"));
});

test("options: the object itself", async () => {
  for (const options of [null, 5, "text"]) {
    await assert.rejects(compact(chat(1), options), fails("invalid_option"));
    await assert.rejects(openSession(options), fails("invalid_option"));
    for (const name of [
      "estimateTokens",
      "splitMessages",
      "buildSummaryPrompt",
      "extractiveSummary",
      "planCompaction",
      "validateHistory",
      "repairHistory",
    ]) {
      await assert.rejects(async () => library[name](chat(1), options), fails("invalid_option"), name);
    }
    assert.throws(() => library.estimateTokens("text", options), fails("invalid_option"));
  }
});

test("lesson: options that contain themselves do not take the engine down", async () => {
  for (const name of ["keep", "compactAt", "offload", "summarize", "prices", "presetOptions"]) {
    await assert.rejects(compact(chat(1), { [name]: itself }), (error) => {
      fails("invalid_option")(error);
      return error.field.startsWith(name);
    });
  }
  assert.equal(library.version(), VERSION);
});

test("options: those of the functions that need no session", async () => {
  for (const [name, options, field] of [
    ["estimateTokens", { estimator: "exact" }, "estimator"],
    ["estimateTokens", { format: "morse" }, "format"],
    ["splitMessages", { keep: { messages: 0 } }, "keep.messages"],
    ["splitMessages", { pins: { match: [0] } }, "pins.match"],
    ["splitMessages", { pins: { proposals: "off" } }, "pins.proposals"],
    ["splitMessages", { pins: null }, "pins"],
    ["buildSummaryPrompt", { targetTokens: 0 }, "targetTokens"],
    ["buildSummaryPrompt", { maxInputTokens: 0 }, "maxInputTokens"],
    ["buildSummaryPrompt", { maxInputTokens: 10 }, "maxInputTokens"],
    ["buildSummaryPrompt", { preset: "fastest" }, "preset"],
    ["buildSummaryPrompt", { detail: 4 }, "detail"],
    ["buildSummaryPrompt", { level: 2 }, "level"],
    ["buildSummaryPrompt", { redactSecrets: false }, "redactSecrets"],
    ["buildSummaryPrompt", { redact: { secret: false } }, "redact.secret"],
    ["extractiveSummary", { redact: { secrets: "no" } }, "redact.secrets"],
    ["buildSummaryPrompt", { previousSummary: 5 }, "previousSummary"],
    ["buildSummaryPrompt", { instructions: "" }, "instructions"],
    ["extractiveSummary", { targetTokens: 1.5 }, "targetTokens"],
    ["validateHistory", { strict: "yes" }, "strict"],
    ["validateHistory", { format: 5 }, "format"],
    ["repairHistory", { format: "morse" }, "format"],
  ]) {
    await assert.rejects(async () => library[name](chat(10), options), fails("invalid_option", { field }), `${name} ${field}`);
  }
  assert.throws(() => library.estimateTokens("text", { estimator: 5 }), fails("invalid_option", { field: "estimator" }));
});

test("options: those of a session's methods", async () => {
  const session = await openSession({ store: "memory" });
  await session.append(...chat(3));
  const refused = (promise, field) => assert.rejects(promise, fails("invalid_option", { field }));
  await refused(session.prepare({ force: "now" }), "force");
  await refused(session.prepare({ signal: 5 }), "signal");
  await refused(session.prepare({ tools: 5n }), "tools");
  await refused(session.prepare({ tools: [itself] }), "tools");
  await refused(session.prepare({ tool: [] }), "tool");
  await refused(session.prepare(null), "");
  await refused(session.compact({ instructions: 5 }), "instructions");
  await refused(session.compact({ signal: {} }), "signal");
  await refused(session.compact({ force: true }), "force");
  await refused(session.recall.read("off_x", { length: 5 }), "length");
  await refused(session.recall.read("off_x", { offset: -1 }), "offset");
  await refused(session.recall.read("off_x", { limit: 1.5 }), "limit");
  await refused(session.recall.read("off_x", { limit: "5" }), "limit");
  await refused(session.recall.read("off_x", null), "");
  assert.throws(() => session.on("compact", {}), fails("invalid_option", { field: "listener" }));
  for (const event of ["compacted", "toString", undefined]) {
    assert.throws(
      () => session.on(event, () => {}),
      fails("invalid_option", { field: "event", message: /"offload", "compact", "usage", "progress", "warning"/ }),
    );
  }
  assert.equal((await session.prepare()).messages.length, 6);
});

test("options: undefined is as good as absent, anywhere, and what is given is not changed", async () => {
  const options = frozen({
    preset: undefined,
    keep: { messages: undefined, tokens: undefined, fraction: undefined },
    compactAt: undefined,
    signal: undefined,
    offload: { minChars: undefined },
    presetOptions: { scanRatio: undefined },
    summarize: { call: summariser(), provider: undefined },
  });
  assert.equal((await compact(chat(10), options)).success, true);
  assert.equal((await planCompaction(chat(10), options)).willCompact, false);
});

test("options: what the app's own functions throw or return wrongly is named, with the cause", async () => {
  const boom = new Error("boom");
  const thrower = () => {
    throw boom;
  };
  const ids = { id: () => "id" };
  for (const [options, field, cause] of [
    [{ tokenCounter: thrower }, "tokenCounter", boom],
    [{ tokenCounter: () => Number.NaN }, "tokenCounter", undefined],
    [{ tokenCounter: () => -1 }, "tokenCounter", undefined],
    [{ tokenCounter: () => "12" }, "tokenCounter", undefined],
    [{ redact: { text: thrower }, summarize: summariser() }, "redact.text", boom],
    [{ redact: { text: () => 5 }, summarize: summariser() }, "redact.text", undefined],
    [{ redact: { text: () => undefined }, summarize: summariser() }, "redact.text", undefined],
    [{ redact: { text: () => null }, summarize: summariser() }, "redact.text", undefined],
    [{ redact: { text: async (text) => text }, summarize: summariser() }, "redact.text", undefined],
    [{ advanced: { runtime: { ...ids, now: thrower } } }, "advanced.runtime.now", boom],
    [{ advanced: { runtime: { ...ids, now: () => Number.NaN } } }, "advanced.runtime.now", undefined],
    [{ advanced: { runtime: { now: Date.now, id: thrower } } }, "advanced.runtime.id", boom],
    [{ advanced: { runtime: { now: Date.now, id: () => "" } } }, "advanced.runtime.id", undefined],
  ]) {
    // A function of the app that fails while a summary is made is the attempt's failure, in the result.
    const outcome = await compact(chat(10), options).then(({ error }) => error, (error) => error);
    fails("invalid_option", { field, cause })(outcome);
  }
});

test("lesson: secrets; a redact that returns no text sends nothing", async () => {
  for (const redact of [() => undefined, () => null, () => {}, () => ["x"]]) {
    const summarize = summariser();
    const { success, error } = await compact(chat(10), { redact: { text: redact }, summarize });
    assert.equal(success, false);
    fails("invalid_option", { field: "redact.text" })(error);
    assert.equal(summarize.calls.length, 0);
  }
});

test("options: a systemPrompt that throws or returns no text", async () => {
  const boom = new Error("boom");
  const throwing = await openSession({ store: "memory", systemPrompt: () => { throw boom; } });
  await assert.rejects(throwing.prepare(), fails("invalid_option", { field: "systemPrompt", cause: boom }));
  const numeric = await openSession({ store: "memory", systemPrompt: () => 5 });
  await assert.rejects(numeric.prepare(), fails("invalid_option", { field: "systemPrompt" }));
});

// ---- S1.12 ----------------------------------------------------------------------------------------------------------

test("s1_12_options_from_an_environment_record", async () => {
  const environment = frozen({
    PATH: "/bin",
    SYNAPSE_COMPACT_TRIGGER_THRESHOLD: "1000",
    SYNAPSE_COMPACT_TARGET_TOKENS: "2000",
    SYNAPSE_COMPACT_PRESERVE_COUNT: "3",
    SYNAPSE_COMPACT_MODEL: "small",
    SYNAPSE_COMPACT_RETRY_COUNT: "4",
    SYNAPSE_COMPACT_COOLDOWN_STEPS: "0",
    SYNAPSE_MAX_CONTEXT_WINDOW: "128000",
    SYNAPSE_OFFLOAD_THRESHOLD: "5000",
    SYNAPSE_OFFLOAD_SCAN_RATIO: "0.25",
    SYNAPSE_OFFLOAD_MIN_CHARS: "6",
  });
  const options = optionsFromEnv(environment);
  assert.deepEqual(options, {
    contextWindow: 128_000,
    presetOptions: {
      model: "small",
      retryCount: 4,
      offloadThreshold: 5_000,
      scanRatio: 0.25,
      minChars: 6,
      compactTriggerThreshold: 1_000,
      compactCooldownSteps: 0,
      preserveCount: 3,
      targetTokens: 2_000,
    },
  });
  assert.equal((await planCompaction(chat(1), options)).limit, 5_000);
});

test("S1.12: every variable takes what it may be at its bounds, and names itself for anything else", () => {
  const counts = [
    "SYNAPSE_COMPACT_TRIGGER_THRESHOLD",
    "SYNAPSE_COMPACT_TARGET_TOKENS",
    "SYNAPSE_COMPACT_PRESERVE_COUNT",
    "SYNAPSE_COMPACT_RETRY_COUNT",
    "SYNAPSE_MAX_CONTEXT_WINDOW",
    "SYNAPSE_OFFLOAD_THRESHOLD",
    "SYNAPSE_OFFLOAD_MIN_CHARS",
  ];
  const takes = [
    ...counts.map((name) => [name, ["1", "2000"], ["0", "-1", "1.5", "1e3", "0x10", "many", "", " ", "99999999999"]]),
    ["SYNAPSE_COMPACT_COOLDOWN_STEPS", ["0", "5"], ["-1", "0.5", "", "none"]],
    ["SYNAPSE_OFFLOAD_SCAN_RATIO", ["0", "0.5", "1", "1.0"], ["-0.1", "1.1", "50%", "", "Infinity"]],
    ["SYNAPSE_COMPACT_MODEL", ["small"], ["", "  "]],
  ];
  assert.equal(takes.length, 10);
  for (const [name, good, bad] of takes) {
    for (const value of good) assert.notDeepEqual(optionsFromEnv({ [name]: value }), {}, `${name}=${value}`);
    for (const value of bad) {
      const named = fails("invalid_option", { field: name, message: new RegExp(name) });
      assert.throws(() => optionsFromEnv({ [name]: value }), named, `${name}=${JSON.stringify(value)}`);
    }
  }
});

test("S1.12: what the environment says is what a session works with", async () => {
  const summarize = summariser();
  const environment = {
    SYNAPSE_COMPACT_TRIGGER_THRESHOLD: "1000000",
    SYNAPSE_COMPACT_TARGET_TOKENS: "700",
    SYNAPSE_COMPACT_PRESERVE_COUNT: "3",
    SYNAPSE_COMPACT_MODEL: "small",
    SYNAPSE_MAX_CONTEXT_WINDOW: "20000",
    SYNAPSE_OFFLOAD_THRESHOLD: "1500",
  };
  const session = await openSession({ ...optionsFromEnv(environment), store: "memory", summarize });
  const { maxTokens, threshold } = session.context.usage();
  assert.deepEqual([maxTokens, threshold], [20_000, 1_500]);
  await session.append(...chat(20));
  const { result } = await session.prepare();
  assert.equal(result.preservedCount, 3);
  const [{ request }] = summarize.calls;
  assert.deepEqual([request.model, request.targetTokens, request.maxTokens], ["small", 700, 840]);
});

test("s1_12_an_environment_with_none_of_them_gives_no_options", () => {
  assert.deepEqual(optionsFromEnv({}), {});
  assert.deepEqual(optionsFromEnv({ SYNAPSE_COMPACT_MODEL: undefined }), {});
  for (const environment of [null, undefined, "text"]) {
    assert.throws(() => optionsFromEnv(environment), fails("invalid_option"));
  }
});

test("s1_12_process_env_is_read_as_it_is", () => {
  process.env.SYNAPSE_COMPACT_PRESERVE_COUNT = "7";
  try {
    assert.equal(optionsFromEnv(process.env).presetOptions.preserveCount, 7);
  } finally {
    delete process.env.SYNAPSE_COMPACT_PRESERVE_COUNT;
  }
});

test("s1_12_a_worker_s_variables_may_be_numbers", () => {
  const { presetOptions } = optionsFromEnv({ SYNAPSE_OFFLOAD_THRESHOLD: 150_000, SYNAPSE_OFFLOAD_SCAN_RATIO: 0.5 });
  assert.deepEqual(presetOptions, { offloadThreshold: 150_000, scanRatio: 0.5 });
});

test("F39, S1.12: a variable that cannot be read says what it may be", () => {
  for (const [name, value, message] of [
    ["SYNAPSE_COMPACT_COOLDOWN_STEPS", "-1", 'must be 0 or a positive whole number, not "-1"'],
    ["SYNAPSE_COMPACT_RETRY_COUNT", "0", 'must be a positive whole number, not "0"'],
    ["SYNAPSE_OFFLOAD_SCAN_RATIO", "1.5", 'must be a number from 0 to 1, not "1.5"'],
    ["SYNAPSE_COMPACT_MODEL", " ", "must be a model's name, not an empty text"],
  ]) {
    assert.throws(() => optionsFromEnv({ [name]: value }), { message: `${name}: ${message}` });
  }
});

for (const [name, value] of [
  ["SYNAPSE_COMPACT_TRIGGER_THRESHOLD", "0"],
  ["SYNAPSE_COMPACT_TARGET_TOKENS", "-5"],
  ["SYNAPSE_COMPACT_TARGET_TOKENS", "+5"],
  ["SYNAPSE_COMPACT_PRESERVE_COUNT", "1.5"],
  ["SYNAPSE_COMPACT_MODEL", ""],
  ["SYNAPSE_COMPACT_RETRY_COUNT", "three"],
  ["SYNAPSE_COMPACT_COOLDOWN_STEPS", "-1"],
  ["SYNAPSE_MAX_CONTEXT_WINDOW", "200k"],
  ["SYNAPSE_OFFLOAD_THRESHOLD", ""],
  ["SYNAPSE_OFFLOAD_THRESHOLD", true],
  ["SYNAPSE_OFFLOAD_THRESHOLD", -5],
  ["SYNAPSE_OFFLOAD_THRESHOLD", Number.NaN],
  ["SYNAPSE_OFFLOAD_THRESHOLD", {}],
  ["SYNAPSE_OFFLOAD_SCAN_RATIO", "1.01"],
  ["SYNAPSE_OFFLOAD_SCAN_RATIO", "NaN"],
  ["SYNAPSE_OFFLOAD_MIN_CHARS", " 5"],
]) {
  test(`s1_12_${name} = ${JSON.stringify(value)} is refused by its name`, () => {
    assert.throws(() => optionsFromEnv({ [name]: value }), fails("invalid_option", { field: name }));
  });
}
