import { importSession, type Message, type Session } from "../engine.js";

/** That everything is still there: messages that were read back from the store, and are word for word what was played. */
export interface Proof {
  messages: number;
  same: number;
  /** Broken invariants of the store: none. */
  problems: number;
  durationMs: number;
}

/** Checks the store, reads everything back from it, and compares it with what was played. */
export async function proofOf(session: Session, log: readonly Message[]): Promise<Proof> {
  const started = performance.now();
  const { problems } = await session.archive.verify();
  const copy = await importSession(session.archive.jsonl(), { store: "memory", logger: () => {} });
  let same = 0;
  let index = 0;
  for await (const message of copy.archive.history()) {
    if (JSON.stringify(message) === JSON.stringify(log[index])) same += 1;
    index += 1;
  }
  await copy.close({ delete: true });
  return { messages: log.length, same, problems: problems.length, durationMs: performance.now() - started };
}
