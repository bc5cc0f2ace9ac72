/** The engine: the one module that imports the glue, and the guard that every call goes through. */

import { CompactionError } from "./errors.js";
import { unavailable } from "./module.js";
import type { WasmBytes, WasmModule } from "./types/platform.js";
import * as glue from "./wasm/core.js";

/** What the WebAssembly module exports. */
export type Engine = Omit<typeof glue, "default" | "initSync">;

/** A source of the engine's WebAssembly module: compiled, as bytes, a response, or an address. */
export type EngineSource = WasmModule | WasmBytes | Response | URL | string;

let ready = false;
let starting: Promise<void> | undefined;
/** The failure after which the engine's memory cannot be trusted. */
let trap: { cause: unknown } | undefined;

/** Why an entry could not start it. */
let failure: CompactionError | undefined;

/** Starts the engine at once; what prevents it is thrown by the first call. Does nothing when it runs already. */
export function start(module: WasmModule | WasmBytes): void {
  try {
    begin(module);
  } catch (cause) {
    // Importing the package must not end the app that imports it.
    failure = unavailable(cause);
  }
}

function begin(module: WasmModule | WasmBytes): void {
  if (ready) return;
  glue.initSync({ module });
  ready = true;
  failure = undefined;
}

/**
 * Starts the engine from a compiled module, its bytes, a response, or an address. Later calls wait for the first; after a
 * failure the next call tries again. Rejects with `stage_unavailable`, `not_found` (nothing at that address) or
 * `invalid_option` (not this engine).
 */
export function initialize(source: EngineSource | Promise<EngineSource>): Promise<void> {
  if (ready) return Promise.resolve();
  starting ??= load(source).finally(() => {
    starting = undefined;
  });
  return starting;
}

/** Where the module is, for entries that start nothing when they are imported. */
let bring: (() => WasmModule | Promise<WasmModule>) | undefined;

/** Says where `started` gets the module when no other entry brought it: an entry does. */
export function bringFrom(source: () => WasmModule | Promise<WasmModule>): void {
  bring ??= source;
}

/** Resolves when the engine runs, which it starts where that is left to it; else the next call says what is missing. */
export async function started(): Promise<void> {
  if (ready || !(starting || bring)) return;
  try {
    await (starting ?? initialize((bring as NonNullable<typeof bring>)()));
  } catch (cause) {
    throw unavailable(cause);
  }
}

async function load(source: EngineSource | Promise<EngineSource>): Promise<void> {
  const given = await source;
  if (typeof WebAssembly === "undefined") throw unavailable(undefined);
  const fetched = typeof given === "string" || given instanceof URL ? await fetchFrom(given) : given;
  try {
    const module = fetched instanceof Response ? await compile(fetched) : fetched;
    if (!isBytes(module) && !isModule(module)) throw wrongSource(WRONG);
    // Compiled first and started at once: the engine may have been started by another entry meanwhile.
    const whole = isBytes(module) ? await WebAssembly.compile(module) : module;
    // The glue keeps whatever it could instantiate.
    if (!WebAssembly.Module.exports(whole).some(({ name }) => name === "version")) throw new TypeError("another module");
    begin(whole);
  } catch (cause) {
    const error = unavailable(cause);
    if (error.code !== "stage_unavailable" || error.reason !== undefined) throw error;
    const wrong = "is not the engine of this release: serve the file context-compactor/core.wasm of the same version";
    throw wrongSource(wrong, cause);
  }
}

function wrongSource(what: string, cause?: unknown): CompactionError {
  return new CompactionError("invalid_option", `source: ${what}`, { field: "source", cause });
}

const WRONG = "must be the bytes of context-compactor/core.wasm, a module of them, their address, or a Response with them";

async function fetchFrom(address: string | URL): Promise<Response> {
  try {
    return await fetch(address);
  } catch (cause) {
    // Node's fetch reads no files.
    if (/^file:/i.test(String(address))) {
      throw wrongSource("is the address of a file, which fetch cannot read here: pass its bytes, as in initialize(await readFile(new URL(address)))", cause);
    }
    const message = `The engine could not be fetched from ${String(address)}; \`cause\` says why. ${SERVE}`;
    throw new CompactionError("not_found", message, { cause });
  }
}

const SERVE = 'Serve the file "context-compactor/core.wasm" and pass its address to `initialize`.';

/** Across realms, too. */
function isModule(source: unknown): source is WebAssembly.Module {
  return Object.prototype.toString.call(source) === "[object WebAssembly.Module]";
}

/** Not asked the other way round: a compiled module may come from another realm, where `instanceof` is false. */
function isBytes(source: unknown): source is WasmBytes {
  return ArrayBuffer.isView(source) || source instanceof ArrayBuffer;
}

async function compile(response: Response): Promise<WebAssembly.Module> {
  if (!response.ok) {
    throw new CompactionError(
      "not_found",
      `The engine was not found at ${response.url}: status ${response.status}. ${SERVE}`,
    );
  }
  // Compiling while it loads needs the right type; some servers do not send it.
  const streams = response.headers.get("content-type") === "application/wasm";
  if (streams) return WebAssembly.compileStreaming(response);
  // A statement of its own: Next wraps the call in code that takes no `await` in the arguments.
  const bytes = await response.arrayBuffer();
  return WebAssembly.compile(bytes);
}

/** The engine, when it runs. */
export function engine(): Engine {
  if (trap) throw poisoned(trap);
  if (failure) throw failure;
  if (!ready) {
    throw new CompactionError(
      "closed",
      'The engine is not started. With "context-compactor/slim", call and await `initialize(wasm)` first; ' +
        'or import from "context-compactor", which starts it by itself.',
    );
  }
  return glue;
}

/** Runs a call of the engine. A trap ends the engine: a panic leaves its memory half changed. */
export function call<T>(run: (engine: Engine) => T): T {
  const running = engine();
  try {
    return run(running);
  } catch (error) {
    if (!isTrap(error)) throw error;
    throw poison(error);
  }
}

/** Ends the engine: every call from now on is refused. Returns the error to throw. */
export function poison(cause: unknown): CompactionError {
  trap ??= { cause };
  return poisoned(trap);
}

/** True when what the engine holds may not even be freed. */
export function isPoisoned(): boolean {
  return trap !== undefined;
}

function poisoned(details: { cause: unknown }): CompactionError {
  return new CompactionError(
    "poisoned",
    "The engine failed and cannot be trusted any more. Nothing that was stored is affected: reload the page, or start " +
      "a new worker or process, and open the session again. `cause` has the failure.",
    details,
  );
}

/** A trap of WebAssembly, or its stack overflow, which hosts report in their own ways. */
export function isTrap(error: unknown): boolean {
  return (
    error instanceof WebAssembly.RuntimeError ||
    (error instanceof RangeError && /call stack/i.test(error.message)) ||
    (error instanceof Error && error.name === "InternalError")
  );
}
