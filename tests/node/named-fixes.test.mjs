/** Errors name the fix: what was meant, where it goes, what to call instead. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { compact, openSession } from "context-compactor";
import { estimateTokens } from "context-compactor/tokens";
import { chat, fails } from "../support/api.mjs";

const folder = fileURLToPath(new URL("./", import.meta.url));
const wasm = new URL("../../pkg/core.wasm", import.meta.url);

const refused = (options, field, message) => assert.rejects(compact(chat(1), options), fails("invalid_option", { field, message }));

test("F34: a misspelt option names those that are near, the nearest first", async () => {
  await refused({ contextwindow: 5 }, "contextwindow", /did you mean contextWindow, summarize\.contextWindow\?$/);
  await refused({ sumarize: 5 }, "sumarize", /did you mean summarize[,?]/);
  await refused({ preset: "offload", presetOptions: { offloadTreshold: 5 } }, "presetOptions.offloadTreshold", /did you mean offloadThreshold\?$/);
  await refused({ keep: { message: 5 } }, "keep.message", /there are messages, /);
  assert.throws(() => estimateTokens("x", { modle: "gpt-4o" }), fails("invalid_option", { message: /there are model,/ }));
});

test("F34: an option that is in a group, or has a name of its own, names that", async () => {
  await refused({ preserveCount: 5 }, "preserveCount", /give keep\.messages, as in \{ keep: \{ messages \} \}$/);
  await refused({ mergeCount: 5 }, "mergeCount", /give checkpoints\.mergeCount, as in \{ checkpoints: \{ mergeCount \} \}$/);
  await refused({ presetOptions: { keepRecent: 5 } }, "presetOptions.keepRecent", /not an option of preset balanced: give clear\.keepRecent, as in /);
  await refused({ preset: "offload", presetOptions: { keepRecent: 5 } }, "presetOptions.keepRecent", /give clear\.keepRecent, as in \{ clear: \{ keepRecent \} \}$/);
});

test("F34: a misspelt preset names the one that is nearly so", async () => {
  await refused({ preset: "balance" }, "preset", /"balanced"/);
});

test("F34: a provider's apiKey names the header of its kind", async () => {
  for (const [kind, header] of [["openai", /authorization: "Bearer/], ["anthropic", /"x-api-key"/], ["gemini", /"x-goog-api-key"/]]) {
    await refused({ summarize: { provider: { kind, model: "m", apiKey: "k" } } }, "summarize.provider.apiKey", header);
  }
  await refused({ summarize: { provider: { model: "m", apiKey: "k" } } }, "summarize.provider.apiKey", /openai: .*anthropic: .*gemini: /);
});

test("F34: a path as a store names fileStore", async () => {
  const named = fails("invalid_option", { field: "store", message: /fileStore\("\.\/dir"\) of "context-compactor\/node"/ });
  await assert.rejects(openSession({ store: "./dir" }), named);
});

test("F34: tools that are no list are refused", async () => {
  const session = await openSession({ store: "memory", contextWindow: 32_000 });
  for (const tools of ["x", 5, true, null, () => []]) {
    await assert.rejects(session.prepare({ tools }), fails("invalid_option", { field: "tools", message: /definitions/ }));
  }
  assert.equal((await session.prepare({ tools: [] })).messages.length, 0);
});

/** What the first calls throw in a process that `before` prepares, after an import that must not throw. */
async function without(before, entry = "context-compactor") {
  const script = `${before}
    const cc = { ...(await import("${entry}")), ...(await import("context-compactor/tokens")), ...(await import("context-compactor/history")) };
    const told = (error) => ({ code: error.code, reason: error.reason, message: error.message, ours: cc.CompactionError.isInstance(error) });
    const outcomes = [];
    // Estimates need none of it.
    await cc.ready({ model: "claude-opus-4-7" });
    cc.estimateTokens([{ role: "user", content: "Hello" }], { model: "claude-opus-4-7" });
    for (const call of [() => cc.openSession({ contextWindow: 8_000 }), () => cc.compact([], {}), () => cc.loadTokenizer(import("context-compactor-vocabularies/o200k_base")), () => cc.detectFormat([])])
      await call().catch((error) => outcomes.push(told(error)));
    console.log(JSON.stringify(outcomes));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script], { cwd: folder });
  const outcomes = JSON.parse(stdout);
  assert.equal(outcomes.length, 4);
  assert.ok(outcomes.every(({ ours }) => ours));
  return outcomes;
}

test("F34: without WebAssembly the import works, and every call says so", async () => {
  for (const { code, reason, message } of await without("delete globalThis.WebAssembly;")) {
    assert.deepEqual([code, reason], ["stage_unavailable", "no_webassembly"]);
    assert.match(message, /no WebAssembly/);
  }
});

test("F34: under a policy that forbids WebAssembly the import works, and every call names the directive", async () => {
  const said = [
    "WebAssembly.Module(): Refused to compile or instantiate WebAssembly module because 'unsafe-eval' is not an allowed source of script",
    "call to WebAssembly.Module() blocked by CSP",
    "Refused to create a WebAssembly object because 'unsafe-eval' or 'wasm-unsafe-eval' is not an allowed source",
  ];
  for (const message of said) {
    const forbid = `const refuse = () => { throw new WebAssembly.CompileError(${JSON.stringify(message)}) };
      WebAssembly.Module = class { constructor() { refuse() } };
      WebAssembly.compile = async () => refuse();`;
    for (const { code, reason, message } of await without(forbid)) {
      assert.deepEqual([code, reason], ["stage_unavailable", "csp"]);
      assert.match(message, /script-src 'self' 'wasm-unsafe-eval'/);
    }
  }
});

test("F34: initialize says what it was given, and what it wants", async () => {
  const script = `
    const { CompactionError, initialize, version } = await import("context-compactor/slim");
    const told = async (source) => initialize(source).then(() => "taken", (error) =>
      CompactionError.isInstance(error) && /core\\.wasm/.test(error.message) ? [error.code, error.field].join(" ").trim() : String(error));
    const empty = await WebAssembly.compile(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
    const outcomes = [];
    for (const source of [undefined, null, 5, {}, true, [], Uint8Array.of(1, 2, 3), new ArrayBuffer(8), empty, new Response("x")])
      outcomes.push(await told(source));
    for (const address of ["no address", "http://127.0.0.1:1/core.wasm", new URL("http://127.0.0.1:1/"), new Response("", { status: 404 })])
      outcomes.push(await told(address));
    await initialize((await import("node:fs")).readFileSync(new URL(${JSON.stringify(String(wasm))})));
    console.log(JSON.stringify([outcomes, version()]));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script], { cwd: folder });
  const [outcomes, version] = JSON.parse(stdout);
  assert.deepEqual(outcomes, [...Array(10).fill("invalid_option source"), ...Array(4).fill("not_found")]);
  assert.match(version, /^\d/);
});
