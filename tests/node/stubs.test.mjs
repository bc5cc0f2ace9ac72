/** Z20: what a chat does not run, it does not need: it goes the same way with all of that taken out of the engine. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { counting, stubbed } from "../support/wasm-functions.mjs";

const pkg = fileURLToPath(new URL("../../pkg/", import.meta.url));
const support = new URL("../support/wasm-functions.mjs", import.meta.url).href;

/** A session with a clock and ids of its own, and what came of it. */
const SCRIPT = `
  import { ran } from ${JSON.stringify(support)};
  const instances = [];
  const { Instance } = WebAssembly;
  WebAssembly.Instance = function (module, imports) {
    const instance = new Instance(module, imports);
    instances.push(instance);
    return instance;
  };
  const library = await import("./dist/entry/main.js");
  let [time, ids] = [1_800_000_000_000, 0];
  const runtime = { now: () => (time += 1000), id: () => "id-" + ids++ };
  const store = library.memoryStore();
  const open = () => library.openSession({ id: "one", store, advanced: { runtime }, logger: () => {}, ...options });
  const prompts = [];
  const turns = async (session, from, to) => {
    for (let nth = from; nth < to; nth++) {
      await session.append({ role: "user", content: "Question " + nth + " about src/parser" + nth + ".ts. ".repeat(words) });
      prompts.push((await session.prepare()).messages);
      await session.append({ role: "assistant", content: "Answer " + nth + " is in the parser. ".repeat(words) });
    }
    prompts.push(session.context.usage());
  };
  const first = await open();
  await turns(first, 0, count);
  await first.close();
  const again = await open();
  await turns(again, count, count + 2);
  await again.close();
  console.log(JSON.stringify({ prompts, ran: ran(instances.map(({ exports }) => exports)) }));`;

const SCENARIOS = {
  "a chat": { options: { contextWindow: 32_000 }, count: 4, words: 4, files: ["core"] },
  "forty turns with compactions": { options: { contextWindow: 8_000, summarize: "extractive" }, count: 40, words: 20, files: ["core", "compact", "shared"] },
};

/** Runs it with a package whose modules are these; the order in which they are started is always the same. */
async function run(context, { options, count, words }, modules) {
  const folder = mkdtempSync(join(tmpdir(), "context-compactor-"));
  context.after(() => rmSync(folder, { recursive: true }));
  cpSync(join(pkg, "dist"), join(folder, "dist"), { recursive: true, filter: (path) => !/\b(cli|adapters|inline[\w-]*\.js)$/.test(path) });
  cpSync(join(pkg, "package.json"), join(folder, "package.json"));
  for (const [name, bytes] of Object.entries(modules)) writeFileSync(join(folder, `${name}.wasm`), bytes);
  const script = `const { options, count, words } = ${JSON.stringify({ options, count, words })};\n${SCRIPT}`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script], { cwd: folder, maxBuffer: 1 << 28 });
  return JSON.parse(stdout);
}

for (const [name, scenario] of Object.entries(SCENARIOS)) {
  test(`Z20: ${name} goes the same way without the functions that it does not run, and without the files that it does not load`, async (context) => {
    // Files that are not needed are not there: no server has them, nor are they there as code.
    const whole = Object.fromEntries(scenario.files.map((file) => [file, readFileSync(join(pkg, `${file}.wasm`))]));
    const expected = await run(context, scenario, whole);
    const counted = await run(context, scenario, Object.fromEntries(Object.entries(whole).map(([file, bytes]) => [file, counting(bytes, file)])));
    assert.deepEqual(counted.prompts, expected.prompts);
    const stubs = {};
    for (const [file, bytes] of Object.entries(whole)) {
      const kept = counted.ran[file];
      const { module, functions, size } = stubbed(bytes, kept);
      stubs[file] = module;
      assert.ok(kept.length > 0 && kept.length < functions, file);
      context.diagnostic(`${file}: ${kept.length} of ${functions} functions ran, ${size} bytes`);
    }
    const { prompts } = await run(context, scenario, stubs);
    assert.deepEqual(prompts, expected.prompts);
  });
}
