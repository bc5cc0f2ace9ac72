/** A line chart as SVG: shares over budgets, a line for each method. */

const size = { width: 760, height: 420, left: 56, right: 190, top: 44, bottom: 48 };
const colours = { ours: "#0b6e4f", oracle: "#555555", other: "#9aa5b1", adversary: "#c0392b" };

/**
 * The chart of `series`: `[{ name, kind, values: [{ budget, value }] }]`, `kind` one of ours, oracle, other, adversary.
 * Budgets stand at equal distances, labels at the ends of the lines and apart from each other.
 */
export function chart(title, series) {
  const budgets = series[0].values.map(({ budget }) => budget);
  const x = (at) => size.left + ((size.width - size.left - size.right) * at) / (budgets.length - 1);
  const y = (value) => size.top + (size.height - size.top - size.bottom) * (1 - value);
  const parts = [];
  for (const value of [0, 0.2, 0.4, 0.6, 0.8, 1]) {
    parts.push(`<line x1="${size.left}" x2="${x(budgets.length - 1)}" y1="${y(value)}" y2="${y(value)}" stroke="#e4e7eb"/>`);
    parts.push(text(size.left - 8, y(value) + 4, value.toFixed(1), "end"));
  }
  budgets.forEach((budget, at) => parts.push(text(x(at), size.height - size.bottom + 20, `${budget} %`, "middle")));
  parts.push(text(x((budgets.length - 1) / 2), size.height - 10, "budget, share of the prefix's tokens", "middle"));
  const ends = apart(series.map(({ values }) => y(values.at(-1).value)), 14);
  series.forEach(({ name, kind, values }, nth) => {
    const points = values.map(({ value }, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
    const width = kind === "ours" ? 3 : 1.5;
    const dash = kind === "oracle" ? ' stroke-dasharray="5 4"' : "";
    parts.push(`<polyline points="${points}" fill="none" stroke="${colours[kind]}" stroke-width="${width}"${dash}/>`);
    parts.push(text(x(budgets.length - 1) + 10, ends[nth] + 4, name, "start", colours[kind]));
  });
  parts.push(text(size.left, 24, title, "start", "#1f2933", 15));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" font-family="sans-serif">`,
    `<rect width="${size.width}" height="${size.height}" fill="#ffffff"/>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

function text(x, y, content, anchor, colour = "#52606d", points = 12) {
  const escaped = content.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const place = `x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}"`;
  return `<text ${place} font-size="${points}" fill="${colour}">${escaped}</text>`;
}

/** Heights at least `gap` from each other, each as near to where it was as those above it allow. */
function apart(heights, gap) {
  const order = heights.map((_, at) => at).sort((a, b) => heights[a] - heights[b]);
  const placed = [...heights];
  order.forEach((at, nth) => {
    if (nth > 0) placed[at] = Math.max(placed[at], placed[order[nth - 1]] + gap);
  });
  return placed;
}
