// @ts-check
/** Geometry of the chart, in its own coordinates. */

/** @typedef {{ x: number, values: number[] }} Point */

/** Closed paths of a stacked area, bottom layer first.
 *  @param {readonly Point[]} points @param {(x: number) => number} scaleX @param {(y: number) => number} scaleY
 *  @returns {string[]} */
export function stackedPaths(points, scaleX, scaleY) {
  const layers = points[0]?.values.length ?? 0;
  const sums = points.map(() => 0);
  const paths = [];
  for (let layer = 0; layer < layers; layer += 1) {
    const lower = points.map((point, i) => `${round(scaleX(point.x))} ${round(scaleY(sums[i] ?? 0))}`);
    points.forEach((point, i) => (sums[i] = (sums[i] ?? 0) + (point.values[layer] ?? 0)));
    const upper = points.map((point, i) => `${round(scaleX(point.x))} ${round(scaleY(sums[i] ?? 0))}`);
    paths.push(points.length > 0 ? `M${upper.join("L")}L${lower.reverse().join("L")}Z` : "");
  }
  return paths;
}

/** @param {readonly { x: number, y: number }[]} points @param {(x: number) => number} scaleX @param {(y: number) => number} scaleY */
export function linePath(points, scaleX, scaleY) {
  return points.length > 0
    ? `M${points.map(({ x, y }) => `${round(scaleX(x))} ${round(scaleY(y))}`).join("L")}`
    : "";
}

/** Round tick values from 0 up to `max`, whole numbers only. @param {number} max @param {number} count @returns {number[]} */
export function ticks(max, count) {
  if (max <= 0) return [0];
  const raw = Math.max(1, max / count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step =
    ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= raw && Number.isInteger(factor * power)) ?? 10) *
    power;
  return Array.from({ length: Math.floor(max / step) + 1 }, (_, i) => i * step);
}

/** @param {number} value */
const round = (value) => Math.round(value * 10) / 10;
