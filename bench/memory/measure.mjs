/**
 * What one tool result takes of memory, in a process of its own: the engine's until it is offloaded and after one more prompt, and
 * JavaScript's at its highest. `node --expose-gc measure.mjs STORE BYTES` prints it as JSON, in bytes; `measure.mjs STORE BYTES LINE`
 * of a result of lines of so many bytes.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { memoryStore, openSession } from "../../pkg/dist/entry/main.js";
import { fileStore } from "../../pkg/dist/entry/node.js";
import { call } from "../../pkg/dist/engine.js";

/** Every older result becomes a reference; nothing is summarised. */
const EAGER = { contextWindow: 1_000_000_000, compactAt: { tokens: 1 }, advanced: { minOffloadGain: 1, offload: { scanFraction: 1 } } };

/** An exchange whose result is ASCII, so that a character is a byte, with answers behind it. */
function talk(bytes, line) {
  const call = { id: "call_1", type: "function", function: { name: "read", arguments: '{"path":"src/parser.rs"}' } };
  const after = Array.from({ length: 8 }, (_, nth) => ({ role: nth % 2 ? "assistant" : "user", content: `${nth}` }));
  return [
    { role: "user", content: "Read it." },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "call_1", content: line.repeat(Math.ceil(bytes / line.length)).slice(0, bytes) },
    { role: "assistant", content: "It is read." },
    ...after,
  ];
}

const LINE = "src/parser.rs:42: the parser keeps its state in memory\n";

/** What appending the result and offloading it takes, in a store. */
export async function measure(name, bytes, line = LINE) {
  const folder = name === "file" ? await mkdtemp(join(tmpdir(), "context-compactor-memory-")) : undefined;
  const store = folder ? fileStore(folder) : memoryStore();
  const session = await openSession({ id: "memory", format: "openai-chat", store, ...EAGER });
  const messages = talk(bytes, line);
  const engine = () => call((engine) => engine.wasmMemory().buffer.byteLength);
  const held = () => {
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external - engine();
  };
  globalThis.gc?.();
  const before = { engine: engine(), held: held() };
  let highest = before.held;
  const look = setInterval(() => (highest = Math.max(highest, held())), 5);
  await session.append(...messages);
  const appended = engine();
  await session.prepare();
  clearInterval(look);
  const prepared = engine();
  const isOffloaded = (await session.context.explain()).some(({ fate }) => fate === "offloaded");
  const measured = { isOffloaded, appended: appended - before.engine, prepared: prepared - before.engine, javascript: Math.max(highest, held()) - before.held };
  await session.prepare();
  measured.next = engine() - before.engine;
  await session.close();
  await store.close?.();
  if (folder) await rm(folder, { recursive: true });
  return measured;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [store, bytes, ofLine] = process.argv.slice(2);
  const line = ofLine ? LINE.trim().padEnd(Number(ofLine) - 1, ".") : undefined;
  console.log(JSON.stringify(await measure(store, Number(bytes), line && `${line}\n`)));
}
