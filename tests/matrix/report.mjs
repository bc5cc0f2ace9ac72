/** The report of the matrix, and `docs/environments.md`, which is made from it. */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { copied } from "./rows/bundlers.mjs";
import { ROWS } from "./rows.mjs";

const REPORT = new URL("../../bench/reports/environments.json", import.meta.url);
export const PAGE = new URL("../../docs/environments.md", import.meta.url);

/** What was measured: by row, the versions of `packages`, and by case what was found. */
export const readReport = () => (existsSync(REPORT) ? JSON.parse(readFileSync(REPORT, "utf8")) : {});

/** Writes both, in the order of the rows. */
export function writeReport(found) {
  const report = Object.fromEntries(Object.keys(ROWS).flatMap((name) => (found[name] ? [[name, found[name]]] : [])));
  writeFileSync(REPORT, `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(PAGE, pageOf(report));
}

const line = (cells) => `| ${cells.join(" | ")} |`;
const table = (head, rows) => [line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line)].join("\n");

/** Where what was said: rows and their cases, by what it is. */
function said(cases, texts) {
  const where = new Map();
  for (const one of cases) for (const text of texts(one) ?? []) where.set(text, [...(where.get(text) ?? []), `${one.row} (${one.what})`]);
  return Array.from(where, ([text, places]) => `* \`${text.replaceAll("`", "")}\`: ${places.join(", ")}`).join("\n");
}

export function pageOf(report) {
  const cases = Object.entries(report).flatMap(([row, { cases }]) => Object.entries(cases).map(([what, found]) => ({ row, what, ...found })));
  const found = cases.map(({ row, what, engine, first }) => [row, what, engine, first ? Math.round(first / 1000).toLocaleString("en-US") : ""]);
  const versions = Object.entries(report).map(([row, { packages }]) => [row, Object.entries(packages).map((named) => named.join(" ")).join(", ")]);
  return `# Environments

Each row is an app of its own, which npm installs beside the packed package. It compacts a conversation, and then does what it does
everywhere: sessions, recall, exact tokens, two copies. Pages run in Chromium, programs in their runtime. Nothing is configured for the
package, unless the row says so. \`BLESS=1 npm test -- matrix\` runs the rows and writes this page.

The engine comes as a *file* that the host finds by itself; as *code*, which needs nothing else; or as a *module* that the host has
compiled ([how that goes](entries.md)). *First load* is what a page loads of the package before its first call, with all of the main entry:
scripts after gzip, in KB, without what a framework loads on every page.

${table(["environment", "case", "engine", "first load"], found)}

## What it says

Where it is refused, the error says why:

${said(cases, ({ error }) => error && [error])}

Parcel finds the main entry alone, unless \`package.json\` has \`"@parcel/resolver-default": { "packageExports": true }\`.

Builds warn of large files, which are loaded when they are asked for: tables of tokenizers, and the engine as code. Next warns of every
edge route. They say nothing else.

${said(cases, ({ warnings }) => warnings)}

The console of the browser has requests that failed where the bundler does not copy the files, or a policy forbids them. The engine then
comes as code. Everywhere else it stays empty.

${said(cases, ({ console }) => console)}

To have the files there, and no such line, copy them to where the console misses them:

\`\`\`js esbuild
${copied("dist")}\`\`\`

## Versions

${table(["environment", "packages"], versions)}
`;
}
