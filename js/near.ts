/** Names that are nearly so, for errors. */

/** The names of `known` that a misspelt one may mean, nearest first; none if nothing is near. */
export function near(wanted: string, known: readonly string[], most: number): string[] {
  return nearest(wanted, known.filter((name) => isNear(wanted.toLowerCase(), name.toLowerCase())), most);
}

/** All names of `known`, the nearest to a misspelt one first. */
export function nearest(wanted: string, known: readonly string[], most = known.length): string[] {
  const steps = new Map(known.map((name) => [name, distance(wanted.toLowerCase(), name.toLowerCase())]));
  return [...known].sort((a, b) => (steps.get(a) ?? 0) - (steps.get(b) ?? 0)).slice(0, most);
}

/** A third of the letters may differ; or words are left out of one of them, as in `window` and `maxTokens`. */
function isNear(wanted: string, name: string): boolean {
  if (wanted.length > 3 && name.length > 3 && (name.includes(wanted) || wanted.includes(name))) return true;
  if (wanted.length * 2 > name.length && isWithin(wanted, name)) return true;
  return distance(wanted, name) <= Math.max(1, Math.floor(Math.max(wanted.length, name.length) / 3));
}

/** True when all letters of `part` are in `whole`, in their order. */
function isWithin(part: string, whole: string): boolean {
  let at = 0;
  for (const letter of whole) if (letter === part[at]) at++;
  return at === part.length;
}

/** Letters to insert, delete or exchange until one name is the other. */
export function distance(from: string, to: string): number {
  let row = Array.from({ length: from.length + 1 }, (_, at) => at);
  for (const [nth, letter] of [...to].entries()) {
    const next = [nth + 1];
    for (let at = 0; at < from.length; at++) {
      const exchanged = (row[at] ?? 0) + Number(letter !== from[at]);
      next.push(Math.min(exchanged, (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1));
    }
    row = next;
  }
  return row[from.length] ?? 0;
}
