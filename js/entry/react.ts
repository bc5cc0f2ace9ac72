/** Entry `context-compactor/react`: reason-and-act trajectories (not the UI library). */

import { coreOf } from "../nouns/core.js";
import type { Session } from "../types.js";
import type { ReactStats, Trajectory } from "../types/react.js";

/** Reason-and-act trajectories (not the UI library): appends a turn, and shortens results if the context has become too
 *  large. Rejects as `session.append` and `session.prepare` do. */
export async function addTurn(
  session: Session,
  turn: { thought: string; action: object; result: string },
): Promise<void> {
  coreOf(session);
  await session.append(turn as never);
  await session.prepare();
}

/** Reason-and-act trajectories (not the UI library): returns how full the context is. */
export async function stats(session: Session): Promise<ReactStats> {
  return coreOf(session).ask((handle) => handle.stats(), { stage: "compact" });
}

/** Reason-and-act trajectories (not the UI library): returns the context as a trajectory, whatever its format. */
export async function exportTrajectory(session: Session): Promise<Trajectory> {
  const text = await coreOf(session).ask<string>((handle) => handle.trajectory(), { stage: "compact" });
  return JSON.parse(text) as Trajectory;
}

export type { ReactStats, Trajectory } from "../types/react.js";
