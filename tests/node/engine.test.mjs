import assert from "node:assert/strict";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { runInNewContext } from "node:vm";

const dist = new URL("../../pkg/dist/", import.meta.url);
const bytes = readFileSync(new URL("../core.wasm", dist));
const { version } = JSON.parse(readFileSync(new URL("../package.json", dist), "utf8"));

/** The loader and the glue as they are before anything was called: copies of their own. */
async function fresh(context) {
  const folder = mkdtempSync(join(tmpdir(), "context-compactor-"));
  context.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  for (const file of ["advice.js", "answers.js", "awake.js", "checks.js", "driver.js", "effects.js", "engine.js", "errors.js", "generated/build.js", "generated/overflow.js", "module.js", "near.js", "overflow.js", "quietly.js", "replies.js", "requests.js", "stages.js", "store-calls.js", "store/keys.js", "trap.js", "wasm/core.js"]) {
    cpSync(new URL(file, dist), join(folder, file), { recursive: true });
  }
  return { ...(await import(pathToFileURL(join(folder, "engine.js")))), folder: pathToFileURL(`${folder}/`) };
}

const isCode = (code) => (error) => error.name === "CompactionError" && error.code === code;
const versionOf = ({ call }) => call((engine) => engine.version());

/** A real trap: a function of the module `(func (export "t") unreachable)`. */
function trap() {
  const module = Buffer.from("0061736d0100000001040160000003020100070501017400000a05010300000b", "hex");
  new WebAssembly.Instance(new WebAssembly.Module(module)).exports.t();
}

test("a call before the engine runs says what starts it", async (context) => {
  const engine = await fresh(context);
  assert.throws(() => versionOf(engine), isCode("closed"));
  assert.throws(() => versionOf(engine), /await `openSession`/);
});

test("Z22: where an entry says is asked once by calls at one time, and again after a failure", async (context) => {
  const { bringFrom, started, ...engine } = await fresh(context);
  const answers = [Promise.reject(new TypeError("no network")), WebAssembly.compile(bytes)];
  let asked = 0;
  bringFrom(() => answers[asked++]);
  const failed = await Promise.allSettled([started(), started()]);
  assert.deepEqual(failed.map(({ reason }) => [reason.code, reason.retryable]), Array(2).fill(["stage_unavailable", true]));
  assert.equal(asked, 1);
  await Promise.all([started(), started()]);
  await started();
  assert.equal(asked, 2);
  assert.equal(versionOf(engine), version);
});

test("isSupported asks the host, unless the module is there", async (context) => {
  const engine = await fresh(context);
  assert.equal(engine.isSupported(), true);
  const { Module } = WebAssembly;
  context.after(() => (WebAssembly.Module = Module));
  WebAssembly.Module = class {
    constructor() {
      throw new WebAssembly.CompileError("Refused to compile");
    }
  };
  assert.equal(engine.isSupported(), false);
  engine.bringFrom(() => WebAssembly.compile(bytes), true);
  assert.equal(engine.isSupported(), true);
});

for (const [form, source] of [
  ["bytes", () => bytes],
  ["an ArrayBuffer", () => new Uint8Array(bytes).buffer],
  ["a compiled module", () => WebAssembly.compile(bytes)],
  ["a promise of bytes", () => Promise.resolve(bytes)],
  ["a response", () => new Response(bytes, { headers: { "content-type": "application/wasm" } })],
  ["a response of another type", () => new Response(bytes, { headers: { "content-type": "text/plain" } })],
]) {
  test(`the engine starts from ${form}`, async (context) => {
    const engine = await fresh(context);
    await engine.initialize(source());
    assert.equal(versionOf(engine), version);
  });
}

test("lesson: edge sandboxes hand over a module of another realm", async (context) => {
  const engine = await fresh(context);
  const foreign = runInNewContext("(bytes) => new WebAssembly.Module(bytes)")(bytes);
  assert.ok(!(foreign instanceof WebAssembly.Module));
  await engine.initialize(foreign);
  assert.equal(versionOf(engine), version);
});

test("the engine starts from an address", async (context) => {
  const server = createServer((_, response) => response.end(bytes)).listen(0, "127.0.0.1");
  context.after(() => server.close());
  await once(server, "listening");
  const engine = await fresh(context);
  await engine.initialize(`http://127.0.0.1:${server.address().port}/core.wasm`);
  assert.equal(versionOf(engine), version);
});

test("`initialize` tries again after a failure, and then only once", async (context) => {
  const engine = await fresh(context);
  await assert.rejects(engine.initialize(new Response("", { status: 404 })), isCode("not_found"));
  await assert.rejects(engine.initialize(Uint8Array.of(1, 2, 3)), isCode("invalid_option"));
  assert.throws(() => versionOf(engine), isCode("closed"));
  await Promise.all([engine.initialize(bytes), engine.initialize("not an address, and not used")]);
  await engine.initialize("not an address, and not used");
  assert.equal(versionOf(engine), version);
});

test("lesson: after a trap the memory is half changed, so every later call is refused", async (context) => {
  const engine = await fresh(context);
  await engine.initialize(bytes);
  const isPoisoned = (error) => isCode("poisoned")(error) && error.cause instanceof WebAssembly.RuntimeError;
  assert.throws(() => engine.call(trap), isPoisoned);
  assert.throws(() => versionOf(engine), isPoisoned);
});

test("lesson: a stack overflow is a trap too", async (context) => {
  const engine = await fresh(context);
  await engine.initialize(bytes);
  const forever = () => forever() + 1;
  assert.throws(() => engine.call(forever), isCode("poisoned"));
  assert.throws(() => versionOf(engine), isCode("poisoned"));
});

/** Operations whose steps end as no step of the engine can be made to: by a trap, or by what came through it. */
for (const [name, thrown] of [
  ["traps", trap],
  ["lets something of the app through", () => { throw new Error("a getter"); }],
  ["lets an object through", () => { throw { code: "made up" }; }],
]) {
  test(`lesson: a step that ${name} ends the engine, and nothing hides why`, async (context) => {
    const engine = await fresh(context);
    const { drive, driveSync } = await import(new URL("driver.js", engine.folder).href);
    await engine.initialize(bytes);
    const Operation = engine.call(({ Operation }) => Operation);
    Operation.prototype.step = thrown;
    Operation.prototype.free = () => assert.fail("what was borrowed when the engine ended cannot be freed");
    // It waits for a part of the engine first.
    const begin = (engine) => engine.listSessions();
    let cause;
    try {
      thrown();
    } catch (error) {
      cause = error;
    }
    const isPoisoned = (error) => isCode("poisoned")(error) && error.cause.message === cause.message;
    await assert.rejects(drive(begin, {}), isPoisoned);
    assert.throws(() => driveSync(begin, {}), isPoisoned);
    assert.throws(() => versionOf(engine), isPoisoned);
  });
}

test("an error that the engine reports leaves it running", async (context) => {
  const engine = await fresh(context);
  await engine.initialize(bytes);
  const fail = () => {
    throw new RangeError("out of range");
  };
  assert.throws(() => engine.call(fail), RangeError);
  assert.equal(versionOf(engine), version);
});
