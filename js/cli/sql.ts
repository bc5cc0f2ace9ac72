/** `sql`: the table of `sqlStore`, for a role that may not make it. */

import { checkTable, Statements } from "../store/sql/statements.js";
import { EXIT, wrongUsage } from "./exit.js";
import type { Terminal } from "./terminal.js";
import { meant, type Given } from "./usage.js";

/** What each dialect is spoken by. */
const DIALECTS = { postgres: "PostgreSQL, Neon", sqlite: "SQLite, libSQL, Turso, Cloudflare D1" } as const;
type Dialect = keyof typeof DIALECTS;

export function sql({ file, table = "context_compactor" }: Given, terminal: Terminal): Promise<number> {
  const names = Object.keys(DIALECTS);
  if (!names.includes(file)) throw wrongUsage(`sql ${file}${meant(file, names)}; there are ${names.join(", ")}`);
  const dialect = file as Dialect;
  checkTable(table);
  const statements = new Statements(table, dialect).create().map(({ text }) => `${text};`);
  terminal.object("sql", { dialect, table, statements });
  terminal.line(`-- ${DIALECTS[dialect]}: the table of sqlStore. A role that may not make it needs it, and SELECT, INSERT, UPDATE and DELETE on it.`);
  for (const statement of statements) terminal.line(statement);
  return Promise.resolve(EXIT.fine);
}
