/** Typed errors for what databases throw: PostgreSQL has codes, SQLite names that are in a code or in the message. */

import { CompactionError } from "../../errors.js";
import type { ErrorCode } from "../../errors.js";

/** Everything that an error and its causes say of themselves. */
interface Said {
  /** The SQLSTATE of PostgreSQL. */
  state: string | undefined;
  text: string;
}

/** No class of SQLSTATE begins with E, and codes of the system do, such as EPIPE. */
const SQLSTATE = /^[0-9A-DF-Z][0-9A-Z]{4}$/;

function read(error: unknown): Said {
  const texts: string[] = [];
  let state: string | undefined;
  for (let at = error, depth = 0; at !== undefined && at !== null && depth < 4; depth++) {
    const { code, message, cause } = Object(at) as { code?: unknown; message?: unknown; cause?: unknown };
    if (typeof code === "string") {
      texts.push(code);
      if (SQLSTATE.test(code)) state ??= code;
    }
    texts.push(typeof message === "string" ? message : typeof at === "string" ? at : "");
    at = cause;
  }
  return { state, text: texts.filter(Boolean).join(": ") };
}

/** An expectation did not hold: its statement inserted a row without a version, as no other one does. */
export function isBroken(error: unknown): boolean {
  const { state, text } = read(error);
  return state === "23502" || /NOT NULL constraint failed: \S*\bversion\b/.test(text);
}

/** Another transaction was in the way: of serializable ones, of a lock, or of making the table, whose row type or name is there already. */
export function isInTheWay(error: unknown): boolean {
  const { state, text } = read(error);
  return ["40001", "40P01", "23505", "42P07", "42710"].includes(state ?? "") || /SQLITE_(BUSY|LOCKED)|database (table |schema )?is locked/.test(text);
}

export function hasNoTable(error: unknown): boolean {
  const { state, text } = read(error);
  return ["42P01", "3F000"].includes(state ?? "") || /no such table/.test(text);
}

/** The database has answered, so nothing was written. It has not, where a connection broke, or a disk failed at the end. */
function isAnswer({ state, text }: Said): boolean {
  if (state !== undefined) return !/^(08|57P0|58|XX|40003)/.test(state);
  if (/SQLITE_IOERR|disk I\/O error/.test(text)) return false;
  return /SQLITE_|constraint failed|syntax error|no such|is locked|is full|readonly database|too big|malformed|not a database/.test(text);
}

/** For what a database threw. `isInDoubt`: everything was sent, and what is missing is the answer to the commit. */
export function sqlError(error: unknown, isInDoubt: boolean): CompactionError {
  if (CompactionError.isInstance(error)) return error;
  const said = read(error);
  const make = (code: ErrorCode, advice: string) =>
    new CompactionError(code, `The database failed (${said.text || String(error)}): ${advice}`, { cause: error });
  const { state = "", text } = said;
  if (isInDoubt && !isAnswer(said)) return make("indeterminate", "read again to see whether the batch was written");
  if (state === "53100" || /SQLITE_FULL|disk is full|Exceeded maximum DB size/i.test(text)) {
    return make("quota_exceeded", "nothing was written and what is stored stays; make room, then try again");
  }
  if (state === "54000" || /SQLITE_TOOBIG|too big/.test(text)) return make("too_large", "nothing was written; store it in smaller parts");
  if (/^XX00[12]/.test(state) || /SQLITE_(CORRUPT|NOTADB)|malformed|not a database/.test(text)) {
    return make("store_corrupt", "restore the database from a backup");
  }
  if (state === "42501") return make("store_unavailable", "the role may not do that; make the table beforehand, and grant SELECT, INSERT, UPDATE and DELETE on it");
  return make("store_unavailable", "nothing was written; try again");
}
