/** Failures of a module after which its memory cannot be trusted. */

/** A trap of WebAssembly, or its stack overflow, which hosts report in their own ways. */
export function isTrap(error: unknown): boolean {
  return (
    error instanceof WebAssembly.RuntimeError ||
    (error instanceof RangeError && /call stack/i.test(error.message)) ||
    (error instanceof Error && error.name === "InternalError")
  );
}
