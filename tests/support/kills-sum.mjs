/** What a run of kills comes to. */

import { Told } from "./kills-check.mjs";

/** A session takes so many kills; then another one begins, so that reading it does not become the longest part. */
export const KILLS_OF_A_SESSION = 8;

/** Counts over the sessions of a run. */
export class Sum {
  problems = [];
  #of;
  #sessions = [];
  #kills = 0;
  #verified = 0;
  #references = 0;
  #known = new Set();
  #found = { lost: 0, dangling: 0, torn: 0 };
  #unknown = new Map();

  /** `version` is that of what is killed. */
  constructor(of, seed, version) {
    this.#of = { of, version, seed };
  }

  /** What writers of the next session are told. */
  begin() {
    const told = new Told();
    this.#sessions.push(told);
    return told;
  }

  add({ problems, unknown, references }, when, verified) {
    this.#kills++;
    this.#references += references;
    if (verified) this.#verified++;
    this.#unknown.set(this.#sessions.length, unknown);
    for (const [kind, found] of Object.entries(problems)) {
      // What is wrong once is found again after each later kill.
      const added = found.filter((problem) => !this.#known.has(problem));
      for (const problem of added) this.#known.add(problem);
      this.#found[kind] += added.length;
      this.problems.push(...added.map((problem) => `${when}: ${kind}: ${problem}`));
    }
  }

  /** For a line `count {…}`. */
  counts() {
    const sum = {};
    for (const counts of this.#sessions.map((told) => told.counts())) {
      for (const [what, number] of Object.entries(counts)) sum[what] = (sum[what] ?? 0) + number;
    }
    const unacknowledged = [...this.#unknown.values()].reduce((sum, number) => sum + number, 0);
    const failures = this.problems.length;
    return {
      check: "kills",
      ...this.#of,
      kills: this.#kills,
      ...sum,
      "written without an acknowledgement": unacknowledged,
      "references read": this.#references,
      verified: this.#verified,
      ...this.#found,
      failures,
    };
  }
}
