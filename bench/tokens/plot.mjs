/** The plot of the bench `tokens`: how fast, beside how far off. A tenfold speed is a fixed length. */

const NAMES = {
  estimate: "estimateTokens",
  tokenx: "tokenx",
  exact: "loadTokenizer, exact",
  "gpt-tokenizer": "gpt-tokenizer, exact",
  tiktoken: "tiktoken, exact",
  "js-tiktoken": "js-tiktoken, exact",
};
const SPEED = "again (MB/s)";
const [ROW, LEFT, DECADE, HEAD] = [30, 190, 130, 44];
/** Where the bars begin. */
const LEAST = 0.1;

export function plot(rows) {
  const shown = Object.entries(NAMES).flatMap(([name, label]) => {
    const speed = rows.find((row) => row.case === name)?.[SPEED];
    return speed === undefined ? [] : [{ label, speed, ours: name === "estimate" || name === "exact" }];
  });
  shown.sort((one, other) => other.speed - one.speed);
  const [width, height] = [LEFT + 4 * DECADE + 60, HEAD + shown.length * ROW + 8];
  const at = (speed) => Math.round(Math.log10(Math.max(speed, LEAST) / LEAST) * DECADE);
  const bars = shown.map(({ label, speed, ours }, nth) => {
    const y = HEAD + nth * ROW;
    return [
      `  <text x="${LEFT - 8}" y="${y + 15}" text-anchor="end">${label}</text>`,
      `  <rect x="${LEFT}" y="${y}" width="${at(speed)}" height="20" rx="2" fill="${ours ? "#2f6fde" : "#9aa4b2"}"/>`,
      `  <text x="${LEFT + at(speed) + 6}" y="${y + 15}">${Number(speed.toPrecision(2))}</text>`,
    ].join("\n");
  });
  const lines = [1, 10, 100].map((speed) => {
    const x = LEFT + at(speed);
    return `  <line x1="${x}" y1="${HEAD - 8}" x2="${x}" y2="${height - 8}" stroke="#c9d0d9"/>\n  <text x="${x}" y="${HEAD - 14}" text-anchor="middle">${speed}</text>`;
  });
  const title = "Tokens of o200k_base: megabytes a second, texts seen before, one core";
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="13" fill="#57606a" role="img" aria-label="${title}">
  <title>${title}</title>
  <text x="8" y="16" font-weight="600">MB/s, warm</text>
${[...lines, ...bars].join("\n")}
</svg>
`;
}
