/** WebAssembly of the host: what it can, compiling, and why it cannot. */

import { CompactionError } from "./errors.js";
import type { WasmBytes, WasmModule } from "./types/platform.js";

/** A module that comes as code, compiled. Throws what importing it threw, or `stage_unavailable`. */
export async function compiled(module: Promise<{ bytes(): Promise<WasmBytes> }>): Promise<WasmModule> {
  const { bytes } = await module;
  if (typeof WebAssembly === "undefined") throw unavailable(undefined);
  // A statement of its own: some frameworks wrap the call in code that takes no `await` in the arguments.
  const whole = await bytes();
  return WebAssembly.compile(whole).catch((cause: unknown) => {
    throw unavailable(cause);
  });
}

/** Whether the module in this answer can be compiled while it loads: that needs the right type, which some servers do not
 *  send. */
export function streams({ headers }: Response): boolean {
  return headers.get("content-type") === "application/wasm" && typeof WebAssembly.compileStreaming === "function";
}

/** Whether the host compiles modules: the smallest there is. */
export function compiles(): boolean {
  try {
    new WebAssembly.Module(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0));
    return true;
  } catch {
    return false;
  }
}

/** What browsers and servers say where a policy forbids it. */
const FORBIDDEN = /unsafe-eval|\bCSP\b|content.security.policy|disallowed by embedder|code generation/i;

/** The error of a host where nothing can be started, by what starting it threw. */
export function unavailable(cause: unknown): CompactionError {
  if (CompactionError.isInstance(cause)) return cause;
  if (typeof WebAssembly === "undefined") {
    const message = "This runtime has no WebAssembly, which the engine needs: use one that has it, or call it on a server";
    return new CompactionError("stage_unavailable", message, { reason: "no_webassembly", cause });
  }
  const said = String((cause as Error | undefined)?.message ?? cause);
  if (FORBIDDEN.test(said)) {
    const message =
      "The Content-Security-Policy forbids WebAssembly: add 'wasm-unsafe-eval' to its script-src, as in " +
      "`script-src 'self' 'wasm-unsafe-eval'`; on servers that compile nothing, let the bundler import the module as such";
    return new CompactionError("stage_unavailable", message, { reason: "csp", cause });
  }
  return new CompactionError("stage_unavailable", `The engine could not be loaded: ${said}. Nothing was changed: try again`, { cause });
}

/** The error where the server has the files of another release than the page. */
export function otherBuild(cause: unknown): CompactionError {
  const message =
    "The engine of this release is no longer served: the page is older than what the server has. Reload it. " +
    "Nothing that was stored is lost";
  return new CompactionError("stage_unavailable", message, { reason: "version", cause });
}
