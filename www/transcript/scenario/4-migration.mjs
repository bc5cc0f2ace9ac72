import { psql, vitest } from "../lib/terminal.mjs";

const UP = `-- 1 = half-up, discount rounded per tax group (everything issued before this migration)
-- 2 = FIN-212 / ADR 0007
-- Adding a column with a constant default does not rewrite the table: the default is stored in the catalogue.
SET lock_timeout = '2s';
ALTER TABLE invoices ADD COLUMN rounding_version smallint NOT NULL DEFAULT 1;
ALTER TABLE invoices ALTER COLUMN rounding_version SET DEFAULT 2;
ALTER TABLE invoices ADD CONSTRAINT invoices_rounding_version_known CHECK (rounding_version IN (1, 2)) NOT VALID;
`;
const VALIDATE = `-- Its own migration: validation scans the table, but takes a lock that lets reads and writes pass.
ALTER TABLE invoices VALIDATE CONSTRAINT invoices_rounding_version_known;
`;
const DOWN = `SET lock_timeout = '2s';
ALTER TABLE invoices DROP CONSTRAINT IF EXISTS invoices_rounding_version_known;
ALTER TABLE invoices DROP COLUMN rounding_version;
`;
const LEGACY = `import { type BasisPoints, type Cents, ZERO, add, cents, sum } from "../money/cents.js";
import { byTaxRate, lineNet } from "./lines.js";
import type { InvoiceDraft, InvoiceTotals, TaxGroup } from "./totals.js";

/**
 * The totals as they were computed up to rounding version 1. Kept so that a document which a customer
 * holds renders as it was issued. Never used for a new invoice; do not "fix" it.
 */
export function legacyTotals(draft: InvoiceDraft): InvoiceTotals {
  const subtotal = sum(draft.lines.map(lineNet));
  const discount = halfUp(subtotal, draft.discountRate);
  const groups: TaxGroup[] = [];
  for (const [rate, lines] of byTaxRate(draft.lines)) {
    const gross = sum(lines.map(lineNet));
    const share = halfUp(gross, draft.discountRate);
    const net = cents(gross - share);
    groups.push({ rate, net, discount: share, tax: draft.reverseCharge ? ZERO : halfUp(net, rate) });
  }
  const tax = sum(groups.map((group) => group.tax));
  return { subtotal, discount, groups, tax, total: add(cents(subtotal - discount), tax) };
}

function halfUp(amount: Cents, rate: BasisPoints): Cents {
  return cents(Number((BigInt(amount) * BigInt(rate) + 5_000n) / 10_000n));
}
`;

const LOCK_PAGE = `# Schema changes on large tables (PostgreSQL handbook of this company)

## What a change locks

Every ALTER TABLE needs a lock on the table. What matters is which one, and for how long.

| change | lock | rewrites the table | scans the table |
|---|---|---|---|
| ADD COLUMN, no default | ACCESS EXCLUSIVE, short | no | no |
| ADD COLUMN, constant default | ACCESS EXCLUSIVE, short | no (since version 11) | no |
| ADD COLUMN, volatile default | ACCESS EXCLUSIVE, long | yes | yes |
| ALTER COLUMN SET DEFAULT | ACCESS EXCLUSIVE, short | no | no |
| SET NOT NULL | ACCESS EXCLUSIVE | no | yes, unless a valid CHECK proves it |
| ADD CHECK | ACCESS EXCLUSIVE | no | yes |
| ADD CHECK NOT VALID | ACCESS EXCLUSIVE, short | no | no |
| VALIDATE CONSTRAINT | SHARE UPDATE EXCLUSIVE | no | yes, beside reads and writes |
| CREATE INDEX | SHARE | no | yes, writes wait |
| CREATE INDEX CONCURRENTLY | SHARE UPDATE EXCLUSIVE | no | twice, beside reads and writes |

## The queue is the danger

A short ACCESS EXCLUSIVE lock is harmless when it is granted at once. When one long-running report
holds ACCESS SHARE, the ALTER waits, and every query that arrives after it waits behind it, even a
plain SELECT. Ten seconds of waiting are ten seconds of outage. Therefore:

1. Always set \`lock_timeout\`. Two seconds is our default. A migration that times out has changed
   nothing and can be tried again.
2. Retry with a pause that is longer than the timeout, so that the queue can drain.
3. Look for long transactions first: \`SELECT pid, now() - xact_start AS age, query FROM
   pg_stat_activity WHERE xact_start < now() - interval '1 minute' ORDER BY age DESC\`.
4. Do not run two schema changes in one transaction with a backfill. The lock is held to the end.

## Defaults and existing rows

With a constant default the value is stored once, in the catalogue (\`attmissingval\`). Existing rows
are not touched: a read fills the value in. Changing the default later changes new rows only. So the
usual way to give old rows one value and new rows another is two statements: add the column with the
value for the old rows, then set the default for the new ones. No backfill, no rewrite.

## Backfills

When a value has to be computed per row, do it in batches by primary key, each its own transaction,
with a pause that replication can keep up with. Record the last key so that the job can be resumed.
Watch \`pg_stat_replication\` and stop when the lag passes 30 seconds.

## Rolling back

A \`down\` is not a wish. It runs against the staging copy in review, and again after the \`up\` has been
applied a second time: up, down, up must leave the same schema as up. Dropping a column is also an
ACCESS EXCLUSIVE lock, also short, and the bytes are only reclaimed when rows are rewritten.
`;

/** A column for eleven million rows, without a long lock. */
export function migration({ run, ws, random, invoices, sample }) {
  run.step(
    "Now the migration. First the house rules for large tables, and what the table looks like on the staging copy.",
    ["web_fetch", { url: "https://handbook.example.com/postgres/large-tables" }, LOCK_PAGE],
    ["sql", { database: "postgres://readonly@localhost:5433/invoicing", query: "SELECT relname, reltuples::bigint AS rows, pg_size_pretty(pg_total_relation_size(oid)) AS size, pg_size_pretty(pg_indexes_size(oid)) AS indexes FROM pg_class WHERE relname IN ('invoices', 'invoice_lines', 'journal_rows', 'pdf_store') ORDER BY reltuples DESC" },
      psql(["relname", "rows", "size", "indexes"], [["journal_rows", 58_204_118, "9412 MB", "4120 MB"], ["invoice_lines", 41_775_902, "7688 MB", "2904 MB"], ["invoices", 11_230_447, "3127 MB", "1266 MB"], ["pdf_store", 11_198_020, "1894 MB", "742 MB"]])],
  );
  run.step(
    "",
    ["read_file", { path: "migrations/0042_reconciliation_diffs.up.sql" }, ws.show("migrations/0042_reconciliation_diffs.up.sql")],
    ["bash", { command: "psql -p 5433 -d invoicing -c '\\d+ invoices'" }, `                                              Table "public.invoices"
       Column        |     Type      | Nullable |         Default          | Storage  | Description
---------------------+---------------+----------+--------------------------+----------+-----------------------------
 number              | text          | not null |                          | extended | gapless per year
 customer_id         | bigint        | not null |                          | plain    |
 currency            | character(3)  | not null | 'EUR'::bpchar            | extended |
 issued_on           | date          | not null |                          | plain    |
 due_on              | date          | not null |                          | plain    |
 discount_bp         | integer       | not null | 0                        | plain    | basis points
 reverse_charge      | boolean       | not null | false                    | plain    |
 printed_total_cents | bigint        |          |                          | plain    | set when the PDF is rendered
 created_at          | timestamptz   | not null | now()                    | plain    |
Indexes:
    "invoices_pkey" PRIMARY KEY, btree (number)
    "invoices_customer_issued" btree (customer_id, issued_on DESC)
    "invoices_due_open" btree (due_on) WHERE printed_total_cents IS NOT NULL
    "invoices_number_trgm" gin (number gin_trgm_ops)
Check constraints:
    "invoices_due_after_issue" CHECK (due_on >= issued_on)
Referenced by:
    TABLE "credit_notes" CONSTRAINT "credit_notes_invoice_fkey" FOREIGN KEY (invoice_number) REFERENCES invoices(number)
    TABLE "invoice_lines" CONSTRAINT "invoice_lines_invoice_fkey" FOREIGN KEY (invoice_number) REFERENCES invoices(number)
    TABLE "journal_rows" CONSTRAINT "journal_rows_invoice_fkey" FOREIGN KEY (invoice_number) REFERENCES invoices(number)
    TABLE "reconciliation_diffs" CONSTRAINT "reconciliation_diffs_invoice_number_fkey" FOREIGN KEY (invoice_number) REFERENCES invoices(number)
Access method: heap`],
    ["sql", { database: "postgres://readonly@localhost:5433/invoicing", query: "SELECT pid, now() - xact_start AS age, state, left(query, 60) AS query FROM pg_stat_activity WHERE xact_start IS NOT NULL ORDER BY age DESC LIMIT 5" },
      psql(["pid", "age", "state", "query"], [[48_113, "00:03:41.20", "active", "SELECT * FROM export_datev('2025-09')"], [50_871, "00:00:00.91", "active", "INSERT INTO invoices (number, customer_id, currency, is"], [50_880, "00:00:00.02", "idle in transaction", "UPDATE payments SET matched_on = now() WHERE reference"]])],
  );
  run.say(
    "Plan, so that you can object before anything runs:\n\n" +
      "* `0043` adds `rounding_version smallint NOT NULL DEFAULT 1`, then sets the default to 2. Both are catalogue changes: no rewrite, no backfill, a lock of milliseconds. `lock_timeout = '2s'` so that it gives up instead of queueing everyone behind the DATEV export (which holds its lock for minutes, see pid 48113).\n" +
      "* The CHECK constraint comes as NOT VALID, and `0044` validates it separately, beside reads and writes.\n" +
      "* There is a window: between deploying 0043 and deploying the new code, the *old* code would insert rows with default 2. So the order is code first (it writes the version explicitly and tolerates the column's absence), then the migration. Or: the old default stays 1 until the code is out. I prefer the second, it has no special case in code.\n\n" +
      "So 0043 keeps DEFAULT 1, the code writes 2 explicitly, and a later 0045 moves the default.",
  );
  run.user("The second is better, yes. But keep it to two migrations: put SET DEFAULT 2 into 0044 together with the validation, we deploy that one after the code anyway. And the column must not show up in the API.");
  const up = UP.replace("ALTER TABLE invoices ALTER COLUMN rounding_version SET DEFAULT 2;\n", "");
  const validate = `${VALIDATE.replace("-- Its own migration:", "SET lock_timeout = '2s';\n-- New code writes the version itself; the default follows once that is deployed.\nALTER TABLE invoices ALTER COLUMN rounding_version SET DEFAULT 2;\n-- Beside the default, not in 0043:")}`;
  run.step(
    "Two migrations then. `src/api/invoices.ts` picks its fields one by one into a strict object, so a new column cannot leak; I'll prove it with the schema test rather than by reading.",
    ["write_file", { path: "migrations/0043_rounding_version.up.sql", content: up }, ws.write("migrations/0043_rounding_version.up.sql", up)],
    ["write_file", { path: "migrations/0043_rounding_version.down.sql", content: DOWN }, ws.write("migrations/0043_rounding_version.down.sql", DOWN)],
    ["write_file", { path: "migrations/0044_rounding_version_default.up.sql", content: validate }, ws.write("migrations/0044_rounding_version_default.up.sql", validate)],
    ["write_file", { path: "migrations/0044_rounding_version_default.down.sql", content: "ALTER TABLE invoices ALTER COLUMN rounding_version SET DEFAULT 1;\n" }, ws.write("migrations/0044_rounding_version_default.down.sql", "ALTER TABLE invoices ALTER COLUMN rounding_version SET DEFAULT 1;\n")],
    ["read_file", { path: "src/api/invoices.ts" }, ws.show("src/api/invoices.ts")],
  );
  const timing = (name, ms) => `${name.padEnd(44)} ${String(ms).padStart(8)} ms`;
  run.step(
    "On the staging copy, with the shop's write load replayed against it:",
    ["bash", { command: "scripts/replay-load.sh --db postgres://migrate@localhost:5433/invoicing --rate 120 & npm run migrate -- --to 0043 --db postgres://migrate@localhost:5433/invoicing --verbose" },
      `> @brightwater/invoicing@4.17.2 migrate\n\nconnected to localhost:5433/invoicing (schema version 42)\n0043_rounding_version.up.sql\n  SET lock_timeout = '2s'\n  ALTER TABLE invoices ADD COLUMN rounding_version …\nERROR:  canceling statement due to lock timeout\nCONTEXT: waiting for AccessExclusiveLock on relation 24611 of database 16402, held by pid 48113 (AccessShareLock)\nnothing was changed; retry 1 of 5 in 6 s\n  ALTER TABLE invoices ADD COLUMN rounding_version …\nERROR:  canceling statement due to lock timeout\nnothing was changed; retry 2 of 5 in 6 s\n  ALTER TABLE invoices ADD COLUMN rounding_version …\n${timing("  ADD COLUMN", 11.4)}\n${timing("  ADD CONSTRAINT … NOT VALID", 3.9)}\nschema version 43`],
    ["bash", { command: "scripts/replay-load.sh --report" }, `window        requests   p50 ms   p95 ms   p99 ms   errors\n${Array.from({ length: 18 }, (_, i) => {
      const waiting = i === 5 || i === 8;
      return `+${String(i * 2).padStart(3)}s..+${String(i * 2 + 2).padStart(3)}s ${String(random.int(232, 246)).padStart(8)} ${(3 + random.next()).toFixed(1).padStart(8)} ${(waiting ? 1_880 + random.int(0, 90) : 9 + random.next() * 3).toFixed(1).padStart(8)} ${(waiting ? 1_990 + random.int(0, 9) : 17 + random.next() * 5).toFixed(1).padStart(8)} ${String(0).padStart(8)}`;
    }).join("\n")}`],
  );
  run.say(
    "That is the queue from the handbook, seen live: while the ALTER waited for the DATEV export, p95 rose to about 1.9 s in two windows, then the timeout let everyone through. No request failed. In production I would run it outside the export (02:40 to 03:10 UTC) and lower `lock_timeout` to 500 ms: more retries, but nobody waits longer than half a second. May I change that?",
  );
  run.user("Yes, 500ms. 0043 has only run on the staging copy, so strictly speaking it has run. Don't edit it in place: roll back with the down first, check that up, down, up gives the same schema, then change it. That's what rule 5 is for.");
  run.step(
    "Right, the order matters: down first, compare schemas, then edit, then up again.",
    ["bash", { command: "pg_dump -p 5433 -s -t invoices invoicing > /tmp/up1.sql; npm run -s migrate -- --to 0042 --db $STAGING_COPY && pg_dump -p 5433 -s -t invoices invoicing > /tmp/down1.sql && diff /tmp/down1.sql fixtures/schema-0042.sql && echo same as 0042" }, `0043_rounding_version.down.sql\n${timing("  DROP CONSTRAINT", 2.2)}\n${timing("  DROP COLUMN", 4.7)}\nschema version 42\nsame as 0042`],
    ["bash", { command: "sed -i \"s/lock_timeout = '2s'/lock_timeout = '500ms'/\" migrations/004[34]_*.sql && npm run -s migrate -- --to 0043 --db $STAGING_COPY && pg_dump -p 5433 -s -t invoices invoicing > /tmp/up2.sql && diff /tmp/up1.sql /tmp/up2.sql && echo up, down, up: same schema" },
      `0043_rounding_version.up.sql\n${timing("  ADD COLUMN", 9.8)}\n${timing("  ADD CONSTRAINT … NOT VALID", 3.1)}\nschema version 43\nup, down, up: same schema`],
    ["sql", { database: "postgres://readonly@localhost:5433/invoicing", query: "SELECT rounding_version, count(*) FROM invoices GROUP BY 1" }, psql(["rounding_version", "count"], [[1, 11_230_961]])],
  );
  for (const path of ws.changed().filter((name) => name.startsWith("migrations/"))) ws.write(path, ws.read(path).replace("'2s'", "'500ms'"));
  run.step(
    "Now the code: new invoices are computed by version 2 and say so, old ones render by version 1. The old arithmetic moves to a file of its own, in integers (half-up without a float), so that rule 2 holds there too.",
    ["write_file", { path: "src/invoice/legacy-totals.ts", content: LEGACY }, ws.write("src/invoice/legacy-totals.ts", LEGACY)],
    ["grep", { pattern: "invoiceTotals\\(", path: "." }, ws.grep("invoiceTotals\\(")],
  );
  const importBefore = 'import { invoiceTotals } from "../invoice/totals.js";';
  const importAfter = 'import { totalsOf } from "../invoice/totals-of.js";';
  const useBefore = "journalEntry(invoiceTotals(draft))";
  const useAfter = "journalEntry(totalsOf(draft, roundingVersion))";
  const totalsOf = `import { legacyTotals } from "./legacy-totals.js";\nimport { type InvoiceDraft, type InvoiceTotals, invoiceTotals } from "./totals.js";\n\nexport type RoundingVersion = 1 | 2;\nexport const CURRENT_ROUNDING: RoundingVersion = 2;\n\n/** Totals by the rule under which the invoice was issued. */\nexport function totalsOf(draft: InvoiceDraft, version: RoundingVersion): InvoiceTotals {\n  return version === 1 ? legacyTotals(draft) : invoiceTotals(draft);\n}\n`;
  run.step(
    "",
    ["write_file", { path: "src/invoice/totals-of.ts", content: totalsOf }, ws.write("src/invoice/totals-of.ts", totalsOf)],
    ["edit_file", { path: "src/jobs/reconcile.ts", old: importBefore, new: importAfter }, ws.edit("src/jobs/reconcile.ts", importBefore, importAfter)],
    ["edit_file", { path: "src/jobs/reconcile.ts", old: "{ number, draft, printedTotal }", new: "{ number, draft, printedTotal, roundingVersion }" }, ws.edit("src/jobs/reconcile.ts", "{ number, draft, printedTotal }", "{ number, draft, printedTotal, roundingVersion }")],
    ["edit_file", { path: "src/jobs/reconcile.ts", old: useBefore, new: useAfter }, ws.edit("src/jobs/reconcile.ts", useBefore, useAfter)],
    ["run_tests", { filter: "" }, vitest(random, { extra: {
      "test/invoice/totals.test.ts": [`prints what the ledger books (${sample.number})`],
      "test/invoice/legacy-totals.test.ts": ["reproduces 400 issued invoices to the cent", "is not used for new invoices"],
      "test/money/allocate.test.ts": ["gives the left-over cent to the largest remainder", "breaks a tie by priority, then by position", "shares nothing out over nothing", "always adds up", "is never more than a cent away from the exact share"],
      "test/api/invoices.test.ts": ["does not expose rounding_version"],
    } })],
  );
  const some = invoices.filter((_, i) => i % 5 === 1).slice(0, 40);
  run.step(
    "The proof that matters for rule 4: re-render PDFs that customers already hold and compare the printed total with the stored one.",
    ["bash", { command: "node --import tsx scripts/rerender-check.ts --db $STAGING_COPY --month 2025-09 --compare stored-total --format tsv" },
      ["number\tversion\tstored\trerendered\tsame_bytes", ...some.map((invoice) => `${invoice.number}\t1\t${invoice.old.total}\t${invoice.old.total}\tyes`), `${some.length} sampled, 0 differ`].join("\n")],
    ["bash", { command: "git add -A && git commit -q -m 'Remember by which rounding rule an invoice was issued' && git log -1 --format='%h %s'" }, "4ac90d1 Remember by which rounding rule an invoice was issued"],
  );
  ws.commit();
}
