/** Names that are nearly so, for errors. */

/** The names of `known` nearest to a misspelt one, the nearest first. */
export function nearest(wanted: string, known: readonly string[], most: number): string[] {
  const steps = new Map(known.map((name) => [name, distance(wanted.toLowerCase(), name.toLowerCase())]));
  return [...known].sort((a, b) => (steps.get(a) ?? 0) - (steps.get(b) ?? 0)).slice(0, most);
}

/** Letters to insert, delete or exchange until one name is the other. */
function distance(from: string, to: string): number {
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
