/** Rows as an aligned text table: names to the left, numbers to the right. */
export function table(rows) {
  const columns = [...new Set(rows.flatMap(Object.keys))];
  const lines = [columns, ...rows.map((row) => columns.map((column) => show(row[column])))];
  const widths = columns.map((_, at) => Math.max(...lines.map((line) => line[at].length)));
  const isNumber = columns.map((column) => rows.every((row) => typeof (row[column] ?? 0) === "number"));
  return lines
    .map((line) => line.map((cell, at) => (isNumber[at] ? cell.padStart(widths[at]) : cell.padEnd(widths[at]))))
    .map((cells) => cells.join("  ").trimEnd())
    .join("\n");
}

function show(value) {
  if (value === undefined) return "";
  if (typeof value !== "number" || Number.isInteger(value)) return String(value);
  return value.toPrecision(4);
}
