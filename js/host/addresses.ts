/** The engine's files from their addresses. */

import { bringFrom, isOfThisBuild } from "../engine.js";
import { otherBuild, streams, unavailable } from "../module.js";
import type { EngineFile, WasmBytes, WasmModule } from "../types/platform.js";

/** Why the file did not give the module. */
export interface Missing {
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

/** Lets the engine come from its files alone. */
export function bring(): void {
  bringFrom(async (file) => {
    const found = await fileOf(file);
    if (!("isOther" in found)) return found;
    throw found.isOther ? otherBuild(found.cause) : unavailable(found.cause);
  });
}

/** A file, compiled. Throws what forbids it. */
export async function fileOf(file: EngineFile): Promise<WasmModule | Missing> {
  if (typeof WebAssembly === "undefined") throw unavailable(undefined);
  try {
    return await from(FILES[file]());
  } catch (cause) {
    const error = unavailable(cause);
    // What forbids one form forbids the other.
    if (error.reason !== undefined) throw error;
    return { cause, isOther: false };
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
