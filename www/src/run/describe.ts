import { CompactionError } from "../engine.js";

/** Every fact that an error carries: code, message index and field. */
export function describe(error: unknown): string {
  if (!CompactionError.isInstance(error)) return error instanceof Error ? error.message : String(error);
  const place = [
    error.index === undefined ? "" : `message ${error.index}`,
    error.field ? `field ${error.field}` : "",
  ].filter((part) => part !== "");
  return `${error.message}${place.length > 0 ? ` (${place.join(", ")})` : ""} [${error.code}]`;
}
