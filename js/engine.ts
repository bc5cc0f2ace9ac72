/** The engine: the one module that imports the glue, and the guard that every call goes through. */

import { CompactionError } from "./errors.js";
import { BUILD } from "./generated/build.js";
import { compiles, streams, unavailable } from "./module.js";
import { isTrap } from "./trap.js";
import type { EngineFile, WasmBytes, WasmModule } from "./types/platform.js";
import { makeGlue, type Session } from "./wasm/core.js";

type Glue = ReturnType<typeof makeGlue>;

/** What the WebAssembly module exports. */
export type Engine = Omit<Glue, "initSync" | "performWith">;

/** A source of one of the engine's WebAssembly modules: compiled, as bytes, a response, or an address. */
export type EngineSource = WasmModule | WasmBytes | Response | URL | string;

/** Where each of the engine's files is, by its name in the package: `core.wasm`, `compact.wasm`, `rest.wasm`, `shared.wasm`. */
export type EngineFiles = (name: `${EngineFile}.wasm`) => EngineSource | Promise<EngineSource>;

/** What an instance exports: its memory and its table of functions, which later files share. */
type Exported = WebAssembly.ModuleImports & { memory: WebAssembly.Memory };

/** The instance that calls go to, and what it is made of. */
let running: { glue: Glue; module: WasmModule; exported: Exported } | undefined;
let starting: Promise<void> | undefined;
/** The failure after which the engine's memory cannot be trusted. */
let trap: { cause: unknown } | undefined;

/** Files that were linked, and tables: a fresh instance gets them too. */
const linked: WasmModule[] = [];
const tables: ((engine: Engine) => unknown)[] = [];
/** Instances of before. What is left of their sessions may still need a file. */
let earlier: WeakRef<Exported>[] = [];

/** Memory of an instance that is left for a fresh one where only an eighth of it is used, in bytes: to open a session again takes
 *  some times what is left of it. */
const LARGE = 32 << 20;
/** It is left no sooner than after so many looks at it: who opens a session again waits for that. */
const LOOKS = 100;
let looks = LOOKS;

function begin(module: WasmModule): void {
  if (!running) start(module);
}

function start(module: WasmModule): void {
  const glue = makeGlue();
  const exported = glue.initSync({ module }) as unknown as Exported;
  for (const file of linked) linkTo(exported, file);
  for (const bring of tables) bring(glue);
  glue.performWith((told: unknown, beside: unknown) => hearing?.(told, beside));
  running = { glue, module, exported };
}

/** Whether what the instance holds is little beside the memory that a large message, or much at once, took. */
function isOversize(): boolean {
  if (!running || trap || typeof WeakRef === "undefined" || running.exported.memory.buffer.byteLength <= LARGE) return false;
  return ++looks > LOOKS && running.glue.heldBytes() * 8 < running.exported.memory.buffer.byteLength;
}

/** Starts a fresh instance where it is. What the other one does it does to its end, and the other goes with its last session. */
function leave(): void {
  if (!running || !isOversize()) return;
  const { module, exported } = running;
  earlier = [...earlier.filter((instance) => instance.deref()), new WeakRef(exported)];
  start(module);
  looks = 0;
}

/** Whether a session, opened again, would be the same in an instance with less memory. */
export function isOutdated(session: Session): boolean {
  return running !== undefined && (!(session instanceof running.glue.Session) || isOversize()) && call(() => session.canPassOn());
}

/**
 * Starts the engine for apps that serve its files themselves. With a function all of them come from there, each when it is
 * first needed: `initialize((name) => new URL(name, "https://cdn.example.com/context-compactor/"))`. With a compiled module, its
 * bytes, a response, or an address `core.wasm` is that one, and the others come as without it. Optional: without it, the first call
 * loads the engine. Later calls wait for the first; after a failure the next call tries again. Rejects with `stage_unavailable`
 * (reason `version`: the engine of another release), `not_found` (nothing at that address) or `invalid_option` (no engine).
 */
export function initialize(source: EngineSource | Promise<EngineSource> | EngineFiles): Promise<void> {
  if (typeof source !== "function") return starts(async () => begin(await load("core.wasm", source)));
  // What runs already stays; files that are not there yet come from the app's place.
  bring = async (file) => load(`${file}.wasm`, await source(`${file}.wasm`));
  return starts(async () => begin(await moduleOf("core")));
}

function starts(load: () => Promise<void>): Promise<void> {
  if (running) return Promise.resolve();
  starting ??= load().finally(() => {
    starting = undefined;
  });
  return starting;
}

type Bring = (file: EngineFile) => WasmModule | Promise<WasmModule>;

/** Where the files are. */
let bring: Bring | undefined;
/** The first is there, compiled. */
let isGiven = false;

/** Says where a call gets a file that it is the first to need, when no other entry did: an entry does. `given`: the first is
 *  there, compiled. */
export function bringFrom(source: Bring, given = false): void {
  if (bring) return;
  bring = source;
  isGiven = given;
}

/** Resolves when the engine runs, which it starts if it has to; rejects with `stage_unavailable`. */
export async function started(): Promise<void> {
  leave();
  if (running || !(starting || bring)) return;
  try {
    await starts(async () => {
      begin(await moduleOf("core"));
    });
  } catch (cause) {
    throw unavailable(cause);
  }
}

/** A file of the engine, compiled. */
export async function moduleOf(file: EngineFile): Promise<WasmModule> {
  return (bring as Bring)(file);
}

/** Links a file that shares the engine's memory, and fills places of its own in the table of functions. */
export function link(module: WasmModule): void {
  if (!running) throw new TypeError("the engine is not started");
  for (const exported of [running.exported, ...earlier.map((instance) => instance.deref())]) if (exported) linkTo(exported, module);
  linked.push(module);
}

/** Brings a table to this instance, and to those after it. */
export function bringTo(bring: (engine: Engine) => unknown): void {
  call(bring);
  tables.push(bring);
}

function linkTo(exported: Exported, module: WasmModule): void {
  new WebAssembly.Instance(module as WebAssembly.Module, { __wasm_split: exported });
}

/** Whether the engine runs, or could. */
export function isSupported(): boolean {
  return running !== undefined || (typeof WebAssembly !== "undefined" && (isGiven || compiles()));
}

/** Whether a compiled module is the one that this glue was made with. */
export function isOfThisBuild(module: WasmModule): boolean {
  const [found] = WebAssembly.Module.customSections(module as WebAssembly.Module, "build");
  return found !== undefined && new TextDecoder().decode(found) === BUILD;
}

type FileName = Parameters<EngineFiles>[0];

async function load(name: FileName, source: EngineSource | Promise<EngineSource>): Promise<WasmModule> {
  const given = await source;
  if (typeof WebAssembly === "undefined") throw unavailable(undefined);
  const fetched = typeof given === "string" || given instanceof URL ? await fetchFrom(given, name) : given;
  try {
    const module = fetched instanceof Response ? await compile(fetched, name) : fetched;
    if (!isBytes(module) && !isModule(module)) throw wrongSource(`must be the bytes of context-compactor/${name}, a module of them, their address, or a Response with them`);
    // Compiled first and started at once: the engine may have been started by another entry meanwhile.
    const whole = isBytes(module) ? await WebAssembly.compile(module) : module;
    // The glue keeps whatever it could instantiate, and the others would fill places that are not theirs.
    const isFirst = WebAssembly.Module.exports(whole).some(({ name }) => name === "version");
    if (isFirst !== (name === "core.wasm")) throw new TypeError("another module");
    if (!isOfThisBuild(whole)) throw new CompactionError("stage_unavailable", otherRelease(name), { reason: "version" });
    return whole;
  } catch (cause) {
    const error = unavailable(cause);
    if (error.code !== "stage_unavailable" || error.reason !== undefined) throw error;
    const wrong = `is not the engine: serve the file context-compactor/${name} of the same version`;
    throw wrongSource(wrong, cause);
  }
}

function otherRelease(name: FileName): string {
  return (
    `source: is the engine of another release than this script: serve the file context-compactor/${name} of the same version, ` +
    "and reload pages that are older than it. Nothing that was stored is lost"
  );
}

function wrongSource(what: string, cause?: unknown): CompactionError {
  return new CompactionError("invalid_option", `source: ${what}`, { field: "source", cause });
}

async function fetchFrom(address: string | URL, name: FileName): Promise<Response> {
  try {
    return await fetch(address);
  } catch (cause) {
    // Node's fetch reads no files.
    if (/^file:/i.test(String(address))) {
      throw wrongSource("is the address of a file, which fetch cannot read here: pass its bytes, as in initialize(await readFile(new URL(address)))", cause);
    }
    const message = `The engine could not be fetched from ${String(address)}; \`cause\` says why. ${serve(name)}`;
    throw new CompactionError("not_found", message, { cause });
  }
}

function serve(name: FileName): string {
  return `Serve the file "context-compactor/${name}" and pass its address to \`initialize\`.`;
}

/** Across realms, too. */
function isModule(source: unknown): source is WebAssembly.Module {
  return Object.prototype.toString.call(source) === "[object WebAssembly.Module]";
}

/** Not asked the other way round: a compiled module may come from another realm, where `instanceof` is false. */
function isBytes(source: unknown): source is WasmBytes {
  return ArrayBuffer.isView(source) || source instanceof ArrayBuffer;
}

async function compile(response: Response, name: FileName): Promise<WebAssembly.Module> {
  if (!response.ok) {
    throw new CompactionError(
      "not_found",
      `The engine was not found at ${response.url}: status ${response.status}. ${serve(name)}`,
    );
  }
  if (streams(response)) return WebAssembly.compileStreaming(response);
  // A statement of its own: Next wraps the call in code that takes no `await` in the arguments.
  const bytes = await response.arrayBuffer();
  return WebAssembly.compile(bytes);
}

/** The engine, when it runs. */
function engine(): Engine {
  if (trap) throw poisoned(trap);
  if (!running) {
    throw new CompactionError("closed", "The engine is not started: await `openSession`, `compact` or another call that starts it first");
  }
  return running.glue;
}

/** Hears what the engine tells during a call: an effect (`effectOf`), or the end of an operation. */
export type Hear = (told: unknown, beside: unknown) => unknown;

let hearing: Hear | undefined;

/** Runs a call of the engine, whose effects `hear` is called with. A trap ends the engine: a panic leaves its memory half changed. */
export function call<T>(run: (engine: Engine) => T, hear?: Hear): T {
  const glue = engine();
  // What performs an effect may call the engine itself.
  const before = hearing;
  hearing = hear;
  try {
    return run(glue);
  } catch (error) {
    if (!isTrap(error)) throw error;
    throw poison(error);
  } finally {
    hearing = before;
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
