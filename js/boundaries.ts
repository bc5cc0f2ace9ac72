/** What is stored about a session is no message: records in the place of a message are refused (`S5.4`). */

import { CompactionError } from "./errors.js";

/** What a record is of. */
type Kind = "snapshot" | "history";

/** On every record that the library hands out, whichever copy of the package made it. */
const brand = Symbol.for("context-compactor.record");

const ADVICE: Record<Kind, string> = {
  snapshot: "a snapshot is never sent to a model; session.snapshots.restore(id) goes back to it",
  history: "the record of a session is never sent to a model; hand over its messages, or what prepare() returns",
};

/** The same object, known for a record from now on. It has nothing more that a list of its keys or JSON would show. */
export function asRecord<T extends object>(kind: Kind, record: T): T {
  return Object.defineProperty(record, brand, { value: kind });
}

/** Throws when a record is at `index` of a history, or in the place of the history. */
export function refuseRecord(value: object, index?: number): void {
  const kind = kindOf(value as Record<string | symbol, unknown>);
  if (kind === undefined) return;
  const where = index === undefined ? "messages" : `message ${index}`;
  throw new CompactionError("invalid_message", `${where}: ${ADVICE[kind]}`, index === undefined ? {} : { index, field: "" });
}

/** By its mark, or by its shape where a copy or a trip through JSON took the mark away. Messages have a role, a type, or
 *  the fields of a turn, and none of these shapes. */
function kindOf(value: Record<string | symbol, unknown>): Kind | undefined {
  const marked = value[brand];
  if (marked === "snapshot" || marked === "history") return marked;
  // The line of a message in an archive has a role beside the message.
  if ("seq" in value && "kind" in value && "chain" in value && "hash" in value) return "history";
  if ("role" in value) return undefined;
  const { purpose, kind } = value;
  const isPurpose = purpose === "recovery" || purpose === "rollback" || purpose === "emergency";
  if (isPurpose && ("conversationState" in value || "timestamp" in value)) return "snapshot";
  const isOfSession = "sessionId" in value && ("messages" in value || "checkpointRecords" in value);
  const isArchived = (kind === "session" && "state" in value) || (kind === "offload" && "sha256" in value);
  const isCheckpoint = "messageRange" in value && "compressedTokens" in value;
  const isMetadata = "totalMessages" in value && "compressionCount" in value;
  return isOfSession || isArchived || isCheckpoint || isMetadata ? "history" : undefined;
}
