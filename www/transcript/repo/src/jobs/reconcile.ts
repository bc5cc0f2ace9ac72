import pg from "pg";
import pino from "pino";
import { journalEntry } from "../ledger/post.js";
import { invoiceTotals } from "../invoice/totals.js";
import { loadDrafts } from "../invoice/repository.js";

const log = pino({ name: "reconcile" });

/** Compares the printed total with the ledger's receivable for every invoice issued on a day. */
export async function reconcile(pool: pg.Pool, day: string): Promise<number> {
  let differences = 0;
  for await (const { number, draft, printedTotal } of loadDrafts(pool, day)) {
    const [receivable] = journalEntry(invoiceTotals(draft));
    const ledger = receivable?.debit ?? 0;
    if (ledger === printedTotal) continue;
    differences += 1;
    log.warn({ number, printedTotal, ledger, difference: printedTotal - ledger }, "totals differ");
    await pool.query(
      `INSERT INTO reconciliation_diffs (invoice_number, printed_cents, ledger_cents, found_on)
       VALUES ($1, $2, $3, $4) ON CONFLICT (invoice_number) DO NOTHING`,
      [number, printedTotal, ledger, day],
    );
  }
  log.info({ day, differences }, "reconciliation finished");
  return differences;
}
