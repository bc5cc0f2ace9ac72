/** `npm test -- --complete`, which CI runs: a test that is skipped as something is missing has failed. */

/** Reasons that say of no part of the tests that it could be installed. */
const FINE = [
  // Recordings of others are not in the repository.
  /\(CC_DATA\)/,
  // One browser has it, and the test is run there.
  /needs CDP/,
  // Nobody offers it there.
  /for this platform/,
  // It takes many minutes, and is run where it is asked for.
  /CC_NEW=1/,
  // What the machine does not permit.
  /only root can|can be mounted|strace does not work/,
];

/** Tests that were skipped, out of a report in TAP, with why. A suite that is skipped is one of them. */
export function skippedIn(tap) {
  return Array.from(tap.matchAll(/^ *ok \d+ - (.*?) # SKIP ?(.*)$/gm), ([, name, why]) => ({ name, why }));
}

/** Of those, what says that something is missing. */
export function incomplete(skipped) {
  return skipped.filter(({ why }) => !FINE.some((reason) => reason.test(why)));
}
