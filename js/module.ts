/** WebAssembly of the host: compiling, and why it cannot. */

import { CompactionError } from "./errors.js";
import type { WasmBytes, WasmModule } from "./types/platform.js";

/** Some frameworks wrap the call in code of their own, which takes no `await` in the arguments. */
export async function compiled(module: Promise<{ bytes: WasmBytes }>): Promise<WasmModule> {
  const { bytes } = await module;
  if (typeof WebAssembly === "undefined") throw unavailable(undefined);
  return WebAssembly.compile(bytes).catch((cause: unknown) => {
    throw unavailable(cause);
  });
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
  return new CompactionError("stage_unavailable", `The engine could not be started: ${said}`, { cause });
}
