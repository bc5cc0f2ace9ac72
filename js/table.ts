/** The table by which the engine counts: it has that of the default family, and another's comes when it is first needed. */

import { run } from "./driver.js";
import { CompactionError } from "./errors.js";
import type { Family } from "./tokens/families.js";

/** Brings the table that these options count by where the engine does not have it. Rejects with `stage_unavailable`. */
export async function bringTable(values: object): Promise<void> {
  const family = run((engine) => engine.missingTable(values)) as Family | undefined;
  if (family === undefined) return;
  const { pairs, contexts } = await weightsOf(family);
  run((engine) => engine.bringTable(family, pairs, contexts));
}

async function weightsOf(family: Family): Promise<{ pairs: Uint8Array; contexts: Uint8Array }> {
  try {
    const tables = await import("./tokens/tables.js");
    await tables.bring(family);
    return tables.weightsOf(family) as NonNullable<ReturnType<typeof tables.weightsOf>>;
  } catch (cause) {
    if (CompactionError.isInstance(cause)) throw cause;
    throw new CompactionError("stage_unavailable", `The table of ${family} could not be loaded; \`cause\` says why. Nothing was changed: try again`, { cause });
  }
}
