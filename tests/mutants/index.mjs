/**
 * Ways to break each behaviour of the five systems, and what keeps damage from being lost in silence, and the tests that must
 * notice. `npm run mutants` tries them.
 *
 * A mutant is `{ id, what, file, from, to, tests }`: the behaviour; what is wrong with it; the file, a text that stands in
 * it exactly once, and what takes its place; and where the tests are that carry the id in their names. Those are
 * modules of the core's tests, `lib` for its unit tests, `store-tests/name`, or files of `tests/node`, which take mutants of
 * `js/`.
 */

import { damage } from "./damage.mjs";
import { s1 } from "./s1.mjs";
import { s1summary } from "./s1-summary.mjs";
import { s2 } from "./s2.mjs";
import { s3 } from "./s3.mjs";
import { s4 } from "./s4.mjs";
import { s5 } from "./s5.mjs";
import { s5checks } from "./s5-checks.mjs";
import { s5goals } from "./s5-goals.mjs";

/** Behaviours of each system. */
const COUNTS = { S1: 15, S2: 12, S3: 11, S4: 7, S5: 18 };

const behaviours = Object.entries(COUNTS).flatMap(([system, count]) =>
  Array.from({ length: count }, (_, nth) => `${system}.${nth + 1}`),
);

/** Every id, in order. */
export const ids = [...behaviours, "D4", "D15", "D19", "D20", "D21"];

/** Behaviours without a mutant. */
export const missing = [];

/** Every mutant, in the order of the ids. */
export const mutants = [...s1, ...s1summary, ...s2, ...s3, ...s4, ...s5, ...s5goals, ...s5checks, ...damage];

/** True for the name of a test of this behaviour: `s1_4_the_cooldown`, `S1.4: the cooldown`. */
export function carries(name, id) {
  return new RegExp(`(?<![a-z0-9])${id.replace(".", "[._]")}(?!\\d)`, "i").test(name);
}
