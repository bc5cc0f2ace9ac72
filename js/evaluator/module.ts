/** The evaluator's module: an instance of it for each evaluation. See `crates/evaluator/src/wasm.rs`. */

import { CompactionError, type ErrorCode } from "../errors.js";
import type { WasmModule } from "../types/platform.js";

interface Exports {
  readonly memory: WebAssembly.Memory;
  buffer(length: number): number;
  ask(): number;
  answer(): number;
}

interface Failure {
  code: ErrorCode;
  message: string;
  index?: number;
  field?: string;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

let bring: (() => Promise<WasmModule>) | undefined;
let compiled: Promise<WasmModule> | undefined;

/** Says where the module comes from: an entry does. */
export function bringFrom(source: () => Promise<WasmModule>): void {
  bring ??= source;
}

/** A running instance; it and its memory end with the evaluation. */
export class Instance {
  readonly #exports: Exports;
  /** What has been asked cannot be asked again: the memory is half changed. */
  #trap: CompactionError | undefined;

  private constructor(exports: Exports) {
    this.#exports = exports;
  }

  /** Rejects with `not_found` when the module could not be loaded; the next call tries again. */
  static async start(): Promise<Instance> {
    try {
      compiled ??= (bring as () => Promise<WasmModule>)();
      // A statement of its own: Next wraps the call in code that takes no `await` in the arguments.
      const module = await compiled;
      const { exports } = await WebAssembly.instantiate(module);
      return new Instance(exports as unknown as Exports);
    } catch (cause) {
      compiled = undefined;
      if (CompactionError.isInstance(cause)) throw cause;
      throw new CompactionError("not_found", "The evaluator could not be loaded; `cause` says why", { cause });
    }
  }

  /** The answer to a question, JSON text. */
  ask<T>(question: string): T {
    if (this.#trap) throw this.#trap;
    const { value, error } = this.#call(question) as { value?: T; error?: Failure };
    if (error) {
      const { code, message, index } = error;
      const field = error.field || undefined;
      throw new CompactionError(code, field && index === undefined ? `${field}: ${message}` : message, { index, field });
    }
    return value as T;
  }

  #call(question: string): unknown {
    const { memory, buffer, ask, answer } = this.#exports;
    try {
      const bytes = encoder.encode(question);
      const address = buffer(bytes.length);
      new Uint8Array(memory.buffer, address, bytes.length).set(bytes);
      const length = ask();
      return JSON.parse(decoder.decode(new Uint8Array(memory.buffer, answer(), length)));
    } catch (cause) {
      this.#trap = new CompactionError("poisoned", "The evaluator failed; evaluate again. `cause` has the failure.", { cause });
      throw this.#trap;
    }
  }
}
