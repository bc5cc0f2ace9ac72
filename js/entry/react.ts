/** Entry `context-compactor/react`: reason-and-act trajectories (not the UI library). */

import { coreOf } from "../nouns/core.js";
import { loadStage } from "../stages.js";
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
  const { look } = coreOf(session);
  await loadStage("compact");
  return look((handle) => handle.stats());
}

/** Reason-and-act trajectories (not the UI library): returns the context as a trajectory, whatever its format. */
export async function exportTrajectory(session: Session): Promise<Trajectory> {
  const { look } = coreOf(session);
  await loadStage("compact");
  return JSON.parse(look<string>((handle) => handle.trajectory())) as Trajectory;
}

export type { ReactStats, Trajectory } from "../types/react.js";
