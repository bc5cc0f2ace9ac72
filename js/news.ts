/** What other handles on a session write: heard of, and taken over. */

import { quietly } from "./quietly.js";
import type { CompactionError } from "./errors.js";
import { isPromise } from "./store-calls.js";
import type { MaybePromise } from "./types.js";
import type { Turns } from "./turns.js";
import type { Warning } from "./warnings.js";

/** What it needs of the session. */
interface Needs {
  /** May the session not know of this commit? */
  isNews(sid: string, ver: number): MaybePromise<boolean>;
  catchUp(): Promise<void>;
  warn(warning: Warning): void;
}

export class News {
  readonly #turns: Turns;
  readonly #needs: Needs;

  constructor(turns: Turns, needs: Needs) {
    this.#turns = turns;
    this.#needs = needs;
  }

  /** Takes over what was written, in its turn among the calls of the session. */
  async hear(sid: string, ver: number): Promise<void> {
    try {
      const isNews = this.#needs.isNews(sid, ver);
      if (!(isPromise(isNews) ? await isNews : isNews)) return;
      await this.#turns.queued(async () => {
        // A call that came before may have come upon it.
        if (await this.#needs.isNews(sid, ver)) await this.#needs.catchUp();
      });
    } catch (error) {
      const { code, message } = error as CompactionError;
      // Who closed or deleted the session knows; any other failure meets the next call, too.
      if (code !== "closed") quietly(() => this.#needs.warn({ code, message }));
    }
  }
}
