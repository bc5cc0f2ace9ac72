/** The interval of 95 % of `measure` by the bootstrap over what was `found`, always the same. */
export function interval(found, measure) {
  let state = 1;
  const next = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  const drawn = Array.from({ length: 1_000 }, () => measure(found.map(() => found[Math.floor(next() * found.length)])));
  drawn.sort((a, b) => a - b);
  return [drawn[25], drawn[974]];
}
