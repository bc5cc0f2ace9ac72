/** `session.snapshots`: states of the session to go back to. */

import { asRecord } from "../boundaries.js";
import { checkWhole } from "../checks.js";
import type { Message, SessionSnapshots, SnapshotInfo } from "../types.js";
import type { Core } from "./core.js";

export function snapshotsOf<M extends Message>({ turns, drive, ask }: Core<M>): SessionSnapshots {
  return {
    take: (purpose = "recovery") => turns.queued(() => drive((handle) => handle.snapshot(String(purpose)))),

    async list() {
      const found = await turns.queued(() => drive<SnapshotInfo[]>((handle) => handle.snapshots()));
      return found.map((snapshot) => asRecord("snapshot", snapshot));
    },

    restore: (id) => turns.alone(async () => void (await drive((handle) => handle.restore(String(id))))),

    rewind: (index) =>
      turns.alone(async () => {
        checkWhole("index", index, 0);
        await drive((handle) => handle.rewind(index));
      }),

    preview: async () => ask((handle) => handle.preview(), { stage: "compact", isCounted: true }),

    undo: () => turns.alone(async () => void (await drive((handle) => handle.undo()))),
  };
}
