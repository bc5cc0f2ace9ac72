/** How a run ends. */

/** Exit codes, as `docs/cli.md` lists them. */
export const EXIT = { fine: 0, problems: 1, usage: 2, input: 3, tooLarge: 4, interrupted: 130 } as const;

/** Ends the run with a code and a sentence for people. */
export class Exit extends Error {
  readonly code: number;
  constructor(code: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The input could not be understood. */
export const notUnderstood = (name: string, why: string, cause?: unknown): Exit =>
  new Exit(EXIT.input, `${name === "-" ? "stdin" : name}: ${why}`, { cause });

export const wrongUsage = (message: string): Exit => new Exit(EXIT.usage, message);

const BY_CODE: Record<string, number> = {
  ...{ invalid_option: EXIT.usage, unknown_model: EXIT.usage, invalid_message: EXIT.input, unknown_format: EXIT.input },
  ...{ unsupported_value: EXIT.input, too_large: EXIT.input, schema_too_new: EXIT.input, context_overflow: EXIT.tooLarge },
};

/** The exit code of whatever was thrown. */
export function exitOf(error: unknown): number {
  if (error instanceof Exit) return error.code;
  return BY_CODE[(error as { code?: string }).code ?? ""] ?? EXIT.problems;
}
