import { CompactionError } from "../engine.js";

/** Every fact that an error carries: code, message index and field. */
export function describe(error: unknown): string {
  if (!CompactionError.isInstance(error)) return error instanceof Error ? error.message : String(error);
  const named = error.index !== undefined && error.message.startsWith(`message ${error.index},`);
  const place = named
    ? ""
    : [error.index === undefined ? "" : `message ${error.index}`, error.field ? `field ${error.field}` : ""]
        .filter((part) => part !== "")
        .join(", ");
  return `${error.message}${place === "" ? "" : ` (${place})`} [${error.code}]`;
}
