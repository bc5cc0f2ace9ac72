/** What goes wrong in the private file system of an origin, as typed errors. */

import { Deadline } from "../../awake.js";
import { CompactionError } from "../../errors.js";

/** How long an engine may take for one call, and other tabs for their turns: a frozen one keeps its lock. */
export const WAIT_MS = 10_000;

export const ALONE = "use indexedDbStore() alone";

/** The typed error for what a browser threw. Matches names: the classes differ between engines. */
export function opfsError(error: unknown): CompactionError {
  if (CompactionError.isInstance(error)) return error;
  const { name = "Error", message = "" } = Object(error) as Partial<Error>;
  const make = (code: CompactionError["code"], advice: string) =>
    new CompactionError(code, `The store's files failed with ${name}${message && ` (${message})`}: ${advice}`, { cause: error });
  switch (name) {
    case "QuotaExceededError":
      return make("quota_exceeded", "nothing was written and what is stored stays; delete sessions, then try again");
    case "NoModificationAllowedError":
      return make("store_unavailable", "another tab holds them; close it, then try again");
    case "NotAllowedError":
    case "SecurityError":
      return make("store_unavailable", `this page may not store data; ${ALONE}, or store: "memory"`);
    case "NotFoundError":
      return make("store_unavailable", "they were removed; make a new store");
    case "TypeMismatchError":
      return make("store_unavailable", "a file has the name of a directory of the store, or the other way; choose another name");
    default:
      return make("store_unavailable", `nothing was written; try again, or ${ALONE}`);
  }
}

export function isNamed(error: unknown, name: string): boolean {
  return (Object(error) as { name?: unknown }).name === name;
}

/** Awaits what a browser may never answer; `late` gets what comes too late. */
export function inTime<T>(answer: Promise<T>, late: (value: T) => void = () => {}): Promise<T> {
  return new Promise((resolve, reject) => {
    let isOver = false;
    const deadline = new Deadline(WAIT_MS, () => {
      isOver = true;
      reject(new CompactionError("store_unavailable", `The browser's files do not answer in ${WAIT_MS / 1_000} s: reload the page, then try again`));
    });
    const end = (settle: () => void) => {
      deadline.stop();
      settle();
    };
    answer.then((value) => (isOver ? late(value) : end(() => resolve(value))), (error: unknown) => end(() => reject(error as Error)));
  });
}
