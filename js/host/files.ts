/** The engine's files where nobody hands them over: each from its address, and where it cannot be had, the same as code.
 *  Nothing is read or asked for before the first call that needs it. */

import { bringFrom, isOfThisBuild } from "../engine.js";
import { compiled, otherBuild, streams, unavailable } from "../module.js";
import type { EngineFile, WasmBytes, WasmModule } from "../types/platform.js";

/** Lets the engine come from its files, or as code. */
export function bring(): void {
  bringFrom(load);
}

/** Why the file did not give the module. */
interface Missing {
  cause: unknown;
  /** The server answers, with something else: its files are of another build than this script. */
  isOther: boolean;
}

/** How every module begins. */
const MAGIC = [0x00, 0x61, 0x73, 0x6d];

/** The files. In this form bundlers find them and copy them. In a script that is no module there is no address: this throws. */
const FILES: Record<EngineFile, () => URL> = {
  core: () => new URL("../../core.wasm", import.meta.url),
  compact: () => new URL("../../compact.wasm", import.meta.url),
  rest: () => new URL("../../rest.wasm", import.meta.url),
  shared: () => new URL("../../shared.wasm", import.meta.url),
};

/** The same as code. */
const CODE = {
  core: () => import("../wasm/inline.js"),
  compact: () => import("../wasm/inline-compact.js"),
  rest: () => import("../wasm/inline-rest.js"),
  shared: () => import("../wasm/inline-shared.js"),
};

async function load(file: EngineFile): Promise<WasmModule> {
  if (typeof WebAssembly === "undefined") throw unavailable(undefined);
  let missing: Missing;
  try {
    const found = await from(FILES[file]());
    if (!("isOther" in found)) return found;
    missing = found;
  } catch (cause) {
    const error = unavailable(cause);
    // What forbids one form forbids the other.
    if (error.reason !== undefined) throw error;
    missing = { cause, isOther: false };
  }
  try {
    return await compiled(CODE[file]());
  } catch (cause) {
    const error = unavailable(cause);
    if (error.reason !== undefined || !missing.isOther) throw error;
    throw otherBuild(missing.cause);
  }
}

async function from(url: URL): Promise<WasmModule | Missing> {
  const bytes = await read(url);
  // A statement of its own: Next wraps the call in code that takes no `await` in the arguments.
  const module = bytes ? await WebAssembly.compile(bytes) : await fetched(url);
  if ("isOther" in module || isOfThisBuild(module)) return module;
  return { cause: new TypeError(`${url.href} is of another build`), isOther: true };
}

/** Modules of Node, as a program finds them that no bundler has to. */
interface Builtin {
  getBuiltinModule?(name: "fs/promises"): { readFile(path: string): Promise<WasmBytes> };
  getBuiltinModule?(name: "url"): { fileURLToPath(url: string): string };
}

/** The bytes of a file on the disk, where there is one. */
async function read({ protocol, href }: URL): Promise<WasmBytes | undefined> {
  const { process } = globalThis as { process?: Builtin };
  if (protocol !== "file:" || !process?.getBuiltinModule) return undefined;
  const { readFile } = process.getBuiltinModule("fs/promises");
  return readFile(process.getBuiltinModule("url").fileURLToPath(href));
}

async function fetched(url: URL): Promise<WasmModule | Missing> {
  let response: Response;
  try {
    response = await fetch(url);
  } catch (cause) {
    // A policy may forbid the request alone, and browsers say so in words of their own.
    return { cause, isOther: false };
  }
  if (!response.ok) {
    const cause = new TypeError(`${url.href} answers with status ${response.status}`);
    return { cause, isOther: response.status === 404 || response.status === 410 };
  }
  if (streams(response)) return WebAssembly.compileStreaming(response);
  const bytes = await response.arrayBuffer();
  const head = new Uint8Array(bytes.slice(0, MAGIC.length));
  // Servers of apps answer with their page whatever is not there.
  const isModule = MAGIC.every((byte, at) => head[at] === byte);
  if (!isModule) return { cause: new TypeError(`${url.href} answers with something that is no module`), isOther: true };
  return WebAssembly.compile(bytes);
}
