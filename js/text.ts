/** Counting a text: written once into a buffer of the engine, counted there. */

import { call } from "./engine.js";
import { CompactionError } from "./errors.js";
import type { Estimator } from "./types.js";

const encoder = new TextEncoder();

/** Estimated tokens of a text. */
export function estimateText(text: string, estimator: Estimator = "calibrated"): number {
  if (estimator !== "calibrated" && estimator !== "chars4") {
    throw new CompactionError("invalid_option", 'estimator: must be one of "calibrated", "chars4"', {
      field: "estimator",
    });
  }
  return call((engine) => {
    // A UTF-16 unit takes three bytes at most.
    const room = text.length * 3;
    const address = engine.textBuffer(room);
    const memory = engine.wasmMemory() as WebAssembly.Memory;
    const { written } = encoder.encodeInto(text, new Uint8Array(memory.buffer, address, room));
    return engine.estimateBuffer(written, estimator === "chars4");
  });
}
