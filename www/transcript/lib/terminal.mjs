/** Output of the tools in the recorded run. */

const pad = (value, width, right = false) => (right ? String(value).padStart(width) : String(value).padEnd(width));

/** Rows as psql prints them; numbers are right-aligned. */
export function psql(columns, rows) {
  const widths = columns.map((name, i) => Math.max(name.length, ...rows.map((row) => String(row[i]).length)));
  const line = (cells) => ` ${cells.join(" | ")} `;
  return [
    line(columns.map((name, i) => pad(name, widths[i]))),
    widths.map((width) => "-".repeat(width + 2)).join("+"),
    ...rows.map((row) => line(row.map((cell, i) => pad(cell, widths[i], typeof cell === "number")))),
    `(${rows.length} row${rows.length === 1 ? "" : "s"})`,
  ].join("\n");
}

const SUITES = {
  "test/money/cents.test.ts": ["rejects fractions", "rejects unsafe integers", "adds", "sums an empty list to zero", "parses \"1234.5\"", "parses a negative amount", "rejects three decimals", "rejects a comma", "formats EUR for en-IE", "formats EUR for de-DE"],
  "test/invoice/lines.test.ts": ["multiplies quantity and price", "rounds a half to even", "keeps thousandths of a unit", "groups lines by tax rate", "keeps the order of first appearance"],
  "test/invoice/totals.test.ts": ["adds up an invoice with one rate and no discount", "keeps tax groups apart", "applies the discount before tax", "charges no tax under reverse charge"],
  "test/invoice/pdf.test.ts": ["prints one VAT row per group", "prints no discount row when there is none", "prints \"(reverse charge)\" after the rate", "uses the customer's locale", "breaks a long description over two lines"],
  "test/ledger/post.test.ts": ["balances", "posts revenue per tax group", "posts no tax row for reverse charge", "posts credit notes with the signs swapped", "refuses an unbalanced entry"],
  "test/credit/notes.test.ts": ["credits a whole invoice", "credits half of an invoice", "keeps the rate of each group", "never credits more than was charged"],
  "test/dunning/holidays.test.ts": ["knows the fixed holidays of IE", "knows the fixed holidays of DE-BE", "knows none for \"none\""],
  "test/dunning/schedule.test.ts": ["sends three reminders after the due date", "leaves out reminders that are already in the past", "moves a reminder off a weekend"],
  "test/dunning/letters.test.ts": ["picks the template by level", "escapes the customer's name", "prints the amount due in the customer's locale"],
  "test/api/invoices.test.ts": ["returns 404 for an unknown number", "matches the frozen schema", "has no field that the schema does not know", "serialises negative totals", "sets cache headers"],
  "test/api/payments.test.ts": ["accepts a payment", "is idempotent by payment reference", "refuses a payment in another currency", "allocates an overpayment to the oldest invoice"],
  "test/api/health.test.ts": ["answers while the database is away", "reports the schema version"],
  "test/jobs/reconcile.test.ts": ["writes nothing on a clean day", "writes one row per difference", "is safe to run twice", "logs the difference in cents"],
  "test/jobs/render-pdfs.test.ts": ["renders what is missing", "skips what exists", "continues after one failure"],
};

/** A vitest run. `extra` adds cases to suites, `failures` maps "suite > case" to the block that explains it. */
export function vitest(random, { only = "", extra = {}, failures = {} } = {}) {
  const out = [" RUN  v3.2.4 /srv/invoicing", ""];
  let passed = 0;
  let failed = 0;
  let files = 0;
  let failedFiles = 0;
  const blocks = [];
  for (const suite of new Set([...Object.keys(SUITES), ...Object.keys(extra)])) {
    if (!suite.includes(only)) continue;
    files += 1;
    const lines = [];
    let broken = 0;
    let total = 0;
    for (const name of [...(SUITES[suite] ?? []), ...(extra[suite] ?? [])]) {
      const ms = random.int(0, 9) === 0 ? random.int(12, 240) : random.int(0, 6);
      total += ms;
      const failure = failures[`${suite} > ${name}`];
      if (failure) {
        broken += 1;
        blocks.push(` FAIL  ${suite} > ${name}\n${failure}\n`);
      }
      lines.push(`   ${failure ? "×" : "✓"} ${name} ${ms}ms`);
    }
    failed += broken;
    passed += lines.length - broken;
    if (broken > 0) failedFiles += 1;
    const note = broken > 0 ? ` | ${broken} failed` : "";
    out.push(` ${broken > 0 ? "❯" : "✓"} ${suite} (${lines.length} tests${note}) ${total}ms`, ...lines);
  }
  if (blocks.length > 0) out.push("", `⎯⎯⎯⎯⎯⎯⎯ Failed Tests ${failed} ⎯⎯⎯⎯⎯⎯⎯`, "", blocks.join("\n"));
  const tally = (bad, good, all) => `${bad > 0 ? `${bad} failed | ` : ""}${good} passed (${all})`;
  out.push(
    "",
    ` Test Files  ${tally(failedFiles, files - failedFiles, files)}`,
    `      Tests  ${tally(failed, passed, passed + failed)}`,
    `   Start at  ${pad(random.int(9, 16), 2, true)}:${String(random.int(10, 59))}:${String(random.int(10, 59))}`,
    `   Duration  ${(2 + random.next() * 2).toFixed(2)}s (transform ${random.int(310, 520)}ms, setup 0ms, collect ${(1 + random.next()).toFixed(2)}s, tests ${random.int(480, 990)}ms)`,
  );
  return out.join("\n");
}

const FOLDERS = {
  "src/api": ["auth", "credit-notes", "errors", "health", "invoices", "openapi", "pagination", "payments", "rate-limit", "server", "webhooks"],
  "src/credit": ["notes", "repository"],
  "src/db": ["advisory-lock", "pool", "retry", "transaction"],
  "src/dunning": ["clock", "holidays", "letters", "repository", "schedule", "send"],
  "src/invoice": ["lines", "numbering", "pdf", "pdf-layout", "repository", "totals"],
  "src/jobs": ["reconcile", "render-pdfs", "retention", "runner"],
  "src/ledger": ["accounts", "export-datev", "post", "repository"],
  "src/money": ["cents", "currencies", "round"],
  "src/payments": ["allocate-payment", "import-camt", "match", "repository"],
  "src/support": ["audit", "feature-flags", "ids", "result"],
  "test/api": ["health.test", "invoices.test", "payments.test"],
  "test/credit": ["notes.test"],
  "test/dunning": ["holidays.test", "letters.test", "schedule.test"],
  "test/invoice": ["lines.test", "pdf.test", "totals.test"],
  "test/jobs": ["reconcile.test", "render-pdfs.test"],
  "test/ledger": ["post.test"],
  "test/money": ["cents.test"],
  "test/support": ["database", "drafts", "matchers"],
};
const MIGRATIONS = ["init", "customers", "invoices", "invoice_lines", "numbering", "payments", "payment_refs", "ledger_accounts",
  "journal", "journal_rows", "credit_notes", "dunning", "dunning_levels", "templates", "holidays", "audit", "api_keys", "webhooks",
  "webhook_attempts", "currencies", "tax_rates", "tax_groups", "reverse_charge", "pdf_store", "pdf_checksums", "retention",
  "partner_scopes", "idempotency", "camt_imports", "camt_entries", "matching", "numbering_gaps", "invoice_search", "trgm_index",
  "journal_partition", "journal_2024", "journal_2025", "customer_locale", "customer_timezone", "printed_total", "outbox", "reconciliation_diffs"];

/** `find -printf` of the whole repository. */
export function fileListing(random) {
  const rows = ["README.md", "CONTRIBUTING.md", "package.json", "package-lock.json", "tsconfig.json", "tsconfig.build.json",
    "vitest.config.ts", "vitest.db.config.ts", "eslint.config.js", "docker-compose.yml", "openapi.yaml", ".github/workflows/ci.yml"];
  for (const [folder, names] of Object.entries(FOLDERS)) rows.push(...names.map((name) => `${folder}/${name}.ts`));
  for (let i = 1; i <= 8; i += 1) rows.push(`docs/adr/000${i}-${["records", "postgres", "journal", "numbering", "api-freeze", "pdf-store", "rounding", "outbox"][i - 1]}.md`);
  MIGRATIONS.forEach((name, i) => {
    const number = String(i + 1).padStart(4, "0");
    rows.push(`migrations/${number}_${name}.up.sql`, `migrations/${number}_${name}.down.sql`);
  });
  rows.push("scripts/migrate.ts", "scripts/seed.ts", "scripts/export-fixtures.ts");
  return rows
    .map((path) => `-rw-r--r-- ${pad(random.int(180, path.includes("lock") ? 214_000 : 7_400), 7, true)} 2025-${String(random.int(1, 9)).padStart(2, "0")}-${String(random.int(1, 28)).padStart(2, "0")} ${path}`)
    .join("\n");
}

/** Structured log lines of the nightly job. */
export function reconcileLog(random, invoices, day) {
  const lines = [];
  let time = Date.parse(`${day}T02:00:03.114Z`);
  const line = (level, fields) => {
    time += random.int(4, 190);
    lines.push(JSON.stringify({ level, time, pid: 71, hostname: "jobs-6f9c", name: "reconcile", ...fields }));
  };
  line(30, { day, msg: "reconciliation started" });
  for (const [i, invoice] of invoices.entries()) {
    const ledger = invoice.old.groups.reduce((sum, { net, tax }) => sum + net + tax, 0);
    if (ledger !== invoice.old.total) {
      line(40, { number: invoice.number, printedTotal: invoice.old.total, ledger, difference: invoice.old.total - ledger, msg: "totals differ" });
    } else if (i % 3 === 0) line(20, { number: invoice.number, total: ledger, ms: random.int(2, 31), msg: "ok" });
  }
  const differences = invoices.filter(({ old }) => old.groups.reduce((sum, { net, tax }) => sum + net + tax, 0) !== old.total).length;
  line(30, { day, differences, msg: "reconciliation finished" });
  return lines.join("\n");
}

/** A CI job's log with the runner's timestamps. */
export function ciLog(random, steps) {
  let time = Date.parse("2025-10-02T13:41:07.000Z");
  const out = [];
  for (const [name, body] of steps) {
    out.push(`##[group]${name}`);
    for (const line of body.split("\n")) {
      time += random.int(1, 640);
      out.push(`${new Date(time).toISOString().replace("Z", `${random.int(1000, 9999)}Z`)} ${line}`);
    }
    out.push("##[endgroup]");
  }
  return out.join("\n");
}

export function coverage(random) {
  const rows = [];
  for (const [folder, names] of Object.entries(FOLDERS)) {
    if (!folder.startsWith("src")) continue;
    for (const name of names) {
      const pure = /money|invoice|credit|ledger\/post/.test(`${folder}/${name}`);
      const lines = pure ? random.int(960, 1000) / 10 : random.int(610, 990) / 10;
      const branches = Math.max(40, lines - random.int(0, 140) / 10);
      rows.push(` ${pad(`${folder}/${name}.ts`, 34)} | ${pad(lines.toFixed(2), 7, true)} | ${pad(branches.toFixed(2), 8, true)} | ${pad(lines.toFixed(2), 7, true)} | ${lines > 99 ? "" : `${random.int(12, 40)}-${random.int(41, 88)}`}`);
    }
  }
  return [` ${pad("File", 34)} | % Stmts | % Branch | % Lines | Uncovered`, "-".repeat(82), ...rows].join("\n");
}

/** The public contract, long and repetitive as such files are. */
export function openapi() {
  const resources = {
    Invoice: ["number:string", "currency:string", "issuedOn:date", "subtotalCents:integer", "discountCents:integer", "taxCents:integer", "totalCents:integer", "taxGroups:TaxGroup[]"],
    TaxGroup: ["rateBp:integer", "netCents:integer", "taxCents:integer"],
    CreditNote: ["number:string", "invoice:string", "issuedOn:date", "taxGroups:TaxGroup[]", "totalCents:integer"],
    Payment: ["reference:string", "currency:string", "amountCents:integer", "receivedOn:date", "allocations:Allocation[]"],
    Allocation: ["invoice:string", "amountCents:integer"],
    Webhook: ["id:string", "url:string", "events:string[]", "createdAt:date-time"],
    Error: ["error:string", "detail:string"],
  };
  const schema = (type) => {
    if (type.endsWith("[]")) return ["type: array", `items: { ${schema(type.slice(0, -2)).join(", ")} }`];
    if (type in resources) return [`$ref: "#/components/schemas/${type}"`];
    return type.startsWith("date") ? ["type: string", `format: ${type}`] : [`type: ${type}`];
  };
  const path = (route, method, summary, ref, codes) => [
    `  ${route}:`, `    ${method}:`, `      summary: ${summary}`, `      operationId: ${method}${ref}`, "      security: [{ partner: [read] }]", "      responses:",
    ...codes.flatMap((code) => [`        "${code}":`, `          description: ${code < 300 ? "ok" : code === 404 ? "no such number" : "refused"}`, "          content:", "            application/json:", `              schema: { $ref: "#/components/schemas/${code < 300 ? ref : "Error"}" }`]),
  ];
  const lines = [
    "openapi: 3.1.0", "info: { title: Invoicing, version: 2.8.0 }", "servers: [{ url: https://invoicing.example.com }]", "paths:",
    ...path("/v2/invoices/{number}", "get", "One invoice", "Invoice", [200, 404]),
    ...path("/v2/credit-notes/{number}", "get", "One credit note", "CreditNote", [200, 404]),
    ...path("/v2/payments", "post", "Record a payment", "Payment", [201, 400, 409]),
    ...path("/v2/webhooks", "post", "Subscribe to events", "Webhook", [201, 400]),
    "components:", "  schemas:",
    ...Object.entries(resources).flatMap(([name, fields]) => [
      `    ${name}:`, "      type: object", "      additionalProperties: false", `      required: [${fields.map((field) => field.split(":")[0]).join(", ")}]`, "      properties:",
      ...fields.flatMap((field) => [`        ${field.split(":")[0]}:`, ...schema(field.split(":")[1]).map((line) => `          ${line}`)]),
    ]),
  ];
  return `openapi.yaml (lines 1-${lines.length} of ${lines.length})\n${lines.map((line, i) => `${String(i + 1).padStart(5)}│${line}`).join("\n")}`;
}
