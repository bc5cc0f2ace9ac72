/** Typed errors with a stable `code`. */

/** What went wrong, for programs: `CompactionError.code`. Codes are stable. */
export type ErrorCode =
  | "invalid_message"
  | "invalid_option"
  | "unsupported_value"
  | "unknown_format"
  | "unknown_model"
  | "context_overflow"
  | "summary_failed"
  | "summary_rejected"
  | "aborted"
  | "timeout"
  | "conflict"
  | "diverged"
  | "quota_exceeded"
  | "limit_reached"
  | "too_large"
  | "store_unavailable"
  | "store_corrupt"
  | "data_loss"
  | "indeterminate"
  | "schema_too_new"
  | "not_found"
  | "closed"
  | "not_ready"
  | "stage_unavailable"
  | "poisoned";

interface ErrorDetails {
  index?: number | undefined;
  field?: string | undefined;
  reason?: string | undefined;
  stage?: string | undefined;
  retryable?: boolean | undefined;
  appended?: true | undefined;
  cause?: unknown;
}

const PASSING: readonly ErrorCode[] = ["timeout", "conflict", "store_unavailable", "stage_unavailable"];
const LASTING: readonly unknown[] = ["csp", "no_webassembly", "version"];

function isPassing(code: ErrorCode, reason: string | undefined): boolean {
  return PASSING.includes(code) && !LASTING.includes(reason);
}

const marker = Symbol.for("context-compactor.error");

/** The error that this library throws. `message` says what is wrong and how to fix it; `cause` is what was thrown
 *  underneath. */
export class CompactionError extends Error {
  override readonly name = "CompactionError";
  /** What went wrong, for programs. */
  readonly code: ErrorCode;
  /** Index of the message at fault, in the array that was passed. */
  readonly index?: number;
  /** Path of the field at fault, such as `tool_calls[1].id`. */
  readonly field?: string;
  /** Of `stage_unavailable`: `no_webassembly` if the runtime lacks it, `csp` if the page's policy forbids it, `version` if the
   *  server has another release than the page, which a reload ends. Of `diverged`: what differs, such as `part 0 text
   *  differs`. */
  readonly reason?: string;
  /** Of `stage_unavailable`: the part of the engine that could not be loaded, `core`, `compact` or `rest`. */
  readonly stage?: string;
  /** The same call may succeed later: `timeout`, `conflict`, `store_unavailable`, `stage_unavailable` without a lasting
   *  reason, and `summary_failed` after 429, 5xx or a lost connection. After `indeterminate`, read first what was written. */
  readonly retryable: boolean;
  /** Of `prepare({ append })`: the messages were stored before it failed, so do not append them again: `prepare()` goes on
   *  with them. Without it, none was. */
  readonly appended?: true;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, "cause" in details ? { cause: details.cause } : undefined);
    this.code = code;
    this.retryable = details.retryable ?? isPassing(code, details.reason);
    if (details.index !== undefined) this.index = details.index;
    if (details.field !== undefined) this.field = details.field;
    if (details.reason !== undefined) this.reason = details.reason;
    if (details.stage !== undefined) this.stage = details.stage;
    if (details.appended !== undefined) this.appended = details.appended;
    Object.defineProperty(this, marker, { value: true });
  }

  /** Whether `error` is a `CompactionError` of any copy of this package; `instanceof` knows one copy only. */
  static isInstance(error: unknown): error is CompactionError {
    return typeof error === "object" && error !== null && (error as Record<symbol, unknown>)[marker] === true;
  }
}
