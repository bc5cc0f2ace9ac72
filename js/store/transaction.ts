/** One IndexedDB transaction as a promise, and the typed errors for what engines throw. */

import { Deadline } from "../awake.js";
import { CompactionError } from "../errors.js";
import { WITHOUT } from "./opening.js";

/** A transaction that was created while its connection was being lost gets no event at all in some engines. */
const LOST_WAIT_MS = 500;

/** How long one may take: a tab that is stopped inside of its own would make every other tab wait for ever. */
const WAIT_MS = 10_000;

/** Attaches `handle` to a request's success; what it throws aborts the transaction. */
export type On = <R>(request: IDBRequest, handle: (result: R) => void) => void;

/** The transaction was ended for taking too long. Nothing was written. */
export class TimedOut extends Error {
  override readonly name = "TimeoutError";

  constructor() {
    super(`no answer in ${WAIT_MS / 1_000} s: another tab may be stopped while it writes`);
  }
}

/**
 * Calls `issue` and settles with the transaction, in time. Only `complete` proves a commit: requests report success
 * before an abort for lack of space.
 */
export function settle<T>(tx: IDBTransaction, issue: (tx: IDBTransaction, on: On) => T): Promise<T> {
  return new Promise((resolve, reject) => {
    let reason: unknown;
    const abort = (error: unknown) => {
      reason ??= error;
      try {
        tx.abort();
      } catch {
        // It has ended by itself, and its event follows.
      }
    };
    const on: On = (request, handle) => {
      request.onsuccess = () => {
        try {
          handle(request.result);
        } catch (error) {
          abort(error);
        }
      };
    };
    const fail = () => {
      end();
      const causes = [reason, tx.error] as (Error | null | undefined)[];
      const cause = causes.find((error) => error && error.name !== "AbortError") ?? reason ?? tx.error;
      const unwritten =
        reason !== undefined || tx.mode === "readonly" || tx.error?.name === "QuotaExceededError";
      const unknown = "IndexedDB failed at the commit: read again to see whether it was written";
      reject(unwritten ? cause : new CompactionError("indeterminate", unknown, { cause }));
    };
    const { db } = tx;
    const lost = () =>
      setTimeout(() => {
        fail();
        // Where the connection was given up and not taken away, it would hold up whoever comes after it.
        abort(undefined);
      }, LOST_WAIT_MS);
    const deadline = new Deadline(WAIT_MS, () => {
      try {
        tx.abort();
        reason ??= new TimedOut();
      } catch {
        // It is being committed: its event says how that ended.
      }
      // Without an event nobody knows what it has written.
      timer = setTimeout(() => {
        reason = tx.mode === "readonly" ? new TimedOut() : undefined;
        fail();
      }, LOST_WAIT_MS);
    });
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = () => {
      deadline.stop();
      clearTimeout(timer);
      db.removeEventListener("close", lost);
    };
    db.addEventListener("close", lost);
    let result: T;
    tx.oncomplete = () => {
      end();
      resolve(result);
    };
    // A request that failed was still under way, so nothing can have been committed.
    tx.onerror = (event) => (reason ??= (event.target as IDBRequest).error);
    tx.onabort = fail;
    try {
      result = issue(tx, on);
    } catch (error) {
      abort(error);
    }
  });
}

/**
 * Whether a read failed by what it read: Firefox says `InvalidStateError` or `UnknownError` for a page of rows of which one is
 * damaged on the disk, Chromium others. A connection that was lost, which says the same, was opened again by then.
 */
export function isOfARow(error: unknown): boolean {
  const { code, cause } = error as CompactionError;
  const isKnown = ["store_unavailable", "unsupported_value", "store_corrupt"].includes(code);
  return isKnown && cause instanceof DOMException && cause.name !== "AbortError" && cause.name !== "SecurityError";
}

/** The typed error for what an engine threw. Matches names: the classes differ between engines. */
export function storeError(error: unknown): CompactionError {
  if (CompactionError.isInstance(error)) return error;
  const { name = "Error", message = "" } = (error ?? {}) as Partial<Error>;
  const words = `IndexedDB failed with ${name}${message && ` (${message})`}`;
  const make = (code: CompactionError["code"], advice: string) =>
    new CompactionError(code, `${words}: ${advice}`, { cause: error });
  switch (name) {
    case "QuotaExceededError":
      return make(
        "quota_exceeded",
        "nothing was written and what is stored stays; delete sessions, then try again",
      );
    case "ConstraintError":
      return make("conflict", "nothing was written; read again and retry");
    case "DataCloneError":
    case "DataError":
      return make("unsupported_value", "nothing was written");
    case "NotFoundError":
      return make("store_corrupt", "the database lacks a table; choose another name or delete it");
    case "SecurityError":
      return make("store_unavailable", `this page may not store data; ${WITHOUT}`);
    default:
      return make("store_unavailable", `nothing was written; try again, or ${WITHOUT}`);
  }
}
