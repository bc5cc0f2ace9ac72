/** The stages of the engine: parts of its module that are loaded when they are first needed. Once there, they stay. */

import { isOfThisBuild, link, moduleOf, started } from "./engine.js";
import { CompactionError } from "./errors.js";
import { STAGES } from "./generated/build.js";
import { otherBuild, unavailable } from "./module.js";
import type { EngineFile } from "./types/platform.js";

/** `compact`: what makes a context shorter. `rest`: archives, snapshots, erasures, search, checks. */
export type Stage = keyof typeof STAGES;

/** Files that are loaded, or were. */
const files = new Map<EngineFile, Promise<void>>();
const there = new Set<Stage>();

/** Whether a stage can be entered. */
export function isThere(stage: Stage): boolean {
  return there.has(stage);
}

/** Loads a stage where that is not done; calls at one time share it, and after a failure the next one tries again. Rejects
 *  with `stage_unavailable`. */
export async function loadStage(stage: Stage): Promise<void> {
  if (there.has(stage)) return;
  const needed: readonly EngineFile[] = STAGES[stage];
  try {
    await started();
    await Promise.all(needed.map(once));
    there.add(stage);
  } catch (cause) {
    const { message, reason, cause: why } = unavailable(cause);
    throw new CompactionError("stage_unavailable", message, { stage, reason, cause: why });
  }
}

function once(file: EngineFile): Promise<void> {
  let loading = files.get(file);
  if (!loading) {
    loading = linked(file);
    files.set(file, loading);
    loading.catch(() => files.delete(file));
  }
  return loading;
}

async function linked(file: EngineFile): Promise<void> {
  const module = await moduleOf(file);
  if (!isOfThisBuild(module)) throw otherBuild(undefined);
  link(module);
}
