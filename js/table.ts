/** The table by which the engine counts: it has that of the default family, and another's comes when it is first needed. */

import { run } from "./driver.js";
import { bringTo } from "./engine.js";
import { CompactionError } from "./errors.js";
import type { Family } from "./tokens/families.js";
import type { Weights } from "./tokens/text.js";
import { unavailable } from "./tokens/unavailable.js";

/** Brings the table that these options count by where the engine does not have it. Rejects with `stage_unavailable`. */
export async function bringTable(values: object): Promise<void> {
  const family = run((engine) => engine.missingTable(values)) as Family | undefined;
  if (family === undefined) return;
  const { pairs, contexts, runs } = await loaded(family);
  bringTo((engine) => engine.bringTable(family, pairs, contexts, runs));
}

async function loaded(family: Family): Promise<Weights> {
  try {
    const { bring, weightsOf } = await import("./tokens/late.js");
    await bring(family);
    return weightsOf(family) as Weights;
  } catch (cause) {
    throw CompactionError.isInstance(cause) ? cause : unavailable(family, cause);
  }
}
