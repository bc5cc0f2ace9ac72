/**
 * What an app of `tests/matrix` does: it compacts a conversation with nothing but the main entry, and then all that a packed package must do
 * everywhere. Says how the engine came, and which scripts were there before the first call.
 */

export async function app(library, how = watch()) {
  const first = scripts();
  let compacted;
  try {
    compacted = await compact(library);
  } catch ({ code, reason, message, stack }) {
    return code === "stage_unavailable" ? { first, engine: "refused", error: `${code} (${reason}): ${message}` } : { stack };
  }
  const engine = how();
  const { scenario } = await import("./scenario.mjs");
  return { first, engine, compacted, done: await scenario(library) };
}

async function compact({ openSession }) {
  const session = await openSession({ store: "memory", contextWindow: 8_000 });
  for (let nth = 0; nth < 40; nth++) await session.append({ role: nth % 2 ? "assistant" : "user", content: `${nth}: src/file${nth}.ts `.repeat(60) });
  const { success, llmCalls } = await session.compact();
  await session.close();
  return { success, llmCalls };
}

/** Scripts that the page has loaded. */
export const scripts = () => (globalThis.document ? performance.getEntriesByType("resource").map(({ name }) => name).filter((name) => /\.m?js(\?|$)/.test(name)) : []);

/** How the engine comes: as its `file`, as `code`, which is unpacked, or as a `module` that the host compiled. */
export function watch() {
  const seen = new Set();
  const note = (object, name, what) => {
    const own = object && Object.getOwnPropertyDescriptor(object, name);
    if (!own?.writable) return;
    const see = (how) => (...given) => (seen.add(what), Reflect[how](...given));
    object[name] = new Proxy(object[name], { apply: see("apply"), construct: see("construct") });
  };
  // Asking for it is an error there.
  if (!globalThis.EdgeRuntime) note(globalThis.process?.getBuiltinModule?.("zlib"), "gunzipSync", "code");
  note(globalThis, "DecompressionStream", "code");
  note(Uint8Array, "fromBase64", "code");
  for (const name of ["compile", "compileStreaming"]) note(WebAssembly, name, "file");
  // Parts of a server may share the engine, which then came with the first of them.
  return () => (globalThis.engineCame = ["code", "file"].find((what) => seen.has(what)) ?? globalThis.engineCame ?? "module");
}
