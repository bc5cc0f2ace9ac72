/** Files that are served in place of the engine's module. */

/** The first half of a file. */
export const truncated = (file) => file.subarray(0, file.length >> 1);

/** The same module as another build would have made it: with another id in its section `build`. */
export function ofAnotherBuild(file) {
  const at = file.lastIndexOf("\x05build", undefined, "latin1");
  if (at < 0) throw new Error("the module has no section `build`");
  const other = Buffer.from(file);
  other.fill("0", at + 6);
  return other;
}
