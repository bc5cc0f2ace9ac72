import { CompactionError } from "../errors.js";
import type { Family } from "./families.js";

/** What is thrown where the script with a family's table could not be imported. */
export function unavailable(family: Family, cause: unknown): CompactionError {
  const message = `The table of ${family} could not be loaded; \`cause\` says why. Nothing was changed: try again; in Firefox, reload the page first`;
  return new CompactionError("stage_unavailable", message, { cause });
}
