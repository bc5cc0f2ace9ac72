/** A summary that is made while the agent goes on. */

import { quietly } from "./quietly.js";
import { CompactionError } from "./errors.js";
import { toResult, type EngineResult } from "./options.js";
import type { Turns } from "./turns.js";
import type { CompactionResult, Message } from "./types.js";
import type { Host } from "./effects.js";

/** What it led to. `thrown` is what the app's functions threw, by the number of the effect. */
export interface Late {
  result?: EngineResult;
  thrown: Map<number, unknown>;
}

/** Codes after which there is nothing to report: the caller stopped it, or another handle made the summary. */
const SILENT = ["aborted", "closed", "conflict"];

export class Background {
  readonly #turns: Turns;
  readonly #warn: (error: CompactionError) => void;
  #stop: AbortController | undefined;
  #late: Late | undefined;

  constructor(turns: Turns, warn: (error: CompactionError) => void) {
    this.#turns = turns;
    this.#warn = warn;
  }

  /** True from its beginning to its commit. */
  get isRunning(): boolean {
    return this.#stop !== undefined;
  }

  /** Begins it, after the earlier calls that change the context. */
  begin(summarise: (host: Host) => Promise<Late>): void {
    if (this.#stop) return;
    const { signal } = (this.#stop = new AbortController());
    const made = this.#turns.exclusive({ signal }, ["signal"], summarise);
    void made
      .then(
        (late) => (this.#late = late),
        (error: unknown) => {
          if (CompactionError.isInstance(error) && !SILENT.includes(error.code)) quietly(() => this.#warn(error));
        },
      )
      .finally(() => (this.#stop = undefined));
  }

  /** Its result, for the first prompt that has it. */
  take<M extends Message>(messages: () => M[]): CompactionResult<M> | undefined {
    const late = this.#late;
    this.#late = undefined;
    return late?.result && toResult(late.result, messages(), late.thrown);
  }

  stop(): void {
    this.#stop?.abort();
  }
}
