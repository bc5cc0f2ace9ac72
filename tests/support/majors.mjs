/**
 * Majors of what others make, by their numbers, oldest first: of these the newest is tested, and with `CC_MAJORS=all`
 * (`npm test -- matrix`) every one.
 */
export function majorsOf(all) {
  const majors = Object.entries(all);
  return process.env.CC_MAJORS === "all" ? majors : majors.slice(-1);
}
