/**
 * What the packaging tests do with the package wherever they install it. Runs in every host, so it uses nothing but
 * the package and standard JavaScript. A new case is a new key here, and its value in `expected`.
 */
export async function scenario(library) {
  const thrown = new library.CompactionError("closed", "said");
  return {
    version: library.version(),
    error: [thrown instanceof Error, thrown.code, library.CompactionError.isInstance(thrown)],
  };
}

/** What `scenario` returns, as JSON. */
export const expected = { version: "0.1.0", error: [true, "closed", true] };
