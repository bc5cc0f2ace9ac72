import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { test } from "node:test";

const dist = new URL("../../pkg/dist/", import.meta.url);
const bytes = readFileSync(new URL("../core.wasm", dist));
const { version } = JSON.parse(readFileSync(new URL("../package.json", dist), "utf8"));

let copies = 0;
/** The loader as it is before anything was called: a copy of its own. */
function fresh() {
  copies += 1;
  return import(new URL(`engine.js?${copies}`, dist));
}

const isCode = (code) => (error) => error.name === "CompactionError" && error.code === code;
const versionOf = ({ call }) => call((engine) => engine.version());

/** A real trap: a function of the module `(func (export "t") unreachable)`. */
function trap() {
  const module = Buffer.from("0061736d0100000001040160000003020100070501017400000a05010300000b", "hex");
  new WebAssembly.Instance(new WebAssembly.Module(module)).exports.t();
}

test("a call before `initialize` says what to do", async () => {
  const engine = await fresh();
  assert.throws(() => versionOf(engine), isCode("closed"));
  assert.throws(() => versionOf(engine), /initialize/);
});

for (const [form, source] of [
  ["bytes", () => bytes],
  ["an ArrayBuffer", () => new Uint8Array(bytes).buffer],
  ["a compiled module", () => WebAssembly.compile(bytes)],
  ["a promise of bytes", () => Promise.resolve(bytes)],
  ["a response", () => new Response(bytes, { headers: { "content-type": "application/wasm" } })],
  ["a response of another type", () => new Response(bytes, { headers: { "content-type": "text/plain" } })],
]) {
  test(`the engine starts from ${form}`, async () => {
    const engine = await fresh();
    await engine.initialize(source());
    assert.equal(versionOf(engine), version);
  });
}

test("the engine starts from an address", async (context) => {
  const server = createServer((_, response) => response.end(bytes)).listen(0, "127.0.0.1");
  context.after(() => server.close());
  await once(server, "listening");
  const engine = await fresh();
  await engine.initialize(`http://127.0.0.1:${server.address().port}/core.wasm`);
  assert.equal(versionOf(engine), version);
});

test("`initialize` tries again after a failure, and then only once", async () => {
  const engine = await fresh();
  await assert.rejects(engine.initialize(new Response("", { status: 404 })), isCode("not_found"));
  await assert.rejects(engine.initialize(Uint8Array.of(1, 2, 3)), WebAssembly.CompileError);
  assert.throws(() => versionOf(engine), isCode("closed"));
  await Promise.all([engine.initialize(bytes), engine.initialize("not an address, and not used")]);
  await engine.initialize("not an address, and not used");
  assert.equal(versionOf(engine), version);
});

test("lesson: after a trap the memory is half changed, so every later call is refused", async () => {
  const engine = await fresh();
  await engine.initialize(bytes);
  const isPoisoned = (error) => isCode("poisoned")(error) && error.cause instanceof WebAssembly.RuntimeError;
  assert.throws(() => engine.call(trap), isPoisoned);
  assert.throws(() => versionOf(engine), isPoisoned);
});

test("lesson: a stack overflow is a trap too", async () => {
  const engine = await fresh();
  await engine.initialize(bytes);
  const forever = () => forever() + 1;
  assert.throws(() => engine.call(forever), isCode("poisoned"));
  assert.throws(() => versionOf(engine), isCode("poisoned"));
});

test("an error that the engine reports leaves it running", async () => {
  const engine = await fresh();
  await engine.initialize(bytes);
  const fail = () => {
    throw new RangeError("out of range");
  };
  assert.throws(() => engine.call(fail), RangeError);
  assert.equal(versionOf(engine), version);
});
